//! Operations that the CPU does in one pass over memory.
//!
//! Burn's CPU backend runs element-wise operations one after the other on one thread, and
//! calls scalar sines. Training spends half of its time there; done at once, on all threads
//! and in vectors, little of that remains. On other devices, and as the reference in tests,
//! the same is written in Burn's own operations (`plain_*`).

mod activation;
mod convolution;
mod depthwise;
mod elementary;
mod frozen;
mod normalisation;
mod operations;
mod product;

use burn::backend::{Dispatch, Flex};
use burn::tensor::activation::{gelu as burn_gelu, sigmoid, softmax};
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Tensor};

pub use activation::Gelu;
pub(crate) use activation::gelu_of_rows;
use activation::{Activation, ActivationOperation};
use convolution::Convolution;
pub(crate) use convolution::Window;
use depthwise::Depthwise;
pub(crate) use elementary::{exp, vectorised};
use frozen::FrozenOperations;
use normalisation::Normalisation;
pub(crate) use normalisation::normalise_rows;
use operations::FusedOperations;
pub use operations::slice_of;
pub(crate) use product::{Matrix, multiply};

/// Whether tensors of a device live in the memory of Burn's CPU backend.
pub fn is_cpu(device: &Device) -> bool {
    device.clone().inner() == Device::flex()
}

/// The same without gradients, which the operations of [`FrozenOperations`] don't have. Burn's devices are equal with and without.
pub(crate) fn is_frozen_cpu(device: &Device) -> bool {
    is_cpu(device) && !device.is_autodiff()
}

fn activate(x: Tensor<2>, bias: Tensor<1>, activation: Activation) -> Tensor<2> {
    let (x, bias) = (x.into_dispatch(), bias.into_dispatch());
    Tensor::from_dispatch(Dispatch::activate(x, bias, activation))
}

/// sin(frequency·(x + bias)) of x `[rows, width]` and a bias `[width]`.
pub(crate) fn sine(x: Tensor<2>, bias: Tensor<1>, frequency: f64) -> Tensor<2> {
    if is_cpu(&x.device()) {
        activate(x, bias, Activation::Sine { frequency })
    } else {
        plain_sine(x, bias, frequency)
    }
}

fn plain_sine(x: Tensor<2>, bias: Tensor<1>, frequency: f64) -> Tensor<2> {
    ((x + bias.unsqueeze()) * frequency).sin()
}

/// (1 + α) ⊙ x + ε + c of x and c `[rows, width]`; α and ε are the halves of the
/// modulation `[rows, 2·width]`.
pub(crate) fn modulate(x: Tensor<2>, modulation: Tensor<2>, c: Tensor<2>) -> Tensor<2> {
    if is_cpu(&x.device()) {
        let (x, modulation, c) = (x.into_dispatch(), modulation.into_dispatch(), c.into_dispatch());
        Tensor::from_dispatch(Dispatch::modulate(x, modulation, c))
    } else {
        plain_modulate(x, modulation, c)
    }
}

fn plain_modulate(x: Tensor<2>, modulation: Tensor<2>, c: Tensor<2>) -> Tensor<2> {
    let [_, width] = x.dims();
    let scale = modulation.clone().narrow(1, 0, width);
    let shift = modulation.narrow(1, width, width);
    (scale + 1.0) * x + shift + c
}

/// A number that was computed from the numbers of x on the CPU, with its gradient by them (of
/// the same shape, itself without gradients), as a tensor `[1]` through which gradients flow.
pub(crate) fn with_gradient(x: Tensor<2>, value: f64, gradient: Tensor<2>) -> Tensor<1> {
    let value = Tensor::<1>::from_floats([value as f32], &x.device().inner());
    Tensor::from_dispatch(Dispatch::with_gradient(
        x.into_dispatch(),
        value.into_dispatch(),
        gradient.into_dispatch(),
    ))
}

/// GELU of x `[rows, width]` + bias `[width]`, in one pass on the CPU.
pub fn gelu(x: Tensor<2>, bias: Tensor<1>, kind: Gelu) -> Tensor<2> {
    if is_cpu(&x.device()) {
        activate(x, bias, Activation::Gelu(kind))
    } else {
        plain_gelu(x, bias, kind)
    }
}

