//! Pictures of one outing constrain each other.
//!
//! [`fuse`] takes what a model returned for each picture, with its time, and places that are known (pictures
//! with GPS, points of a GPX track). It runs forward-backward over adaptive cells of the sphere with a model of
//! how people travel, or how a spacecraft flies: [`Motion`]. The result is a density for each picture, and a list of
//! what moved it.
//!
//! What is assumed, and what is not:
//! * Single densities are evidence on a uniform prior. They are independent of each other, but for pictures of one burst
//!   ([`FusionOptions::burst_s`]), which repeat the same evidence and are pooled.
//! * A model may be wrong with a small probability, whatever its density.
//! * Any picture may be a stray: a wrong clock, a picture of somebody else. The share of strays is not assumed but
//!   inferred for each outing, up to "all of them". Pictures that contradict each other keep their single densities.
//! * For an orbit, "near each other, but the times mean nothing" is a hypothesis too. If it wins, single densities stay.
//!
//! ```
//! use locdiff_archive::fusion::{FusionOptions, Sighting, fuse};
//! use locdiff_sphere::{Kernel, LatLon, PointMasses};
//!
//! // Lucerne or somewhere in Japan, ten minutes after a picture with GPS in Lucerne.
//! let places = vec![LatLon::new(47.05, 8.31)?, LatLon::new(35.0, 135.8)?];
//! let density = PointMasses::new(places, &[0.4, 0.6])?.spread(Kernel::default());
//! let known = Sighting::known(0.0, LatLon::new(47.06, 8.30)?, 0.01);
//! let fused = fuse(&[known, Sighting::pictured(600.0, density)], &FusionOptions::default());
//!
//! let survey = fused[1].density.survey();
//! assert!(survey.probability_within(LatLon::new(47.05, 8.31)?, 20.0) > 0.9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aimless;
mod bursts;
mod chain;
mod influence;
mod motion;
mod outings;
mod support;
mod track;

use locdiff_sphere::{Density, Kernel, LatLon, PointMasses};

pub use influence::{Influence, Source};
pub use motion::{Motion, Orbit, Travel};
pub use outings::outings;
pub use track::{InvalidTrack, Track, TrackPoint};

use chain::{Chain, Outcome};
use support::{Likelihood, Node};

/// A picture or a known place, at a time.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// Seconds since any moment that all sightings share.
    pub time_s: f64,
    /// What is known of the place.
    pub evidence: Evidence,
}

/// What is known of the place of a sighting.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Evidence {
    /// What a model returned, restricted to what the user states, if anything.
    Picture(Box<Density>),
    /// A place from GPS or a track, with its standard deviation per axis.
    Known {
        /// The recorded place.
        place: LatLon,
        /// Standard deviation of the recorded place.
        error_km: f64,
    },
}

impl Sighting {
    /// A picture with what a model returned for it.
    pub fn pictured(time_s: f64, density: Density) -> Sighting {
        Sighting { time_s, evidence: Evidence::Picture(Box::new(density)) }
    }

    /// A known place with its standard deviation per axis.
    pub fn known(time_s: f64, place: LatLon, error_km: f64) -> Sighting {
        Sighting { time_s, evidence: Evidence::Known { place, error_km } }
    }
}

/// What the fusion assumes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FusionOptions {
    /// How whoever took the pictures moved.
    pub motion: Motion,
    /// Shares of strays that are considered, with their prior probabilities.
    pub strays: Vec<(f64, f64)>,
    /// Probability that a model is wrong about a picture, whatever its density.
    pub wrong: f64,
    /// Probability of a break between two pictures, after which the place is anywhere.
    pub breaks: f64,
    /// Pictures within so many seconds are one burst, whose densities are pooled (their geometric mean); 0 if all are
    /// independent.
    pub burst_s: f64,
    /// Prior probability that times mean nothing, for motions that pictures can contradict.
    pub aimless: f64,
    /// How often cells are divided by the neighbors' densities.
    pub rounds: usize,
}

