//! What a model is worth on rows that it was not trained on.

use burn::tensor::{Tensor, TensorData};
use locdiff::diffusion::{Diffusion, Meaning, SampleOptions, coefficients_of};
use locdiff_sphere::{Decoder, LatLon, PointScores, UNIFORM_NLL_NATS};
use serde::{Deserialize, Serialize};

/// Rows per pass.
const BATCH: usize = 256;
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

/// Scores of one pass.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Rows.
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
    /// Mean −log density at the truth, with a hundredth of the uniform density mixed in; none
    /// if the objective gives no probabilities.
    pub nll: Option<f64>,
}

impl Validation {
    /// Scores a model; `None` without rows.
    pub fn of(model: &Diffusion, held_out: &HeldOut) -> Option<Validation> {
        let decoder = Decoder::new(model.config().denoiser.max_degree);
        let width = model.config().denoiser.condition_size;
        let mut answers = Vec::new();
        let mut nll = 0.0;
        let has_density = model.config().objective.meaning() != Meaning::ModeOnly;
        let batches = held_out.places.chunks(BATCH).zip(held_out.embeddings.chunks(BATCH * width));
        for (places, embeddings) in batches {
            let shape = TensorData::new(embeddings.to_vec(), [places.len(), width]);
            let condition = Tensor::<2>::from_data(shape, model.device());
            let output =
                model.sample(Some(condition), places.len(), SampleOptions::default(), |_| ());
            answers.extend(coefficients_of(&output).iter().map(|e| decoder.mode(e).place));
            for (density, place) in model.densities(&output).into_iter().flatten().zip(places) {
                let density = density.log_density(*place).exp();
                let uniform = (-UNIFORM_NLL_NATS).exp();
                nll -= ((1.0 - UNIFORM_SHARE) * density + UNIFORM_SHARE * uniform).ln();
            }
        }
        let nll = has_density.then(|| nll / answers.len() as f64);
        Validation::of_answers(&answers, &held_out.places, nll)
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
