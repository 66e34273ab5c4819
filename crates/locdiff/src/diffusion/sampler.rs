//! A network with its schedule and objective: a density in one pass, or samples by taking
//! the noise out step by step.
//!
//! Convention: the latent is x_t = √ᾱ_t·√4π·Y(place) + √(1 − ᾱ_t)·ε. Under likelihood the
//! network only adds to the evidence that the latent itself carries, e = c_t·x_t + network:
//! for a uniform prior and no image, network = 0 is exact. Under the other objectives
//! e = network estimates Y(place).

use std::f64::consts::PI;
use std::ops::RangeInclusive;

use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor};
use locdiff_sphere::{Coefficients, Density, Grid, Integrator, InvalidCoefficients};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

use super::cpu_integrals::CpuGrid;
use super::denoiser::{Denoiser, DenoiserConfig, Dropped};
use super::objective::{Objective, Quadrature};
use super::schedule::{InvalidSchedule, Schedule, ScheduleConfig};
use super::sphere_grid::{SphereGrid, tensor};
use super::standardization::Standardization;
use crate::tensors::fused::{is_cpu, numbers_of};

/// Everything that fixes a model but its weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiffusionConfig {
    /// Shape of the network.
    pub denoiser: DenoiserConfig,
    /// The noise levels.
    pub schedule: ScheduleConfig,
    /// The loss that the network was trained with, which decides what its output means.
    pub objective: Objective,
    /// How its integrals are taken in training.
    pub quadrature: Quadrature,
}

/// What the coefficients that a model gives out stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// The density exp(e·Y − A(e)).
    Exponential,
    /// The mean encoding, and so the density e·Y.
    Linear,
    /// A function whose maximum is the answer, without any probability.
    ModeOnly,
}

impl Objective {
    /// What the output of a network trained for this stands for.
    pub fn meaning(self) -> Meaning {
        match self {
            Objective::Likelihood => Meaning::Exponential,
            Objective::ReverseKl => Meaning::Linear,
            Objective::Cosine | Objective::L1 | Objective::L2 => Meaning::ModeOnly,
        }
    }
}

/// How samples are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// One evaluation at the highest noise level: the whole posterior at once.
    OnePass,
    /// Every step of the schedule, with fresh noise at each: the paper's.
    Ddpm,
    /// So many steps, without fresh noise.
    Ddim(usize),
}

/// How to sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleOptions {
    /// One pass, or a walk through noise levels.
    pub method: Method,
    /// How strongly the condition counts against none: 1 is as trained, 0 ignores it.
    pub guidance: f64,
    /// The same seed gives the same samples on the same backend.
    pub seed: u64,
    /// The noise begins anew after so many rows, so that what is drawn for one image does not depend on the
    /// images beside it. 0: no two rows have the same noise.
    pub noise_repeats_after: usize,
}

impl Default for SampleOptions {
    fn default() -> SampleOptions {
        SampleOptions { method: Method::OnePass, guidance: 1.0, seed: 0, noise_repeats_after: 0 }
    }
}

/// A step of the denoising, for those who watch.
#[derive(Debug)]
pub struct Step<'a> {
    /// The noise level at which the network was asked.
    pub t: usize,
    /// The latent there, `[batch, d]`.
    pub latent: &'a Tensor<2>,
    /// What the model made of it: e, `[batch, d]`.
    pub output: &'a Tensor<2>,
}

/// A network with its schedule and objective.
#[derive(Debug)]
pub struct Diffusion {
    config: DiffusionConfig,
    schedule: Schedule,
    denoiser: Denoiser,
    standardization: Option<Standardization>,
    /// For the mean encoding of an exponential density.
    grid: MomentGrid,
    device: Device,
}

#[derive(Debug)]
enum MomentGrid {
    Cpu(Box<CpuGrid>),
    Tensors(Box<SphereGrid>),
}

impl Diffusion {
    /// A model with random weights.
    pub fn init(config: DiffusionConfig, device: &Device) -> Result<Diffusion, InvalidSchedule> {
        let denoiser = config.denoiser.init(device);
        Diffusion::with_denoiser(config, denoiser, device)
    }

    /// A model with these weights.
    pub fn with_denoiser(
        config: DiffusionConfig,
        denoiser: Denoiser,
        device: &Device,
    ) -> Result<Diffusion, InvalidSchedule> {
        let max_degree = config.denoiser.max_degree;
        let schedule = Schedule::new(config.schedule, max_degree)?;
        // As fine as what training resolves at the sharpest level: on a coarser one means are pulled to its nodes.
        let rings = Quadrature::default().rings(max_degree);
        let grid = if is_cpu(device) {
            MomentGrid::Cpu(Box::new(CpuGrid::new(rings, max_degree)))
        } else {
            let grid = Grid::new(rings, 2 * rings);
            MomentGrid::Tensors(Box::new(SphereGrid::new(grid, max_degree, device)))
        };
        Ok(Diffusion {
            config,
            schedule,
            denoiser,
            standardization: None,
            grid,
            device: device.clone(),
        })
    }

