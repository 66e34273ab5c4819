//! Several draws of a diffusion's sampler, and their joint density.

use anyhow::{Context, Result};
use burn::tensor::Tensor;
use locdiff::diffusion::{Diffusion, Method, SampleOptions, coefficients_of};
use locdiff_sphere::{Decoder, Density, LatLon, UNIFORM_NLL_NATS, mean_place};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::cpu_seconds;

const UNIFORM_SHARE: f64 = 0.01;
/// Latitude and longitude of the draw nearest to all, of the mean of draws, and NLL.
pub const FIELDS: usize = 5;

/// All draws of one method.
pub struct Sampled {
    /// `[draw][place]`.
    pub places: Vec<Vec<LatLon>>,
    /// Drawn from what the last noise level leaves open, for the first few draws: the whole
    /// of a sample, where `places` are its modes.
    pub drawn: Vec<Vec<LatLon>>,
    /// Density of each draw at the truth, `[draw][place]`.
    pub densities: Vec<Vec<f64>>,
    /// Processor time of one draw for all places.
    pub seconds_per_draw: f64,
}

impl Sampled {
    /// Scores of several draws for a place: the numbers of one row.
    pub fn answer(&self, k: usize, draws: usize) -> [f64; FIELDS] {
        let places: Vec<LatLon> = self.places[..draws].iter().map(|row| row[k]).collect();
        let nearest = nearest_to_all(&places);
        let mean = mean_place(&places).unwrap_or(nearest);
        let density = self.densities[..draws].iter().map(|row| row[k]).sum::<f64>() / draws as f64;
        let uniform = UNIFORM_SHARE * (-UNIFORM_NLL_NATS).exp();
        let nll = -((1.0 - UNIFORM_SHARE) * density + uniform).ln();
        [nearest.latitude(), nearest.longitude(), mean.latitude(), mean.longitude(), nll]
    }
}

/// Draws so many times for each place; for the first few draws also a place from what is left open.
pub fn draw_all(
    diffusion: &Diffusion,
    method: Method,
    condition: &Tensor<2>,
    truths: &[LatLon],
    [draws, compared]: [usize; 2],
) -> Result<Sampled> {
    let decoder = Decoder::new(diffusion.config().denoiser.max_degree);
    let mut sampled =
        Sampled { places: vec![], drawn: vec![], densities: vec![], seconds_per_draw: 0.0 };
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for seed in 0..draws {
        let options = SampleOptions { method, seed: seed as u64, ..SampleOptions::default() };
        let began = cpu_seconds();
        let output = diffusion.sample(Some(condition.clone()), truths.len(), options, |_| ());
        sampled.seconds_per_draw += (cpu_seconds() - began) / draws as f64;
        sampled
            .places
            .push(coefficients_of(&output).iter().map(|e| decoder.mode(e).place).collect());
        let densities = diffusion.densities(&output).context("no densities")?;
        if seed < compared {
            let draw = |q: &Density| q.survey().sample(1, &mut rng).remove(0);
            sampled.drawn.push(densities.iter().map(draw).collect());
        }
        let at_truth = densities.iter().zip(truths).map(|(q, place)| q.log_density(*place).exp());
        sampled.densities.push(at_truth.collect());
    }
    Ok(sampled)
}

/// The place with the least total distance to the others.
fn nearest_to_all(places: &[LatLon]) -> LatLon {
    let total = |place: &LatLon| places.iter().map(|other| other.distance_km(*place)).sum::<f64>();
    *places.iter().min_by(|a, b| total(a).total_cmp(&total(b))).unwrap()
}
