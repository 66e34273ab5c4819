//! Convolutions over tokens: patches are gathered and multiplied group by group, on all threads.
//!
//! Burn's CPU convolution takes several times as long as the products in it. Here each task takes
//! a few pictures, so that what it gathers stays in its cache, and multiplies on its own thread;
//! backwards it gathers again instead of keeping it.

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
use super::operations::{contiguous, slice_of, width_of};
use super::product::{Matrix, multiply};

/// Rows of the product that one task makes at a time.
const ROWS: usize = 256;
/// Parts of a batch whose gradients are summed apart: always the same, so that sums are.
const PARTS: usize = 8;

/// A square window that walks over square pictures of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Tokens along a side of the picture.
    pub(crate) side: usize,
    /// Tokens along a side of the window.
    pub(crate) kernel: usize,
    /// Tokens from one place to the next.
    pub(crate) stride: usize,
    /// Zeros around the picture.
    pub(crate) padding: usize,
}

impl Window {
    /// Places along a side: tokens of the result.
    pub(crate) fn places(self) -> usize {
        (self.side + 2 * self.padding - self.kernel) / self.stride + 1
    }

    /// Calls with (row of the patches, number of the token within the window, token of the
    /// picture) for all of one picture, leaving out those in the padding.
    #[inline(always)]
    pub(super) fn for_each(self, mut visit: impl FnMut(usize, usize, usize)) {
        let places = self.places();
        for down in 0..places {
            for across in 0..places {
                for j in 0..self.kernel {
                    let y = (down * self.stride + j).wrapping_sub(self.padding);
                    if y >= self.side {
                        continue;
                    }
                    for i in 0..self.kernel {
                        let x = (across * self.stride + i).wrapping_sub(self.padding);
                        if x < self.side {
                            visit(down * places + across, j * self.kernel + i, y * self.side + x);
                        }
                    }
                }
            }
        }
    }
}

#[backend_extension(Flex, Autodiff)]
pub(crate) trait Convolution: Backend {
    /// Of tokens `[pictures·side², channels]` with weights `[kernel²·channels, outputs]`, to
    /// `[pictures·places², outputs]`.
    fn convolve(
        x: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        window: Window,
    ) -> FloatTensor<Self>;
}

impl Convolution for Flex {
    fn convolve(x: FlexTensor, weights: FlexTensor, window: Window) -> FlexTensor {
        convolve(&contiguous(x), &contiguous(weights), window)
    }
}

