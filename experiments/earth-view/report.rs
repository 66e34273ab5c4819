//! The tables and figures of committed findings: how the answers of the built-in settings fare on them.

use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::path::Path;

use anyhow::{Context, Result};
use locdiff::models::earth_view::{Atlas, AtlasSettings, Finding, SearchResult, density, weighed};
use locdiff_earth::{Guess, Registration, Stretch};
use locdiff_experiments::round;
use locdiff_sphere::{DensityOutcome, DensityScores, EARTH_RADIUS_KM, LatLon, UNIFORM_NLL_NATS};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::search::KnownView;

/// As far as two places can be apart. A rejected picture counts as this far off.
const FARTHEST_KM: f64 = PI * EARTH_RADIUS_KM;

/// What was found for a view whose place is known: a line of a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    pub name: String,
    pub set: String,
    pub tier: String,
    latitude: f64,
    longitude: f64,
    width_km: f64,
    search_s: f64,
    all_s: f64,
    /// Of the search alone, if the place is among its results.
    rank: Option<usize>,
    results: Vec<Found>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Found {
    deviations: f64,
    latitude: f64,
    longitude: f64,
    heading: f64,
    width_km: f64,
    likeness: f64,
}

impl Line {
    /// What an atlas finds.
    pub fn of(view: &KnownView, atlas: &Atlas) -> Line {
        let began = std::time::Instant::now();
        let searched = atlas.find(&view.photo, false, |_| true);
        let search_s = began.elapsed().as_secs_f64();
        let findings = atlas.find(&view.photo, true, |_| true);
        let all_s = began.elapsed().as_secs_f64() - search_s;
        let is_right =
            |one: &Finding| one.result.middle.distance_km(view.place) < 0.3 * view.width_km;
        let shorter = |number: f64, to: f64| (number * to).round() / to;
        let found = |finding: &Finding| {
            let of = finding.registration.as_ref()?;
            Some(Found {
                deviations: shorter(finding.result.deviations, 1e3),
                latitude: shorter(of.found.middle.0, 1e4),
                longitude: shorter(of.found.middle.1, 1e4),
                heading: shorter(of.found.heading_degrees, 10.0),
                width_km: shorter(of.found.width_km, 10.0),
                likeness: shorter(of.likeness, 1e4),
            })
        };
        Line {
            name: view.name.clone(),
            set: view.set.clone(),
            tier: view.tier.clone(),
            latitude: view.place.latitude(),
            longitude: view.place.longitude(),
            width_km: view.width_km,
            search_s: shorter(search_s, 1e3),
            all_s: shorter(all_s, 1e3),
            rank: searched.iter().position(is_right),
            results: findings.iter().filter_map(found).collect(),
        }
    }

    fn place(&self) -> LatLon {
        LatLon::new(self.latitude, self.longitude).expect("on Earth")
    }

    fn answer(&self, settings: &AtlasSettings) -> Answer {
        let finding = |found: &Found| {
            let middle = (found.latitude, found.longitude);
            let result = SearchResult {
                middle: LatLon::new(middle.0, middle.1).expect("on Earth"),
                heading_degrees: found.heading,
                width_km: found.width_km,
                likeness: 0.0,
                deviations: found.deviations,
            };
            let guess = Guess { middle, heading_degrees: found.heading, width_km: found.width_km };
            let registration = Registration {
                found: guess,
                stretch: Stretch { factor: 1.0, bearing_degrees: 0.0 },
                corners: [middle; 4],
                likeness: found.likeness,
            };
            Finding { result, registration: Some(registration), probability: 0.0 }
        };
        let findings = weighed(self.results.iter().map(finding).collect(), &settings.odds);
        let best = findings.first().filter(|best| best.probability >= settings.least_probability);
        let truth = self.place();
        Answer {
            set: self.set.clone(),
            width_km: self.width_km,
            distance_km: best.map_or(FARTHEST_KM, |best| best.middle().distance_km(truth)),
            accepted: best.map(|_| density(&findings, &settings.errors).survey().outcome(truth)),
        }
    }
}

struct Answer {
    set: String,
    width_km: f64,
    distance_km: f64,
    accepted: Option<DensityOutcome>,
}

