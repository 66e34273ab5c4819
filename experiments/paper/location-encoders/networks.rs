//! The learned decoder, and diffusion over an encoding that it decodes.

use anyhow::Result;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use locdiff::diffusion::{Denoiser, Diffusion, Objective};
use locdiff_experiments::baselines::FitOptions;
use locdiff_experiments::baselines::fitting::{
    Examples, batches, initialised, matrix_of, numbers_of, place_towards, rate_at, train as fit,
    training_device, triples_of, vectors_of,
};
use locdiff_experiments::paper::Task;
use locdiff_experiments::{standard_normal, thread_seconds};
use locdiff_sphere::LatLon;
use locdiff_train::{Adam, AdamConfig, TrainingConfig};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::encodings::{Encoding, NUMBERS};

const WIDTH: usize = 512;
const LAYERS: usize = 6;
const BATCH: usize = 512;
const RATE: f64 = 1e-3;

/// Six layers from an encoding to a direction.
#[derive(Module, Debug)]
pub struct LearnedDecoder {
    layers: Vec<Linear>,
}

impl LearnedDecoder {
    fn init(device: &Device) -> LearnedDecoder {
        let layer = |k: usize| {
            let inputs = if k == 0 { NUMBERS } else { WIDTH };
            let outputs = if k + 1 == LAYERS { 3 } else { WIDTH };
            LinearConfig::new(inputs, outputs).init(device)
        };
        LearnedDecoder { layers: (0..LAYERS).map(layer).collect() }
    }

    /// Vectors of length one, `[rows, 3]`.
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let (last, hidden) = self.layers.split_last().expect("it has layers");
        let x = hidden.iter().fold(x, |x, layer| relu(layer.forward(x)));
        let x = last.forward(x);
        let lengths = x.clone().square().sum_dim(1).sqrt().clamp_min(1e-6);
        x / lengths
    }

    /// Trained on encodings of `points` for some seconds of this thread; with noise of some deviation
    /// on each number. Still on the device with gradients; and the steps that it took.
    pub fn train(
        encoding: &Encoding,
        points: &[LatLon],
        noise: f64,
        seconds: f64,
    ) -> (LearnedDecoder, usize) {
        let device = Device::flex().autodiff();
        device.seed(1);
        let mut decoder = LearnedDecoder::init(&device);
        let mut optimizer = Adam::new(AdamConfig::default());
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (began, mut steps) = (thread_seconds(), 0);
        loop {
            let share = (thread_seconds() - began) / seconds;
            if share >= 1.0 {
                return (decoder, steps);
            }
            let places: Vec<LatLon> =
                (0..BATCH).map(|_| points[rng.random_range(0..points.len())]).collect();
            let mut numbers = encoding.of(&places);
            if noise > 0.0 {
                add_noise(&mut numbers, noise, &mut rng);
            }
            let output = decoder.forward(matrix_of(numbers, NUMBERS, &device));
            let loss = (output - vectors_of(&places, &device)).square().sum_dim(1).mean();
            let gradients = GradientsParams::from_grads(loss.backward(), &decoder);
            decoder = optimizer.step(rate_at(RATE, share), decoder, gradients).0;
            steps += 1;
        }
    }

    /// Places of encodings, row by row.
    pub fn places(&self, numbers: &[f32]) -> Vec<LatLon> {
        let device = Device::flex();
        let decoder = self.clone().valid();
        let mut places = Vec::new();
        for rows in numbers.chunks(4096 * NUMBERS) {
            let vectors = decoder.forward(matrix_of(rows.to_vec(), NUMBERS, &device));
            places.extend(triples_of(vectors).into_iter().map(place_towards));
        }
        places
    }
}

/// Adds normal noise of some deviation.
pub fn add_noise(numbers: &mut [f32], deviation: f64, rng: &mut ChaCha8Rng) {
    numbers.iter_mut().for_each(|number| *number += (deviation * standard_normal(rng)) as f32);
}

