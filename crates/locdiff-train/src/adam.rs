//! Adam and AdamW, each parameter updated in one pass over memory.
//!
//! The formulas are PyTorch's: with bias-corrected means m and v of the gradient and its
//! square, p ← p − rate·m/(√v + ε); the decay of weights is added to the gradient (Adam) or
//! shrinks the parameter by itself (AdamW).

use std::collections::BTreeMap;

use burn::backend::Flex;
use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use burn_flex::FlexTensor;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use locdiff::tensors::{NamedMapper, NamedVisitor, is_cpu, map_named, slice_of, visit_named};
use locdiff::vectorised;

/// Numbers that one task works on.
const CHUNK: usize = 16_384;

/// What fixes the optimiser but its rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamConfig {
    /// Memory of the mean gradient.
    pub beta_1: f64,
    /// Memory of the mean square.
    pub beta_2: f64,
    /// Keeps small gradients small.
    pub epsilon: f64,
    /// How strongly weights are drawn to zero.
    pub weight_decay: f64,
    /// Whether the decay is apart from the gradient, as in AdamW.
    pub decoupled: bool,
    /// The length to which longer gradients are cut.
    pub clip_norm: Option<f64>,
}

impl Default for AdamConfig {
    /// AdamW with the paper's memory and decay.
    fn default() -> AdamConfig {
        AdamConfig {
            beta_1: 0.9,
            beta_2: 0.99,
            epsilon: 1e-8,
            weight_decay: 5e-4,
            decoupled: true,
            clip_norm: None,
        }
    }
}

/// The optimiser with its memory: means by the names of the parameters.
#[derive(Debug)]
pub struct Adam {
    config: AdamConfig,
    steps: u64,
    moments: BTreeMap<String, (Tensor<1>, Tensor<1>)>,
}

/// The memory of an optimiser as plain numbers, for checkpoints.
#[derive(Debug, Clone, PartialEq)]
pub struct AdamState {
    /// Steps taken.
    pub steps: u64,
    /// Mean gradient and mean square of each parameter, by its name.
    pub moments: BTreeMap<String, (Vec<f32>, Vec<f32>)>,
}

/// What one step multiplies with.
#[derive(Clone, Copy)]
struct Factors {
    beta_1: f32,
    beta_2: f32,
    epsilon: f32,
    /// rate / (1 − β₁ⁿ)
    rate: f32,
    /// 1/√(1 − β₂ⁿ)
    inverse_root: f32,
    /// What remains of a parameter.
    kept: f32,
    /// What a parameter adds to its gradient.
    coupled: f32,
    /// What is left of the gradient after cutting its length.
    of_gradient: f32,
}

impl Adam {
    /// An optimizer with empty moments.
    pub fn new(config: AdamConfig) -> Adam {
        Adam { config, steps: 0, moments: BTreeMap::new() }
    }

    /// An optimiser that goes on where another stopped.
    pub fn restored(config: AdamConfig, state: AdamState, device: &Device) -> Adam {
        let tensor = |values: Vec<f32>| {
            let count = values.len();
            Tensor::<1>::from_data(TensorData::new(values, [count]), device)
        };
        let moments = state.moments.into_iter();
        let moments = moments.map(|(name, (m, v))| (name, (tensor(m), tensor(v)))).collect();
        Adam { config, steps: state.steps, moments }
    }

    /// Moments and number of steps, for a checkpoint.
    pub fn state(&self) -> AdamState {
        let numbers = |moment: &Tensor<1>| -> Vec<f32> {
            moment.to_data().try_to_vec().expect("moments are f32")
        };
        let moments = self.moments.iter();
        let moments =
            moments.map(|(name, (m, v))| (name.clone(), (numbers(m), numbers(v)))).collect();
        AdamState { steps: self.steps, moments }
    }

