//! The Conditional Siren U-Net (CS-UNet) of LocDiff (NeurIPS 2025), by our reading: the
//! paper's two figures of it are missing from its source.
//!
//! A module takes x `[batch, d_in]`, the condition (an image's embedding) and the time step:
//!
//! ```text
//! (α, ε) = W_t·silu(embedding of t)
//! h      = (1 + α) ⊙ W_x·x + ε + W_c·condition          `[batch, width]`
//! out    = dropout(sin(ω·(W_o·h + b)))                    `[batch, d_out]`
//! ```
//!
//! Six of them have the widths d, d/2, d/4, d/4, d/2, d; outputs of equal width are
//! concatenated across the U, and a linear head gives d numbers. Their width is d_out unless
//! the configuration sets a bottleneck.

use burn::module::{Module, Param};
use burn::nn::{Dropout, DropoutConfig, Initializer, Linear, LinearConfig};
use burn::tensor::activation::silu;
use burn::tensor::{Device, Tensor, TensorData};
use locdiff_sphere::coefficient_count;
use serde::{Deserialize, Serialize};

use crate::tensors::fused::{modulate, sine};

/// Networks of a higher degree would have more weights than any machine has memory.
const MOST_DEGREE: usize = 1023;
/// The same of the other widths.
const MOST_WIDTH: usize = 1 << 20;

/// Everything that fixes the network's shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DenoiserConfig {
    /// L; the network works on d = (L+1)² coefficients.
    pub max_degree: usize,
    /// Length of the condition: 768 for CLIP ViT-L/14, 512 for GeoCLIP's space.
    pub condition_size: usize,
    /// Length of the embedding of the time step; even.
    #[serde(default = "default_time_size")]
    pub time_size: usize,
    /// Width of the narrowest part of each module; by default the module's own width.
    #[serde(default)]
    pub bottleneck: Option<usize>,
    /// Halvings down the U: 2 by default, for widths d, d/2, d/4. The paper draws a U and gives no number.
    #[serde(default = "default_depth")]
    pub depth: usize,
    /// Rank of the head; by default it is a full matrix.
    #[serde(default)]
    pub head_rank: Option<usize>,
    /// Share of activations dropped in training; 0.3 in the paper.
    #[serde(default)]
    pub dropout: f64,
    /// ω, the frequency of the sines.
    #[serde(default = "default_frequency")]
    pub frequency: f64,
}

fn default_time_size() -> usize {
    200
}
fn default_depth() -> usize {
    2
}
fn default_frequency() -> f64 {
    5.0
}

impl DenoiserConfig {
    /// The paper's network for a degree and a condition of some length, without its dropout.
    pub fn new(max_degree: usize, condition_size: usize) -> DenoiserConfig {
        DenoiserConfig {
            max_degree,
            condition_size,
            time_size: default_time_size(),
            bottleneck: None,
            depth: default_depth(),
            head_rank: None,
            dropout: 0.0,
            frequency: default_frequency(),
        }
    }

    /// d = (L+1)².
    pub fn coefficients(&self) -> usize {
        coefficient_count(self.max_degree)
    }

    /// What is wrong with the numbers, if anything. Files of others may contain any.
    pub fn problem(&self) -> Option<String> {
        let &DenoiserConfig { max_degree, condition_size, time_size, depth, .. } = self;
        if max_degree > MOST_DEGREE {
            return Some(format!("max_degree is {max_degree}, it must be {MOST_DEGREE} at most"));
        }
        let widths = [
            ("condition_size", condition_size),
            ("time_size", time_size),
            ("bottleneck", self.bottleneck.unwrap_or(1)),
            ("head_rank", self.head_rank.unwrap_or(1)),
        ];
        if let Some((name, width)) = widths.iter().find(|(_, w)| !(1..=MOST_WIDTH).contains(w)) {
            return Some(format!("{name} is {width}, it must be from 1 to {MOST_WIDTH}"));
        }
        if !time_size.is_multiple_of(2) {
            return Some(format!("time_size is {time_size}, it must be even"));
        }
        let d = self.coefficients();
        if depth >= usize::BITS as usize || d >> depth == 0 {
            return Some(format!("{d} coefficients cannot be halved {depth} times"));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Some(format!(
                "dropout is {}, it must be at least 0 and less than 1",
                self.dropout
            ));
        }
        // Of others, the first weights would not be numbers.
        let is_fine = (1e-3..=1e6).contains(&self.frequency);
        (!is_fine)
            .then(|| format!("frequency is {}, it must be from 0.001 to 1000000", self.frequency))
    }

