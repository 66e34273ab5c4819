//! A short training of a diffusion on the simulation, by the clock.

use std::f64::consts::PI;
use std::time::Instant;

use burn::module::Module;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::{Diffusion, DiffusionConfig, Loss, encodings};
use locdiff_sphere::{Basis, LatLon};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::simulation::{Split, batch, learning_rate};

/// Rows per step.
pub const BATCH: usize = 256;
/// Share of conditions that are dropped in training.
const CONDITION_DROPOUT: f64 = 0.1;

/// What came out.
pub struct Trained {
    /// The model.
    pub diffusion: Diffusion,
    /// Steps that the budget allowed.
    pub steps: usize,
    /// Mean loss of the last tenth.
    pub last_loss: f64,
}

/// Trains for some seconds.
pub fn train(
    config: DiffusionConfig,
    data: &Split,
    width: usize,
    seconds: f64,
    rate: f64,
    seed: u64,
) -> Trained {
    let device = Device::flex().autodiff();
    device.seed(seed);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let diffusion = Diffusion::init(config.clone(), &device).unwrap();
    let basis = Basis::new(config.denoiser.max_degree);
    let loss = Loss::new(config.objective, config.quadrature, config.denoiser.max_degree, &device);
    // No sharper than the loss can see, and no sharper than there is something to decide.
    let first = diffusion.schedule().first_step_below(loss.sharpest() / (4.0 * PI));
    let last = diffusion.schedule().steps();
    let mut denoiser = diffusion.denoiser().clone();
    let mut optimizer = AdamWConfig::new().with_weight_decay(5e-4).with_beta_2(0.99).init();
    let began = Instant::now();
    let mut losses = Vec::new();
    loop {
        let share = began.elapsed().as_secs_f64() / seconds;
        if share >= 1.0 {
            break;
        }
        let rows = batch(data.places.len(), BATCH, &mut rng);
        let places: Vec<LatLon> = rows.iter().map(|row| data.places[*row]).collect();
        let condition = conditions(data, &rows, width, &device);
        // Half of the rows at the highest level, which the one pass uses.
        let steps: Vec<usize> = (0..BATCH)
            .map(|k| if k % 2 == 0 { last } else { rng.random_range(first..=last) })
            .collect();
        let clean = encodings(&basis, &places, &device) * (4.0 * PI).sqrt();
        let noise = diffusion.noise(BATCH, &mut rng);
        let latent = diffusion.noisy(clean, noise, &steps);
        let keep: Vec<bool> =
            (0..BATCH).map(|_| rng.random::<f64>() >= CONDITION_DROPOUT).collect();
        let condition = denoiser.without_some(condition, &keep);
        let output = diffusion.output(&denoiser, latent, condition, &steps);
        let value = loss.mean(output, &places, &mut rng);
        losses.push(f64::from(value.clone().into_scalar::<f32>()));
        let gradients = GradientsParams::from_grads(value.backward(), &denoiser);
        denoiser = optimizer.step(learning_rate(rate, share), denoiser, gradients);
    }
    let tail = &losses[losses.len() - losses.len().div_ceil(10)..];
    let last_loss = tail.iter().sum::<f64>() / tail.len() as f64;
    let device = Device::flex();
    let diffusion = Diffusion::with_denoiser(config, denoiser.valid(), &device).unwrap();
    Trained { diffusion, steps: losses.len(), last_loss }
}

/// Rows of a split as a tensor.
pub fn conditions(data: &Split, rows: &[usize], width: usize, device: &Device) -> Tensor<2> {
    let mut values = Vec::with_capacity(rows.len() * width);
    for row in rows {
        values.extend_from_slice(&data.conditions[row * width..(row + 1) * width]);
    }
    Tensor::from_data(TensorData::new(values, [rows.len(), width]), device)
}
