//! From what search and registration found to a density: how likely each place is, against "none of them".

use locdiff_earth::{Guess, Registration};
use locdiff_sphere::{Density, Kernel, LatLon, PointMasses};
use serde::{Deserialize, Serialize};

use super::search::SearchResult;

/// Results of a search that registration brought to one place.
const SAME_MIDDLE: f64 = 0.1;
const SAME_HEADING_DEGREES: f64 = 10.0;
/// The likeness of the best of many wrong places, if there is no other to compare with.
const CHANCE: f64 = 0.12;
/// Of what is less probable than this, only the sum counts.
const LEAST_PROBABILITY: f64 = 1e-3;
/// Wide views have fewer places to be: as many as fit on the Earth, each likelier by the square of the width. Nats are
/// those of a width of so many km.
const USUAL_WIDTH_KM: f64 = 600.0;

/// How much evidence counts: fitted by likelihood on views whose places are known (`experiments/earth-view`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Odds {
    /// Nats for each standard deviation by which the search stands out.
    pub deviation: f64,
    /// Nats for each 0.01 by which the likeness of the registration is above that of every other place: a picture of a
    /// straight edge is like many places, and like none more than the others.
    pub margin: f64,
    /// Nats of "none of them".
    pub none: f64,
    /// Nats for each standard deviation without registration.
    pub search_deviation: f64,
    /// Nats of "none of them" without registration.
    pub search_none: f64,
}

/// Errors of places that the search and the registration find.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// Of registered ones, km at least, and as a share of the width.
    pub registered_km: f64,
    /// The same as a share of the view's width: the larger of the two counts.
    pub registered_share: f64,
    /// Of the search, as a share of the width.
    pub search_share: f64,
}

/// A place that a picture may show.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What the search found.
    pub result: SearchResult,
    /// Result of the registration, if there was one.
    pub registration: Option<Registration>,
    /// Probability of the place by the fitted odds; not calibrated.
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

    /// Whether their ground is apart.
    fn is_apart_from(&self, other: &Finding) -> bool {
        self.middle().distance_km(other.middle()) > self.width_km().max(other.width_km())
    }

    fn nats(&self, all: &[Finding], odds: &Odds) -> f64 {
        let by_width = 2.0 * (self.width_km() / USUAL_WIDTH_KM).ln();
        let Some(Registration { likeness, .. }) = &self.registration else {
            return odds.search_deviation * self.result.deviations + by_width;
        };
        let others = all.iter().filter(|other| self.is_apart_from(other));
        let likenesses = others.filter_map(|other| Some(other.registration.as_ref()?.likeness));
        let margin = likeness - likenesses.fold(CHANCE, f64::max);
        odds.deviation * self.result.deviations + odds.margin * 100.0 * margin + by_width
    }
}

/// Distinct findings with their probabilities, most probable first: they sum to less than 1, the rest is "none of
/// them". `known` is the prior: by how many nats a place is likelier than others before the picture is considered.
pub fn weighed(findings: Vec<Finding>, odds: &Odds, known: impl Fn(LatLon) -> f64) -> Vec<Finding> {
    let nats = |one: &Finding| one.nats(&findings, odds) + known(one.middle());
    let mut nats: Vec<(f64, Finding)> =
        findings.iter().map(|one| (nats(one), one.clone())).collect();
    nats.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut distinct: Vec<(f64, Finding)> = Vec::new();
    for (nats, finding) in nats {
        if !distinct.iter().any(|(_, other)| other.is_same_as(&finding)) {
            distinct.push((nats, finding));
        }
    }
    let registered = distinct.iter().any(|(_, finding)| finding.registration.is_some());
    let none = if registered { odds.none } else { odds.search_none };
    let highest = distinct.first().map_or(none, |(nats, _)| nats.max(none));
    let weight = |nats: f64| (nats - highest).exp();
    let sum = weight(none) + distinct.iter().map(|(nats, _)| weight(*nats)).sum::<f64>();
    let probable = |(nats, finding)| Finding { probability: weight(nats) / sum, ..finding };
    distinct.into_iter().map(probable).collect()
}

