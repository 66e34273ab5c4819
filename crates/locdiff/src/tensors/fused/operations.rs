//! The operations themselves: on slices, over the threads of rayon, and as Burn's
//! operations with their gradients.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Flex, TensorMetadata, backend_extension};
use burn::tensor::TensorData;
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::elementary::vectorised;

/// Numbers that one task works on.
const CHUNK: usize = 8192;

/// The operations that the CPU does in one pass.
#[backend_extension(Flex, Autodiff)]
pub(crate) trait FusedOperations: Backend {
    /// (1 + α) ⊙ x + ε + c of x, c `[rows, width]` and α, ε side by side
    /// `[rows, 2·width]`.
    fn modulate(
        x: FloatTensor<Self>,
        modulation: FloatTensor<Self>,
        c: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// A number `[1]` whose gradient by x is known: `gradient`, of the shape of x.
    fn with_gradient(
        x: FloatTensor<Self>,
        value: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

impl FusedOperations for Flex {
    fn modulate(x: FlexTensor, modulation: FlexTensor, c: FlexTensor) -> FlexTensor {
        modulate(x, &modulation, &c)
    }

    fn with_gradient(_x: FlexTensor, value: FlexTensor, _gradient: FlexTensor) -> FlexTensor {
        value
    }
}

impl<C: CheckpointStrategy> FusedOperations for Autodiff<Flex, C> {
    fn modulate(
        x: FloatTensor<Self>,
        modulation: FloatTensor<Self>,
        c: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct ModulateBackward;
        impl Backward<Flex, 3> for ModulateBackward {
            type State = (FlexTensor, FlexTensor);

            fn backward(
                self,
                ops: Ops<(FlexTensor, FlexTensor), 3>,
                gradients: &mut Gradients,
                _checkpointer: &mut Checkpointer,
            ) {
                let (x, modulation) = ops.state;
                let [x_node, modulation_node, c_node] = ops.parents;
                let gradient = gradients.consume::<Flex>(&ops.node).to_contiguous();
                if let Some(node) = modulation_node {
                    let of_modulation = modulation_gradient(&x, &gradient);
                    gradients.register::<Flex>(node.id, of_modulation);
                }
                if let Some(node) = x_node {
                    let of_x = scaled_by_modulation(x, &modulation, &gradient);
                    gradients.register::<Flex>(node.id, of_x);
                }
                if let Some(node) = c_node {
                    gradients.register::<Flex>(node.id, gradient);
                }
            }
        }
        let nodes = [x.node(), modulation.node(), c.node()];
        match ModulateBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let (x, modulation) = (contiguous(x.into_primitive()), modulation.into_primitive());
                let output = modulate(x.clone(), &modulation, &c.into_primitive());
                prepared.finish((x, modulation), output)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(modulate(
                x.into_primitive(),
                &modulation.into_primitive(),
                &c.into_primitive(),
            )),
        }
    }

    fn with_gradient(
        x: FloatTensor<Self>,
        value: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct KnownGradient;
        impl Backward<Flex, 1> for KnownGradient {
            type State = FlexTensor;

            fn backward(
                self,
                ops: Ops<FlexTensor, 1>,
                gradients: &mut Gradients,
                _checkpointer: &mut Checkpointer,
            ) {
                let [x] = ops.parents;
                let outer = slice_of(&gradients.consume::<Flex>(&ops.node)).first().copied();
                if let Some(x) = x {
                    let of_x = scaled(ops.state, outer.unwrap_or(1.0));
                    gradients.register::<Flex>(x.id, of_x);
                }
            }
        }
        let (value, gradient) = (value.into_primitive(), gradient.into_primitive());
        match KnownGradient.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish(gradient, value),
            OpsKind::UnTracked(prepared) => prepared.finish(value),
        }
    }
}

/// In one piece. The original is given up: while it lives, the numbers are shared, and writing
/// to them would copy all of them first.
pub(super) fn contiguous(tensor: FlexTensor) -> FlexTensor {
    tensor.to_contiguous()
}

/// The numbers of a contiguous tensor.
pub fn slice_of(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("a contiguous tensor of f32")
}

pub(super) fn width_of(tensor: &FlexTensor) -> usize {
    let shape = tensor.shape();
    shape[shape.num_dims() - 1]
}

/// Whole rows that come to about a chunk.
pub(super) fn rows_of_chunk(width: usize) -> usize {
    (CHUNK / width).max(1) * width
}

fn modulate(x: FlexTensor, modulation: &FlexTensor, c: &FlexTensor) -> FlexTensor {
    let mut x = contiguous(x);
    let width = width_of(&x);
    let (modulation, c) = (modulation.to_contiguous(), c.to_contiguous());
    let (modulation, c) = (slice_of(&modulation), slice_of(&c));
    let values: &mut [f32] = x.storage_mut();
    let chunk = rows_of_chunk(width);
    let chunks =
        values.par_chunks_mut(chunk).zip(modulation.par_chunks(2 * chunk)).zip(c.par_chunks(chunk));
    chunks.for_each(|((values, modulation), c)| {
        vectorised!({
            let rows = values.chunks_exact_mut(width).zip(modulation.chunks_exact(2 * width));
            for ((row, modulation), c) in rows.zip(c.chunks_exact(width)) {
                let (scale, shift) = modulation.split_at(width);
                for k in 0..width {
                    row[k] = (1.0 + scale[k]) * row[k] + shift[k] + c[k];
                }
            }
        });
    });
    x
}

/// Of α: x ⊙ gradient; of ε: the gradient. `[rows, 2·width]`
fn modulation_gradient(x: &FlexTensor, gradient: &FlexTensor) -> FlexTensor {
    let width = width_of(x);
    let (values, gradients) = (slice_of(x), slice_of(gradient));
    let mut both = vec![0.0_f32; 2 * values.len()];
    let chunk = rows_of_chunk(width);
    let chunks = both
        .par_chunks_mut(2 * chunk)
        .zip(values.par_chunks(chunk))
        .zip(gradients.par_chunks(chunk));
    chunks.for_each(|((both, values), gradients)| {
        vectorised!({
            let rows = both.chunks_exact_mut(2 * width).zip(values.chunks_exact(width));
            for ((both, values), gradients) in rows.zip(gradients.chunks_exact(width)) {
                let (scale, shift) = both.split_at_mut(width);
                shift.copy_from_slice(gradients);
                for k in 0..width {
                    scale[k] = values[k] * gradients[k];
                }
            }
        });
    });
    FlexTensor::from_data(TensorData::new(both, [values.len() / width, 2 * width]))
}

/// (1 + α) ⊙ gradient, in the memory of x.
fn scaled_by_modulation(
    mut x: FlexTensor,
    modulation: &FlexTensor,
    gradient: &FlexTensor,
) -> FlexTensor {
    let width = width_of(&x);
    let modulation = modulation.to_contiguous();
    let (modulation, gradient) = (slice_of(&modulation), slice_of(gradient));
    let values: &mut [f32] = x.storage_mut();
    let chunk = rows_of_chunk(width);
    let chunks = values
        .par_chunks_mut(chunk)
        .zip(modulation.par_chunks(2 * chunk))
        .zip(gradient.par_chunks(chunk));
    chunks.for_each(|((values, modulation), gradient)| {
        vectorised!({
            let rows = values.chunks_exact_mut(width).zip(modulation.chunks_exact(2 * width));
            for ((row, modulation), gradient) in rows.zip(gradient.chunks_exact(width)) {
                for k in 0..width {
                    row[k] = (1.0 + modulation[k]) * gradient[k];
                }
            }
        });
    });
    x
}

/// a ⊙ b, in the memory of a if it is not shared.
pub(super) fn product(a: FlexTensor, b: &FlexTensor) -> FlexTensor {
    let mut a = contiguous(a);
    let b = b.to_contiguous();
    let factors = slice_of(&b);
    let values: &mut [f32] = a.storage_mut();
    values.par_chunks_mut(CHUNK).zip(factors.par_chunks(CHUNK)).for_each(|(values, factors)| {
        vectorised!(values.iter_mut().zip(factors).for_each(|(value, factor)| *value *= factor));
    });
    a
}

fn scaled(mut tensor: FlexTensor, factor: f32) -> FlexTensor {
    if factor != 1.0 {
        let values: &mut [f32] = tensor.storage_mut();
        values.par_chunks_mut(CHUNK).for_each(|values| {
            vectorised!(values.iter_mut().for_each(|value| *value *= factor));
        });
    }
    tensor
}

/// The sums of the columns `[width]` of a tensor `[rows, width]`. Always added in the same
/// order, whatever the number of threads.
pub(super) fn column_sums(tensor: &FlexTensor) -> FlexTensor {
    let width = width_of(tensor);
    let partial: Vec<Vec<f32>> = slice_of(tensor)
        .par_chunks(rows_of_chunk(width))
        .map(|rows| {
            let mut sums = vec![0.0_f32; width];
            vectorised!({
                for row in rows.chunks_exact(width) {
                    sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                }
            });
            sums
        })
        .collect();
    let mut sums = vec![0.0_f32; width];
    for part in &partial {
        sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    }
    FlexTensor::from_data(TensorData::new(sums, [width]))
}