fn read(folder: &Path, name: &str) -> Result<Vec<Line>> {
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Whether a real view of tier A is for tuning: of the Astro Pi pass the first half, of the GOES sectors the first two by
/// name.
fn is_tuning(line: &Line, last_frame: u32) -> bool {
    let part = line.name.split(['_', '.']).nth(1).unwrap_or_default();
    match line.set.as_str() {
        "astropi2020" => part.parse::<u32>().is_ok_and(|frame| frame <= last_frame),
        "goes19" => ["ne", "nr"].contains(&part),
        _ => false,
    }
}

fn reporting(lines: Vec<Line>) -> Vec<Line> {
    let mut frames: Vec<u32> = lines
        .iter()
        .filter(|line| line.set == "astropi2020" && line.tier == "A")
        .filter_map(|line| line.name.split(['_', '.']).nth(1)?.parse().ok())
        .collect();
    frames.sort_unstable();
    let last = frames[frames.len() / 2 - 1];
    // The next frame shows some of the same ground as the last one that tunes.
    let overlaps =
        |line: &Line| line.set == "astropi2020" && line.name.contains(&format!("_{}.", last + 1));
    lines
        .into_iter()
        .filter(|line| line.tier == "A" && !is_tuning(line, last) && !overlaps(line))
        .collect()
}

/// Prints the tables; the last line is all figures as JSON.
pub fn report(folder: &Path) -> Result<()> {
    let settings: AtlasSettings =
        serde_json::from_slice(&std::fs::read(folder.join("settings.json"))?)?;
    let mut figures = Map::new();
    println!(
        "| views | n | rejected, % | ≤ 25 km, % | ≤ 200 km, % | median of the accepted, km | nats over uniform | truth in the 90 % region, of the accepted |\n|---|---|---|---|---|---|---|---|"
    );
    let mut footprints = Vec::new();
    let answers = |lines: &[Line]| -> Vec<Answer> {
        lines.iter().map(|line| line.answer(&settings)).collect()
    };
    for (file, prefix) in [("real-built.jsonl", "real"), ("real.jsonl", "shipped_real")] {
        let Ok(lines) = read(folder, file) else { continue };
        let lines = reporting(lines);
        let all = answers(&lines);
        row(&format!("**real, tier A, reporting half** ({file})"), &all, prefix, &mut figures)?;
        let mut sets: BTreeMap<String, Vec<Answer>> = BTreeMap::new();
        for answer in answers(&lines) {
            sets.entry(answer.set.clone()).or_default().push(answer);
        }
        for (set, of_set) in sets {
            row(
                &format!("real, {set} ({file})"),
                &of_set,
                &format!("{prefix}_{set}"),
                &mut figures,
            )?;
        }
        if prefix == "shipped_real" {
            footprints.extend(all);
        }
    }
    for (file, prefix) in [("three-globe.jsonl", "unseen"), ("january.jsonl", "january")] {
        let Ok(lines) = read(folder, file) else { continue };
        let all = answers(&lines);
        row(&format!("*rendered*, {file}"), &all, prefix, &mut figures)?;
        footprints.extend(all);
    }
    let nothing = read(folder, "real.jsonl")?.into_iter().filter(|line| line.tier == "N");
    let nothing: Vec<Line> = nothing.chain(read(folder, "other.jsonl")?).collect();
    let accepted = nothing.iter().filter(|line| line.answer(&settings).accepted.is_some()).count();
    figures.insert("false_accept".to_owned(), share(accepted, nothing.len()));
    figures.insert("false_accept_n".to_owned(), json!(nothing.len()));
    let accepted: Vec<&Answer> =
        footprints.iter().filter(|answer| answer.accepted.is_some()).collect();
    let wrong = accepted.iter().filter(|answer| answer.distance_km > 0.5 * answer.width_km).count();
    figures.insert("footprint_n".to_owned(), json!(accepted.len()));
    figures.insert("footprint_wrong".to_owned(), share(wrong, accepted.len()));
    let distances = accepted.iter().map(|answer| answer.distance_km).collect();
    figures.insert("footprint_median_km".to_owned(), json!(median(distances).map(round)));
    println!("\n{}", Value::Object(figures));
    Ok(())
}

fn share(count: usize, of: usize) -> Value {
    json!(round(100.0 * count as f64 / of.max(1) as f64))
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

fn row(
    name: &str,
    answers: &[Answer],
    prefix: &str,
    figures: &mut Map<String, Value>,
) -> Result<()> {
    let n = answers.len();
    let within =
        |km: f64| share(answers.iter().filter(|answer| answer.distance_km <= km).count(), n);
    let outcomes: Vec<DensityOutcome> =
        answers.iter().filter_map(|answer| answer.accepted).collect();
    // A rejected view has a uniform density, and gains nothing.
    let gained: f64 = outcomes.iter().map(|outcome| UNIFORM_NLL_NATS - outcome.nll_nats).sum();
    let accepted = answers.iter().filter(|answer| answer.accepted.is_some());
    let (coverage, low, high) = if outcomes.is_empty() {
        (Value::Null, Value::Null, Value::Null)
    } else {
        let share = DensityScores::of(&outcomes)?.coverage(0.9).value();
        let [low, high] = wilson(share, outcomes.len());
        (json!(round(100.0 * share)), json!(round(100.0 * low)), json!(round(100.0 * high)))
    };
    let mut set = |name: &str, value: Value| {
        figures.insert(format!("{prefix}_{name}"), value);
    };
    set("n", json!(n));
    set("rejected", share(n - outcomes.len(), n));
    set("within_25", within(25.0));
    set("within_200", within(200.0));
    set(
        "median_km",
        json!(median(answers.iter().map(|answer| answer.distance_km).collect()).map(round)),
    );
    set("nll_gain", json!(round(gained / n as f64)));
    set("coverage_90", coverage.clone());
    set("coverage_low", low.clone());
    set("coverage_high", high.clone());
    let of_accepted = median(accepted.map(|answer| answer.distance_km).collect());
    println!(
        "| {name} | {n} | {} | {} | {} | {} | {:.1} | {coverage} ({low}–{high}) of {} |",
        share(n - outcomes.len(), n),
        within(25.0),
        within(200.0),
        of_accepted.map_or("–".to_owned(), |km| format!("{km:.1}")),
        gained / n as f64,
        outcomes.len(),
    );
    Ok(())
}

/// Wilson's 95 % interval of a share.
fn wilson(share: f64, n: usize) -> [f64; 2] {
    let (n, z) = (n as f64, 1.96);
    let middle = share + z * z / (2.0 * n);
    let reach = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    [(middle - reach) / (1.0 + z * z / n), (middle + reach) / (1.0 + z * z / n)]
}
