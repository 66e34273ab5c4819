//! Rows with mean zero and variance one, in one pass each way.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Flex, backend_extension};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::elementary::vectorised;
use super::operations::{contiguous, rows_of_chunk, slice_of, width_of};

/// Added to variances.
pub(super) const EPSILON: f32 = 1e-5;

#[backend_extension(Flex, Autodiff)]
pub(crate) trait Normalisation: Backend {
    /// Each row of x `[rows, width]` less its mean, over its standard deviation.
    fn normalise(x: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl Normalisation for Flex {
    fn normalise(x: FlexTensor) -> FlexTensor {
        normalise(x).0
    }
}

impl<C: CheckpointStrategy> Normalisation for Autodiff<Flex, C> {
    fn normalise(x: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct NormalisationBackward;
        impl Backward<Flex, 1> for NormalisationBackward {
            /// The result, and one over each row's deviation.
            type State = (FlexTensor, Vec<f32>);

            fn backward(
                self,
                ops: Ops<Self::State, 1>,
                gradients: &mut Gradients,
                _checkpointer: &mut Checkpointer,
            ) {
                let (y, scales) = ops.state;
                let [x] = ops.parents;
                let gradient = gradients.consume::<Flex>(&ops.node);
                if let Some(x) = x {
                    gradients.register::<Flex>(x.id, normalise_back(&y, &scales, gradient));
                }
            }
        }
        match NormalisationBackward.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let (y, scales) = normalise(x.into_primitive());
                prepared.finish((y.clone(), scales), y)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(normalise(x.into_primitive()).0),
        }
    }
}

fn normalise(x: FlexTensor) -> (FlexTensor, Vec<f32>) {
    let mut x = contiguous(x);
    let width = width_of(&x);
    let values: &mut [f32] = x.storage_mut();
    let chunk = rows_of_chunk(width);
    let mut scales = vec![0.0_f32; values.len() / width];
    let chunks = values.par_chunks_mut(chunk).zip(scales.par_chunks_mut(chunk / width));
    chunks.for_each(|(values, scales)| {
        vectorised!({
            for (row, scale) in values.chunks_exact_mut(width).zip(scales) {
                let mean = sum(
                    row,
                    #[inline(always)]
                    |_, x| x,
                    row,
                ) / width as f32;
                row.iter_mut().for_each(|x| *x -= mean);
                let square = sum(
                    row,
                    #[inline(always)]
                    |x, y| x * y,
                    row,
                ) / width as f32;
                *scale = 1.0 / (square + EPSILON).sqrt();
                let factor = *scale;
                row.iter_mut().for_each(|x| *x *= factor);
            }
        });
    });
    (x, scales)
}

/// scale ⊙ normalised + shift of rows, on one thread.
pub(crate) fn normalise_rows(rows: &[f32], scale: &[f32], shift: &[f32], output: &mut [f32]) {
    let width = scale.len();
    vectorised!({
        for (row, output) in rows.chunks_exact(width).zip(output.chunks_exact_mut(width)) {
            let mean = sum(
                row,
                #[inline(always)]
                |x, _| x,
                row,
            ) / width as f32;
            for (y, x) in output.iter_mut().zip(row) {
                *y = x - mean;
            }
            let square = sum(
                output,
                #[inline(always)]
                |x, y| x * y,
                output,
            ) / width as f32;
            let factor = 1.0 / (square + EPSILON).sqrt();
            for k in 0..width {
                output[k] = scale[k] * (output[k] * factor) + shift[k];
            }
        }
    });
}

/// (g − mean g − y·mean(g ⊙ y)) / deviation.
fn normalise_back(y: &FlexTensor, scales: &[f32], gradient: FlexTensor) -> FlexTensor {
    let mut gradient = contiguous(gradient);
    let width = width_of(y);
    let y = slice_of(y);
    let values: &mut [f32] = gradient.storage_mut();
    let chunk = rows_of_chunk(width);
    let chunks = values.par_chunks_mut(chunk).zip(y.par_chunks(chunk));
    chunks.zip(scales.par_chunks(chunk / width)).for_each(|((values, y), scales)| {
        vectorised!({
            let rows = values.chunks_exact_mut(width).zip(y.chunks_exact(width));
            for ((row, y), scale) in rows.zip(scales) {
                let mean = sum(
                    row,
                    #[inline(always)]
                    |g, _| g,
                    y,
                ) / width as f32;
                let along = sum(
                    row,
                    #[inline(always)]
                    |g, y| g * y,
                    y,
                ) / width as f32;
                for (g, y) in row.iter_mut().zip(y) {
                    *g = (*g - mean - y * along) * scale;
                }
            }
        });
    });
    gradient
}

/// Σ f(aₖ, bₖ) in sixteen lanes, so that it is vectorised.
#[inline(always)]
fn sum(a: &[f32], f: impl Fn(f32, f32) -> f32, b: &[f32]) -> f32 {
    let ((a_chunks, a_rest), (b_chunks, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut lanes = [0.0_f32; 16];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for k in 0..16 {
            lanes[k] += f(a[k], b[k]);
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| f(*a, *b)).sum();
    lanes.iter().sum::<f32>() + rest
}