    /// How many weights a network of this shape has, if [`problem`](DenoiserConfig::problem) finds none.
    pub fn weights(&self) -> u64 {
        let size = |number: usize| number as u64;
        let d = self.coefficients();
        let module = |input: usize, output: usize| {
            let width = self.bottleneck.unwrap_or(output);
            let inputs = size(input) + size(self.condition_size);
            let of_time = (size(self.time_size) + 1) * 2 * size(width);
            inputs * size(width) + of_time + (size(width) + 1) * size(output)
        };
        let widths: Vec<usize> = (0..=self.depth).map(|k| d >> k).collect();
        let mut input = d;
        let mut count = size(self.condition_size);
        for width in &widths {
            count += module(input, *width);
            input = *width;
        }
        for width in widths.iter().rev() {
            count += module(input, *width);
            input = 2 * width;
        }
        count
            + match self.head_rank {
                None => (size(input) + 1) * size(d),
                Some(rank) => size(input) * size(rank) + (size(rank) + 1) * size(d),
            }
    }

    /// A network with random weights; the same seed of the device gives the same network.
    ///
    /// # Panics
    /// If there is a [`problem`](DenoiserConfig::problem).
    pub fn init(&self, device: &Device) -> Denoiser {
        if let Some(problem) = self.problem() {
            panic!("{problem}");
        }
        let d = self.coefficients();
        // d, d/2, d/4 …
        let widths: Vec<usize> = (0..=self.depth).map(|k| d >> k).collect();
        let mut down = Vec::new();
        let mut input = d;
        for width in &widths {
            down.push(self.module(input, *width, device));
            input = *width;
        }
        let mut up = Vec::new();
        for width in widths.iter().rev() {
            up.push(self.module(input, *width, device));
            // Concatenated with the module of the same width on the way down.
            input = 2 * width;
        }
        let head = match self.head_rank {
            None => Head { narrow: None, out: small_linear(input, d, device) },
            Some(rank) => Head {
                narrow: Some(linear(input, rank, 1.0, false, device)),
                out: small_linear(rank, d, device),
            },
        };
        Denoiser {
            down,
            up,
            head,
            no_condition: Initializer::Normal {
                mean: 0.0,
                std: 1.0 / (self.condition_size as f64).sqrt(),
            }
            .init([self.condition_size], device),
            time_frequencies: self.time_frequencies(),
        }
    }

    fn module(&self, input: usize, output: usize, device: &Device) -> SirenModule {
        let width = self.bottleneck.unwrap_or(output);
        SirenModule {
            from_input: linear(input, width, 1.0, false, device),
            from_condition: linear(self.condition_size, width, 1.0, false, device),
            from_time: small_linear(self.time_size, 2 * width, device),
            // ω·W_o·h has unit variance: h is the sum of two unit variances at the start.
            out: linear(width, output, 1.0 / (2.0_f64.sqrt() * self.frequency), true, device),
            dropout: DropoutConfig::new(self.dropout).init(),
            frequency: self.frequency,
        }
    }

    /// Geometric from 1 to 1/10000 per step.
    fn time_frequencies(&self) -> Vec<f32> {
        let half = self.time_size / 2;
        (0..half).map(|k| 10_000.0_f32.powf(-(k as f32) / half as f32)).collect()
    }
}

/// Uniform weights that give outputs of standard deviation `gain` for inputs of unit mean
/// square; biases begin at zero.
fn linear(input: usize, output: usize, gain: f64, bias: bool, device: &Device) -> Linear {
    let bound = gain * (3.0 / input as f64).sqrt();
    let uniform = Initializer::Uniform { min: -bound, max: bound };
    let mut linear =
        LinearConfig::new(input, output).with_bias(bias).with_initializer(uniform).init(device);
    if bias {
        linear.bias = Some(Initializer::Zeros.init([output], device));
    }
    linear
}

