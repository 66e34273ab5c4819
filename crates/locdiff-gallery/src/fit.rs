//! The likelihood under which held-out photographs are where they are.
//!
//! Every held-out photograph is searched once; its best hits, and how far they are from its place, are all that the
//! fit looks at. Four numbers are chosen by maximum likelihood, with a weak preference for moderate shares, so
//! that few photographs that all match do not make the share a step.

use std::f64::consts::{PI, TAU};

use locdiff_sphere::{EARTH_RADIUS_KM, LatLon};

use crate::curve::squared_chord;
use crate::likelihood::WIDTHS_KM;
use crate::nelder_mead::minimum;
use crate::{Gallery, GalleryError, Likelihood};

/// The fewest photographs that four numbers are fitted to.
const FEWEST_ROWS: usize = 50;
/// Standard deviation that the log-odds of the share are expected to have.
const USUAL_LOG_ODDS: f64 = 10.0;
/// Where the fit begins: widths, and sharpnesses in units of the spread of similarities.
const FIRST_WIDTHS_KM: [f64; 4] = [0.5, 5.0, 50.0, 500.0];
const FIRST_SHARPNESSES: [f64; 2] = [0.5, 3.0];
/// Beyond this, exponentials do not matter.
const NEGLIGIBLE: f64 = 40.0;

/// Held-out photographs, collected for a fit.
#[derive(Debug)]
pub struct Fit<'a> {
    gallery: &'a Gallery,
    cases: Vec<Case>,
    given: usize,
}

/// A held-out photograph: similarities of its hits, best first, and their squared chords to its place.
#[derive(Debug, Clone)]
struct Case {
    hits: Vec<(f64, f64)>,
}

impl<'a> Fit<'a> {
    /// A fit without photographs yet.
    pub fn new(gallery: &'a Gallery) -> Fit<'a> {
        Fit { gallery, cases: Vec::new(), given: 0 }
    }

    /// Adds a photograph whose place is known. Photographs that the gallery contains are left out: they would show how
    /// well a photograph finds itself.
    pub fn push(&mut self, embedding: &[f32], place: LatLon, id: &str) -> Result<(), GalleryError> {
        let hits = self.gallery.search(embedding, Likelihood::HITS)?;
        self.given += 1;
        if hits.iter().any(|hit| self.gallery.is_itself(hit, place, id)) {
            return Ok(());
        }
        let chord = |row| squared_chord(self.gallery.place(row).into(), place.into());
        let hits = hits.iter().map(|hit| (f64::from(hit.similarity), chord(hit.row)));
        self.cases.push(Case { hits: hits.collect() });
        Ok(())
    }

    /// The likelihood that fits best. `held_out` names the data. [`Likelihood::write`] stores it.
    pub fn finish(self, held_out: &str) -> Result<Likelihood, GalleryError> {
        let (left, given) = (self.cases.len(), self.given);
        if left < FEWEST_ROWS {
            let (needed, inside) = (FEWEST_ROWS, given - left);
            return Err(GalleryError::FewRows { needed, left, given, inside });
        }
        let likelihood = Likelihood {
            sharpness: 0.0,
            width_km: 1.0,
            share_offset: 0.0,
            share_slope: 0.0,
            // By Laplace's rule of succession: as if one more had been seen with a reference nearby and one without.
            highest_share: 1.0 - 1.0 / (left as f64 + 2.0),
            held_out: held_out.to_owned(),
            held_out_rows: left,
            left_out_rows: given - left,
            gallery_rows: self.gallery.len(),
            nll_nats: 0.0,
        };
        let coordinates = Coordinates::of(&self.cases);
        let mut objective = |point: [f64; 4]| {
            let candidate = coordinates.likelihood(point, &likelihood);
            let log_odds = point[2] * point[2] + point[3] * point[3];
            let preference = 0.5 * log_odds / (USUAL_LOG_ODDS * USUAL_LOG_ODDS);
            mean_nll(&candidate, &self.cases) + preference / left as f64
        };
        let mut starts: Vec<([f64; 4], f64)> = FIRST_WIDTHS_KM
            .iter()
            .flat_map(|width| {
                FIRST_SHARPNESSES.map(|sharpness| [sharpness.ln(), width.ln(), 0.0, 0.0])
            })
            .map(|start| (start, objective(start)))
            .collect();
        starts.sort_by(|a, b| a.1.total_cmp(&b.1));
        // A valley may hold the best start and another one the best end.
        let ends = starts[..3].iter().map(|(start, _)| {
            let (end, _) = minimum(&mut objective, *start, [0.7, 0.7, 1.0, 1.0], 1e-6, 400);
            // Once more from there: a simplex can become flat.
            minimum(&mut objective, end, [0.2, 0.2, 0.5, 0.5], 1e-8, 400)
        });
        let best = ends.min_by(|a, b| a.1.total_cmp(&b.1)).map_or([0.0; 4], |(point, _)| point);
        let best = coordinates.likelihood(best, &likelihood);
        Ok(Likelihood { nll_nats: mean_nll(&best, &self.cases), ..best })
    }
}

/// Numbers of order one in which the fit moves.
struct Coordinates {
    /// Of the best similarities.
    mean: f64,
    deviation: f64,
    /// How far other hits are below the best, on average.
    spread: f64,
}

impl Coordinates {
    fn of(cases: &[Case]) -> Coordinates {
        let best = || cases.iter().map(|case| case.hits[0].0);
        let count = cases.len() as f64;
        let mean = best().sum::<f64>() / count;
        let variance = best().map(|s| (s - mean).powi(2)).sum::<f64>() / count;
        let below = cases.iter().map(|case| {
            let below = case.hits.iter().map(|(s, _)| case.hits[0].0 - s);
            below.sum::<f64>() / case.hits.len() as f64
        });
        // Similarities that are all the same tell nothing, and must not divide by zero.
        let deviation = variance.sqrt().max(1e-6);
        Coordinates { mean, deviation, spread: (below.sum::<f64>() / count).max(1e-6) }
    }

