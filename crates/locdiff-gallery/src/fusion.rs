//! A model's density and a gallery's hits as one density.
//!
//! A model and a gallery look at the same embedding: multiplied as if they were independent, they count it twice. So the
//! numbers of the product are fitted with both, on held-out photographs. With the model's density p, hits at xᵢ of
//! weights wᵢ ∝ exp(sharpness·sᵢ), the gallery's prior ρ and the kernel K, places near references have the density
//!
//! (1 − share)·p(u)·c(u) + share·Σ wᵢ K(u; xᵢ) p(xᵢ)^power/ρ(xᵢ)
//!
//! up to a factor, where c(u) is 1 in cells that contain references and 0 elsewhere, and p and ρ at references are relative to the
//! uniform density. All other places keep the model's density p(u)·(1 − c(u)): the gallery gives no information about them. How
//! probable both together are, the model says: the covered part has the probability M = ∫ p c, which the best similarity can
//! raise or lower by odds that are fitted too (if it lowers M, by as much as hits can give away). The less probable it is
//! that the place is covered at all, the less hits count: by the eighth power of that probability.

use std::f64::consts::TAU;
use std::fs;
use std::path::Path;

use locdiff_sphere::{
    Area, Density, EARTH_RADIUS_KM, Kernel, LatLon, PointMasses, UNIFORM_NLL_NATS,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::curve::squared_chord;
use crate::likelihood::WIDTHS_KM;
use crate::manifest::replace_json;
use crate::nelder_mead::minimum;
use crate::{Gallery, GalleryError, Hit, Likelihood};

/// The file in a hybrid's directory.
const FILE: &str = "fusion.json";
const FORMAT: &str = "locdiff-fusion";
const VERSION: u32 = 1;
/// The fewest photographs that seven numbers are fitted to.
const FEWEST_ROWS: usize = 50;
/// Hits count by this power of the probability that the place is covered.
const CAUTION: i32 = 8;
/// So many hits are looked at to find out what is most similar elsewhere.
const SEARCHED: usize = 4096;
/// Elsewhere: so many widths of the kernel away.
const ELSEWHERE_WIDTHS: f64 = 5.0;
/// So often a width is guessed.
const ROUNDS: usize = 4;
/// Kernel widths at which the fit begins.
const FIRST_WIDTHS_KM: [f64; 3] = [1.0, 10.0, 100.0];
/// Of the share, and what is added to those of presence.
const FIRST_LOG_ODDS: [[f64; 2]; 4] = [[-3.0, 0.0], [1.0, 0.0], [1.0, 8.0], [1.0, 16.0]];
/// What is added to those of presence when it goes on.
const NEXT_PRESENT: [f64; 4] = [0.0, 4.0, 8.0, 12.0];
/// The fit leaves so much of the probability of held-out places beyond the gallery, if the model does: that all of them
/// happened to be covered is no reason to exclude other places.
const OPEN_PART: f64 = 0.05;
/// How large log-odds are expected to be, and powers beyond 1.
const USUAL_LOG_ODDS: f64 = 5.0;

/// The numbers of the product, fitted by [`FusionFit`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fusion {
    /// Weights of references are proportional to exp(sharpness·similarity).
    pub sharpness: f64,
    /// How far photographs are from the references that match them: the kernel's standard deviation along each axis.
    pub width_km: f64,
    /// The log-odds that hits count, if the best similarity were 0.
    pub share_offset: f64,
    /// How much they grow with the best similarity.
    pub share_slope: f64,
    /// The model's density at references counts by this power.
    pub power: f64,
    /// What is added to the log-odds that the place is covered, if the best similarity were 0.
    pub presence_offset: f64,
    /// How much that grows with the best similarity.
    pub presence_slope: f64,
    /// Name of the held-out data.
    pub held_out: String,
    /// How many photographs were fitted.
    pub held_out_rows: usize,
    /// Number of references when it was fitted. A gallery that has grown much should be fitted again.
    pub gallery_rows: usize,
    /// Version of the model that it was fitted with, its calibration included.
    pub model_version: String,
    /// Mean negative log-likelihood of the held-out places, in nats per steradian.
    pub nll_nats: f64,
    /// The same of the model alone.
    pub model_nll_nats: f64,
}