    /// The same model for conditions that are centered and scaled first.
    pub fn standardized(self, standardization: Option<Standardization>) -> Diffusion {
        Diffusion { standardization, ..self }
    }

    /// What conditions are centered and scaled by, if they are.
    pub fn standardization(&self) -> Option<&Standardization> {
        self.standardization.as_ref()
    }

    /// The condition `[rows, c]` of embeddings as an encoder gives them.
    ///
    /// # Panics
    /// If these are not whole embeddings.
    pub fn condition(&self, mut embeddings: Vec<f32>) -> Tensor<2> {
        if let Some(standardization) = &self.standardization {
            standardization.apply(&mut embeddings);
        }
        let width = self.config.denoiser.condition_size;
        assert!(embeddings.len().is_multiple_of(width), "whole embeddings of {width} numbers");
        let rows = embeddings.len() / width;
        tensor(embeddings, [rows, width], &self.device)
    }

    /// What fixes the model but its weights.
    pub fn config(&self) -> &DiffusionConfig {
        &self.config
    }

    /// The noise levels.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The network that removes noise.
    pub fn denoiser(&self) -> &Denoiser {
        &self.denoiser
    }

    /// Device that the weights are on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// e from the network's answer to a latent.
    pub fn output(
        &self,
        denoiser: &Denoiser,
        latent: Tensor<2>,
        condition: Tensor<2>,
        steps: &[usize],
    ) -> Tensor<2> {
        self.output_dropping(denoiser, latent, condition, steps, Dropped::ByBackend)
    }

    /// [`Diffusion::output`], with dropout as the caller sets it.
    pub fn output_dropping(
        &self,
        denoiser: &Denoiser,
        latent: Tensor<2>,
        condition: Tensor<2>,
        steps: &[usize],
        dropped: Dropped,
    ) -> Tensor<2> {
        let network = denoiser.forward_dropping(latent.clone(), condition, steps, dropped);
        if self.config.objective == Objective::Likelihood {
            let evidence = steps.iter().map(|t| self.schedule.evidence(*t) as f32).collect();
            network + latent * tensor(evidence, [steps.len(), 1], &self.device)
        } else {
            network
        }
    }