impl Default for FusionOptions {
    fn default() -> FusionOptions {
        FusionOptions {
            motion: Motion::default(),
            strays: vec![(0.01, 0.45), (0.1, 0.2), (0.35, 0.15), (1.0, 0.2)],
            wrong: 0.03,
            breaks: 1e-3,
            burst_s: 20.0,
            aimless: 0.5,
            rounds: 3,
        }
    }
}

impl FusionOptions {
    /// For pictures from a spacecraft.
    pub fn orbit(orbit: Orbit) -> FusionOptions {
        FusionOptions { motion: Motion::Orbit(orbit), burst_s: 0.0, ..Default::default() }
    }

    /// These options with another model of motion.
    pub fn with_motion(self, motion: Motion) -> FusionOptions {
        FusionOptions { motion, ..self }
    }
}

/// The fused answer about one sighting.
#[derive(Debug, Clone)]
pub struct Fused {
    /// Where the picture was taken. Of a known place: a narrow density around it.
    pub density: Density,
    /// Probability that no other sighting is informative about this one; then its single density holds.
    pub stray: f64,
    /// How far the most probable place moved.
    pub moved_km: f64,
    /// What moved the density, the strongest first.
    pub influences: Vec<Influence>,
}

/// No more sightings than this are fused at once; longer outings are cut, with an overlap.
const MOST_AT_ONCE: usize = 160;
const OVERLAP: usize = 24;
/// If times mean nothing with more than this probability, single densities stay.
const DOUBT: f64 = 0.1;
/// The share of strays while cells are divided.
const EXPLORED_STRAYS: f64 = 0.1;
/// A single density with less than this is left out of the mixture.
const LEAST_STRAY: f64 = 1e-3;
/// Kernels are wider than cells by this factor, so that no gaps show between them.
const KERNEL_OVER_CELL: f64 = 1.1;

/// Fuses the sightings of one outing, in any order. Results are in the order of the sightings.
pub fn fuse(sightings: &[Sighting], options: &FusionOptions) -> Vec<Fused> {
    let bursts = bursts::bursts(sightings, options.burst_s);
    let pooled: Vec<Sighting> = bursts.iter().map(|burst| burst.pooled(sightings)).collect();
    let numbers: Vec<usize> = bursts.iter().map(|burst| burst.members[0]).collect();
    let mut fused: Vec<Option<Fused>> = vec![None; sightings.len()];
    let mut start = 0;
    while start < bursts.len() {
        let end = (start + MOST_AT_ONCE).min(bursts.len());
        let results = fuse_part(&pooled[start..end], &numbers[start..end], options);
        let kept = if start == 0 { 0 } else { OVERLAP / 2 };
        for (burst, result) in bursts[start..end].iter().zip(results).skip(kept) {
            burst.share(sightings, &result, &mut fused);
        }
        if end == bursts.len() {
            break;
        }
        start = end - OVERLAP;
    }
    fused.into_iter().flatten().collect()
}

