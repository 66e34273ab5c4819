//! The network on the CPU. Each thread takes its particles through all blocks, in memory that it keeps: threads wait for one
//! another once, and nothing large is copied or cleared.

use std::cell::RefCell;

use burn::backend::Flex;
use burn::tensor::{Tensor, TensorData};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::network::{Conditioned, Dense};
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

struct Layer {
    weight: Held,
    bias: Held,
}

impl Layer {
    fn of(dense: &Dense) -> Layer {
        Layer { weight: Held::of(&dense.weight), bias: Held::of(&dense.bias) }
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

/// dx/dγ of particles `[particles, 3]`.
pub(super) fn velocity(part: &Conditioned, x: &Tensor<2>) -> Tensor<2> {
    let (initial, last) = (Layer::of(&part.initial), Layer::of(&part.last));
    let (scale, shift) = (Held::of(&part.scale), Held::of(&part.shift));
    let blocks: Vec<_> = part
        .blocks
        .iter()
        .map(|block| {
            let vectors = [&block.scale, &block.shift, &block.gate].map(Held::of);
            (vectors, Layer::of(&block.up), Layer::of(&block.down))
        })
        .collect();
    let particles = numbers_of(x);
    let count = particles.len() / 3;
    let chunk = 3 * count.div_ceil(rayon::current_num_threads()).max(FEWEST);
    let mut velocities = vec![0.0; particles.len()];
    velocities.par_chunks_mut(chunk).zip(particles.par_chunks(chunk)).for_each(|(output, x)| {
        MEMORY.with_borrow_mut(|[h, inner, middle]| {
            let rows = x.len() / 3;
            let width = initial.outputs();
            h.resize(rows * width, 0.0);
            inner.resize(rows * width, 0.0);
            initial.product(x, h);
            add_to_rows(h, initial.bias.numbers());
            for ([scale, shift, gate], up, down) in &blocks {
                normalise_rows(h, scale.numbers(), shift.numbers(), inner);
                middle.resize(rows * up.outputs(), 0.0);
                up.product(inner, middle);
                gelu_of_rows(middle, up.bias.numbers());
                down.product(middle, inner);
                add_scaled(h, inner, down.bias.numbers(), gate.numbers());
            }
            normalise_rows(h, scale.numbers(), shift.numbers(), inner);
            last.product(inner, output);
            add_to_rows(output, last.bias.numbers());
        });
    });
    Tensor::from_data(TensorData::new(velocities, [count, 3]), &x.device())
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
