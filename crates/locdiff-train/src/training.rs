//! The training step: noise is added to the truth, the network says what it sees, and its
//! weights move.
//!
//! All randomness of a step comes from (seed, step): a run that is resumed draws what the
//! undisturbed one would have drawn.

use std::f64::consts::PI;

use crate::{Adam, AdamState, moved_towards};
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Device;
use locdiff::diffusion::{Denoiser, Diffusion, InvalidSchedule, Loss, Standardization, encodings};
use locdiff_sphere::{Basis, LatLon};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::config::TrainingConfig;

/// A model in training.
#[derive(Debug)]
pub struct Training {
    config: TrainingConfig,
    /// For its schedule and noise; its own weights are not used.
    diffusion: Diffusion,
    denoiser: Denoiser,
    averaged: Denoiser,
    optimizer: Adam,
    loss: Loss,
    basis: Basis,
    /// The noise levels that are trained, from the sharpest on.
    levels: std::ops::RangeInclusive<usize>,
    step: u64,
    device: Device,
}

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepReport {
    /// Steps taken, with this one.
    pub step: u64,
    /// Mean of the objective over the batch.
    pub loss: f64,
    /// Length of the gradient before it was cut.
    pub gradient_norm: f64,
    /// The learning rate.
    pub rate: f64,
    /// Rows of the batch.
    pub rows: usize,
}

impl Training {
    /// A model with random weights, on a device without gradients (they are added here).
    pub fn begin(
        config: TrainingConfig,
        condition_size: usize,
        device: &Device,
    ) -> Result<Training, InvalidSchedule> {
        let device = device.clone().autodiff();
        device.seed(config.run.seed);
        let model = config.diffusion(condition_size);
        let diffusion = Diffusion::init(model.clone(), &device)?;
        let max_degree = model.denoiser.max_degree;
        let loss = Loss::new(model.objective, model.quadrature, max_degree, &device);
        let levels = diffusion.trained_levels();
        let denoiser = diffusion.denoiser().clone();
        Ok(Training {
            averaged: denoiser.valid(),
            optimizer: Adam::new(config.adam()),
            denoiser,
            basis: Basis::new(max_degree),
            config,
            diffusion,
            loss,
            levels,
            step: 0,
            device,
        })
    }

    /// The same training on embeddings that are centered and scaled first.
    pub fn standardized(self, standardization: Option<Standardization>) -> Training {
        Training { diffusion: self.diffusion.standardized(standardization), ..self }
    }

    /// Goes on from where another run stood.
    pub fn restore(
        &mut self,
        step: u64,
        denoiser: Denoiser,
        averaged: Denoiser,
        optimizer: AdamState,
    ) {
        self.step = step;
        self.denoiser = denoiser;
        self.averaged = averaged;
        self.optimizer =
            Adam::restored(self.config.adam(), optimizer, &self.device.clone().inner());
    }

    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// The weights, with gradients.
    pub fn denoiser(&self) -> &Denoiser {
        &self.denoiser
    }

    /// The moving average of the weights, without gradients.
    pub fn averaged(&self) -> Denoiser {
        if self.config.run.ema_decay > 0.0 { self.averaged.clone() } else { self.denoiser.valid() }
    }

    /// The optimiser's memory.
    pub fn optimizer(&self) -> AdamState {
        self.optimizer.state()
    }

    /// The model as it stands, with averaged weights.
    pub fn model(&self) -> Result<Diffusion, InvalidSchedule> {
        let device = self.device.clone().inner();
        let config = self.diffusion.config().clone();
        let standardization = self.diffusion.standardization().cloned();
        let diffusion = Diffusion::with_denoiser(config, self.averaged(), &device)?;
        Ok(diffusion.standardized(standardization))
    }

    /// One step on a batch: true places and their embeddings, row by row.
    ///
    /// # Panics
    /// If there are not as many embeddings as places.
    pub fn step(&mut self, places: &[LatLon], embeddings: Vec<f32>) -> StepReport {
        self.step_at(self.config.rate(self.step), places, embeddings)
    }

