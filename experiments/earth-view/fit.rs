//! Fits what evidence counts, by likelihood, on findings whose places are known.

use std::path::Path;

use anyhow::Result;
use locdiff::models::earth_view::{AtlasSettings, Odds};
use locdiff_earth::Random;

use crate::findings::{Line, Part, part_of_other, parts_of_real};

/// Of right places from known ones: so much, or a share of the width.
const RIGHT_KM: f64 = 25.0;
const RIGHT_SHARE: f64 = 0.08;
/// A search alone is right if it is this near.
const SEARCH_SHARE: f64 = 0.25;
const TRIES: usize = 3000;
/// Of a picture of other things: there are twice as many of them as of real views, and each is easily rejected.
const WEIGHT_OF_OTHER: f64 = 0.3;
/// Of a rendered view: there are three times as many of them.
const WEIGHT_OF_RENDERED: f64 = 0.5;
/// Nobody is surer than this after a few hundred views.
const LEAST_PROBABILITY: f64 = 1e-6;

/// Writes the odds in `settings.json` anew, from findings in the folder: the tuning parts of real views and of pictures of
/// other things, and rendered views of one mosaic.
pub fn fit(folder: &Path) -> Result<()> {
    let path = folder.join("settings.json");
    let mut settings: AtlasSettings = serde_json::from_slice(&std::fs::read(&path)?)?;
    let lines = tuning(folder)?;
    climb(&mut settings.odds, &lines, true, |odds, by| {
        odds.deviation = (odds.deviation + 0.2 * by[0]).max(0.0);
        odds.margin = (odds.margin + 0.15 * by[1]).max(0.0);
        odds.none += 1.5 * by[2];
    });
    climb(&mut settings.odds, &lines, false, |odds, by| {
        odds.search_deviation = (odds.search_deviation + 0.3 * by[0]).max(0.0);
        odds.search_none += 1.5 * by[1];
    });
    let odds = &mut settings.odds;
    for number in [
        &mut odds.deviation,
        &mut odds.margin,
        &mut odds.none,
        &mut odds.search_deviation,
        &mut odds.search_none,
    ] {
        *number = (*number * 1e3).round() / 1e3;
    }
    eprintln!("{} pictures: {odds:?}", lines.len());
    Ok(std::fs::write(path, serde_json::to_string_pretty(&settings)? + "\n")?)
}

/// Writes the error of the search's places in `settings.json` anew: the standard deviation per axis, as a share of the width, of
/// first results that are right, of the rendered views that tune, rounded up to a hundredth. Prints that of other sets beside it.
pub fn errors(folder: &Path) -> Result<()> {
    let path = folder.join("settings.json");
    let mut settings: AtlasSettings = serde_json::from_slice(&std::fs::read(&path)?)?;
    let share = |lines: &[Line]| -> (f64, usize) {
        let shares: Vec<f64> = lines
            .iter()
            .filter_map(Line::search_error)
            .filter(|share| *share < SEARCH_SHARE)
            .collect();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        ((0.5 * squares / shares.len() as f64).sqrt(), shares.len())
    };
    for name in ["real", "flightgear", "three-globe", "january"] {
        let (share, n) = share(&Line::read(&folder.join(format!("{name}.jsonl")))?);
        eprintln!("{name}: {share:.4} of the width, n {n}");
        if name == "flightgear" {
            settings.errors.search_share = (100.0 * share).ceil() / 100.0;
        }
    }
    Ok(std::fs::write(path, serde_json::to_string_pretty(&settings)? + "\n")?)
}

/// Findings that the settings are fitted to, with their weights.
fn tuning(folder: &Path) -> Result<Vec<(Line, f64)>> {
    let real = Line::read(&folder.join("real.jsonl"))?;
    let parts = parts_of_real(&real);
    let real = real.into_iter().zip(parts).filter(|(_, part)| *part == Part::Tunes);
    let other = Line::read(&folder.join("other.jsonl"))?.into_iter().enumerate();
    let other = other.filter(|(at, _)| part_of_other(*at) == Part::Tunes);
    let real = real.map(|(line, _)| (line, 1.0));
    let rendered = Line::read(&folder.join("flightgear.jsonl"))?.into_iter();
    let lines: Vec<(Line, f64)> = real
        .chain(other.map(|(_, line)| (line, WEIGHT_OF_OTHER)))
        .chain(rendered.map(|line| (line, WEIGHT_OF_RENDERED)))
        .collect();
    Ok(lines)
}

/// Keeps steps that make the known places likelier.
fn climb(
    odds: &mut Odds,
    lines: &[(Line, f64)],
    registered: bool,
    step: impl Fn(&mut Odds, [f64; 3]),
) {
    let mut random = Random::of_view(1, 0);
    let mut best = nats(odds, lines, registered);
    for _ in 0..TRIES {
        let scale = [0.1, 0.4, 1.0][(random.bits() % 3) as usize];
        let mut tried = *odds;
        step(&mut tried, std::array::from_fn(|_| scale * random.normal()));
        let value = nats(&tried, lines, registered);
        if value < best {
            (*odds, best) = (tried, value);
        }
    }
    eprintln!("{} nats per view, {}", best, if registered { "registered" } else { "searched" });
}

/// Mean nats of what is known under the odds.
fn nats(odds: &Odds, lines: &[(Line, f64)], registered: bool) -> f64 {
    let of_line = |(line, weight): &(Line, f64)| {
        let findings = line.findings(odds, registered);
        let reach_km = match registered {
            true => RIGHT_KM.max(RIGHT_SHARE * line.width_km),
            false => SEARCH_SHARE * line.width_km,
        };
        let is_right = |at: usize| {
            line.has_place() && findings[at].middle().distance_km(line.place()) < reach_km
        };
        let right: Vec<usize> = (0..findings.len()).filter(|at| is_right(*at)).collect();
        let probability = if right.is_empty() {
            1.0 - findings.iter().map(|finding| finding.probability).sum::<f64>()
        } else {
            right.iter().map(|at| findings[*at].probability).sum()
        };
        -weight * probability.max(LEAST_PROBABILITY).ln()
    };
    // Keeps what few views would make endlessly sharp.
    let sharp = if registered { odds.margin } else { odds.search_deviation };
    let weights: f64 = lines.iter().map(|(_, weight)| weight).sum();
    lines.iter().map(of_line).sum::<f64>() / weights + 1e-3 * sharp * sharp
}
