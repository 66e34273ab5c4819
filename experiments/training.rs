//! A short training of a diffusion on the simulation, on one thread and by that thread's
//! clock: other work on the machine must not take from one run what it leaves to another.

use std::f64::consts::PI;
use std::sync::Mutex;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::diffusion::{Diffusion, DiffusionConfig, Loss, encodings};
use locdiff_sphere::{Basis, LatLon};
use locdiff_train::{Adam, AdamConfig};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::simulation::{Split, batch, learning_rate};
use crate::thread_seconds;

static INITIALISING: Mutex<()> = Mutex::new(());
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
    /// Processor time that they took.
    pub seconds: f64,
    /// Mean loss of the last tenth.
    pub last_loss: f64,
}

/// How long is trained.
#[derive(Debug, Clone, Copy)]
pub enum Budget {
    /// So many seconds of the thread's processor time.
    Seconds(f64),
    /// So many batches.
    Steps(usize),
}

/// Trains for some seconds of processor time. To be called in a pool of one thread.
pub fn train(
    config: DiffusionConfig,
    data: &Split,
    width: usize,
    seconds: f64,
    rate: f64,
    seed: u64,
) -> Trained {
    train_for(Budget::Seconds(seconds), config, data, width, rate, seed)
}

/// Trains for a budget. To be called in a pool of one thread.
pub fn train_for(
    budget: Budget,
    config: DiffusionConfig,
    data: &Split,
    width: usize,
    rate: f64,
    seed: u64,
) -> Trained {
    let device = Device::flex().autodiff();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let diffusion = {
        // The backend has one generator for all threads.
        let _alone = INITIALISING.lock().unwrap();
        device.seed(seed);
        Diffusion::init(config.clone(), &device).unwrap()
    };
    let basis = Basis::new(config.denoiser.max_degree);
    let loss = Loss::new(config.objective, config.quadrature, config.denoiser.max_degree, &device);
    // No sharper than the loss can see, and no sharper than there is something to decide.
    let first = diffusion.schedule().first_step_below(loss.sharpest() / (4.0 * PI));
    let last = diffusion.schedule().steps();
    let mut denoiser = diffusion.denoiser().clone();
    let mut optimizer = Adam::new(AdamConfig::default());
    let began = thread_seconds();
    let mut losses = Vec::new();
    loop {
        let share = match budget {
            Budget::Seconds(seconds) => (thread_seconds() - began) / seconds,
            Budget::Steps(steps) => losses.len() as f64 / steps as f64,
        };
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
        denoiser = optimizer.step(learning_rate(rate, share), denoiser, gradients).0;
    }
    let tail = &losses[losses.len() - losses.len().div_ceil(10)..];
    let last_loss = tail.iter().sum::<f64>() / tail.len() as f64;
    let device = Device::flex();
    let diffusion = Diffusion::with_denoiser(config, denoiser.valid(), &device).unwrap();
    Trained { diffusion, steps: losses.len(), seconds: thread_seconds() - began, last_loss }
}

/// Rows of a split as a tensor.
pub fn conditions(data: &Split, rows: &[usize], width: usize, device: &Device) -> Tensor<2> {
    let mut values = Vec::with_capacity(rows.len() * width);
    for row in rows {
        values.extend_from_slice(&data.conditions[row * width..(row + 1) * width]);
    }
    Tensor::from_data(TensorData::new(values, [rows.len(), width]), device)
}
