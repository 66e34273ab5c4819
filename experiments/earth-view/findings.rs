//! What was found for views whose places are known: a line of JSON for each.

use std::f64::consts::PI;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use locdiff::models::earth_view::{
    Atlas, AtlasSettings, Finding, Known, Odds, SearchResult, density, weighed,
};
use locdiff_earth::{Guess, Registration, Stretch};
use locdiff_sphere::{DensityOutcome, EARTH_RADIUS_KM, LatLon};
use serde::{Deserialize, Serialize};

use crate::search::KnownView;

/// As far as two places can be apart. A rejected picture counts as this far off.
pub const FARTHEST_KM: f64 = PI * EARTH_RADIUS_KM;
/// Results of the search that are written down.
const SEARCHED: usize = 60;

/// What was found for a view whose place is known.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    pub name: String,
    pub set: String,
    pub tier: String,
    latitude: f64,
    longitude: f64,
    pub width_km: f64,
    /// Seconds.
    search_s: f64,
    registration_s: f64,
    /// Of the search alone, if the place is among its results.
    pub rank: Option<usize>,
    /// The search's first results.
    searched: Vec<Seen>,
    /// Those that were registered to the end.
    results: Vec<Found>,
}

/// Written as a row of five numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "[f64; 5]", into = "[f64; 5]")]
struct Seen {
    deviations: f64,
    latitude: f64,
    longitude: f64,
    heading: f64,
    width_km: f64,
}

impl From<[f64; 5]> for Seen {
    fn from([deviations, latitude, longitude, heading, width_km]: [f64; 5]) -> Seen {
        Seen { deviations, latitude, longitude, heading, width_km }
    }
}

impl From<Seen> for [f64; 5] {
    fn from(seen: Seen) -> [f64; 5] {
        [seen.deviations, seen.latitude, seen.longitude, seen.heading, seen.width_km]
    }
}

/// And its likeness.
#[derive(Debug, Serialize, Deserialize)]
struct Found(Seen, f64);

/// What the settings make of a line.
#[derive(Clone)]
pub struct Answer {
    pub name: String,
    pub set: String,
    pub width_km: f64,
    pub distance_km: f64,
    /// The log-density of the truth, if there is an answer.
    pub accepted: Option<f64>,
    /// If it was surveyed, which takes a quarter of a second.
    pub outcome: Option<DensityOutcome>,
}

impl Seen {
    fn new(
        deviations: f64,
        (latitude, longitude): (f64, f64),
        heading: f64,
        width_km: f64,
    ) -> Seen {
        Seen {
            deviations: shorter(deviations, 1e3),
            latitude: shorter(latitude, 1e4),
            longitude: shorter(longitude, 1e4),
            heading: shorter(heading, 10.0),
            width_km: shorter(width_km, 10.0),
        }
    }

    fn result(&self) -> SearchResult {
        SearchResult {
            middle: LatLon::new(self.latitude, self.longitude).expect("on Earth"),
            heading_degrees: self.heading,
            width_km: self.width_km,
            likeness: 0.0,
            deviations: self.deviations,
        }
    }
}

fn shorter(number: f64, to: f64) -> f64 {
    (number * to).round() / to
}

impl Line {
    /// How far off the search's first result is, as a share of the width that the search found.
    pub fn search_error(&self) -> Option<f64> {
        let first = self.searched.first().filter(|_| self.has_place())?.result();
        Some(first.middle.distance_km(self.place()) / first.width_km)
    }

    /// What an atlas finds.
    pub fn of(view: &KnownView, atlas: &Atlas) -> Line {
        let began = Instant::now();
        let results = atlas.search(&view.photo, &Known::default());
        let search_s = began.elapsed().as_secs_f64();
        let findings = atlas.registered(&view.photo, results.clone(), &Known::default());
        let registration_s = began.elapsed().as_secs_f64() - search_s;
        let is_right =
            |one: &SearchResult| one.middle.distance_km(view.place) < 0.3 * view.width_km;
        let found = |finding: &Finding| {
            let Registration { found, likeness, .. } = finding.registration.as_ref()?;
            let Guess { middle, heading_degrees, width_km } = *found;
            let seen = Seen::new(finding.result.deviations, middle, heading_degrees, width_km);
            Some(Found(seen, shorter(*likeness, 1e4)))
        };
        let seen = |one: &SearchResult| {
            let middle = (one.middle.latitude(), one.middle.longitude());
            Seen::new(one.deviations, middle, one.heading_degrees, one.width_km)
        };
        Line {
            name: view.name.clone(),
            set: view.set.clone(),
            tier: view.tier.clone(),
            latitude: view.place.latitude(),
            longitude: view.place.longitude(),
            width_km: view.width_km,
            search_s: shorter(search_s, 1e3),
            registration_s: shorter(registration_s, 1e3),
            rank: results.iter().position(is_right),
            searched: results.iter().take(SEARCHED).map(seen).collect(),
            results: findings.iter().filter_map(found).collect(),
        }
    }