    /// One step with another learning rate than the configuration's.
    pub fn step_at(&mut self, rate: f64, places: &[LatLon], embeddings: Vec<f32>) -> StepReport {
        let rng = &mut random_of_step(self.config.run.seed, self.step);
        // For dropout, which the backend draws.
        self.device.seed(rng.random());
        let batch = places.len();
        let condition = self.diffusion.condition(embeddings);
        let steps = self.noise_levels(batch, rng);
        let clean = encodings(&self.basis, places, &self.device) * (4.0 * PI).sqrt();
        let noise = self.diffusion.noise(batch, rng);
        let latent = self.diffusion.noisy(clean, noise, &steps);
        let dropout = self.config.objective.condition_dropout;
        let keep: Vec<bool> = (0..batch).map(|_| rng.random::<f64>() >= dropout).collect();
        let condition = self.denoiser.without_some(condition, &keep);
        let output = self.diffusion.output(&self.denoiser, latent, condition, &steps);
        let value = self.loss.mean(output, places, rng);
        let loss = f64::from(value.clone().into_scalar::<f32>());
        let gradients = GradientsParams::from_grads(value.backward(), &self.denoiser);
        // Taken out, not cloned: weights that nobody shares are updated in place.
        let denoiser = std::mem::replace(&mut self.denoiser, self.averaged.clone());
        let (denoiser, gradient_norm) = self.optimizer.step(rate, denoiser, gradients);
        self.denoiser = denoiser;
        self.step += 1;
        self.average();
        StepReport { step: self.step, loss, gradient_norm, rate, rows: batch }
    }

    /// A share at the highest level, the others anywhere.
    fn noise_levels(&self, batch: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        let share = self.config.objective.share_at_full_noise;
        let full = (share * batch as f64).round() as usize;
        let level = |k| {
            if k < full { *self.levels.end() } else { rng.random_range(self.levels.clone()) }
        };
        (0..batch).map(level).collect()
    }

    fn average(&mut self) {
        // Kept apart, or the weights would be shared and copied by each step.
        if self.config.run.ema_decay == 0.0 {
            return;
        }
        // Early on the average is over the steps that there were.
        let decay = self.config.run.ema_decay.min(self.step as f64 / (10.0 + self.step as f64));
        let average = std::mem::replace(&mut self.averaged, self.denoiser.valid());
        self.averaged = moved_towards(average, &self.denoiser, 1.0 - decay);
    }
}

fn random_of_step(seed: u64, step: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(step + 1);
    rng
}

#[cfg(test)]
mod tests {
    use locdiff::diffusion::{Method, Objective, Quadrature, ScheduleConfig, ScheduleKind};

    use super::*;

    /// What samplers visit, training has drawn: for every objective, schedule and quadrature.
    #[test]
    fn every_level_that_is_visited_is_trained() {
        let text = "[network]\nmax_degree = 5\ntime_size = 4\n[objective]\nkind = \"likelihood\"\n\
            share_at_full_noise = 0.2\n[optimizer]\nkind = \"adam\"\nrate = 1e-3\n[run]\nsteps = 1\nbatch = 1\n";
        let base: TrainingConfig = toml::from_str(text).expect("a configuration");
        let objectives = [
            Objective::ReverseKl,
            Objective::Likelihood,
            Objective::Cosine,
            Objective::L1,
            Objective::L2,
        ];
        for kind in objectives {
            for schedule in [ScheduleKind::Linear, ScheduleKind::Cosine, ScheduleKind::Shifted] {
                for quadrature in [Quadrature::Anchors(64), Quadrature::Transform(0)] {
                    let mut config = base.clone();
                    config.schedule = ScheduleConfig { kind: schedule, steps: 60 };
                    (config.objective.kind, config.objective.quadrature) = (kind, quadrature);
                    let training = Training::begin(config, 3, &Device::flex()).expect("valid");
                    let drawn: std::collections::BTreeSet<usize> = training
                        .noise_levels(5000, &mut random_of_step(1, 0))
                        .into_iter()
                        .collect();
                    for method in [Method::OnePass, Method::Ddim(7), Method::Ddpm] {
                        let visited = training.diffusion.levels(method);
                        let untrained: Vec<&usize> =
                            visited.iter().filter(|level| !drawn.contains(level)).collect();
                        assert!(
                            untrained.is_empty(),
                            "{kind:?} {schedule:?} {method:?}: {untrained:?}"
                        );
                    }
                }
            }
        }
    }
}