#[derive(Serialize, Deserialize)]
struct Record {
    format: String,
    version: u32,
    #[serde(flatten)]
    fusion: Fusion,
}

/// How the parts of a product are weighed.
struct Weights {
    model: f64,
    /// Of the model's density beyond the gallery.
    beyond: f64,
    references: f64,
}

impl Fusion {
    /// That of a hybrid's directory, if it has one.
    pub fn read(directory: &Path) -> Result<Option<Fusion>, GalleryError> {
        let path = directory.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(GalleryError::File { what: "read", path, error }),
        };
        let damaged = |error| GalleryError::Json { path: path.clone(), error };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        if value["format"] != FORMAT || value["version"] != VERSION {
            let found = format!("of format {} version {}", value["format"], value["version"]);
            let expected = format!("{FORMAT} version {VERSION}");
            return Err(GalleryError::Version { path, found, expected });
        }
        let Record { fusion, .. } = serde_json::from_value(value).map_err(damaged)?;
        let numbers = [
            fusion.share_offset,
            fusion.share_slope,
            fusion.presence_offset,
            fusion.presence_slope,
        ];
        let valid = fusion.sharpness >= 0.0
            && fusion.power >= 0.0
            && WIDTHS_KM.contains(&fusion.width_km)
            && numbers.into_iter().chain([fusion.sharpness, fusion.power]).all(f64::is_finite);
        if !valid {
            let reason = "its numbers are out of range".to_owned();
            return Err(GalleryError::Contents { path, reason });
        }
        Ok(Some(fusion))
    }

    /// Stores it in a hybrid's directory; an older one is replaced.
    pub fn write(&self, directory: &Path) -> Result<(), GalleryError> {
        let (format, fusion) = (FORMAT.to_owned(), self.clone());
        replace_json(&directory.join(FILE), &Record { format, version: VERSION, fusion })
    }

    /// The density of a query's place, from the model's density and the gallery's hits. With an area, as if the gallery had
    /// no references in it (its prior apart): the hits must have none.
    pub fn density(
        &self,
        gallery: &Gallery,
        hits: &[Hit],
        model: &Density,
        removed: Option<&Area>,
    ) -> Result<Density, GalleryError> {
        let hits = &hits[..hits.len().min(Likelihood::HITS)];
        let Some(best) = hits.first() else { return Ok(model.clone()) };
        let best = f64::from(best.similarity);
        let kernel = Kernel::new(self.width_km)?;
        let prior = gallery.prior(self.width_km)?;
        let places: Vec<LatLon> = hits.iter().map(|hit| gallery.place(hit.row)).collect();
        let log_weights = self.log_weights(hits.iter().zip(&places).map(|(hit, place)| Seen {
            similarity: f64::from(hit.similarity),
            log_model: log_mean(model, *place, kernel),
            log_prior: prior.log_density(*place),
        }));
        let coverage = gallery.coverage(self.width_km, removed);
        let (covered, beyond) = coverage.split(model)?;
        let weights = self.weights(best, covered, log_sum(&log_weights));
        let mut parts = vec![(weights.model, model.clone())];
        if let Some(beyond) = beyond {
            parts.push((weights.beyond, beyond));
        }
        if weights.references > 0.0 {
            let points = PointMasses::from_logits(places, &log_weights)?;
            parts.push((weights.references, points.spread(kernel)));
        }
        Ok(Density::mixture(parts)?)
    }

    /// Of references, without a common factor.
    fn log_weights(&self, seen: impl Iterator<Item = Seen>) -> Vec<f64> {
        let (mut log_weights, mut sum) = (Vec::new(), 0.0);
        let mut best = None;
        for Seen { similarity, log_model, log_prior } in seen {
            let below = self.sharpness * (similarity - *best.get_or_insert(similarity));
            sum += below.exp();
            // Relative to the uniform density, so that powers have no unit.
            log_weights.push(
                below + self.power * (log_model + UNIFORM_NLL_NATS)
                    - (log_prior + UNIFORM_NLL_NATS),
            );
        }
        log_weights.iter_mut().for_each(|log| *log -= sum.ln());
        log_weights
    }

    /// From the best similarity, the probability of the covered part by the model, and the sum over references.
    fn weights(&self, best: f64, covered: f64, log_references: f64) -> Weights {
        let open = 1.0 - covered;
        let odds = covered / open * (self.presence_offset + self.presence_slope * best).exp();
        let present = if open <= 0.0 || odds.is_infinite() { 1.0 } else { odds / (1.0 + odds) };
        let share = 1.0 / (1.0 + (-self.share_offset - self.share_slope * best).exp());
        let share = share * present.powi(CAUTION);
        let references = share * log_references.exp();
        let all = (1.0 - share) * covered + references;
        if !(all > 0.0 && all.is_finite()) {
            return Weights { model: 1.0, beyond: 0.0, references: 0.0 };
        }
        let model = present * (1.0 - share) / all;
        // The model's density contains the part beyond; what is missing there is added.
        let beyond = (1.0 - present - model * open).max(0.0);
        let references = present * references / all;
        let sum = model + beyond + references;
        Weights { model: model / sum, beyond: beyond / sum, references: references / sum }
    }
}