    /// A module after one step at some rate, and the length that its gradient had. A gradient
    /// that is not finite changes nothing.
    pub fn step<M: Module>(
        &mut self,
        rate: f64,
        module: M,
        mut gradients: GradientsParams,
    ) -> (M, f64) {
        let squares = visit_named(&module, SumOfSquares { gradients: &gradients, sum: 0.0 });
        let length = squares.sum.sqrt();
        // Weights that took part in such a step would never come back.
        if !length.is_finite() {
            return (module, length);
        }
        let of_gradient = match self.config.clip_norm {
            Some(longest) if length > longest => longest / length,
            _ => 1.0,
        };
        self.steps += 1;
        let AdamConfig { beta_1, beta_2, epsilon, weight_decay, decoupled, .. } = self.config;
        let count = i32::try_from(self.steps).unwrap_or(i32::MAX);
        let factors = Factors {
            beta_1: beta_1 as f32,
            beta_2: beta_2 as f32,
            epsilon: epsilon as f32,
            rate: (rate / (1.0 - beta_1.powi(count))) as f32,
            inverse_root: (1.0 / (1.0 - beta_2.powi(count)).sqrt()) as f32,
            kept: if decoupled { (1.0 - rate * weight_decay) as f32 } else { 1.0 },
            coupled: if decoupled { 0.0 } else { weight_decay as f32 },
            of_gradient: of_gradient as f32,
        };
        let moments = &mut self.moments;
        let update = Update { gradients: &mut gradients, moments, factors };
        (map_named(module, update), length)
    }
}

struct SumOfSquares<'a> {
    gradients: &'a GradientsParams,
    sum: f64,
}

impl NamedVisitor for SumOfSquares<'_> {
    fn visit<const D: usize>(&mut self, _name: &str, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id) else { return };
        let sum = match gradient.clone().try_into_primitive::<Flex>() {
            Ok(gradient) => {
                let gradient = gradient.to_contiguous();
                let chunks = slice_of(&gradient).par_chunks(CHUNK);
                // Added in the same order, whatever the number of threads.
                let sums: Vec<f64> = chunks
                    .map(|values| {
                        vectorised!(values.iter().map(|g| f64::from(*g) * f64::from(*g)).sum())
                    })
                    .collect();
                sums.iter().sum::<f64>()
            }
            Err(_) => f64::from(gradient.square().sum().into_scalar::<f32>()),
        };
        self.sum += sum;
    }
}

struct Update<'a> {
    gradients: &'a mut GradientsParams,
    moments: &'a mut BTreeMap<String, (Tensor<1>, Tensor<1>)>,
    factors: Factors,
}

impl NamedMapper for Update<'_> {
    fn map<const D: usize>(&mut self, name: &str, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else { return param };
        let shape = gradient.dims();
        let gradient = gradient.flatten::<1>(0, D - 1);
        let (mean, square) = self
            .moments
            .remove(name)
            .unwrap_or_else(|| (gradient.zeros_like(), gradient.zeros_like()));
        param.map(|value| {
            let value = value.inner().flatten::<1>(0, D - 1);
            let (value, mean, square) = if is_cpu(&gradient.device()) {
                self.factors.apply_on_cpu(value, gradient, mean, square)
            } else {
                self.factors.apply(value, gradient, mean, square)
            };
            self.moments.insert(name.to_owned(), (mean, square));
            Tensor::from_inner(value.reshape(shape)).require_grad()
        })
    }
}

impl Factors {
    fn apply(
        self,
        value: Tensor<1>,
        gradient: Tensor<1>,
        mean: Tensor<1>,
        square: Tensor<1>,
    ) -> (Tensor<1>, Tensor<1>, Tensor<1>) {
        let gradient = gradient * self.of_gradient + value.clone() * self.coupled;
        let mean = mean * self.beta_1 + gradient.clone() * (1.0 - self.beta_1);
        let square = square * self.beta_2 + gradient.square() * (1.0 - self.beta_2);
        let length = square.clone().sqrt() * self.inverse_root + self.epsilon;
        (value * self.kept - mean.clone() / length * self.rate, mean, square)
    }

    fn apply_on_cpu(
        self,
        value: Tensor<1>,
        gradient: Tensor<1>,
        mean: Tensor<1>,
        square: Tensor<1>,
    ) -> (Tensor<1>, Tensor<1>, Tensor<1>) {
        let (mut value, gradient) = (primitive(value), primitive(gradient));
        let (mut mean, mut square) = (primitive(mean), primitive(square));
        // Local copies, for the compiler to keep them in registers.
        let Factors { beta_1, beta_2, epsilon, rate, inverse_root, kept, coupled, of_gradient } =
            self;
        value
            .storage_mut::<f32>()
            .par_chunks_mut(CHUNK)
            .zip(slice_of(&gradient).par_chunks(CHUNK))
            .zip(mean.storage_mut::<f32>().par_chunks_mut(CHUNK))
            .zip(square.storage_mut::<f32>().par_chunks_mut(CHUNK))
            .for_each(|(((value, gradient), mean), square)| {
                vectorised!({
                    let numbers = value.iter_mut().zip(gradient).zip(mean).zip(square);
                    for (((value, gradient), mean), square) in numbers {
                        let g = gradient * of_gradient + *value * coupled;
                        *mean = *mean * beta_1 + g * (1.0 - beta_1);
                        *square = *square * beta_2 + g * g * (1.0 - beta_2);
                        let length = square.sqrt() * inverse_root + epsilon;
                        *value = *value * kept - *mean / length * rate;
                    }
                });
            });
        let wrap = |primitive| Tensor::from_primitive::<Flex>(primitive);
        (wrap(value), wrap(mean), wrap(square))
    }
}

