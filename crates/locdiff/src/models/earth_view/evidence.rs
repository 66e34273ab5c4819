//! From what search and registration found to a density: how likely each place is, against "none of them".

use locdiff_earth::{Guess, Registration};
use locdiff_sphere::{Density, Kernel, LatLon, PointMasses};
use serde::{Deserialize, Serialize};

use super::search::SearchResult;

/// Results of a search that registration brought to one place.
const SAME_MIDDLE: f64 = 0.1;
const SAME_HEADING_DEGREES: f64 = 10.0;

/// How much evidence counts, fitted by likelihood on views whose places are known (`experiments/earth-view`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Odds {
    /// Nats for each standard deviation by which the search stands out.
    pub deviation: f64,
    /// Nats for the likeness of the registration, which is 0 to 1.
    pub likeness: f64,
    /// And for its square.
    pub likeness_squared: f64,
    /// Nats of "none of them".
    pub none: f64,
    /// The same four without registration: for the search alone.
    pub search_deviation: f64,
    /// See `search_deviation`.
    pub search_none: f64,
}

/// How far off places are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// Of registered ones, km at least, and as a share of the width.
    pub registered_km: f64,
    /// See `registered_km`.
    pub registered_share: f64,
    /// Of the search, as a share of the width.
    pub search_share: f64,
}

/// A place that a picture may show.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What the search found.
    pub result: SearchResult,
    /// What became of it.
    pub registration: Option<Registration>,
    /// Its probability.
    pub probability: f64,
}

impl Finding {
    /// The middle of the picture.
    pub fn middle(&self) -> LatLon {
        match &self.registration {
            Some(Registration { found: Guess { middle: (latitude, longitude), .. }, .. }) => {
                LatLon::new(*latitude, *longitude).unwrap_or(self.result.middle)
            }
            None => self.result.middle,
        }
    }

    fn width_km(&self) -> f64 {
        self.registration.as_ref().map_or(self.result.width_km, |of| of.found.width_km)
    }

    fn heading_degrees(&self) -> f64 {
        let registered = self.registration.as_ref().map(|of| of.found.heading_degrees);
        registered.unwrap_or(self.result.heading_degrees)
    }

    fn is_same_as(&self, other: &Finding) -> bool {
        let turn =
            (self.heading_degrees() - other.heading_degrees() + 180.0).rem_euclid(360.0) - 180.0;
        turn.abs() < SAME_HEADING_DEGREES
            && self.middle().distance_km(other.middle()) < SAME_MIDDLE * self.width_km()
    }

    fn nats(&self, odds: &Odds) -> f64 {
        match &self.registration {
            Some(Registration { likeness, .. }) => {
                odds.deviation * self.result.deviations
                    + odds.likeness * likeness
                    + odds.likeness_squared * likeness * likeness
            }
            None => odds.search_deviation * self.result.deviations,
        }
    }
}

/// Distinct findings with their probabilities, most probable first: they sum to less than 1, the rest is "none of
/// them".
pub fn weighed(mut findings: Vec<Finding>, odds: &Odds) -> Vec<Finding> {
    findings.sort_by(|a, b| b.nats(odds).total_cmp(&a.nats(odds)));
    let mut distinct: Vec<Finding> = Vec::new();
    for finding in findings {
        if !distinct.iter().any(|other| other.is_same_as(&finding)) {
            distinct.push(finding);
        }
    }
    let registered = distinct.iter().any(|finding| finding.registration.is_some());
    let none = if registered { odds.none } else { odds.search_none };
    let highest = distinct.iter().map(|finding| finding.nats(odds)).fold(none, f64::max);
    let weight = |nats: f64| (nats - highest).exp();
    let sum = weight(none) + distinct.iter().map(|finding| weight(finding.nats(odds))).sum::<f64>();
    for finding in &mut distinct {
        finding.probability = weight(finding.nats(odds)) / sum;
    }
    distinct
}

/// Findings by their probabilities, each as wide as its error; "none of them" is anywhere.
pub fn density(findings: &[Finding], errors: &Errors) -> Density {
    let mut parts: Vec<(f64, Density)> = Vec::new();
    let mut rest = 1.0;
    for finding in findings.iter().filter(|finding| finding.probability > 1e-6) {
        let width_km = finding.width_km();
        let error_km = match finding.registration {
            Some(_) => errors.registered_km.max(errors.registered_share * width_km),
            None => errors.search_share * width_km,
        };
        let point = PointMasses::new(vec![finding.middle()], &[1.0]).expect("one place");
        let kernel = Kernel::new(error_km).expect("a width of some kilometers");
        parts.push((finding.probability, point.spread(kernel)));
        rest -= finding.probability;
    }
    parts.push((rest.max(1e-6), Density::uniform()));
    Density::mixture(parts).expect("positive shares")
}
