//! The tables and figures of committed findings: how the answers of the built-in settings fare on them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use locdiff::models::earth_view::AtlasSettings;
use locdiff_experiments::round;
use locdiff_sphere::{DensityOutcome, DensityScores, UNIFORM_NLL_NATS};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::findings::{Answer, Line, Part, part_of_other, parts_of_real};
use crate::timing;

/// What is inside the program of this model.
const SHIPPED: &str = "crates/locdiff/models/earth-view";

/// Prints the tables; the last line is all figures as JSON.
pub fn report(folder: &Path) -> Result<()> {
    let settings: AtlasSettings =
        serde_json::from_slice(&std::fs::read(folder.join("settings.json"))?)?;
    let mut figures = Map::new();
    print!("{}", std::fs::read_to_string(folder.join("head.md"))?);
    println!(
        "| views | n | rejected, % | ≤ 25 km, % | ≤ 200 km, % | median of the accepted, km | nats over uniform | truth in the 90 % region, of the accepted |\n|---|---|---|---|---|---|---|---|"
    );
    let mut footprints = Vec::new();
    let answers = |lines: &[Line], registered: bool, surveyed: bool| -> Vec<Answer> {
        lines.par_iter().map(|line| line.answer(&settings, registered, surveyed)).collect()
    };
    for (file, prefix) in [("real-built.jsonl", "real"), ("real.jsonl", "shipped_real")] {
        let Ok(lines) = Line::read(&folder.join(file)) else { continue };
        let parts = parts_of_real(&lines);
        let reports = |(line, part): (Line, Part)| {
            (part == Part::Reports && line.tier == "A").then_some(line)
        };
        let lines: Vec<Line> = lines.into_iter().zip(parts).filter_map(reports).collect();
        let all = answers(&lines, true, true);
        row(&format!("**real, tier A, reporting half** ({file})"), &all, prefix, &mut figures)?;
        let mut sets: BTreeMap<String, Vec<Answer>> = BTreeMap::new();
        for answer in &all {
            sets.entry(answer.set.clone()).or_default().push(answer.clone());
        }
        for (set, of_set) in sets {
            let name = format!("real, {set} ({file})");
            row(&name, &of_set, &format!("{prefix}_{set}"), &mut figures)?;
        }
        let name = format!("real, search alone ({file})");
        row(&name, &answers(&lines, false, false), &format!("{prefix}_search"), &mut figures)?;
        footprints.extend(all);
    }
    for set in ["astropi2020", "goes19"] {
        if let Some(share) = figures.get(&format!("real_{set}_within_200")).cloned() {
            figures.insert(format!("real_within_200_{set}"), share);
        }
    }
    for (file, prefix) in [
        ("three-globe.jsonl", "unseen"),
        ("january.jsonl", "january"),
        ("flightgear.jsonl", "flightgear"),
    ] {
        let Ok(lines) = Line::read(&folder.join(file)) else { continue };
        let all = answers(&lines, true, prefix == "unseen");
        row(&format!("*rendered*, {file}"), &all, prefix, &mut figures)?;
        let name = format!("*rendered*, search alone ({file})");
        row(&name, &answers(&lines, false, false), &format!("{prefix}_search"), &mut figures)?;
        footprints.extend(all);
    }
    let real = Line::read(&folder.join("real.jsonl"))?;
    let parts = parts_of_real(&real);
    let nothing = real.into_iter().zip(parts);
    let nothing = nothing.filter(|(line, part)| line.tier == "N" && *part == Part::Reports);
    let (fitted, other): (Vec<_>, Vec<_>) = Line::read(&folder.join("other.jsonl"))?
        .into_iter()
        .enumerate()
        .partition(|(at, _)| part_of_other(*at) == Part::Tunes);
    let is_accepted = |line: &Line| line.answer(&settings, true, false).accepted.is_some();
    let accepted = fitted.iter().filter(|(_, line)| is_accepted(line)).count();
    figures.insert("fitted_false_accept".to_owned(), share(accepted, fitted.len()));
    figures.insert("fitted_false_accept_n".to_owned(), json!(fitted.len()));
    let nothing: Vec<Line> =
        nothing.map(|(line, _)| line).chain(other.into_iter().map(|(_, line)| line)).collect();
    for (registered, name) in [(true, "false_accept"), (false, "search_false_accept")] {
        let accepted: Vec<&Line> = nothing
            .iter()
            .filter(|line| line.answer(&settings, registered, false).accepted.is_some())
            .collect();
        figures.insert(name.to_owned(), share(accepted.len(), nothing.len()));
        if registered {
            let names: Vec<&str> = accepted.iter().map(|line| line.name.as_str()).collect();
            println!("\nAccepted, though they show nothing that can be located: {names:?}");
        }
    }
    figures.insert("false_accept_n".to_owned(), json!(nothing.len()));
    for (file, prefix) in
        [("astronaut-built.jsonl", "astronaut"), ("astronaut.jsonl", "shipped_astronaut")]
    {
        let Ok(lines) = Line::read(&folder.join(file)) else { continue };
        let all = answers(&lines, true, false);
        let accepted = || all.iter().filter(|answer| answer.accepted.is_some());
        let near = accepted().filter(|answer| answer.distance_km <= 200.0).count();
        let found: Vec<String> = accepted()
            .map(|answer| format!("{} ({:.0} km off)", answer.name, answer.distance_km))
            .collect();
        println!(
            "\nPhotographs by astronauts, by hand, most of them narrower than the gallery ({file}): {} of {} accepted, {near} of these within 200 km. {}",
            found.len(),
            all.len(),
            found.join(", ")
        );
        figures.insert(format!("{prefix}_n"), json!(all.len()));
        figures.insert(format!("{prefix}_accepted"), json!(accepted().count()));
        figures.insert(format!("{prefix}_accepted_within_200"), json!(near));
    }
    let accepted: Vec<&Answer> =
        footprints.iter().filter(|answer| answer.accepted.is_some()).collect();
    let wrong: Vec<&str> = accepted
        .iter()
        .filter(|answer| answer.distance_km > 0.5 * answer.width_km)
        .map(|answer| answer.name.as_str())
        .collect();
    println!("\nFootprints that are wrong by more than half of their width: {}", wrong.join(", "));
    figures.insert("footprint_n".to_owned(), json!(accepted.len()));
    figures.insert("footprint_wrong".to_owned(), share(wrong.len(), accepted.len()));
    let distances = accepted.iter().map(|answer| answer.distance_km).collect();
    figures.insert("footprint_median_km".to_owned(), json!(median(distances).map(round)));
    print_prior(&folder.join("prior.jsonl"))?;
    let mut shipped = 0;
    for entry in std::fs::read_dir(SHIPPED)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "bin" || kind == "safetensors") {
            shipped += path.metadata()?.len();
        }
    }
    figures.insert("shipped_mb".to_owned(), json!(round(shipped as f64 / 1e6)));
    timing::measure(&mut figures)?;
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
        answers.iter().filter_map(|answer| answer.outcome).collect();
    // A rejected view has a uniform density, and gains nothing.
    let accepted: Vec<&Answer> =
        answers.iter().filter(|answer| answer.accepted.is_some()).collect();
    let gained: f64 = accepted
        .iter()
        .filter_map(|answer| answer.accepted)
        .map(|log| log + UNIFORM_NLL_NATS)
        .sum();
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
    set("rejected", share(n - accepted.len(), n));
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
    let of_accepted = median(accepted.iter().map(|answer| answer.distance_km).collect());
    println!(
        "| {name} | {n} | {} | {} | {} | {} | {:.1} | {} |",
        share(n - accepted.len(), n),
        within(25.0),
        within(200.0),
        of_accepted.map_or("–".to_owned(), |km| format!("{km:.1}")),
        gained / n as f64,
        if outcomes.is_empty() {
            format!("– of {}", accepted.len())
        } else {
            format!("{coverage} ({low}–{high}) of {}", outcomes.len())
        },
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

/// What `experiments/earth-view/prior` found.
fn print_prior(path: &Path) -> Result<()> {
    println!(
        "\nA LocDiff as prior (`experiments/earth-view/prior`, measured once), real views of the reporting half, one seed; gains are nats over uniform. It is left out.\n\n\
         | rendered views with real clouds | n | steps in 8 shared minutes | ≤ 200 km, % | ≤ 750 km, % | ≤ 2500 km, % | its own gain | product without it | in place of the uniform rest | as a weight of places too |\n\
         |---|---|---|---|---|---|---|---|---|---|"
    );
    for line in std::fs::read_to_string(path)?.lines() {
        let found: Value = serde_json::from_str(line)?;
        let cells = [
            "views",
            "n",
            "steps",
            "prior_own_within_200",
            "prior_own_within_750",
            "prior_own_within_2500",
            "prior_own_nll_gain",
            "without_prior_nll_gain",
            "prior_as_rest_nll_gain",
            "prior_nll_gain",
        ]
        .map(|key| found[key].to_string());
        println!("| {} |", cells.join(" | "));
    }
    Ok(())
}