fn primitive(tensor: Tensor<1>) -> FlexTensor {
    let primitive = tensor.try_into_primitive::<Flex>();
    primitive.expect("a tensor of the CPU without gradients").to_contiguous()
}

#[cfg(test)]
mod tests {
    use burn::nn::LinearConfig;
    use burn::optim::AdamWConfig;
    use burn::tensor::{Distribution, Tolerance};

    use super::*;

    /// The same as Burn's own AdamW over some steps, and as the tensor path.
    #[test]
    fn adamw_equals_burns() {
        let device = Device::flex().autodiff();
        device.seed(7);
        let start = LinearConfig::new(130, 150).init(&device);
        let inputs = Tensor::<2>::random([9, 130], Distribution::Normal(0.0, 1.0), &device);
        let gradients = |module: &burn::nn::Linear| {
            let loss = module.forward(inputs.clone()).square().mean();
            GradientsParams::from_grads(loss.backward(), module)
        };
        let config = AdamConfig { epsilon: 1e-5, weight_decay: 0.1, ..AdamConfig::default() };
        let mut ours = Adam::new(config);
        let mut theirs =
            AdamWConfig::new().with_beta_2(0.99).with_epsilon(1e-5).with_weight_decay(0.1).init();
        let (mut a, mut b) = (start.clone(), start);
        for _ in 0..5 {
            let of_a = gradients(&a);
            a = ours.step(0.01, a, of_a).0;
            let of_b = gradients(&b);
            b = theirs.step(0.01, b, of_b);
        }
        let same = Tolerance::absolute(2e-6);
        a.weight.val().into_data().assert_approx_eq::<f32>(&b.weight.val().into_data(), same);
        let state = ours.state();
        assert_eq!(state.steps, 5);
        assert_eq!(state.moments.keys().collect::<Vec<_>>(), ["bias", "weight"]);
        let restored = Adam::restored(config, state.clone(), &Device::flex());
        assert_eq!(restored.state(), state);
    }

    #[test]
    fn both_paths_agree_and_long_gradients_are_cut() {
        let device = Device::flex();
        let numbers = |scale: f32| {
            let values: Vec<f32> =
                (0..100).map(|k| scale * ((k * 37 % 41) as f32 - 20.0)).collect();
            Tensor::<1>::from_data(TensorData::new(values, [100]), &device)
        };
        let factors = Factors {
            beta_1: 0.9,
            beta_2: 0.99,
            epsilon: 1e-8,
            rate: 0.1,
            inverse_root: 3.0,
            kept: 0.98,
            coupled: 0.03,
            of_gradient: 0.5,
        };
        let inputs = || (numbers(0.3), numbers(-0.7), numbers(0.1), numbers(0.2).square());
        let (v, g, m, s) = inputs();
        let plain = factors.apply(v, g, m, s);
        let (v, g, m, s) = inputs();
        let fused = factors.apply_on_cpu(v, g, m, s);
        for (fused, plain) in [(fused.0, plain.0), (fused.1, plain.1), (fused.2, plain.2)] {
            let tolerance = Tolerance::absolute(1e-5);
            fused.into_data().assert_approx_eq::<f32>(&plain.into_data(), tolerance);
        }

        let device = device.autodiff();
        let module = LinearConfig::new(4, 3).init(&device);
        let input = Tensor::<2>::ones([2, 4], &device);
        let loss = (module.forward(input) * 100.0).sum();
        let gradients = GradientsParams::from_grads(loss.backward(), &module);
        let config = AdamConfig { clip_norm: Some(1.0), beta_1: 0.0, ..AdamConfig::default() };
        let mut optimizer = Adam::new(config);
        let (_, length) = optimizer.step(0.1, module, gradients);
        // Every weight and bias: 2 rows × 100.
        assert!((length - 200.0 * 15.0_f64.sqrt()).abs() < 1e-2);
        let (mean, _) = &optimizer.state().moments["bias"];
        assert!((f64::from(mean[0]) - 1.0 / 15.0_f64.sqrt()).abs() < 1e-5);
    }
}
