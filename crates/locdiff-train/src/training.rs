//! The training step: noise is added to the truth, the network predicts, and its
//! weights move.
//!
//! All randomness of a step comes from (seed, step): a run that is resumed draws what the
//! undisturbed one would have drawn. In a run with slices (see `replicas.rs`) that of a row
//! comes from (seed, step, row), so that it doesn't matter who computes the row.

use std::f64::consts::PI;
use std::ops::Range;

use crate::{Adam, AdamState, Replicas, moved_towards};
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::diffusion::{
    Denoiser, Diffusion, DiffusionConfig, Dropped, InvalidSchedule, Loss, Points, Standardization,
    encodings,
};
use locdiff_sphere::{Basis, LatLon};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use crate::config::TrainingConfig;

/// A model in training.
#[derive(Debug)]
pub struct Training {
    config: TrainingConfig,
    /// One for each device that computes; the first has the weights.
    sites: Vec<Site>,
    replicas: Replicas,
    denoiser: Denoiser,
    averaged: Denoiser,
    optimizer: Adam,
    basis: Basis,
    /// The noise levels that are trained, from the sharpest on.
    levels: std::ops::RangeInclusive<usize>,
    step: u64,
}

/// What a device needs to compute losses.
#[derive(Debug)]
struct Site {
    /// For its schedule and noise; its own weights are not used.
    diffusion: Diffusion,
    loss: Loss,
    device: Device,
}

impl Site {
    /// On a device with gradients.
    fn new(config: &DiffusionConfig, device: Device) -> Result<Site, InvalidSchedule> {
        let diffusion = Diffusion::init(config.clone(), &device)?;
        let max_degree = config.denoiser.max_degree;
        let loss = Loss::new(config.objective, config.quadrature, max_degree, &device);
        Ok(Site { diffusion, loss, device })
    }
}

