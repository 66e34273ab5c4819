//! The paper's loss: diffusion over the coefficients of places, trained by reverse KL over random anchors, sampled step by
//! step, each sample decoded at its mode. The configuration is `reverse-kl.toml`; modes are sought over the nodes of a grid, and
//! steps and samples are fewer (DDIM) than the paper's 200 × 16, which would take ten times the time of all others together.

use burn::tensor::Device;
use locdiff::diffusion::{Diffusion, Method, SampleOptions};
use locdiff_sphere::{Grid, Transform, UnitVector};
use locdiff_train::{Training, TrainingConfig};

use super::bumps::Bumps;
use super::fitting::{Examples, batches, each_batch, initialised, numbers_of};
use super::{Answer, Baseline, FitOptions, Fitted};

const STEPS: usize = 10;
const SAMPLES: u64 = 4;
/// Of the grid on which a sample's mode is sought, 104 km apart: as dense as the paper's anchors.
const RINGS: usize = 192;

pub(super) fn fit(examples: &Examples<'_>, options: &FitOptions) -> Fitted {
    let mut config: TrainingConfig =
        toml::from_str(include_str!("../reverse-kl.toml")).expect("a configuration of ours");
    config.run.seed = options.seed;
    let max_degree = config.network.max_degree;
    let begun = |_: &Device| Training::begin(config, examples.width, &Device::flex());
    let mut training = initialised(options.seed, begun).expect("a schedule that doesn't leak");
    let steps = each_batch(examples, options, |embeddings, places, rate, _| {
        training.step_at(rate, places, embeddings);
    });
    let diffusion = training.model().expect("the schedule that was trained");
    let transform = Transform::new(Grid::new(RINGS, 2 * RINGS), max_degree);
    Fitted::of(steps, ReverseKl { diffusion, transform, width: examples.width })
}

struct ReverseKl {
    diffusion: Diffusion,
    transform: Transform<f32>,
    width: usize,
}

impl ReverseKl {
    fn mode(&self, e: &[f32]) -> [f64; 3] {
        let grid = self.transform.grid();
        let mut values = vec![0.0; grid.len()];
        self.transform.synthesize_into(e, &mut values);
        let best = (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap_or(0);
        let place = grid.place(best / grid.longitudes(), best % grid.longitudes());
        UnitVector::from(place).to_array()
    }
}

impl Baseline for ReverseKl {
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
