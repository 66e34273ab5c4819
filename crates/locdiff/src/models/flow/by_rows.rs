//! The network on the CPU. Each thread takes its particles through all blocks, in memory that it keeps: threads wait for one
//! another once, and nothing large is copied or cleared.

use std::cell::RefCell;

use burn::backend::Flex;
use burn::tensor::{Tensor, TensorData};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use crate::tensors::fused::{
    Matrix, gelu_of_rows, multiply, normalise_rows, numbers_of, slice_of, vectorised,
};

/// Fewer particles are not worth a thread: it packs all weights for them.
const FEWEST: usize = 64;

thread_local! {
    /// h, what goes into a layer or comes from it, and the wide middle of a block.
    static MEMORY: RefCell<[Vec<f32>; 3]> = const { RefCell::new([const { Vec::new() }; 3]) };
}

/// Numbers of a tensor, in order.
struct Held(FlexTensor);

impl Held {
    fn of<const D: usize>(tensor: &Tensor<D>) -> Held {
        let primitive = tensor.clone().try_into_primitive::<Flex>();
        Held(primitive.expect("a tensor of the CPU").to_contiguous())
    }

    fn numbers(&self) -> &[f32] {
        slice_of(&self.0)
    }
}

/// A matrix and a bias.
pub(super) struct Layer {
    weight: Held,
    bias: Held,
}

impl Layer {
    pub(super) fn new(weight: &Tensor<2>, bias: &Tensor<1>) -> Layer {
        Layer { weight: Held::of(weight), bias: Held::of(bias) }
    }

    fn outputs(&self) -> usize {
        self.bias.numbers().len()
    }

    /// Without the bias. `output` is as long as it must be.
    fn product(&self, rows: &[f32], output: &mut [f32]) {
        let weight = Matrix::by_rows(self.weight.numbers(), self.outputs());
        let inputs = self.weight.numbers().len() / self.outputs();
        multiply(Matrix::by_rows(rows, inputs), weight, output, false);
    }
}

/// Factors and summands after a normalisation.
pub(super) struct Modulation {
    scale: Held,
    shift: Held,
}

impl Modulation {
    pub(super) fn new(scale: &Tensor<1>, shift: &Tensor<1>) -> Modulation {
        Modulation { scale: Held::of(scale), shift: Held::of(shift) }
    }

    fn normalised(&self, h: &[f32], output: &mut [f32]) {
        normalise_rows(h, self.scale.numbers(), self.shift.numbers(), output);
    }
}

/// One block with its condition.
pub(super) struct Block {
    modulation: Modulation,
    up: Layer,
    down: Layer,
    gate: Held,
}

impl Block {
    pub(super) fn new(modulation: Modulation, up: Layer, down: Layer, gate: &Tensor<1>) -> Block {
        Block { modulation, up, down, gate: Held::of(gate) }
    }
}

/// The network with its condition.
pub(super) struct Network {
    pub(super) initial: Layer,
    pub(super) blocks: Vec<Block>,
    pub(super) modulation: Modulation,
    pub(super) last: Layer,
}

impl Network {
    /// dx/dγ of particles `[particles, 3]`.
    pub(super) fn velocity(&self, x: &Tensor<2>) -> Tensor<2> {
        let particles = numbers_of(x);
        let count = particles.len() / 3;
        let chunk = 3 * count.div_ceil(rayon::current_num_threads()).max(FEWEST);
        let mut velocities = vec![0.0; particles.len()];
        let chunks = velocities.par_chunks_mut(chunk).zip(particles.par_chunks(chunk));
        chunks.for_each(|(output, x)| self.of_some(x, output));
        Tensor::from_data(TensorData::new(velocities, [count, 3]), &x.device())
    }

    fn of_some(&self, x: &[f32], output: &mut [f32]) {
        let (rows, width) = (x.len() / 3, self.initial.outputs());
        MEMORY.with_borrow_mut(|[h, inner, middle]| {
            h.resize(rows * width, 0.0);
            inner.resize(rows * width, 0.0);
            self.initial.product(x, h);
            add_to_rows(h, self.initial.bias.numbers());
            for Block { modulation, up, down, gate } in &self.blocks {
                modulation.normalised(h, inner);
                middle.resize(rows * up.outputs(), 0.0);
                up.product(inner, middle);
                gelu_of_rows(middle, up.bias.numbers());
                down.product(middle, inner);
                add_scaled(h, inner, down.bias.numbers(), gate.numbers());
            }
            self.modulation.normalised(h, inner);
            self.last.product(inner, output);
            add_to_rows(output, self.last.bias.numbers());
        });
    }
}

fn add_to_rows(rows: &mut [f32], bias: &[f32]) {
    for row in rows.chunks_exact_mut(bias.len()) {
        row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
    }
}

/// h += gate ⊙ (x + bias).
fn add_scaled(h: &mut [f32], x: &[f32], bias: &[f32], gate: &[f32]) {
    let width = bias.len();
    vectorised!({
        for (h, x) in h.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
            for k in 0..width {
                h[k] += gate[k] * (x[k] + bias[k]);
            }
        }
    });
}