/// The random numbers of some rows.
#[derive(Clone)]
struct Draws {
    levels: Vec<usize>,
    noise: Tensor<2>,
    /// Whether a row has its condition.
    keep: Vec<bool>,
    dropped: Dropped,
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
        let site = Site::new(&model, device)?;
        let denoiser = site.diffusion.denoiser().clone();
        Ok(Training {
            averaged: denoiser.valid(),
            optimizer: Adam::new(config.adam()),
            denoiser,
            basis: Basis::new(model.denoiser.max_degree),
            config,
            levels: site.diffusion.trained_levels(),
            sites: vec![site],
            replicas: Replicas::one(),
            step: 0,
        })
    }

    /// The same training on embeddings that are centered and scaled first.
    pub fn standardized(mut self, standardization: Option<Standardization>) -> Training {
        let sites = self.sites.into_iter().map(|site| Site {
            diffusion: site.diffusion.standardized(standardization.clone()),
            ..site
        });
        self.sites = sites.collect();
        self
    }

    /// The same training, computed by replicas. It takes the same steps with any number of them.
    ///
    /// # Panics
    /// If the configuration doesn't set `run.slices`: see [`TrainingConfig::shared_by`].
    pub fn replicated(mut self, replicas: Replicas) -> Result<Training, InvalidSchedule> {
        assert!(self.config.run.slices.is_some(), "replicas need a number of slices");
        let (config, standardization) = {
            let diffusion = &self.sites[0].diffusion;
            (diffusion.config().clone(), diffusion.standardization().cloned())
        };
        for device in replicas.devices().iter().skip(1) {
            self.sites.push(Site::new(&config, device.clone().autodiff())?);
        }
        self.replicas = replicas;
        Ok(self.standardized(standardization))
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
            Adam::restored(self.config.adam(), optimizer, &self.sites[0].device.clone().inner());
    }

    /// Steps that were taken.
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

    /// Moments of the optimizer, for a checkpoint.
    pub fn optimizer(&self) -> AdamState {
        self.optimizer.state()
    }

    /// The model as it stands, with averaged weights.
    pub fn model(&self) -> Result<Diffusion, InvalidSchedule> {
        let Site { diffusion, device, .. } = &self.sites[0];
        let device = device.clone().inner();
        let config = diffusion.config().clone();
        let standardization = diffusion.standardization().cloned();
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
        let rows = places.len();
        // Without slices the whole batch is drawn from one source.
        let whole = self.config.run.slices.is_none().then(|| self.draw_batch(rows, rng));
        let points = self.sites[0].loss.points(rng);
        let width = embeddings.len() / rows.max(1);
        let slices = self.config.run.slices.unwrap_or(1).min(rows);
        let (loss, gradients) =
            self.replicas.gradients(&self.denoiser, slices, |denoiser, replica, slice| {
                let site = self.sites.get(replica).unwrap_or(&self.sites[0]);
                let own = rows * slice / slices..rows * (slice + 1) / slices;
                let draws = whole.clone();
                let draws = draws.unwrap_or_else(|| self.draw_rows(site, rows, own.clone()));
                let embeddings = embeddings[own.start * width..own.end * width].to_vec();
                let mean =
                    self.mean(site, denoiser, &places[own.clone()], embeddings, draws, &points);
                if own.len() == rows { mean } else { mean * (own.len() as f64 / rows as f64) }
            });
        // Taken out, not cloned: weights that are not shared are updated in place.
        let denoiser = std::mem::replace(&mut self.denoiser, self.averaged.clone());
        let (denoiser, gradient_norm) = self.optimizer.step(rate, denoiser, gradients);
        self.denoiser = denoiser;
        self.step += 1;
        self.average();
        StepReport { step: self.step, loss, gradient_norm, rate, rows }
    }

    /// The mean loss of some rows.
    fn mean(
        &self,
        site: &Site,
        denoiser: &Denoiser,
        places: &[LatLon],
        embeddings: Vec<f32>,
        Draws { levels, noise, keep, dropped }: Draws,
        points: &Points,
    ) -> Tensor<1> {
        let diffusion = &site.diffusion;
        let clean = encodings(&self.basis, places, &site.device) * (4.0 * PI).sqrt();
        let latent = diffusion.noisy(clean, noise, &levels);
        let condition = denoiser.without_some(diffusion.condition(embeddings), &keep);
        let output = diffusion.output_dropping(denoiser, latent, condition, &levels, dropped);
        site.loss.mean_at(output, places, points)
    }

    /// The random numbers of a batch that is not sliced.
    fn draw_batch(&self, rows: usize, rng: &mut ChaCha8Rng) -> Draws {
        let Site { diffusion, device, .. } = &self.sites[0];
        // For dropout, which the backend draws.
        device.seed(rng.random());
        let levels = self.noise_levels(rows, rng);
        let noise = diffusion.noise(rows, rng);
        let dropout = self.config.objective.condition_dropout;
        let keep = (0..rows).map(|_| rng.random::<f64>() >= dropout).collect();
        Draws { levels, noise, keep, dropped: Dropped::ByBackend }
    }

    /// The random numbers of a slice: each row has a source of its own.
    fn draw_rows(&self, site: &Site, rows: usize, own: Range<usize>) -> Draws {
        let model = &site.diffusion.config().denoiser;
        let (size, count) = (model.coefficients(), own.len());
        let (condition_dropout, dropout) =
            (self.config.objective.condition_dropout, model.dropout as f32);
        let widths = if dropout > 0.0 { self.denoiser.widths() } else { Vec::new() };
        let mut levels = Vec::with_capacity(count);
        let mut keep = Vec::with_capacity(count);
        let mut noise = Vec::with_capacity(count * size);
        let mut factors: Vec<Vec<f32>> =
            widths.iter().map(|width| Vec::with_capacity(count * width)).collect();
        for row in own {
            let rng = &mut random_of_row(self.config.run.seed, self.step, row);
            levels.push(self.noise_level(row, rows, rng));
            keep.push(rng.random::<f64>() >= condition_dropout);
            noise.extend(rng.sample_iter::<f32, _>(StandardNormal).take(size));
            for (factors, width) in factors.iter_mut().zip(&widths) {
                let factor = |kept| if kept { 1.0 / (1.0 - dropout) } else { 0.0 };
                factors.extend((0..*width).map(|_| factor(rng.random::<f32>() >= dropout)));
            }
        }
        let tensor = |values, width| {
            Tensor::from_data(TensorData::new(values, [count, width]), &site.device)
        };
        let factors = factors.into_iter().zip(widths);
        let factors = factors.map(|(values, width)| tensor(values, width)).collect();
        Draws { levels, noise: tensor(noise, size), keep, dropped: Dropped::Factors(factors) }
    }

    /// A share at the highest level, the others anywhere.
    fn noise_levels(&self, batch: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        (0..batch).map(|row| self.noise_level(row, batch, rng)).collect()
    }

    fn noise_level(&self, row: usize, batch: usize, rng: &mut ChaCha8Rng) -> usize {
        let share = self.config.objective.share_at_full_noise;
        let full = (share * batch as f64).round() as usize;
        if row < full { *self.levels.end() } else { rng.random_range(self.levels.clone()) }
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

/// A source for one row of one step, whoever computes it.
fn random_of_row(seed: u64, step: u64, row: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Above the streams of whole steps.
    rng.set_stream((step + 1) << 32 | row as u64);
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
                        let visited = training.sites[0].diffusion.levels(method);
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
