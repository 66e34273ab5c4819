//! Sharpness and background of a model by the likelihood of held-out truths.
//!
//! Every other row fits both, the rest shows what that changes. For each sharpness the densities are normalised anew; the best
//! background for it is a matter of one sum. Both are searched by golden sections: the likelihood has one top in each.

use std::path::Path;

use locdiff::Geolocator;
use locdiff::checksum::Checksum;
use locdiff::locate::{Calibration, Coverage, calibrated};
use locdiff_sphere::{Density, LatLon, UNIFORM_NLL_NATS};
use locdiff_train::Dataset;
use rayon::prelude::*;

use super::error::EvaluationError;
use super::model_answers::{AnswerProgress, embedding_densities, image_densities};
use super::table::PlaceTable;

/// Fewer rows give too uncertain a fit.
const LEAST_ROWS: usize = 100;
/// Sharpnesses that are looked at, as logarithms: a twentieth to twenty.
const LOG_SHARPNESS: [f64; 2] = [-3.0, 3.0];
/// How well they are told apart.
const PRECISION: f64 = 0.02;
/// Backgrounds that are looked at, as log-odds.
const LOG_ODDS: [f64; 2] = [-14.0, 4.0];

/// Held-out pictures with their places, which the model was not trained on.
#[derive(Clone, Copy)]
pub enum CalibrationData<'a> {
    /// Embeddings of the model's encoder.
    Embeddings(&'a Dataset),
    /// Images of a manifest, in a folder.
    Images(&'a PlaceTable, &'a Path),
}

/// Fits a model's sharpness and background, on at most so many rows. `data` is what they are called.
pub fn calibrate(
    model: &Geolocator,
    rows: CalibrationData<'_>,
    data: &str,
    at_most: usize,
    progress: &mut dyn FnMut(&AnswerProgress),
) -> Result<Calibration, EvaluationError> {
    let densities = match rows {
        CalibrationData::Embeddings(set) => embedding_densities(model, set, at_most, progress)?,
        CalibrationData::Images(manifest, folder) => {
            image_densities(model, manifest, folder, at_most, progress)
        }
    };
    if densities.len() < LEAST_ROWS {
        return Err(EvaluationError::FewRows { found: densities.len(), least: LEAST_ROWS });
    }
    let every_other = |first: usize| -> Vec<&(Density, LatLon)> {
        densities.iter().skip(first).step_by(2).collect()
    };
    let (fitted, checked) = (every_other(0), every_other(1));
    let (sharpness, background) = fit_calibration(&fitted);
    let mut places = Checksum::default();
    for (_, place) in &densities {
        places.update(place.latitude().to_le_bytes());
        places.update(place.longitude().to_le_bytes());
    }
    Ok(Calibration {
        sharpness,
        background,
        model_version: model.identity().version.clone(),
        inference: *model.inference(),
        data: data.to_owned(),
        places_sha256: places.finish(),
        fitted_rows: fitted.len(),
        checked_rows: checked.len(),
        before: coverage(&checked, 1.0, 0.0),
        after: coverage(&checked, sharpness, background),
    })
}

/// The most likely sharpness and background for densities and the places where pictures were taken.
pub fn fit_calibration(rows: &[&(Density, LatLon)]) -> (f64, f64) {
    let best = |log_sharpness: f64| {
        let logs: Vec<f64> = rows
            .par_iter()
            .map(|(density, truth)| {
                calibrated(density, log_sharpness.exp(), 0.0).log_density(*truth)
            })
            .collect();
        background(&logs)
    };
    let log_sharpness = highest(LOG_SHARPNESS, PRECISION, |log| best(log).1);
    (log_sharpness.exp(), best(log_sharpness).0)
}

/// The most likely background for log-densities at truths, and the mean log-likelihood with it.
fn background(logs: &[f64]) -> (f64, f64) {
    let share = |log_odds: f64| 1.0 / (1.0 + (-log_odds).exp());
    let mean = |log_odds: f64| {
        let (kept, anywhere) = (1.0 - share(log_odds), share(log_odds) * (-UNIFORM_NLL_NATS).exp());
        logs.iter().map(|log| (kept * log.exp() + anywhere).ln()).sum::<f64>() / logs.len() as f64
    };
    let log_odds = highest(LOG_ODDS, 0.01, mean);
    (share(log_odds), mean(log_odds))
}

/// Where a function with one top has it.
fn highest([mut low, mut high]: [f64; 2], precision: f64, function: impl Fn(f64) -> f64) -> f64 {
    let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
    let inner = |low: f64, high: f64| [high - golden * (high - low), low + golden * (high - low)];
    let [mut a, mut b] = inner(low, high);
    let (mut of_a, mut of_b) = (function(a), function(b));
    while high - low > precision {
        if of_a >= of_b {
            (high, b, of_b) = (b, a, of_a);
            a = inner(low, high)[0];
            of_a = function(a);
        } else {
            (low, a, of_a) = (a, b, of_b);
            b = inner(low, high)[1];
            of_b = function(b);
        }
    }
    0.5 * (low + high)
}

/// How often regions held the truth.
fn coverage(rows: &[&(Density, LatLon)], sharpness: f64, background: f64) -> Coverage {
    let outcomes: Vec<(f64, f64)> = rows
        .par_iter()
        .map(|(density, truth)| {
            let outcome = calibrated(density, sharpness, background).survey().outcome(*truth);
            (outcome.level, outcome.nll_nats)
        })
        .collect();
    let count = outcomes.len() as f64;
    let within =
        |level: f64| 100.0 * outcomes.iter().filter(|(of, _)| *of <= level).count() as f64 / count;
    Coverage {
        within_50: within(0.5),
        within_90: within(0.9),
        nll_nats: outcomes.iter().map(|(_, nll)| nll).sum::<f64>() / count,
    }
}

#[cfg(test)]
mod tests {
    use locdiff_sphere::{Coefficients, uniform_place};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Truths drawn from densities of half the stated sharpness, a fifth of them from anywhere.
    #[test]
    fn a_model_that_is_too_sure_of_itself_is_found_out_and_mended() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let rows: Vec<(Density, LatLon)> = (0..400)
            .map(|_| {
                let e = Coefficients::of(uniform_place(&mut rng), 7);
                let (mut stated, mut true_one) = (e.clone(), e);
                stated.as_mut_slice().iter_mut().for_each(|e| *e *= 3.0);
                true_one.as_mut_slice().iter_mut().for_each(|e| *e *= 1.5);
                let truth = if rng.random_bool(0.2) {
                    uniform_place(&mut rng)
                } else {
                    Density::exponential(&true_one).survey().sample(1, &mut rng)[0]
                };
                (Density::exponential(&stated), truth)
            })
            .collect();
        let half = |first: usize| rows.iter().skip(first).step_by(2).collect::<Vec<_>>();
        let (sharpness, background) = fit_calibration(&half(0));
        assert!((0.35..0.75).contains(&sharpness), "{sharpness}");
        assert!((0.05..0.4).contains(&background), "{background}");
        let (before, after) =
            (coverage(&half(1), 1.0, 0.0), coverage(&half(1), sharpness, background));
        assert!(before.within_90 < 80.0, "{before:?}");
        assert!((80.0..=98.0).contains(&after.within_90), "{after:?}");
        assert!(after.nll_nats < before.nll_nats, "{before:?} {after:?}");
    }

    #[test]
    fn golden_sections_find_a_top() {
        let top = highest([-3.0, 3.0], 1e-4, |x| -(x - 1.2).powi(2));
        assert!((top - 1.2).abs() < 1e-3, "{top}");
    }
}
