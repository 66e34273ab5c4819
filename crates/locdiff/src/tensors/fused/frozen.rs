//! Operations of networks that are only asked, never trained.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex, backend_extension};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::elementary::{exp, vectorised};
use super::operations::{contiguous, rows_of_chunk, slice_of, width_of};

#[backend_extension(Flex)]
pub(crate) trait FrozenOperations: Backend {
    /// residual + x + bias of residual, x `[rows, width]` and bias `[width]`.
    fn add_with_bias(
        residual: FloatTensor<Self>,
        x: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// Each row (the last axis) as shares of e^x.
    fn softmax_of_rows(x: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl FrozenOperations for Flex {
    fn add_with_bias(residual: FlexTensor, x: FlexTensor, bias: FlexTensor) -> FlexTensor {
        let mut x = contiguous(x);
        let width = width_of(&x);
        let (residual, bias) = (residual.to_contiguous(), bias.to_contiguous());
        let (residual, bias) = (slice_of(&residual), slice_of(&bias));
        let chunk = rows_of_chunk(width);
        let values: &mut [f32] = x.storage_mut();
        values.par_chunks_mut(chunk).zip(residual.par_chunks(chunk)).for_each(|(values, old)| {
            vectorised!({
                for (row, old) in values.chunks_exact_mut(width).zip(old.chunks_exact(width)) {
                    for k in 0..width {
                        row[k] += old[k] + bias[k];
                    }
                }
            });
        });
        x
    }

    fn softmax_of_rows(x: FlexTensor) -> FlexTensor {
        let mut x = contiguous(x);
        let width = width_of(&x);
        let values: &mut [f32] = x.storage_mut();
        values.par_chunks_mut(rows_of_chunk(width)).for_each(|rows| {
            vectorised!({
                for row in rows.chunks_exact_mut(width) {
                    let highest = lanes(row, f32::MIN, f32::max);
                    row.iter_mut().for_each(|value| *value = exp(*value - highest));
                    let factor = 1.0 / lanes(row, 0.0, |a, b| a + b);
                    row.iter_mut().for_each(|value| *value *= factor);
                }
            });
        });
        x
    }
}

/// A reduction over sixteen lanes, so that it is vectorised.
#[inline(always)]
fn lanes(values: &[f32], start: f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let (chunks, rest) = values.as_chunks::<16>();
    let mut lanes = [start; 16];
    for chunk in chunks {
        for k in 0..16 {
            lanes[k] = combine(lanes[k], chunk[k]);
        }
    }
    lanes.iter().chain(rest).fold(start, |a, b| combine(a, *b))
}