    /// Samples (or, in one pass, posteriors): e for each row of the condition `[batch, c]`,
    /// or for `None` without any. Each step is shown to `watch`.
    pub fn sample(
        &self,
        condition: Option<Tensor<2>>,
        batch: usize,
        options: SampleOptions,
        mut watch: impl FnMut(Step<'_>),
    ) -> Tensor<2> {
        let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
        let levels = self.levels(options.method);
        let noise =
            |rng: &mut ChaCha8Rng| self.repeated_noise(batch, options.noise_repeats_after, rng);
        let mut latent = noise(&mut rng);
        let mut output = latent.clone();
        for (k, t) in levels.iter().enumerate() {
            output = self.guided(&latent, condition.as_ref(), *t, options.guidance);
            watch(Step { t: *t, latent: &latent, output: &output });
            let Some(next) = levels.get(k + 1) else { break };
            let estimate = self.estimate(output.clone());
            let fresh = (options.method == Method::Ddpm).then(|| noise(&mut rng));
            latent = self.step(latent, estimate, *t, *next, fresh);
        }
        output
    }

    /// The noise levels that a method visits, the highest first. They end where nothing is
    /// left to decide: there the output is as sharp as an encoding. All of them are trained.
    pub fn levels(&self, method: Method) -> Vec<usize> {
        let (last, first) = self.trained_levels().into_inner();
        match method {
            Method::OnePass => vec![first],
            Method::Ddpm => (last..=first).rev().collect(),
            Method::Ddim(steps) => {
                let gaps = steps.max(2) - 1;
                let level = |k: usize| last + (first - last) * (gaps - k) / gaps;
                let mut levels: Vec<usize> = (0..=gaps).map(level).collect();
                levels.dedup();
                levels
            }
        }
    }

    /// The noise levels that are trained, and that samplers visit. Under likelihood they end
    /// where the evidence of the latent is as sharp as the training's integrals resolve: what
    /// remains there is a density of its own, from which a place can be drawn or decoded.
    pub fn trained_levels(&self) -> RangeInclusive<usize> {
        let config = &self.config;
        let first = match config.objective {
            Objective::Likelihood => {
                let sharpest = config.quadrature.sharpest(config.denoiser.max_degree);
                self.schedule.first_step_below(sharpest / (4.0 * PI))
            }
            _ => 1,
        };
        first..=self.schedule.steps()
    }

    fn guided(
        &self,
        latent: &Tensor<2>,
        condition: Option<&Tensor<2>>,
        t: usize,
        guidance: f64,
    ) -> Tensor<2> {
        let [batch, _] = latent.dims();
        let steps = vec![t; batch];
        let none = || {
            let condition = self.denoiser.unconditional(batch);
            self.output(&self.denoiser, latent.clone(), condition, &steps)
        };
        let Some(condition) = condition else { return none() };
        let with = self.output(&self.denoiser, latent.clone(), condition.clone(), &steps);
        if guidance == 1.0 {
            return with;
        }
        let none = none();
        none.clone() + (with - none) * guidance
    }

    /// The estimate of x_0 = √4π·Y(place) that an output stands for. Its first coefficient
    /// is the same for all places, and no objective trains it.
    fn estimate(&self, output: Tensor<2>) -> Tensor<2> {
        let [batch, size] = output.dims();
        let estimate = match self.config.objective {
            Objective::Likelihood => self.mean_encoding(output),
            _ => output,
        } * (4.0 * PI).sqrt();
        let ones = Tensor::ones([batch, 1], &self.device);
        Tensor::cat(vec![ones, estimate.slice([0..batch, 1..size])], 1)
    }

    /// The mean of Y under q ∝ exp(e·Y), `[batch, d]`.
    pub fn mean_encoding(&self, output: Tensor<2>) -> Tensor<2> {
        match &self.grid {
            MomentGrid::Cpu(grid) => {
                let means = grid.mean_encoding(&numbers_of(&output));
                tensor(means, output.dims(), &self.device)
            }
            MomentGrid::Tensors(grid) => {
                let values = grid.synthesize(output) + grid.log_areas();
                grid.analyze(softmax(values, 1))
            }
        }
    }

    /// From noise level t to `next`, towards an estimate of x_0: with fresh noise by the
    /// posterior of the diffusion, without it along the same noise.
    fn step(
        &self,
        latent: Tensor<2>,
        estimate: Tensor<2>,
        t: usize,
        next: usize,
        fresh: Option<Tensor<2>>,
    ) -> Tensor<2> {
        let (here, there) = (self.schedule.alpha_bar(t), self.schedule.alpha_bar(next));
        match fresh {
            Some(noise) => {
                let alpha = here / there;
                let beta = 1.0 - alpha;
                let of_estimate = there.sqrt() * beta / (1.0 - here);
                let of_latent = alpha.sqrt() * (1.0 - there) / (1.0 - here);
                let sigma = (beta * (1.0 - there) / (1.0 - here)).sqrt();
                estimate * of_estimate + latent * of_latent + noise * sigma
            }
            None => {
                let noise = (latent - estimate.clone() * here.sqrt()) / (1.0 - here).sqrt();
                estimate * there.sqrt() + noise * (1.0 - there).sqrt()
            }
        }
    }

    /// Standard normal numbers `[batch, d]`, drawn on the host so that every backend gets
    /// the same.
    pub fn noise(&self, batch: usize, rng: &mut impl Rng) -> Tensor<2> {
        let size = self.config.denoiser.coefficients();
        let values = rng.sample_iter(StandardNormal).take(batch * size).collect();
        tensor(values, [batch, size], &self.device)
    }

    fn repeated_noise(&self, batch: usize, after: usize, rng: &mut impl Rng) -> Tensor<2> {
        if after == 0 || after >= batch {
            return self.noise(batch, rng);
        }
        assert!(batch.is_multiple_of(after), "{batch} rows are not whole times {after}");
        self.noise(after, rng).repeat_dim(0, batch / after)
    }

    /// x_t for true encodings `[batch, d]` (of √4π·Y) and a noise level for each row.
    pub fn noisy(&self, clean: Tensor<2>, noise: Tensor<2>, steps: &[usize]) -> Tensor<2> {
        let column = |of: &dyn Fn(f64) -> f64| {
            let values = steps.iter().map(|t| of(self.schedule.alpha_bar(*t)) as f32).collect();
            tensor(values, [steps.len(), 1], &self.device)
        };
        clean * column(&|bar| bar.sqrt()) + noise * column(&|bar| (1.0 - bar).sqrt())
    }

    /// The densities that outputs `[batch, d]` stand for; `None` if the objective gives no
    /// probabilities.
    pub fn densities(&self, output: &Tensor<2>) -> Option<Vec<Density>> {
        let integrator = Integrator::new(self.config.denoiser.max_degree);
        let make = |e: Coefficients| match self.config.objective.meaning() {
            Meaning::Exponential => Some(integrator.exponential(&e)),
            Meaning::Linear => Some(integrator.linear(&e)),
            Meaning::ModeOnly => None,
        };
        coefficients_of(output).into_iter().map(make).collect()
    }
}

/// The rows of a tensor as coefficients.
///
/// # Panics
/// If a number is not finite, or a row's length is not a square.
pub fn coefficients_of(output: &Tensor<2>) -> Vec<Coefficients> {
    let rows = rows_of(output).into_iter();
    rows.map(|row| row.expect("the network gives finite coefficients")).collect()
}

/// The rows of a tensor as coefficients; an error if a number is not finite, as damaged weights give them.
pub(crate) fn rows_of(output: &Tensor<2>) -> Vec<Result<Coefficients, InvalidCoefficients>> {
    let [_, size] = output.dims();
    let values: Vec<f32> = output.to_data().try_to_vec().expect("numbers of the backend are f32");
    values
        .chunks_exact(size)
        .map(|row| {
            let row = row.iter().map(|value| f64::from(*value)).collect();
            Coefficients::from_vec(row)
        })
        .collect()
}