/// Findings by their probabilities, each as wide as its error; "none of them" is anywhere.
pub fn density(findings: &[Finding], errors: &Errors) -> Density {
    let mut parts: Vec<(f64, Density)> = Vec::new();
    let mut rest = 1.0;
    for finding in findings.iter().filter(|finding| finding.probability > LEAST_PROBABILITY) {
        let width_km = finding.width_km();
        let error_km = match finding.registration {
            Some(_) => errors.registered_km.max(errors.registered_share * width_km),
            None => errors.search_share * width_km,
        };
        // People read it.
        let error_km = error_km.round().max(1.0);
        let point = PointMasses::new(vec![finding.middle()], &[1.0]).expect("one place");
        let kernel = Kernel::new(error_km).expect("a width of some kilometers");
        parts.push((finding.probability, point.spread(kernel)));
        rest -= finding.probability;
    }
    parts.push((rest.max(1e-6), Density::uniform()));
    Density::mixture(parts).expect("positive shares")
}

#[cfg(test)]
mod tests {
    use locdiff_earth::Stretch;

    use super::*;

    const ODDS: Odds =
        Odds { deviation: 1.0, margin: 1.0, none: 10.0, search_deviation: 1.0, search_none: 6.0 };

    fn finding(latitude: f64, longitude: f64, deviations: f64, likeness: f64) -> Finding {
        let middle = (latitude, longitude);
        let found = Guess { middle, heading_degrees: 10.0, width_km: 300.0 };
        let registration = Registration {
            found,
            stretch: Stretch { factor: 1.0, bearing_degrees: 0.0 },
            corners: [middle; 4],
            likeness,
        };
        let result = SearchResult {
            middle: LatLon::new(latitude, longitude).unwrap(),
            heading_degrees: 10.0,
            width_km: 300.0,
            likeness: 0.4,
            deviations,
        };
        Finding { result, registration: Some(registration), probability: 0.0 }
    }

    /// What is like many places is at none of them; what is like one place much more than others is there.
    #[test]
    fn only_what_stands_out_is_believed() {
        let alike = [-20.0, 0.0, 30.0].map(|latitude| finding(latitude, 20.0, 5.0, 0.6));
        let weighed_alike = weighed(alike.to_vec(), &ODDS, |_| 0.0);
        assert!(weighed_alike.iter().all(|finding| finding.probability < 0.01));
        let mut one = alike.to_vec();
        one.push(finding(50.0, 100.0, 5.0, 0.8));
        let best = &weighed(one, &ODDS, |_| 0.0)[0];
        assert!(best.middle().latitude() == 50.0 && best.probability > 0.99, "{best:?}");
    }

    /// Twice as wide, a view has a quarter of the places to be: each is four times as likely against "none of them".
    #[test]
    fn wide_views_have_fewer_places() {
        let odds = |width_km: f64| {
            let mut one = finding(10.0, 10.0, 5.0, 0.18);
            one.registration.as_mut().unwrap().found.width_km = width_km;
            let probability = weighed(vec![one], &ODDS, |_| 0.0)[0].probability;
            probability / (1.0 - probability)
        };
        assert!((odds(600.0) / odds(300.0) - 4.0).abs() < 1e-9);
    }

    /// Results that registration brings to one place are one, and do not take away from each other.
    #[test]
    fn the_same_place_counts_once() {
        let once = weighed(vec![finding(10.0, 10.0, 5.0, 0.3)], &ODDS, |_| 0.0);
        let again = [10.0, 10.05, 9.95].map(|latitude| finding(latitude, 10.0, 5.0, 0.3));
        let twice = weighed(again.to_vec(), &ODDS, |_| 0.0);
        assert_eq!((once.len(), twice.len()), (1, 1));
        assert_eq!(once[0].probability, twice[0].probability);
    }

    /// A nearby place has the probability of its finding, "none of them" that of the whole Earth.
    #[test]
    fn the_density_has_the_probabilities() {
        let findings = weighed(vec![finding(10.0, 10.0, 6.4, 0.18)], &ODDS, |_| 0.0);
        let probability = findings[0].probability;
        assert!(probability > 0.1 && probability < 0.9, "{probability}");
        let errors = Errors { registered_km: 8.0, registered_share: 0.01, search_share: 0.1 };
        let density = density(&findings, &errors);
        let near = density.survey().probability_within(findings[0].middle(), 100.0);
        assert!((near - probability).abs() < 0.01, "{near}, {probability}");
    }
}