/// Fuses sightings in the order of their times; `numbers` are those that influences name.
fn fuse_part(ordered: &[Sighting], numbers: &[usize], options: &FusionOptions) -> Vec<Fused> {
    let times: Vec<f64> = ordered.iter().map(|sighting| sighting.time_s).collect();
    let likelihoods: Vec<Option<Likelihood<'_>>> = ordered
        .iter()
        .map(|sighting| match &sighting.evidence {
            Evidence::Picture(density) => {
                Some(Likelihood::new(density, options.wrong, options.motion.slack_km()))
            }
            Evidence::Known { .. } => None,
        })
        .collect();
    let mut nodes: Vec<Vec<Node>> = ordered
        .iter()
        .zip(&likelihoods)
        .map(|(sighting, likelihood)| match (&sighting.evidence, likelihood) {
            (Evidence::Known { place, error_km }, _) => {
                support::known(*place, error_km.hypot(options.motion.slack_km()))
            }
            (_, Some(likelihood)) => likelihood.cover(),
            (_, None) => Vec::new(),
        })
        .collect();
    let summits: Vec<Option<LatLon>> =
        nodes.iter().map(|nodes| influence::summit(nodes, |k| nodes[k].mass)).collect();
    let coarse: Vec<Vec<Node>> = nodes
        .iter()
        .zip(&likelihoods)
        .map(|(nodes, likelihood)| match likelihood {
            Some(likelihood) => likelihood.coarse_cover(),
            None => nodes.clone(),
        })
        .collect();
    let log_aimless = aimless::log_ratio(&coarse, &times, options);
    for round in 0..options.rounds {
        let result = explore(&nodes, &times, options, round);
        for (j, likelihood) in likelihoods.iter().enumerate() {
            if let Some(likelihood) = likelihood {
                nodes[j] = likelihood.refine(&nodes[j], &result.pictures[j].posterior);
                if round + 1 == options.rounds {
                    let fixes = fixes_near(ordered, j);
                    nodes[j] = likelihood.with_rings(std::mem::take(&mut nodes[j]), &fixes);
                }
            }
        }
    }
    let result = run(&nodes, &times, options, log_aimless);
    let picture = |j: usize| {
        let sighting = &ordered[j];
        let mut nodes = std::borrow::Cow::Borrowed(&nodes[j]);
        let mut posterior: Vec<f64> = (0..nodes.len())
            .map(|k| result.all.iter().map(|(p, o)| p * o.pictures[j].posterior[k]).sum())
            .collect();
        let belongs: f64 = posterior.iter().sum::<f64>().min(1.0);
        let stray = 1.0 - belongs;
        let marginal = &result.best.pictures[j];
        let influences = influence::of(&nodes, marginal, belongs, &numbers[..j]);
        if let Some(likelihood) = &likelihoods[j]
            && options.motion.slack_km() > 0.0
            && belongs > LEAST_STRAY
        {
            let others = |(mass, node): (&f64, &Node)| {
                if node.mass > 0.0 { mass / node.mass * node.share } else { 0.0 }
            };
            let others: Vec<f64> = posterior.iter().zip(nodes.iter()).map(others).collect();
            let (own, shares) = likelihood.beside(&nodes, &others);
            posterior = shares.into_iter().map(|share| belongs * share).collect();
            nodes = std::borrow::Cow::Owned(own);
        }
        let mut parts = if belongs > LEAST_STRAY { smooth(&nodes, &posterior) } else { Vec::new() };
        let single = match &sighting.evidence {
            Evidence::Picture(density) => {
                if stray > LEAST_STRAY || parts.is_empty() {
                    parts.push((stray, density.as_ref().clone()));
                }
                summits[j]
            }
            Evidence::Known { place, error_km } => {
                parts = vec![(1.0, around(*place, *error_km))];
                Some(*place)
            }
        };
        let now =
            if stray > 0.5 { summits[j] } else { influence::summit(&nodes, |k| posterior[k]) };
        let density = match parts.as_slice() {
            [(_, only)] => only.clone(),
            _ => Density::mixture(parts).unwrap_or_else(|_| Density::uniform()),
        };
        let moved_km = single.zip(now).map_or(0.0, |(a, b)| a.distance_km(b));
        Fused { density, stray, moved_km, influences }
    };
    (0..ordered.len()).map(picture).collect()
}

/// Forward-backward for all shares of strays.
struct Averaged {
    /// Outcomes with their posterior probabilities; "all are strays" is left out.
    all: Vec<(f64, Outcome)>,
    /// The most probable of them.
    best: Outcome,
}

/// log Σ exp, without overflow.
fn log_sum_exp(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let highest = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if highest == f64::NEG_INFINITY {
        return highest;
    }
    highest + logs.map(|log| (log - highest).exp()).sum::<f64>().ln()
}

/// Forward-backward to find out which cells matter: for one share of strays, and with directions in the last round only.
fn explore(nodes: &[Vec<Node>], times: &[f64], options: &FusionOptions, round: usize) -> Outcome {
    let last = round + 1 == options.rounds;
    let headings = if last { options.motion.headings() } else { 1 };
    Chain::new(nodes, times, &options.motion, headings).run(EXPLORED_STRAYS, options.breaks)
}

