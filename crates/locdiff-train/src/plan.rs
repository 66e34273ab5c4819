//! What a run will need, before a day is spent on it.

use std::time::Instant;

use burn::module::Module;
use burn::tensor::Device;
use locdiff_sphere::{LatLon, uniform_place};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::config::TrainingConfig;
use crate::replicas::Replicas;
use crate::training::Training;
use crate::training_error::TrainingError;

/// Measured after one step that warms up.
const MEASURED_STEPS: usize = 3;

/// What a run will need.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Plan {
    /// Numbers in the network.
    pub parameters: usize,
    /// Number of optimizer steps of the whole run.
    pub steps: u64,
    /// Rows in all, over all passes.
    pub rows: u64,
    /// Passes over the data; none if their number is not known.
    pub epochs: Option<f64>,
    /// Milliseconds of a step, measured now on this device.
    pub step_ms: f64,
    /// Rows per second that this consumes.
    pub rows_per_s: f64,
    /// Hours in all, without validation and checkpoints.
    pub hours: f64,
    /// Megabytes of memory, about: weights, gradients, optimiser, average and activations.
    pub memory_mb: f64,
    /// Megabytes of one checkpoint.
    pub checkpoint_mb: f64,
    /// Megabytes on the disk at most: the checkpoints that are kept and one in writing, and
    /// the model.
    pub disk_mb: f64,
}

impl Plan {
    /// Takes a few steps on random data of some width to see how long they take.
    pub fn measure(
        config: &TrainingConfig,
        condition_size: usize,
        rows_of_data: Option<u64>,
        device: &Device,
        replicas: Option<Replicas>,
    ) -> Result<Plan, TrainingError> {
        let config = &match &replicas {
            Some(replicas) => config.shared_by(replicas.count())?,
            None => config.clone(),
        };
        let mut training = Training::begin(config.clone(), condition_size, device)?;
        if let Some(replicas) = replicas {
            training = training.replicated(replicas)?;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(config.run.seed);
        let batch = config.run.batch;
        let places: Vec<LatLon> = (0..batch).map(|_| uniform_place(&mut rng)).collect();
        let embeddings: Vec<f32> =
            (0..batch * condition_size).map(|_| rng.random_range(-1.7..1.7)).collect();
        let mut fastest = f64::INFINITY;
        for _ in 0..=MEASURED_STEPS {
            let began = Instant::now();
            training.step(&places, embeddings.clone());
            fastest = fastest.min(began.elapsed().as_secs_f64());
        }
        let parameters = training.denoiser().num_params();
        let megabytes = |numbers: f64| numbers * 4.0 / 1e6;
        let weights = megabytes(parameters as f64);
        let rows = config.run.steps * batch as u64;
        let checkpoint_mb = 4.0 * weights;
        let gradients = config.run.slices.unwrap_or(1) as f64;
        Ok(Plan {
            parameters,
            steps: config.run.steps,
            rows,
            epochs: rows_of_data.map(|count| rows as f64 / count.max(1) as f64),
            step_ms: 1e3 * fastest,
            rows_per_s: batch as f64 / fastest,
            hours: config.run.steps as f64 * fastest / 3600.0,
            // Weights at the start and now, two means, average; three copies while a checkpoint is
            // written; and the gradients of all slices.
            memory_mb: (8.0 + gradients) * weights + megabytes(activations(config, condition_size)),
            checkpoint_mb,
            disk_mb: (config.checkpoint.keep + 1) as f64 * checkpoint_mb + weights,
        })
    }
}

/// Numbers that a step keeps for its gradients, about: each module its input, the modulated
/// middle, the product, the sine and its slope.
fn activations(config: &TrainingConfig, condition_size: usize) -> f64 {
    let network = &config.network;
    let d = (network.max_degree + 1) * (network.max_degree + 1);
    let modules = (0..=network.depth).map(|k| (d >> k) as f64);
    let per_row: f64 = modules
        .map(|width| {
            let middle = network.bottleneck.map_or(width, |bottleneck| bottleneck as f64);
            2.0 * (4.0 * width + 5.0 * middle)
        })
        .sum();
    config.run.batch as f64 * (per_row + condition_size as f64 + 6.0 * d as f64)
}
