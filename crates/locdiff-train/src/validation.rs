//! What a model is worth on rows that it was not trained on, in the inference that it will use.

use locdiff::LocationModel;
use locdiff::locate::Sampler;
use locdiff::models::DiffusionModel;
use locdiff_sphere::{LatLon, PointScores, UNIFORM_NLL_NATS};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Rows per pass.
const BATCH: usize = 256;
/// Samplers take hundreds of passes: of such models so many rows are scored at most.
const SAMPLED_ROWS: usize = 64;
/// What is mixed into a density before its likelihood is taken: a linear one is zero in
/// places, and would be infinitely wrong there.
const UNIFORM_SHARE: f64 = 0.01;

/// Rows that are held out of training.
#[derive(Debug, Clone, Default)]
pub struct HeldOut {
    /// True places.
    pub places: Vec<LatLon>,
    /// Their embeddings, row by row.
    pub embeddings: Vec<f32>,
}

/// Scores of a model's own inference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Number of rows.
    pub n: usize,
    /// Share within 25 km, in percent.
    pub within_25: f64,
    /// Share within 200 km.
    pub within_200: f64,
    /// Share within 750 km.
    pub within_750: f64,
    /// Share within 2500 km.
    pub within_2500: f64,
    /// Median distance.
    pub median_km: f64,
    /// Mean −log density at the truth, with a hundredth of the uniform density mixed in.
    pub nll: Option<f64>,
}

impl Validation {
    /// Scores a model; `None` without rows.
    pub fn of(model: &DiffusionModel, held_out: &HeldOut) -> Option<Validation> {
        let inference = model.inference();
        let width = model.diffusion().config().denoiser.condition_size;
        let most = if inference.sampler == Sampler::OnePass { usize::MAX } else { SAMPLED_ROWS };
        let places = &held_out.places[..held_out.places.len().min(most)];
        let batches = places.chunks(BATCH).zip(held_out.embeddings.chunks(BATCH * width));
        let mut scored: Vec<(LatLon, f64)> = Vec::new();
        for (places, embeddings) in batches {
            let embeddings = &embeddings[..places.len() * width];
            let located = model.locate_embeddings(embeddings, 1, &inference)?;
            let score = |(located, place): (&locdiff::Located, &LatLon)| {
                let density = &located.density;
                let answer = inference.decode.place(&density.survey());
                let density = density.log_density(*place).exp();
                let uniform = (-UNIFORM_NLL_NATS).exp();
                let nll = -((1.0 - UNIFORM_SHARE) * density + UNIFORM_SHARE * uniform).ln();
                (answer, nll)
            };
            scored.par_extend(located.par_iter().zip(places).map(score));
        }
        let answers: Vec<LatLon> = scored.iter().map(|(answer, _)| *answer).collect();
        let nll = scored.iter().map(|(_, nll)| nll).sum::<f64>() / scored.len() as f64;
        Validation::of_answers(&answers, places, Some(nll))
    }

    /// Scores answers; `None` without any.
    pub fn of_answers(
        answers: &[LatLon],
        places: &[LatLon],
        nll: Option<f64>,
    ) -> Option<Validation> {
        let scores = PointScores::of(answers, places).ok()?;
        let within = |radius| 100.0 * scores.accuracy(radius).value();
        Some(Validation {
            n: answers.len(),
            within_25: within(25.0),
            within_200: within(200.0),
            within_750: within(750.0),
            within_2500: within(2500.0),
            median_km: scores.median_km().value(),
            nll,
        })
    }
}
