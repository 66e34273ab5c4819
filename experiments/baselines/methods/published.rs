//! LocDiff as its paper has it: diffusion over the coefficients of places, trained by reverse KL over
//! random anchors, sampled step by step, each sample decoded at its mode. Its network, anchors, noise
//! and dropout of conditions; modes are sought over the nodes of a grid, and steps and samples are fewer
//! (DDIM) than its 200 × 16, which would take ten times the time of all others together.

use std::f64::consts::PI;

use locdiff::diffusion::{
    DenoiserConfig, Diffusion, DiffusionConfig, Loss, Method, Objective, Quadrature, SampleOptions,
    ScheduleConfig, encodings,
};
use locdiff_sphere::{Basis, Grid, Transform, UnitVector};
use rand::RngExt;

use super::bumps::Bumps;
use super::fitting::{Examples, batches, initialised, numbers_of, train, training_device};
use super::{Answer, Baseline, FitOptions, Fitted};

/// The smaller of the paper's two.
const MAX_DEGREE: usize = 23;
const ANCHORS: usize = 2048;
/// The larger of the paper's two.
const BOTTLENECK: usize = 128;
const CONDITION_DROPOUT: f64 = 0.1;
const STEPS: usize = 10;
const SAMPLES: u64 = 4;
/// Of the grid on which a sample's mode is sought, 104 km apart: as dense as the paper's anchors.
const RINGS: usize = 192;

pub(super) fn fit(examples: &Examples<'_>, options: &FitOptions) -> Fitted {
    let config = DiffusionConfig {
        denoiser: DenoiserConfig {
            bottleneck: Some(BOTTLENECK),
            // A minute is too short to overfit.
            dropout: 0.0,
            ..DenoiserConfig::new(MAX_DEGREE, examples.width)
        },
        schedule: ScheduleConfig::default(),
        objective: Objective::ReverseKl,
        quadrature: Quadrature::Anchors(ANCHORS),
    };
    let diffusion = initialised(options.seed, |device| {
        Diffusion::init(config.clone(), device).expect("the default schedule doesn't leak")
    });
    let device = training_device();
    let (basis, loss) = (
        Basis::new(MAX_DEGREE),
        Loss::new(config.objective, config.quadrature, MAX_DEGREE, &device),
    );
    let levels = diffusion.trained_levels();
    let network = diffusion.denoiser().clone();
    let trained = train(network, examples, options, |network, embeddings, places, rng| {
        let batch = places.len();
        let steps: Vec<usize> = (0..batch).map(|_| rng.random_range(levels.clone())).collect();
        let clean = encodings(&basis, places, &device) * (4.0 * PI).sqrt();
        let latent = diffusion.noisy(clean, diffusion.noise(batch, rng), &steps);
        let keep: Vec<bool> =
            (0..batch).map(|_| rng.random::<f64>() >= CONDITION_DROPOUT).collect();
        let condition = network.without_some(embeddings, &keep);
        loss.mean(diffusion.output(network, latent, condition, &steps), places, rng)
    });
    let width = examples.width;
    Fitted::direct(trained, |network| {
        let device = device.inner();
        let diffusion = Diffusion::with_denoiser(config, network, &device);
        let diffusion = diffusion.expect("the schedule that was trained");
        let transform = Transform::new(Grid::new(RINGS, 2 * RINGS), MAX_DEGREE);
        Published { diffusion, transform, width }
    })
}

struct Published {
    diffusion: Diffusion,
    transform: Transform<f32>,
    width: usize,
}

impl Published {
    fn mode(&self, e: &[f32]) -> [f64; 3] {
        let grid = self.transform.grid();
        let mut values = vec![0.0; grid.len()];
        self.transform.synthesize_into(e, &mut values);
        let best = (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap_or(0);
        let place = grid.place(best / grid.longitudes(), best % grid.longitudes());
        UnitVector::from(place).to_array()
    }
}

impl Baseline for Published {
    fn answers(&self, embeddings: &[f32], seed: u64) -> Vec<Box<dyn Answer>> {
        let mut answers: Vec<Box<dyn Answer>> = Vec::new();
        for (number, batch) in batches(embeddings, self.width).enumerate() {
            let [count, _] = batch.dims();
            let mut points: Vec<Vec<[f64; 3]>> = vec![Vec::new(); count];
            for sample in 0..SAMPLES {
                let seed = seed + 1000 * number as u64 + sample;
                let options =
                    SampleOptions { method: Method::Ddim(STEPS), seed, ..SampleOptions::default() };
                let output = self.diffusion.sample(Some(batch.clone()), count, options, |_| ());
                let outputs = numbers_of(output);
                for (points, e) in
                    points.iter_mut().zip(outputs.chunks_exact(outputs.len() / count))
                {
                    points.push(self.mode(e));
                }
            }
            let answer = |points: Vec<_>| Box::new(Bumps::samples(points.into_iter()));
            answers.extend(points.into_iter().map(|points| answer(points) as Box<dyn Answer>));
        }
        answers
    }
}