/// Similarity of a hit, and the densities of model and gallery at its place.
struct Seen {
    similarity: f64,
    log_model: f64,
    log_prior: f64,
}

fn log_sum(logs: &[f64]) -> f64 {
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if highest == f64::NEG_INFINITY {
        return highest;
    }
    highest + logs.iter().map(|log| (log - highest).exp()).sum::<f64>().ln()
}

/// The logarithm of the mean of a density over the kernel around a place, by a rule of seven points that is exact
/// for polynomials of degree 5 (Stroud 1971, E₂ʳ² 5-1).
pub(crate) fn log_mean(density: &Density, place: LatLon, kernel: Kernel) -> f64 {
    let reach_km = 2.0 * kernel.width_km();
    let ring = (0..6).map(|k| place.destination(60.0 * f64::from(k), reach_km));
    let mean = ring.map(|place| density.log_density(place).exp() / 12.0).sum::<f64>();
    (mean + 0.5 * density.log_density(place).exp()).ln()
}

/// Held-out photographs, collected for a fit.
#[derive(Debug)]
pub struct FusionFit<'a> {
    gallery: &'a Gallery,
    cases: Vec<Case>,
    given: usize,
}

/// A held-out photograph.
#[derive(Debug)]
struct Case {
    place: LatLon,
    model: Density,
    /// More than are used, best first.
    hits: Vec<Hit>,
}

/// What the fit needs of a photograph, for a prior and a coverage of some width.
struct Reduced {
    similarities: Vec<f64>,
    squared_chords: Vec<f64>,
    log_model: Vec<f64>,
    log_prior: Vec<f64>,
    /// The model's at the truth.
    log_density: f64,
    /// Coverage at the true place.
    covered_here: f64,
    covered: f64,
    /// The best similarity far from the truth.
    elsewhere: f64,
}