/// Shares of strays but "all of them", with their priors.
fn some_strays(options: &FusionOptions) -> impl Iterator<Item = (f64, f64)> {
    options.strays.iter().copied().filter(|(share, _)| *share < 1.0)
}

fn run(nodes: &[Vec<Node>], times: &[f64], options: &FusionOptions, log_aimless: f64) -> Averaged {
    let chain = Chain::new(nodes, times, &options.motion, options.motion.headings());
    let outcomes: Vec<(f64, Outcome)> = some_strays(options)
        .map(|(share, prior)| {
            let outcome = chain.run(share, options.breaks);
            (prior.ln() + (1.0 - options.aimless).ln() + outcome.log_evidence, outcome)
        })
        .collect();
    let all: f64 = options.strays.iter().filter(|(share, _)| *share >= 1.0).map(|(_, p)| p).sum();
    let whole = log_sum_exp(outcomes.iter().map(|(log, _)| *log));
    // In both of these cases single densities stay.
    let odds = (options.aimless / (1.0 - options.aimless)).ln();
    let single = [all.ln(), whole + odds + log_aimless];
    let logs = outcomes.iter().map(|(log, _)| *log).chain(single);
    let total = log_sum_exp(logs);
    // Averaging would let half of a wrong chain through.
    let total = if single[1] - total > DOUBT.ln() { f64::INFINITY } else { total };
    let all: Vec<(f64, Outcome)> =
        outcomes.into_iter().map(|(log, outcome)| ((log - total).exp(), outcome)).collect();
    let best = all.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, outcome)| outcome.clone());
    let best = best.unwrap_or_else(|| chain.run(0.5, options.breaks));
    Averaged { all, best }
}

/// Known places among the sightings that links lead to.
fn fixes_near(ordered: &[Sighting], j: usize) -> Vec<LatLon> {
    let near = j.saturating_sub(chain::REACH)..(j + chain::REACH + 1).min(ordered.len());
    let mut fixes: Vec<LatLon> = Vec::new();
    for sighting in &ordered[near] {
        if let Evidence::Known { place, .. } = &sighting.evidence
            && fixes.iter().all(|fix| fix.distance_km(*place) > 0.05)
        {
            fixes.push(*place);
        }
    }
    fixes
}

/// Cells as kernels about as wide as they are: one part for each size.
fn smooth(nodes: &[Node], posterior: &[f64]) -> Vec<(f64, Density)> {
    let mut sizes: Vec<(i32, Vec<LatLon>, Vec<f64>)> = Vec::new();
    for (node, mass) in nodes.iter().zip(posterior) {
        if *mass < 1e-7 {
            continue;
        }
        // Cells of one level differ by a factor of 1.4 in width.
        let size = (4.0 * node.deviation_km().ln()).round() as i32;
        match sizes.iter_mut().find(|(other, ..)| *other == size) {
            Some((_, places, masses)) => {
                places.push(node.place());
                masses.push(*mass);
            }
            None => sizes.push((size, vec![node.place()], vec![*mass])),
        }
    }
    let part = |(size, places, masses): (i32, Vec<LatLon>, Vec<f64>)| {
        let weight: f64 = masses.iter().sum();
        let width = KERNEL_OVER_CELL * (0.25 * f64::from(size)).exp();
        let kernel = Kernel::new(width.clamp(0.01, 5000.0)).ok()?;
        Some((weight, PointMasses::new(places, &masses).ok()?.spread(kernel)))
    };
    sizes
        .into_iter()
        .filter(|(.., masses)| masses.iter().sum::<f64>() > 1e-5)
        .filter_map(part)
        .collect()
}

fn around(place: LatLon, error_km: f64) -> Density {
    let kernel = Kernel::new(error_km.clamp(0.01, 5000.0)).unwrap_or_default();
    PointMasses::new(vec![place], &[1.0])
        .map_or_else(|_| Density::uniform(), |one| one.spread(kernel))
}
