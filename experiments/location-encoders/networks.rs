//! The learned decoder, and diffusion over an encoding that it decodes.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::diffusion::{Denoiser, Diffusion, DiffusionConfig, Objective};
use locdiff_experiments::paper::{STEPS, Task, published};
use locdiff_experiments::simulation::{batch, learning_rate};
use locdiff_experiments::training::conditions;
use locdiff_experiments::{standard_normal, thread_seconds};
use locdiff_sphere::{LatLon, UnitVector};
use locdiff_train::{Adam, AdamConfig};
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
            let output = decoder.forward(matrix(numbers, NUMBERS, &device));
            let loss = (output - directions(&places, &device)).square().sum_dim(1).mean();
            let gradients = GradientsParams::from_grads(loss.backward(), &decoder);
            decoder = optimizer.step(learning_rate(RATE, share), decoder, gradients).0;
            steps += 1;
        }
    }

    /// Places of encodings, row by row.
    pub fn places(&self, numbers: &[f32]) -> Vec<LatLon> {
        let device = Device::flex();
        let decoder = self.clone().valid();
        let mut places = Vec::new();
        for rows in numbers.chunks(4096 * NUMBERS) {
            let vectors = decoder.forward(matrix(rows.to_vec(), NUMBERS, &device));
            let vectors: Vec<f32> = vectors.into_data().try_to_vec().expect("f32");
            places.extend(vectors.chunks_exact(3).map(|row| {
                let vector = UnitVector::from_direction([row[0], row[1], row[2]].map(f64::from));
                vector.map_or(LatLon::NORTH_POLE, LatLon::from)
            }));
        }
        places
    }
}

/// Adds normal noise of some deviation.
pub fn add_noise(numbers: &mut [f32], deviation: f64, rng: &mut ChaCha8Rng) {
    numbers.iter_mut().for_each(|number| *number += (deviation * standard_normal(rng)) as f32);
}

fn matrix(values: Vec<f32>, width: usize, device: &Device) -> Tensor<2> {
    let rows = values.len() / width;
    Tensor::from_data(TensorData::new(values, [rows, width]), device)
}

fn directions(places: &[LatLon], device: &Device) -> Tensor<2> {
    let vector = |place: &LatLon| UnitVector::from(*place).to_array().map(|part| part as f32);
    matrix(places.iter().flat_map(vector).collect(), 3, device)
}

/// Mean and deviation of each number of an encoding over places: the diffusion works on numbers of
/// mean 0 and deviation 1.
struct Scaling {
    mean: Tensor<2>,
    deviation: Tensor<2>,
}

impl Scaling {
    fn of(encoding: &Encoding, places: &[LatLon], device: &Device) -> Scaling {
        let numbers = matrix(encoding.of(places), NUMBERS, device);
        let mean = numbers.clone().mean_dim(0);
        let deviation = (numbers - mean.clone()).square().mean_dim(0).sqrt().clamp_min(1e-3);
        Scaling { mean, deviation }
    }
}

/// Trains the paper's network to denoise the encoding (an L2 loss, and the distance of what the frozen
/// decoder makes of its output) and answers the test places in one pass.
pub fn diffuse(
    task: &Task,
    encoding: &Encoding,
    decoder: &LearnedDecoder,
    highest_rate: f64,
) -> Vec<LatLon> {
    const ROWS: usize = 256;
    let device = Device::flex().autodiff();
    device.seed(1);
    let width = task.simulation.width;
    let config = DiffusionConfig { objective: Objective::L2, ..published(23, width, None) };
    let diffusion = Diffusion::init(config.clone(), &device).expect("a schedule that is shipped");
    let mut denoiser: Denoiser = diffusion.denoiser().clone();
    let frozen = decoder.clone().no_grad();
    let train = &task.simulation.train;
    let scaling = Scaling::of(encoding, &train.places[..4096], &device);
    let mut optimizer = Adam::new(AdamConfig::default());
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let last = diffusion.schedule().steps();
    for step in 0..STEPS {
        let rows = batch(train.places.len(), ROWS, &mut rng);
        let places: Vec<LatLon> = rows.iter().map(|row| train.places[*row]).collect();
        // Half of the rows at the highest level, which the one pass uses.
        let levels: Vec<usize> =
            (0..ROWS).map(|k| if k % 2 == 0 { last } else { rng.random_range(1..=last) }).collect();
        let clean = matrix(encoding.of(&places), NUMBERS, &device);
        let clean = (clean - scaling.mean.clone()) / scaling.deviation.clone();
        let latent = diffusion.noisy(clean.clone(), diffusion.noise(ROWS, &mut rng), &levels);
        let condition = conditions(train, &rows, width, &device);
        let output = denoiser.forward(latent, condition, &levels);
        let decoded =
            frozen.forward(output.clone() * scaling.deviation.clone() + scaling.mean.clone());
        let loss = (output - clean).square().mean()
            + (decoded - directions(&places, &device)).square().sum_dim(1).mean();
        let gradients = GradientsParams::from_grads(loss.backward(), &denoiser);
        let rate = learning_rate(highest_rate, step as f64 / STEPS as f64);
        denoiser = optimizer.step(rate, denoiser, gradients).0;
    }
    let denoiser = denoiser.valid();
    let device = Device::flex();
    let scaling = Scaling::of(encoding, &train.places[..4096], &device);
    let numbers: Vec<usize> = (0..task.test.places.len()).collect();
    let mut places = Vec::new();
    for rows in numbers.chunks(ROWS) {
        let noise: Vec<f32> =
            (0..rows.len() * NUMBERS).map(|_| standard_normal(&mut rng) as f32).collect();
        let latent = matrix(noise, NUMBERS, &device);
        let condition = conditions(&task.test, rows, width, &device);
        let output = denoiser.forward(latent, condition, &vec![last; rows.len()]);
        let output = output * scaling.deviation.clone() + scaling.mean.clone();
        let values: Vec<f32> = output.into_data().try_to_vec().expect("f32");
        places.extend(decoder.places(&values));
    }
    places
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
