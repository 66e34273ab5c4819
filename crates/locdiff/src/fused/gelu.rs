//! GELU of x + bias in one pass, exact or by CLIP's approximation, with its gradient.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Flex, TensorMetadata, backend_extension};
use burn::tensor::TensorData;
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::elementary::{erf_and_exp, exp, vectorised};
use super::operations::{column_sums, contiguous, product, rows_of_chunk, slice_of, width_of};
use crate::vision_transformer::Gelu;

#[backend_extension(Flex, Autodiff)]
pub(crate) trait GeluOperation: Backend {
    /// GELU of x `[rows, width]` + bias `[width]`.
    fn biased_gelu(x: FloatTensor<Self>, bias: FloatTensor<Self>, kind: Gelu) -> FloatTensor<Self>;
}

impl GeluOperation for Flex {
    fn biased_gelu(x: FlexTensor, bias: FlexTensor, kind: Gelu) -> FlexTensor {
        gelu(x, &bias, kind, None)
    }
}

impl<C: CheckpointStrategy> GeluOperation for Autodiff<Flex, C> {
    fn biased_gelu(x: FloatTensor<Self>, bias: FloatTensor<Self>, kind: Gelu) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct GeluBackward;
        impl Backward<Flex, 2> for GeluBackward {
            /// The slopes at x + bias.
            type State = FlexTensor;

            fn backward(
                self,
                ops: Ops<FlexTensor, 2>,
                gradients: &mut Gradients,
                _checkpointer: &mut Checkpointer,
            ) {
                let [x, bias] = ops.parents;
                let gradient = gradients.consume::<Flex>(&ops.node);
                let of_x = product(ops.state, &gradient);
                if let Some(bias) = bias {
                    gradients.register::<Flex>(bias.id, column_sums(&of_x));
                }
                if let Some(x) = x {
                    gradients.register::<Flex>(x.id, of_x);
                }
            }
        }
        match GeluBackward.prepare::<C>([x.node(), bias.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let x = x.into_primitive();
                let shape = x.shape();
                let mut slopes = Vec::new();
                let output = gelu(x, &bias.into_primitive(), kind, Some(&mut slopes));
                prepared.finish(FlexTensor::from_data(TensorData::new(slopes, shape)), output)
            }
            OpsKind::UnTracked(prepared) => {
                prepared.finish(gelu(x.into_primitive(), &bias.into_primitive(), kind, None))
            }
        }
    }
}

fn gelu(x: FlexTensor, bias: &FlexTensor, kind: Gelu, slopes: Option<&mut Vec<f32>>) -> FlexTensor {
    match kind {
        Gelu::Exact => apply(x, bias, slopes, exact),
        Gelu::Quick => apply(x, bias, slopes, quick),
    }
}

/// x·Φ(x), and its slope Φ(x) + x·φ(x).
#[inline(always)]
fn exact(x: f32) -> (f32, f32) {
    let (erf, power) = erf_and_exp(x * std::f32::consts::FRAC_1_SQRT_2); // e^(−x²/2)
    let cumulative = 0.5 + 0.5 * erf;
    const INVERSE_SQRT_2_PI: f32 = 0.398_942_3;
    (x * cumulative, cumulative + x * INVERSE_SQRT_2_PI * power)
}

/// x·σ(1.702·x), and its slope.
#[inline(always)]
fn quick(x: f32) -> (f32, f32) {
    let sigmoid = 1.0 / (1.0 + exp(-1.702 * x));
    (x * sigmoid, sigmoid + 1.702 * x * sigmoid * (1.0 - sigmoid))
}

#[inline(always)]
fn apply(
    x: FlexTensor,
    bias: &FlexTensor,
    slopes: Option<&mut Vec<f32>>,
    function: impl Fn(f32) -> (f32, f32) + Copy + Sync + Send,
) -> FlexTensor {
    let mut x = contiguous(x);
    let width = width_of(&x);
    let bias = bias.to_contiguous();
    let bias = slice_of(&bias);
    let values: &mut [f32] = x.storage_mut();
    let chunk = rows_of_chunk(width);
    match slopes {
        None => values.par_chunks_mut(chunk).for_each(|values| {
            vectorised(
                #[inline(always)]
                || {
                    for row in values.chunks_exact_mut(width) {
                        for (value, bias) in row.iter_mut().zip(bias) {
                            *value = function(*value + bias).0;
                        }
                    }
                },
            );
        }),
        Some(slopes) => {
            slopes.resize(values.len(), 0.0);
            let chunks = values.par_chunks_mut(chunk).zip(slopes.par_chunks_mut(chunk));
            chunks.for_each(|(values, slopes)| {
                vectorised(
                    #[inline(always)]
                    || {
                        let rows =
                            values.chunks_exact_mut(width).zip(slopes.chunks_exact_mut(width));
                        for (row, slopes) in rows {
                            for ((value, slope), bias) in row.iter_mut().zip(slopes).zip(bias) {
                                (*value, *slope) = function(*value + bias);
                            }
                        }
                    },
                );
            });
        }
    }
    x
}