/// Mean and deviation of each number of an encoding over places: the diffusion works on numbers of
/// mean 0 and deviation 1.
struct Scaling {
    mean: Tensor<2>,
    deviation: Tensor<2>,
}

impl Scaling {
    fn of(encoding: &Encoding, places: &[LatLon], device: &Device) -> Scaling {
        let numbers = matrix_of(encoding.of(places), NUMBERS, device);
        let mean = numbers.clone().mean_dim(0);
        let deviation = (numbers - mean.clone()).square().mean_dim(0).sqrt().clamp_min(1e-3);
        Scaling { mean, deviation }
    }
}

/// Trains the paper's network to denoise the encoding (an L2 loss, and the distance of what the frozen
/// decoder makes of its output), by the baselines' loop, and answers the test places in one pass.
pub fn diffuse(
    task: &Task,
    encoding: &Encoding,
    decoder: &LearnedDecoder,
    options: &FitOptions,
) -> Result<Vec<LatLon>> {
    let config = TrainingConfig::read("configs/paper-l23.toml".as_ref())?;
    let mut config = config.diffusion(task.simulation.width);
    config.objective = Objective::L2;
    let diffusion = initialised(options.seed, |device| Diffusion::init(config, device))?;
    let device = training_device();
    let frozen = decoder.clone().no_grad();
    let train = &task.simulation.train;
    let scaling = Scaling::of(encoding, &train.places[..4096], &device);
    let last = diffusion.schedule().steps();
    let examples = Examples::new(&train.conditions, &train.places);
    let denoiser: Denoiser = diffusion.denoiser().clone();
    let trained = fit(denoiser, &examples, options, |denoiser, condition, places, rng| {
        // Half of the rows at the highest level, which the one pass uses.
        let level = |k: usize| if k.is_multiple_of(2) { last } else { rng.random_range(1..=last) };
        let levels: Vec<usize> = (0..places.len()).map(level).collect();
        let clean = matrix_of(encoding.of(places), NUMBERS, &device);
        let clean = (clean - scaling.mean.clone()) / scaling.deviation.clone();
        let noise = diffusion.noise(places.len(), rng);
        let latent = diffusion.noisy(clean.clone(), noise, &levels);
        let output = denoiser.forward(latent, condition, &levels);
        let decoded =
            frozen.forward(output.clone() * scaling.deviation.clone() + scaling.mean.clone());
        (output - clean).square().mean()
            + (decoded - vectors_of(places, &device)).square().sum_dim(1).mean()
    });
    let device = Device::flex();
    let scaling = Scaling::of(encoding, &train.places[..4096], &device);
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    let mut places = Vec::new();
    for condition in batches(&task.test.conditions, task.simulation.width) {
        let [rows, _] = condition.dims();
        let noise: Vec<f32> =
            (0..rows * NUMBERS).map(|_| standard_normal(&mut rng) as f32).collect();
        let latent = matrix_of(noise, NUMBERS, &device);
        let output = trained.network.forward(latent, condition, &vec![last; rows]);
        let output = output * scaling.deviation.clone() + scaling.mean.clone();
        places.extend(decoder.places(&numbers_of(output)));
    }
    Ok(places)
}

/// A random direction in the space of encodings.
fn direction(rng: &mut ChaCha8Rng) -> Vec<f64> {
    let numbers: Vec<f64> = (0..NUMBERS).map(|_| standard_normal(rng)).collect();
    let length = numbers.iter().map(|number| number * number).sum::<f64>().sqrt();
    numbers.into_iter().map(|number| number / length).collect()
}

/// Two random directions at right angles: a slice of the space.
pub fn plane(rng: &mut ChaCha8Rng) -> [Vec<f64>; 2] {
    let (first, second) = (direction(rng), direction(rng));
    let along: f64 = first.iter().zip(&second).map(|(a, b)| a * b).sum();
    let rest: Vec<f64> = second.iter().zip(&first).map(|(b, a)| b - along * a).collect();
    let length = rest.iter().map(|number| number * number).sum::<f64>().sqrt();
    [first, rest.into_iter().map(|number| number / length).collect()]
}