fn plain_gelu(x: Tensor<2>, bias: Tensor<1>, kind: Gelu) -> Tensor<2> {
    let x = x + bias.unsqueeze();
    match kind {
        Gelu::Exact => burn_gelu(x),
        Gelu::Quick => x.clone() * sigmoid(x * 1.702),
    }
}

/// Tokens `[pictures·side², channels]` under a window, times weights `[kernel²·channels,
/// outputs]`: `[pictures·places², outputs]`.
pub(crate) fn convolve(x: Tensor<2>, weights: Tensor<2>, window: Window) -> Tensor<2> {
    if is_cpu(&x.device()) {
        let (x, weights) = (x.into_dispatch(), weights.into_dispatch());
        Tensor::from_dispatch(Dispatch::convolve(x, weights, window))
    } else {
        plain_convolve(x, weights, window)
    }
}

fn plain_convolve(x: Tensor<2>, weights: Tensor<2>, window: Window) -> Tensor<2> {
    let ([_, channels], [_, outputs]) = (x.dims(), weights.dims());
    let kernel = window.kernel;
    let weights = weights.reshape([kernel, kernel, channels, outputs]).permute([3, 2, 0, 1]);
    convolve_by_burn(x, weights, window, 1)
}

/// Each channel of tokens `[pictures·side², channels]` under a window, times weights `[kernel²,
/// channels]`: `[pictures·places², channels]`.
pub(crate) fn convolve_each(x: Tensor<2>, weights: Tensor<2>, window: Window) -> Tensor<2> {
    if is_cpu(&x.device()) {
        let (x, weights) = (x.into_dispatch(), weights.into_dispatch());
        Tensor::from_dispatch(Dispatch::convolve_each(x, weights, window))
    } else {
        plain_convolve_each(x, weights, window)
    }
}

fn plain_convolve_each(x: Tensor<2>, weights: Tensor<2>, window: Window) -> Tensor<2> {
    let [_, channels] = x.dims();
    let kernel = window.kernel;
    let weights = weights.transpose().reshape([channels, 1, kernel, kernel]);
    convolve_by_burn(x, weights, window, channels)
}

fn convolve_by_burn(x: Tensor<2>, weights: Tensor<4>, window: Window, groups: usize) -> Tensor<2> {
    let Window { side, stride, padding, .. } = window;
    let ([tokens, channels], [outputs, ..]) = (x.dims(), weights.dims());
    let pictures = tokens / (side * side);
    let x = x.reshape([pictures, side, side, channels]).permute([0, 3, 1, 2]);
    let options = ConvOptions::new([stride; 2], [padding; 2], [1; 2], groups);
    let y = conv2d(x, weights, None, options).permute([0, 2, 3, 1]);
    let places = window.places();
    y.reshape([pictures * places * places, outputs])
}

/// Each row of x `[rows, width]` less its mean, over its standard deviation.
pub(crate) fn normalise(x: Tensor<2>) -> Tensor<2> {
    if is_cpu(&x.device()) {
        Tensor::from_dispatch(Dispatch::normalise(x.into_dispatch()))
    } else {
        plain_normalise(x)
    }
}

fn plain_normalise(x: Tensor<2>) -> Tensor<2> {
    let x = x.clone() - x.mean_dim(1);
    let variance = x.clone().square().mean_dim(1);
    x / (variance + normalisation::EPSILON).sqrt()
}

/// residual + x + bias of residual and x `[rows, width]` and a bias `[width]`; for networks
/// that are not trained.
pub(crate) fn add_with_bias(residual: Tensor<2>, x: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    if is_frozen_cpu(&x.device()) {
        let (residual, x) = (residual.into_dispatch(), x.into_dispatch());
        Tensor::from_dispatch(Dispatch::add_with_bias(residual, x, bias.into_dispatch()))
    } else {
        residual + x + bias.unsqueeze()
    }
}

/// Each row (the last axis) as shares of e^x; for networks that are not trained.
pub(crate) fn softmax_of_rows(x: Tensor<4>) -> Tensor<4> {
    if is_frozen_cpu(&x.device()) {
        Tensor::from_dispatch(Dispatch::softmax_of_rows(x.into_dispatch()))
    } else {
        softmax(x, 3)
    }
}