/// Starts near zero: nothing is modulated, and the output is zero.
fn small_linear(input: usize, output: usize, device: &Device) -> Linear {
    linear(input, output, 0.02, true, device)
}

/// Who draws which activations are dropped in training.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Dropped {
    /// The backend, for the whole batch at once; nothing is dropped on devices without gradients.
    #[default]
    ByBackend,
    /// The caller: a factor for each activation, one tensor `[batch, width]` per module in their order. Without
    /// any, nothing is dropped.
    Factors(Vec<Tensor<2>>),
}

/// The Conditional Siren U-Net: from a noisy encoding, a noise level and an image embedding to coefficients.
#[derive(Module, Debug)]
pub struct Denoiser {
    down: Vec<SirenModule>,
    up: Vec<SirenModule>,
    head: Head,
    /// Stands for "no condition".
    no_condition: Param<Tensor<1>>,
    time_frequencies: Vec<f32>,
}

#[derive(Module, Debug)]
struct SirenModule {
    from_input: Linear,
    from_condition: Linear,
    from_time: Linear,
    out: Linear,
    dropout: Dropout,
    frequency: f64,
}

#[derive(Module, Debug)]
struct Head {
    narrow: Option<Linear>,
    out: Linear,
}

impl Denoiser {
    /// From noisy coefficients x_t `[batch, d]`, a condition `[batch, condition]` and time
    /// steps (one per row) to d numbers per row. What they mean is the objective's affair.
    pub fn forward(&self, x: Tensor<2>, condition: Tensor<2>, steps: &[usize]) -> Tensor<2> {
        self.forward_dropping(x, condition, steps, Dropped::ByBackend)
    }

    /// [`Denoiser::forward`], with dropout as the caller sets it.
    pub fn forward_dropping(
        &self,
        x: Tensor<2>,
        condition: Tensor<2>,
        steps: &[usize],
        dropped: Dropped,
    ) -> Tensor<2> {
        self.observed(x, condition, steps, dropped, |_| ())
    }

    /// The widths of the modules' outputs, in their order.
    pub fn widths(&self) -> Vec<usize> {
        self.down.iter().chain(&self.up).map(|module| module.out.weight.dims()[1]).collect()
    }

    /// The outputs of all modules, in their order: for looking into the network.
    pub fn activations(
        &self,
        x: Tensor<2>,
        condition: Tensor<2>,
        steps: &[usize],
    ) -> Vec<Tensor<2>> {
        let mut seen = Vec::new();
        let dropped = Dropped::ByBackend;
        self.observed(x, condition, steps, dropped, |sines| seen.push(sines.clone()));
        seen
    }

    fn observed(
        &self,
        x: Tensor<2>,
        condition: Tensor<2>,
        steps: &[usize],
        dropped: Dropped,
        mut observe: impl FnMut(&Tensor<2>),
    ) -> Tensor<2> {
        let time = silu(self.time_embedding(steps, &x.device())); // [batch, time]
        let (by_backend, mut factors) = match dropped {
            Dropped::ByBackend => (true, Vec::new().into_iter()),
            Dropped::Factors(factors) => (false, factors.into_iter()),
        };
        let mut run = |module: &SirenModule, x: Tensor<2>| {
            let sine = module.forward(x, condition.clone(), time.clone());
            match factors.next() {
                Some(factors) => sine * factors,
                None if by_backend => module.dropout.forward(sine),
                None => sine,
            }
        };
        let mut hidden = x;
        let mut skips = Vec::new();
        for module in &self.down {
            hidden = run(module, hidden);
            observe(&hidden);
            skips.push(hidden.clone()); // [batch, d / 2^k]
        }
        for module in &self.up {
            hidden = run(module, hidden);
            observe(&hidden);
            if let Some(skip) = skips.pop() {
                hidden = Tensor::cat(vec![hidden, skip], 1); // [batch, 2·d / 2^k]
            }
        }
        let hidden = match &self.head.narrow {
            Some(narrow) => narrow.forward(hidden),
            None => hidden,
        };
        self.head.out.forward(hidden) // [batch, d]
    }