impl<C: CheckpointStrategy> Convolution for Autodiff<Flex, C> {
    fn convolve(
        x: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        window: Window,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct ConvolutionBackward;
        impl Backward<Flex, 2> for ConvolutionBackward {
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
                let (of_x, of_weights) =
                    convolve_back(&x, &weights, &gradient, window, x_node.is_some());
                if let (Some(node), Some(of_x)) = (x_node, of_x) {
                    gradients.register::<Flex>(node.id, of_x);
                }
                if let Some(node) = weights_node {
                    gradients.register::<Flex>(node.id, of_weights);
                }
            }
        }
        let nodes = [x.node(), weights.node()];
        match ConvolutionBackward.prepare::<C>(nodes).compute_bound().stateful() {
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

/// Sizes of one convolution.
#[derive(Clone, Copy)]
struct Sizes {
    channels: usize,
    outputs: usize,
    /// Numbers of a picture.
    picture: usize,
    /// Rows that a picture becomes.
    rows: usize,
    /// Numbers of a patch.
    patch: usize,
    /// Pictures that are gathered at once.
    group: usize,
}

impl Sizes {
    fn new(x: &FlexTensor, weights: &FlexTensor, window: Window) -> Sizes {
        let (channels, outputs) = (width_of(x), width_of(weights));
        let rows = window.places() * window.places();
        let patch = window.kernel * window.kernel * channels;
        let picture = window.side * window.side * channels;
        assert_eq!(weights.shape()[0], patch, "weights are not those of the window");
        assert!(slice_of(x).len().is_multiple_of(picture), "tokens don't fill pictures");
        Sizes { channels, outputs, picture, rows, patch, group: (ROWS / rows).max(1) }
    }
}

/// Copies the patches of some pictures; what lies in the padding stays as it is: zero.
fn gather(pictures: &[f32], patches: &mut [f32], window: Window, sizes: Sizes) {
    let Sizes { channels, picture, rows, patch, .. } = sizes;
    let patches = patches.chunks_exact_mut(rows * patch);
    for (picture, patches) in pictures.chunks_exact(picture).zip(patches) {
        window.for_each(
            #[inline(always)]
            |row, place, token| {
                patches[row * patch + place * channels..][..channels]
                    .copy_from_slice(&picture[token * channels..][..channels]);
            },
        );
    }
}

/// Adds patches to the tokens that they came from.
fn scatter(patches: &[f32], pictures: &mut [f32], window: Window, sizes: Sizes) {
    let Sizes { channels, picture, rows, patch, .. } = sizes;
    vectorised!({
        let patches = patches.chunks_exact(rows * patch);
        for (picture, patches) in pictures.chunks_exact_mut(picture).zip(patches) {
            window.for_each(
                #[inline(always)]
                |row, place, token| {
                    let from = &patches[row * patch + place * channels..][..channels];
                    let to = &mut picture[token * channels..][..channels];
                    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
                },
            );
        }
    });
}

fn convolve(x: &FlexTensor, weights: &FlexTensor, window: Window) -> FlexTensor {
    let sizes = Sizes::new(x, weights, window);
    let Sizes { outputs, picture, rows, patch, group, .. } = sizes;
    let (numbers, weights) = (slice_of(x), slice_of(weights));
    let count = numbers.len() / picture * rows;
    let mut output = vec![0.0_f32; count * outputs];
    let groups = output.par_chunks_mut(group * rows * outputs);
    groups.zip(numbers.par_chunks(group * picture)).for_each_init(
        || vec![0.0_f32; group * rows * patch],
        |patches, (output, pictures)| {
            let patches = &mut patches[..output.len() / outputs * patch];
            gather(pictures, patches, window, sizes);
            multiply(
                Matrix::by_rows(patches, patch),
                Matrix::by_rows(weights, outputs),
                output,
                false,
            );
        },
    );
    FlexTensor::from_data(TensorData::new(output, [count, outputs]))
}

/// Gradients by the tokens (if wanted) and by the weights.
fn convolve_back(
    x: &FlexTensor,
    weights: &FlexTensor,
    gradient: &FlexTensor,
    window: Window,
    of_x_too: bool,
) -> (Option<FlexTensor>, FlexTensor) {
    let sizes = Sizes::new(x, weights, window);
    let Sizes { outputs, picture, rows, patch, group, .. } = sizes;
    let (numbers, weights, gradient) = (slice_of(x), slice_of(weights), slice_of(gradient));
    let pictures = numbers.len() / picture;
    let part = pictures.div_ceil(PARTS).next_multiple_of(group);
    let mut of_x = vec![0.0_f32; if of_x_too { numbers.len() } else { 0 }];
    // So many empty parts, if no gradient is wanted.
    let parts_of_x: Vec<&mut [f32]> = if of_x_too {
        of_x.chunks_mut(part * picture).collect()
    } else {
        (0..pictures.div_ceil(part)).map(|_| &mut [][..]).collect()
    };
    let sums: Vec<Vec<f32>> = parts_of_x
        .into_par_iter()
        .zip(numbers.par_chunks(part * picture))
        .zip(gradient.par_chunks(part * rows * outputs))
        .map(|((of_x, numbers), gradient)| {
            let mut sum = vec![0.0_f32; patch * outputs];
            let mut patches = vec![0.0_f32; group * rows * patch];
            let mut of_patches = vec![0.0_f32; if of_x_too { patches.len() } else { 0 }];
            let groups = numbers.chunks(group * picture);
            for (k, (numbers, gradient)) in
                groups.zip(gradient.chunks(group * rows * outputs)).enumerate()
            {
                let length = gradient.len() / outputs * patch;
                gather(numbers, &mut patches[..length], window, sizes);
                let gradient = Matrix::by_rows(gradient, outputs);
                multiply(
                    Matrix::by_rows(&patches[..length], patch).turned(),
                    gradient,
                    &mut sum,
                    true,
                );
                if of_x_too {
                    let of_patches = &mut of_patches[..length];
                    multiply(
                        gradient,
                        Matrix::by_rows(weights, outputs).turned(),
                        of_patches,
                        false,
                    );
                    let start = k * group * picture;
                    scatter(of_patches, &mut of_x[start..][..numbers.len()], window, sizes);
                }
            }
            sum
        })
        .collect();
    let mut of_weights = vec![0.0_f32; patch * outputs];
    for part in &sums {
        of_weights.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    }
    let of_weights = FlexTensor::from_data(TensorData::new(of_weights, [patch, outputs]));
    let of_x = of_x_too.then(|| FlexTensor::from_data(TensorData::new(of_x, x.shape().to_vec())));
    (of_x, of_weights)
}
