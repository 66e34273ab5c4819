//! A function of x + bias in one pass, with its gradient: the denoiser's sines, the encoders' GELUs.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Flex, TensorMetadata, backend_extension};
use burn::tensor::TensorData;
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::elementary::{erf_and_exp, exp, sin_cos, vectorised};
use super::operations::{column_sums, contiguous, product, rows_of_chunk, slice_of, width_of};

/// The function between the two matrices of a layer's second half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gelu {
    /// x·Φ(x): DINOv2.
    Exact,
    /// x·σ(1.702·x): CLIP as OpenAI trained it.
    Quick,
}

/// An activation function with its slope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Activation {
    /// sin(frequency·x).
    Sine {
        frequency: f64,
    },
    Gelu(Gelu),
}

#[backend_extension(Flex, Autodiff)]
pub(crate) trait ActivationOperation: Backend {
    /// Of x `[rows, width]` + bias `[width]`.
    fn activate(
        x: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self>;
}

impl ActivationOperation for Flex {
    fn activate(x: FlexTensor, bias: FlexTensor, activation: Activation) -> FlexTensor {
        activate(x, &bias, activation, None)
    }
}

impl<C: CheckpointStrategy> ActivationOperation for Autodiff<Flex, C> {
    fn activate(
        x: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct ActivationBackward;
        impl Backward<Flex, 2> for ActivationBackward {
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
        let nodes = [x.node(), bias.node()];
        match ActivationBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let x = x.into_primitive();
                let shape = x.shape();
                let mut slopes = Vec::new();
                let output = activate(x, &bias.into_primitive(), activation, Some(&mut slopes));
                prepared.finish(FlexTensor::from_data(TensorData::new(slopes, shape)), output)
            }
            OpsKind::UnTracked(prepared) => {
                let (x, bias) = (x.into_primitive(), bias.into_primitive());
                prepared.finish(activate(x, &bias, activation, None))
            }
        }
    }
}

/// With the slopes, if a gradient will be asked for.
fn activate(
    x: FlexTensor,
    bias: &FlexTensor,
    activation: Activation,
    slopes: Option<&mut Vec<f32>>,
) -> FlexTensor {
    match activation {
        Activation::Sine { frequency } => {
            let frequency = frequency as f32;
            apply(
                x,
                bias,
                slopes,
                #[inline(always)]
                move |x| {
                    let (sine, cosine) = sin_cos(frequency * x);
                    (sine, frequency * cosine)
                },
            )
        }
        Activation::Gelu(Gelu::Exact) => apply(x, bias, slopes, exact),
        Activation::Gelu(Gelu::Quick) => apply(x, bias, slopes, quick),
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
        None => {
            values.par_chunks_mut(chunk).for_each(|values| apply_to_rows(values, bias, function))
        }
        Some(slopes) => {
            slopes.resize(values.len(), 0.0);
            let chunks = values.par_chunks_mut(chunk).zip(slopes.par_chunks_mut(chunk));
            chunks.for_each(|(values, slopes)| {
                vectorised!({
                    let rows = values.chunks_exact_mut(width).zip(slopes.chunks_exact_mut(width));
                    for (row, slopes) in rows {
                        for ((value, slope), bias) in row.iter_mut().zip(slopes).zip(bias) {
                            (*value, *slope) = function(*value + bias);
                        }
                    }
                });
            });
        }
    }
    x
}

#[inline(always)]
fn apply_to_rows(values: &mut [f32], bias: &[f32], function: impl Fn(f32) -> (f32, f32)) {
    vectorised!({
        for row in values.chunks_exact_mut(bias.len()) {
            for (value, bias) in row.iter_mut().zip(bias) {
                *value = function(*value + bias).0;
            }
        }
    });
}

/// x·Φ(x) of rows + bias, in place, on one thread.
pub(crate) fn gelu_of_rows(rows: &mut [f32], bias: &[f32]) {
    apply_to_rows(rows, bias, exact);
}