    /// The condition with some rows replaced by "no condition": `[batch, condition]`.
    pub fn without_some(&self, condition: Tensor<2>, keep: &[bool]) -> Tensor<2> {
        let [batch, size] = condition.dims();
        assert_eq!(batch, keep.len(), "{batch} conditions, but {} choices", keep.len());
        let keep: Vec<f32> = keep.iter().map(|keep| f32::from(*keep)).collect();
        let keep = Tensor::<2>::from_data(TensorData::new(keep, [batch, 1]), &condition.device());
        let none = self.no_condition.val().reshape([1, size]);
        condition * keep.clone() + none * (keep.neg() + 1.0)
    }

    /// "No condition" for a batch: `[batch, condition]`.
    pub fn unconditional(&self, batch: usize) -> Tensor<2> {
        let none = self.no_condition.val();
        let [size] = none.dims();
        none.reshape([1, size]).repeat_dim(0, batch)
    }

    /// Sines and cosines of the step at geometric frequencies: `[batch, time]`.
    fn time_embedding(&self, steps: &[usize], device: &Device) -> Tensor<2> {
        let mut values = Vec::with_capacity(steps.len() * 2 * self.time_frequencies.len());
        for step in steps {
            let angles = || self.time_frequencies.iter().map(|frequency| *step as f32 * frequency);
            values.extend(angles().map(f32::sin));
            values.extend(angles().map(f32::cos));
        }
        let shape = [steps.len(), 2 * self.time_frequencies.len()];
        Tensor::from_data(TensorData::new(values, shape), device)
    }
}

impl SirenModule {
    /// Without dropout.
    fn forward(&self, x: Tensor<2>, condition: Tensor<2>, time: Tensor<2>) -> Tensor<2> {
        let modulation = self.from_time.forward(time); // [batch, 2·width]
        let (x, condition) = (self.from_input.forward(x), self.from_condition.forward(condition));
        let hidden = modulate(x, modulation, condition); // [batch, width]
        let product = hidden.matmul(self.out.weight.val()); // [batch, d_out]
        let bias = self.out.bias.as_ref().expect("the sine's linear map has a bias").val();
        sine(product, bias, self.frequency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_counted_before_they_are_made() {
        let device = Device::flex();
        let plain = DenoiserConfig { time_size: 6, ..DenoiserConfig::new(4, 3) };
        let narrow = DenoiserConfig { bottleneck: Some(2), head_rank: Some(3), ..plain.clone() };
        let deep = DenoiserConfig { depth: 3, condition_size: 9, ..plain.clone() };
        for config in [plain, narrow, deep] {
            assert_eq!(config.problem(), None);
            assert_eq!(config.weights(), config.init(&device).num_params() as u64, "{config:?}");
        }
    }

    /// Each of them panicked, or took all memory, when a model with such a `config.json` was opened.
    #[test]
    fn shapes_of_no_network_are_problems() {
        let plain = DenoiserConfig::new(4, 3);
        for (config, word) in [
            (DenoiserConfig { max_degree: usize::MAX, ..plain.clone() }, "max_degree"),
            (DenoiserConfig { max_degree: 60_000, ..plain.clone() }, "max_degree"),
            (DenoiserConfig { condition_size: 0, ..plain.clone() }, "condition_size"),
            (DenoiserConfig { condition_size: usize::MAX, ..plain.clone() }, "condition_size"),
            (DenoiserConfig { time_size: 7, ..plain.clone() }, "even"),
            (DenoiserConfig { time_size: 0, ..plain.clone() }, "time_size"),
            (DenoiserConfig { bottleneck: Some(usize::MAX), ..plain.clone() }, "bottleneck"),
            (DenoiserConfig { head_rank: Some(0), ..plain.clone() }, "head_rank"),
            (DenoiserConfig { depth: 5, ..plain.clone() }, "halved 5 times"),
            (DenoiserConfig { depth: 64, ..plain.clone() }, "halved 64 times"),
            (DenoiserConfig { dropout: 1.5, ..plain.clone() }, "dropout"),
            (DenoiserConfig { dropout: 1.0, ..plain.clone() }, "dropout"),
            (DenoiserConfig { frequency: f64::NAN, ..plain.clone() }, "frequency"),
            (DenoiserConfig { frequency: 1e300, ..plain.clone() }, "frequency"),
        ] {
            let problem = config.problem().expect(word);
            assert!(problem.contains(word), "{problem}");
        }
    }
}