    fn likelihood(&self, point: [f64; 4], other: &Likelihood) -> Likelihood {
        let [log_sharpness, log_width, level, slope] = point;
        let slope = slope / self.deviation;
        Likelihood {
            sharpness: log_sharpness.clamp(-10.0, 12.0).exp() / self.spread,
            width_km: log_width.exp().clamp(*WIDTHS_KM.start(), *WIDTHS_KM.end()),
            share_offset: level - slope * self.mean,
            share_slope: slope,
            ..other.clone()
        }
    }
}

/// Mean negative log-likelihood in nats per steradian.
fn mean_nll(likelihood: &Likelihood, cases: &[Case]) -> f64 {
    let concentration = (EARTH_RADIUS_KM / likelihood.width_km).powi(2);
    // The peak of the kernel, as in `locdiff_sphere::Kernel`.
    let peak = concentration / (TAU * -(-2.0 * concentration).exp_m1());
    let uniform = 1.0 / (4.0 * PI);
    let nll = cases.iter().map(|case| {
        let best = case.hits[0].0;
        let (mut weights, mut sum) = (0.0, 0.0);
        for (similarity, squared_chord) in &case.hits {
            let below = likelihood.sharpness * (best - similarity);
            // Hits are sorted.
            if below > NEGLIGIBLE {
                break;
            }
            let weight = (-below).exp();
            weights += weight;
            let exponent = 0.5 * concentration * squared_chord;
            if exponent < NEGLIGIBLE {
                sum += weight * (-exponent).exp();
            }
        }
        let share = likelihood.share(best);
        -(share * peak * sum / weights + (1.0 - share) * uniform).ln()
    });
    nll.sum::<f64>() / cases.len() as f64
}

#[cfg(test)]
mod tests;
