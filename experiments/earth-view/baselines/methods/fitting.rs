//! The training that all methods share: Adam on random batches until the processor time is over.

use std::f64::consts::PI;
use std::sync::Mutex;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use locdiff_sphere::{LatLon, UnitVector};
use locdiff_train::{Adam, AdamConfig};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::FitOptions;

/// Rows per step, and per pass when answering.
pub(super) const BATCH: usize = 256;
/// The rate rises for this share of the time, then falls as a cosine.
const WARM_UP: f64 = 0.05;

/// Embeddings, row by row, with their places.
pub struct Examples<'a> {
    pub(super) embeddings: &'a [f32],
    pub(super) places: &'a [LatLon],
    /// Numbers of an embedding.
    pub(super) width: usize,
}

impl<'a> Examples<'a> {
    /// As many embeddings as places.
    pub fn new(embeddings: &'a [f32], places: &'a [LatLon]) -> Examples<'a> {
        assert!(!places.is_empty(), "nothing to fit to: no rows");
        let width = embeddings.len() / places.len();
        assert!(
            width > 0 && width * places.len() == embeddings.len(),
            "{} numbers are not embeddings of {} places",
            embeddings.len(),
            places.len()
        );
        Examples { embeddings, places, width }
    }
}

/// What came out of training.
pub struct Trained<N> {
    /// Without gradients.
    pub network: N,
    /// How many there were.
    pub steps: usize,
}

/// The device that networks are trained on.
pub fn training_device() -> Device {
    Device::flex().autodiff()
}

/// A network whose random weights follow from the seed alone.
pub fn initialised<N>(seed: u64, init: impl FnOnce(&Device) -> N) -> N {
    // The backend has one generator for all threads.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let device = training_device();
    device.seed(seed);
    init(&device)
}

/// Random batches until the time is over: embeddings, row by row, their places and the learning rate. How many there were.
pub(super) fn each_batch(
    examples: &Examples<'_>,
    options: &FitOptions,
    mut step: impl FnMut(Vec<f32>, &[LatLon], f64, &mut ChaCha8Rng),
) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    let began = (options.clock)();
    let mut steps = 0;
    loop {
        let share = ((options.clock)() - began) / options.seconds;
        if share >= 1.0 {
            return steps;
        }
        let mut values = Vec::with_capacity(BATCH * examples.width);
        let places: Vec<LatLon> = (0..BATCH)
            .map(|_| {
                let row = rng.random_range(0..examples.places.len());
                values.extend_from_slice(
                    &examples.embeddings[row * examples.width..][..examples.width],
                );
                examples.places[row]
            })
            .collect();
        step(values, &places, rate_at(options.rate, share), &mut rng);
        steps += 1;
    }
}

/// Minimises a loss of the network, a batch of embeddings and their places.
pub fn train<N: Module>(
    network: N,
    examples: &Examples<'_>,
    options: &FitOptions,
    mut loss: impl FnMut(&N, Tensor<2>, &[LatLon], &mut ChaCha8Rng) -> Tensor<1>,
) -> Trained<N> {
    let device = training_device();
    // Long gradients are cut: mixtures and sharp densities begin with some.
    let mut optimizer = Adam::new(AdamConfig { clip_norm: Some(10.0), ..AdamConfig::default() });
    let mut network = Some(network);
    let steps = each_batch(examples, options, |values, places, rate, rng| {
        let before = network.take().expect("it is put back after each step");
        let value = loss(&before, matrix_of(values, examples.width, &device), places, rng);
        let gradients = GradientsParams::from_grads(value.backward(), &before);
        network = Some(optimizer.step(rate, before, gradients).0);
    });
    Trained { network: network.expect("it was put back").valid(), steps }
}

/// Every budget ends with a finished model.
pub fn rate_at(highest: f64, share: f64) -> f64 {
    highest * (share / WARM_UP).min(1.0) * 0.5 * (1.0 + (PI * share).cos())
}

/// Rows of numbers as a matrix.
pub fn matrix_of(values: Vec<f32>, width: usize, device: &Device) -> Tensor<2> {
    let rows = values.len() / width;
    Tensor::from_data(TensorData::new(values, [rows, width]), device)
}

/// Embeddings in batches, as matrices without gradients.
pub fn batches(embeddings: &[f32], width: usize) -> impl Iterator<Item = Tensor<2>> {
    let parts = embeddings.chunks(BATCH * width);
    parts.map(move |part| matrix_of(part.to_vec(), width, &Device::flex()))
}

/// The numbers of a matrix, row by row.
pub fn numbers_of(x: Tensor<2>) -> Vec<f32> {
    x.into_data().try_to_vec().expect("numbers of the backend are f32")
}

/// Unit vectors of places, `[places, 3]`.
pub fn vectors_of(places: &[LatLon], device: &Device) -> Tensor<2> {
    let vectors: Vec<[f64; 3]> =
        places.iter().map(|place| UnitVector::from(*place).to_array()).collect();
    rows_of(&vectors, device)
}

/// Vectors as rows `[vectors, 3]`.
pub(super) fn rows_of(vectors: &[[f64; 3]], device: &Device) -> Tensor<2> {
    matrix_of(vectors.as_flattened().iter().map(|x| *x as f32).collect(), 3, device)
}

/// The rows of a matrix `[vectors, 3]`.
pub fn triples_of(x: Tensor<2>) -> Vec<[f64; 3]> {
    let numbers = numbers_of(x);
    numbers.chunks_exact(3).map(|v| [0, 1, 2].map(|axis| f64::from(v[axis]))).collect()
}

/// The place in the direction of a vector; the north pole for none.
pub fn place_towards(vector: [f64; 3]) -> LatLon {
    LatLon::from(UnitVector::from_direction(vector).unwrap_or(UnitVector::NORTH))
}

/// Three standard normal numbers.
pub(super) fn normal_triple(rng: &mut ChaCha8Rng) -> [f64; 3] {
    [0; 3].map(|_| rng.sample(StandardNormal))
}