    /// All lines of a file.
    pub fn read(path: &Path) -> Result<Vec<Line>> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    pub fn place(&self) -> LatLon {
        LatLon::new(self.latitude, self.longitude).expect("on Earth")
    }

    /// Whether it can be located: other tiers show nothing, or nobody knows what.
    pub fn has_place(&self) -> bool {
        ["A", "rendered"].contains(&self.tier.as_str())
    }

    /// Findings with their probabilities: registered, or of the search alone.
    pub fn findings(&self, odds: &Odds, registered: bool) -> Vec<Finding> {
        let of_search =
            |seen: &Seen| Finding { result: seen.result(), registration: None, probability: 0.0 };
        let of_registration = |found: &Found| {
            let Found(seen, likeness) = found;
            let result = seen.result();
            let middle = (seen.latitude, seen.longitude);
            let (heading_degrees, width_km) = (seen.heading, seen.width_km);
            let registration = Registration {
                found: Guess { middle, heading_degrees, width_km },
                stretch: Stretch { factor: 1.0, bearing_degrees: 0.0 },
                corners: [middle; 4],
                likeness: *likeness,
            };
            Finding { result, registration: Some(registration), probability: 0.0 }
        };
        let findings = match registered {
            true => self.results.iter().map(of_registration).collect(),
            false => self.searched.iter().map(of_search).collect(),
        };
        weighed(findings, odds, |_| 0.0)
    }

    pub fn answer(&self, settings: &AtlasSettings, registered: bool, surveyed: bool) -> Answer {
        let findings = self.findings(&settings.odds, registered);
        let least = match registered {
            true => settings.least_probability,
            false => settings.least_search_probability,
        };
        let best = findings.first().filter(|best| best.probability >= least);
        let truth = self.place();
        let density = best.map(|_| density(&findings, &settings.errors));
        Answer {
            name: self.name.clone(),
            set: self.set.clone(),
            width_km: self.width_km,
            distance_km: best.map_or(FARTHEST_KM, |best| best.middle().distance_km(truth)),
            accepted: density.as_ref().map(|density| density.log_density(truth)),
            outcome: density.filter(|_| surveyed).map(|density| density.survey().outcome(truth)),
        }
    }
}

/// What a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Tunes,
    Reports,
    /// It shows some of the ground of one that tunes.
    Neither,
}

/// The parts of all real views: of the Astro Pi pass the first half tunes, of the GOES sectors the first two by name.
pub fn parts_of_real(lines: &[Line]) -> Vec<Part> {
    let frame = |line: &Line| -> Option<u32> {
        (line.set == "astropi2020").then(|| line.name.split(['_', '.']).nth(1)?.parse().ok())?
    };
    let of_tier_a = lines.iter().filter(|line| line.tier == "A");
    let mut frames: Vec<u32> = of_tier_a.filter_map(frame).collect();
    frames.sort_unstable();
    let last = frames[frames.len() / 2 - 1];
    let part = |line: &Line| match (line.set.as_str(), frame(line)) {
        ("astropi2020", Some(frame)) if frame <= last => Part::Tunes,
        ("astropi2020", Some(frame)) if frame == last + 1 => Part::Neither,
        ("goes19", _) if ["_ne", "_nr"].iter().any(|name| line.name.contains(name)) => Part::Tunes,
        _ => Part::Reports,
    };
    lines.iter().map(part).collect()
}

/// Every fourth picture of other things tunes.
pub fn part_of_other(at: usize) -> Part {
    if at.is_multiple_of(4) { Part::Tunes } else { Part::Reports }
}
