//! Convolutions of each channel by itself: a picture per task, all channels of a token at once.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Flex, TensorMetadata, backend_extension};
use burn::tensor::TensorData;
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::convolution::Window;
use super::elementary::vectorised;
use super::operations::{contiguous, slice_of, width_of};

/// Parts of a batch whose gradients are summed apart: always the same, so that sums are.
const PARTS: usize = 16;

#[backend_extension(Flex, Autodiff)]
pub(crate) trait Depthwise: Backend {
    /// Of tokens `[pictures·side², channels]` with weights `[kernel², channels]`, to
    /// `[pictures·places², channels]`.
    fn convolve_each(
        x: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        window: Window,
    ) -> FloatTensor<Self>;
}

impl Depthwise for Flex {
    fn convolve_each(x: FlexTensor, weights: FlexTensor, window: Window) -> FlexTensor {
        convolve(&contiguous(x), &contiguous(weights), window)
    }
}

impl<C: CheckpointStrategy> Depthwise for Autodiff<Flex, C> {
    fn convolve_each(
        x: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        window: Window,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct DepthwiseBackward;
        impl Backward<Flex, 2> for DepthwiseBackward {
            type State = (FlexTensor, FlexTensor, Window);

            fn backward(
                self,
                ops: Ops<Self::State, 2>,
                gradients: &mut Gradients,
                _checkpointer: &mut Checkpointer,
            ) {
                let (x, weights, window) = ops.state;
                let [x_node, weights_node] = ops.parents;
                let gradient = contiguous(gradients.consume::<Flex>(&ops.node));
                if let Some(node) = weights_node {
                    let of_weights = weights_gradient(&x, &gradient, window);
                    gradients.register::<Flex>(node.id, of_weights);
                }
                if let Some(node) = x_node {
                    let of_x = tokens_gradient(&x, &weights, &gradient, window);
                    gradients.register::<Flex>(node.id, of_x);
                }
            }
        }
        let nodes = [x.node(), weights.node()];
        match DepthwiseBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let (x, weights) =
                    (contiguous(x.into_primitive()), contiguous(weights.into_primitive()));
                let output = convolve(&x, &weights, window);
                prepared.finish((x, weights, window), output)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(convolve(
                &contiguous(x.into_primitive()),
                &contiguous(weights.into_primitive()),
                window,
            )),
        }
    }
}

/// to += a ⊙ b.
#[inline(always)]
fn add_product(to: &mut [f32], a: &[f32], b: &[f32]) {
    for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
        *to += a * b;
    }
}

fn convolve(x: &FlexTensor, weights: &FlexTensor, window: Window) -> FlexTensor {
    let channels = width_of(x);
    let (numbers, weights) = (slice_of(x), slice_of(weights));
    assert_eq!(
        weights.len(),
        window.kernel * window.kernel * channels,
        "weights of another window"
    );
    let picture = window.side * window.side * channels;
    let rows = window.places() * window.places();
    let count = numbers.len() / picture * rows;
    let mut output = vec![0.0_f32; count * channels];
    output.par_chunks_mut(rows * channels).zip(numbers.par_chunks(picture)).for_each(
        |(output, picture)| {
            vectorised!(window.for_each(
                #[inline(always)]
                |row, place, token| add_product(
                    &mut output[row * channels..][..channels],
                    &picture[token * channels..][..channels],
                    &weights[place * channels..][..channels],
                )
            ));
        },
    );
    FlexTensor::from_data(TensorData::new(output, [count, channels]))
}

fn tokens_gradient(
    x: &FlexTensor,
    weights: &FlexTensor,
    gradient: &FlexTensor,
    window: Window,
) -> FlexTensor {
    let channels = width_of(x);
    let (weights, gradient) = (slice_of(weights), slice_of(gradient));
    let picture = window.side * window.side * channels;
    let rows = window.places() * window.places();
    let mut of_x = vec![0.0_f32; slice_of(x).len()];
    of_x.par_chunks_mut(picture).zip(gradient.par_chunks(rows * channels)).for_each(
        |(of_x, gradient)| {
            vectorised!(window.for_each(
                #[inline(always)]
                |row, place, token| add_product(
                    &mut of_x[token * channels..][..channels],
                    &gradient[row * channels..][..channels],
                    &weights[place * channels..][..channels],
                )
            ));
        },
    );
    FlexTensor::from_data(TensorData::new(of_x, x.shape().to_vec()))
}

fn weights_gradient(x: &FlexTensor, gradient: &FlexTensor, window: Window) -> FlexTensor {
    let channels = width_of(x);
    let (numbers, gradient) = (slice_of(x), slice_of(gradient));
    let picture = window.side * window.side * channels;
    let rows = window.places() * window.places();
    let places = window.kernel * window.kernel;
    let part = (numbers.len() / picture).div_ceil(PARTS);
    let sums: Vec<Vec<f32>> = numbers
        .par_chunks(part * picture)
        .zip(gradient.par_chunks(part * rows * channels))
        .map(|(numbers, gradient)| {
            let mut sum = vec![0.0_f32; places * channels];
            let pictures = numbers.chunks_exact(picture);
            for (picture, gradient) in pictures.zip(gradient.chunks_exact(rows * channels)) {
                vectorised!(window.for_each(
                    #[inline(always)]
                    |row, place, token| add_product(
                        &mut sum[place * channels..][..channels],
                        &picture[token * channels..][..channels],
                        &gradient[row * channels..][..channels],
                    )
                ));
            }
            sum
        })
        .collect();
    let mut total = vec![0.0_f32; places * channels];
    for part in &sums {
        total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    }
    FlexTensor::from_data(TensorData::new(total, [places, channels]))
}