impl<'a> FusionFit<'a> {
    /// A fit without photographs yet.
    pub fn new(gallery: &'a Gallery) -> FusionFit<'a> {
        FusionFit { gallery, cases: Vec::new(), given: 0 }
    }

    /// Adds a photograph whose place is known, with the model's density of it. Photographs that the gallery contains are
    /// left out.
    pub fn push(
        &mut self,
        query: &[f32],
        place: LatLon,
        id: &str,
        model: &Density,
    ) -> Result<(), GalleryError> {
        let hits = self.gallery.search(query, SEARCHED)?;
        self.given += 1;
        if !hits.iter().take(Likelihood::HITS).any(|hit| self.gallery.is_itself(hit, place, id)) {
            self.cases.push(Case { place, model: model.clone(), hits });
        }
        Ok(())
    }

    /// The numbers that fit best. `held_out` names the data, `model_version` the model whose densities were given.
    pub fn finish(self, held_out: &str, model_version: &str) -> Result<Fusion, GalleryError> {
        let left = self.cases.len();
        if left < FEWEST_ROWS {
            let (needed, given) = (FEWEST_ROWS, self.given);
            return Err(GalleryError::FewRows { needed, left, given, inside: given - left });
        }
        let mut fusion = Fusion {
            sharpness: 1.0,
            width_km: 100.0,
            share_offset: 0.0,
            share_slope: 0.0,
            power: 1.0,
            presence_offset: 0.0,
            presence_slope: 0.0,
            held_out: held_out.to_owned(),
            held_out_rows: left,
            gallery_rows: self.gallery.len(),
            model_version: model_version.to_owned(),
            nll_nats: 0.0,
            model_nll_nats: 0.0,
        };
        // Prior and coverage depend on the width: first with a guess, then with what was found.
        let mut start = None;
        for _ in 0..ROUNDS {
            let guess_km = fusion.width_km;
            let (found, point) = fitted(&fusion, &self.reduced(guess_km)?, start);
            fusion = found;
            if start.replace(point).is_some() && (fusion.width_km / guess_km).ln().abs() < 0.2 {
                break;
            }
        }
        fusion.nll_nats = mean_nll(&fusion, &self.reduced(fusion.width_km)?);
        Ok(fusion)
    }

    fn reduced(&self, width_km: f64) -> Result<Vec<Reduced>, GalleryError> {
        let (gallery, prior) = (self.gallery, self.gallery.prior(width_km)?);
        let coverage = gallery.coverage(width_km, None);
        let kernel = Kernel::new(width_km)?;
        let reduced = |case: &Case| -> Result<Reduced, GalleryError> {
            let used = &case.hits[..case.hits.len().min(Likelihood::HITS)];
            let places: Vec<LatLon> = used.iter().map(|hit| gallery.place(hit.row)).collect();
            let chord = |place: &LatLon| squared_chord((*place).into(), case.place.into());
            let reach_km = ELSEWHERE_WIDTHS * width_km;
            let is_elsewhere =
                |hit: &&Hit| gallery.place(hit.row).distance_km(case.place) > reach_km;
            // If all of them are near, others are less similar than the last.
            let elsewhere = case.hits.iter().find(is_elsewhere).or(case.hits.last());
            Ok(Reduced {
                similarities: used.iter().map(|hit| f64::from(hit.similarity)).collect(),
                squared_chords: places.iter().map(chord).collect(),
                log_model: places
                    .iter()
                    .map(|place| log_mean(&case.model, *place, kernel))
                    .collect(),
                log_prior: places.iter().map(|place| prior.log_density(*place)).collect(),
                log_density: case.model.log_density(case.place),
                covered_here: coverage.at(case.place),
                covered: coverage.split(&case.model)?.0,
                elsewhere: elsewhere.map_or(-1.0, |hit| f64::from(hit.similarity)),
            })
        };
        let cases = self.cases.par_iter().filter(|case| !case.hits.is_empty());
        cases.map(reduced).collect()
    }
}

/// Numbers of order one in which the fit moves: log sharpness, log width, level and slope of the share, log power, and what is added
/// to the log-odds of presence: photographs may be taken where the gallery's were more often than the model predicts.
type Point = [f64; 6];

fn fitted(other: &Fusion, cases: &[Reduced], start: Option<Point>) -> (Fusion, Point) {
    let count = cases.len() as f64;
    let best = || cases.iter().map(|case| case.similarities[0]);
    let mean = best().sum::<f64>() / count;
    let deviation = (best().map(|s| (s - mean).powi(2)).sum::<f64>() / count).sqrt().max(1e-6);
    let below = cases.iter().map(|case| {
        let below: f64 = case.similarities.iter().map(|s| case.similarities[0] - s).sum();
        below / case.similarities.len() as f64
    });
    let spread = (below.sum::<f64>() / count).max(1e-6);
    let (level, slope) = presence(cases, mean, deviation);
    let fusion = |point: Point| {
        let [log_sharpness, log_width, share, share_slope, log_power, present] = point;
        Fusion {
            sharpness: log_sharpness.clamp(-10.0, 12.0).exp() / spread,
            width_km: log_width.exp().clamp(*WIDTHS_KM.start(), *WIDTHS_KM.end()),
            share_offset: share - share_slope / deviation * mean,
            share_slope: share_slope / deviation,
            power: log_power.clamp(-7.0, 1.0).exp(),
            presence_offset: present + level - slope / deviation * mean,
            presence_slope: slope / deviation,
            ..other.clone()
        }
    };
    let mut objective = |point: Point| {
        let odds = point[2] * point[2] + point[3] * point[3];
        let preference = 0.5 * odds / (USUAL_LOG_ODDS * USUAL_LOG_ODDS) + 0.5 * point[4] * point[4];
        mean_nll(&fusion(point), cases) + preference / count + OPEN_PART * point[5].abs()
    };
    let starts: Vec<Point> = match start {
        // A narrower width covers less: what was enough before may be on a plateau now.
        Some(start) => NEXT_PRESENT
            .map(|more| {
                let [a, b, c, d, e, present] = start;
                [a, b, c, d, e, present + more]
            })
            .to_vec(),
        None => FIRST_WIDTHS_KM
            .iter()
            .flat_map(|width| {
                FIRST_LOG_ODDS.map(|[odds, present]| [0.4, width.ln(), odds, 0.0, -0.5, present])
            })
            .collect(),
    };
    let mut starts: Vec<(Point, f64)> =
        starts.into_iter().map(|start| (start, objective(start))).collect();
    starts.sort_by(|a, b| a.1.total_cmp(&b.1));
    let ends = starts[..starts.len().min(3)].iter().map(|(start, _)| {
        let steps = [0.7, 0.7, 1.0, 0.7, 0.5, 2.0];
        let (end, _) = minimum(&mut objective, *start, steps, 1e-6, 600);
        // Once more from there: a simplex can become flat.
        minimum(&mut objective, end, steps.map(|step| 0.4 * step), 1e-7, 600)
    });
    let best = ends.min_by(|a, b| a.1.total_cmp(&b.1)).map_or([0.0; 6], |(point, _)| point);
    let model_nll_nats = -cases.iter().map(|case| case.log_density).sum::<f64>() / count;
    (Fusion { model_nll_nats, ..fusion(best) }, best)
}

/// The log-odds that the place is covered, by the best similarity: level at the mean, and slope per deviation. A photograph counts
/// twice: with all references, and with those far from it alone, which do not cover it.
fn presence(cases: &[Reduced], mean: f64, deviation: f64) -> (f64, f64) {
    let units = |similarity: f64| (similarity - mean) / deviation;
    let cost = |[level, slope]: [f64; 2]| {
        let sum: f64 = cases
            .iter()
            .map(|case| {
                let near = level + slope * units(case.similarities[0]);
                let far = level + slope * units(case.elsewhere);
                let with_all = case.covered_here * (-near).exp().ln_1p()
                    + (1.0 - case.covered_here) * near.exp().ln_1p();
                with_all + far.exp().ln_1p()
            })
            .sum();
        sum + 0.5 * (level * level + slope * slope) / (USUAL_LOG_ODDS * USUAL_LOG_ODDS)
    };
    let ([level, slope], _) = minimum(cost, [0.0, 0.1], [0.5, 0.5], 1e-7, 400);
    // More similar can't mean less near.
    if slope > 0.0 { (level, slope) } else { (0.0, 0.0) }
}

/// Mean negative log-likelihood in nats per steradian.
fn mean_nll(fusion: &Fusion, cases: &[Reduced]) -> f64 {
    let concentration = (EARTH_RADIUS_KM / fusion.width_km).powi(2);
    // The peak of the kernel, as in `locdiff_sphere::Kernel`.
    let peak = concentration / (TAU * -(-2.0 * concentration).exp_m1());
    let nll = cases.iter().map(|case| {
        let seen = (0..case.similarities.len()).map(|k| Seen {
            similarity: case.similarities[k],
            log_model: case.log_model[k],
            log_prior: case.log_prior[k],
        });
        let log_weights = fusion.log_weights(seen);
        let log_all = log_sum(&log_weights);
        let here = log_weights.iter().zip(&case.squared_chords).map(|(log, squared_chord)| {
            (log - log_all - 0.5 * concentration * squared_chord).exp()
        });
        let weights = fusion.weights(case.similarities[0], case.covered, log_all);
        let open = 1.0 - case.covered;
        let beyond =
            if open > 0.0 { weights.beyond * (1.0 - case.covered_here) / open } else { 0.0 };
        let model = case.log_density.exp() * (weights.model + beyond);
        -(model + weights.references * peak * here.sum::<f64>()).max(f64::MIN_POSITIVE).ln()
    });
    nll.sum::<f64>() / cases.len() as f64
}

#[cfg(test)]
mod tests;