/// The numbers of a tensor, row by row.
pub(crate) fn numbers_of(x: &Tensor<2>) -> Vec<f32> {
    let x = if x.device().is_autodiff() { x.clone().inner() } else { x.clone() };
    match x.clone().try_into_primitive::<Flex>() {
        Ok(primitive) => slice_of(&primitive.to_contiguous()).to_vec(),
        Err(_) => x.into_data().try_to_vec().expect("numbers of the backend are f32"),
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Distribution, TensorData, Tolerance};

    use super::*;

    fn random(shape: [usize; 2], device: &Device) -> Tensor<2> {
        Tensor::random(shape, Distribution::Normal(0.0, 1.5), device)
    }

    /// Outputs and gradients of two functions of two matrices and a vector, weighed at random.
    fn assert_same(
        shapes: [[usize; 2]; 3],
        fused: impl Fn([Tensor<2>; 3]) -> Tensor<2>,
        plain: impl Fn([Tensor<2>; 3]) -> Tensor<2>,
    ) {
        let device = Device::flex().autodiff();
        device.seed(3);
        let inputs = shapes.map(|shape| random(shape, &device));
        let weights = random(shapes[0], &device);
        let run = |function: &dyn Fn([Tensor<2>; 3]) -> Tensor<2>| {
            let inputs = inputs.clone().map(|input| input.detach().require_grad());
            let output = function(inputs.clone());
            let mut gradients = (output.clone() * weights.clone()).sum().backward();
            let of_inputs = inputs.map(|input| input.grad_remove(&mut gradients));
            (output.into_data(), of_inputs)
        };
        let (fused, plain) = (run(&fused), run(&plain));
        fused.0.assert_approx_eq::<f32>(&plain.0, Tolerance::absolute(2e-6));
        for (fused, plain) in fused.1.into_iter().zip(plain.1) {
            assert_eq!(fused.is_some(), plain.is_some());
            let (Some(fused), Some(plain)) = (fused, plain) else { continue };
            fused
                .into_data()
                .assert_approx_eq::<f32>(&plain.into_data(), Tolerance::rel_abs(1e-5, 1e-4));
        }
    }

    #[test]
    fn sine_equals_the_plain_one() {
        // More rows than one task takes, and a width that no vector divides.
        let shapes = [[700, 37], [1, 37], [1, 1]];
        let bias = |b: Tensor<2>| b.reshape([37]);
        assert_same(
            shapes,
            |[x, b, _]| sine(x, bias(b), 5.0),
            |[x, b, _]| plain_sine(x, bias(b), 5.0),
        );
        // Views: transposed, and a part of the columns.
        assert_same(
            [[37, 37], [1, 37], [1, 1]],
            |[x, b, _]| sine(x.transpose(), bias(b), 2.0),
            |[x, b, _]| plain_sine(x.transpose(), bias(b), 2.0),
        );
        let middle = |x: Tensor<2>| x.slice([0..20, 3..40]);
        let weighed = |x: Tensor<2>| x.pad((0, 23, 0, 0), 0.0);
        assert_same(
            [[20, 60], [1, 37], [1, 1]],
            |[x, b, _]| weighed(sine(middle(x), bias(b), 2.0)),
            |[x, b, _]| weighed(plain_sine(middle(x), bias(b), 2.0)),
        );
    }

    #[test]
    fn modulation_equals_the_plain_one() {
        assert_same(
            [[600, 21], [600, 42], [600, 21]],
            |[x, m, c]| modulate(x, m, c),
            |[x, m, c]| plain_modulate(x, m, c),
        );
    }

    #[test]
    fn gelu_equals_the_plain_one() {
        for kind in [Gelu::Exact, Gelu::Quick] {
            let bias = |b: Tensor<2>| b.reshape([37]);
            assert_same(
                [[700, 37], [1, 37], [1, 1]],
                |[x, b, _]| gelu(x * 3.0, bias(b), kind),
                |[x, b, _]| plain_gelu(x * 3.0, bias(b), kind),
            );
        }
    }

    type Convolve<'a> = &'a dyn Fn(Tensor<2>, Tensor<2>, Window) -> Tensor<2>;

    /// Outputs and gradients of two ways to walk with a window over more pictures than one task
    /// takes.
    fn assert_same_walk(
        window: Window,
        [channels, outputs]: [usize; 2],
        rows_of_weights: usize,
        fused: Convolve<'_>,
        plain: Convolve<'_>,
    ) {
        let pictures = 300;
        let device = Device::flex().autodiff();
        device.seed(5);
        let x = random([pictures * window.side * window.side, channels], &device);
        let weights = random([rows_of_weights, outputs], &device);
        let factors = random([pictures * window.places() * window.places(), outputs], &device);
        let run = |convolve: Convolve<'_>| {
            let leaf = |tensor: &Tensor<2>| tensor.clone().detach().require_grad();
            let (x, weights) = (leaf(&x), leaf(&weights));
            let y = convolve(x.clone(), weights.clone(), window);
            let gradients = (y.clone() * factors.clone()).sum().backward();
            let of = |tensor: &Tensor<2>| tensor.grad(&gradients).expect("a gradient");
            [of(&x), of(&weights), y.inner()]
        };
        for (fused, plain) in run(fused).into_iter().zip(run(plain)) {
            let tolerance = Tolerance::rel_abs(1e-4, 2e-3);
            fused.into_data().assert_approx_eq::<f32>(&plain.into_data(), tolerance);
        }
    }

    #[test]
    fn convolutions_equal_the_plain_ones() {
        let windows = [
            (Window { side: 6, kernel: 3, stride: 1, padding: 1 }, 5),
            (Window { side: 8, kernel: 2, stride: 2, padding: 0 }, 18),
            (Window { side: 8, kernel: 6, stride: 4, padding: 1 }, 3),
        ];
        for (window, channels) in windows {
            let rows = window.kernel * window.kernel * channels;
            assert_same_walk(window, [channels, 4], rows, &convolve, &plain_convolve);
        }
        for kernel in [3, 5] {
            let window = Window { side: 4, kernel, stride: 1, padding: kernel / 2 };
            let rows = kernel * kernel;
            assert_same_walk(window, [18, 18], rows, &convolve_each, &plain_convolve_each);
        }
    }

    #[test]
    fn normalisation_equals_the_plain_one() {
        assert_same(
            [[700, 37], [1, 1], [1, 1]],
            |[x, _, _]| normalise(x * 3.0 + 1.0),
            |[x, _, _]| plain_normalise(x * 3.0 + 1.0),
        );
    }

    #[test]
    fn frozen_operations_equal_the_plain_ones() {
        let device = Device::flex();
        device.seed(4);
        let [x, residual] = [0, 1].map(|_| random([700, 37], &device));
        let bias = random([1, 37], &device).reshape([37]);
        let plain = residual.clone() + x.clone() + bias.clone().unsqueeze();
        let fused = add_with_bias(residual.clone(), x.clone(), bias.clone());
        fused.into_data().assert_approx_eq::<f32>(&plain.into_data(), Tolerance::absolute(1e-6));

        let x = (x * 20.0).reshape([2, 5, 70, 37]);
        let plain = softmax(x.clone(), 3);
        let fused = softmax_of_rows(x);
        fused.into_data().assert_approx_eq::<f32>(&plain.into_data(), Tolerance::absolute(1e-6));
    }

    #[test]
    fn a_known_gradient_arrives_scaled() {
        let device = Device::flex().autodiff();
        let numbers: Vec<f32> = (0..6).map(|k| k as f32).collect();
        let given = Tensor::<2>::from_data(TensorData::new(numbers.clone(), [2, 3]), &device);
        let x = random([2, 3], &device).require_grad();
        let value = with_gradient(x.clone(), 7.0, given.clone().inner());
        assert!((value.clone().into_scalar::<f32>() - 7.0).abs() < 1e-5);
        let gradients = (value * 2.0).backward();
        let gradient = x.grad(&gradients).expect("x has a gradient").into_data();
        let expected: Vec<f32> = numbers.iter().map(|k| 2.0 * k).collect();
        gradient
            .assert_approx_eq::<f32>(&TensorData::new(expected, [2, 3]), Tolerance::absolute(1e-5));
    }
}
