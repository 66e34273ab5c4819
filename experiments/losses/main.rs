//! The paper's ablation of the loss: L1, L2, cosine and its KL, and our likelihood.
//!
//! Measures what `experiments/objectives` committed: the same network, seconds and data for all. There
//! is nothing to train here; `--quick` and the full run are the same.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use locdiff_experiments::paper::{cells, config, shares, table_head};
use locdiff_experiments::{read_npy, round};
use locdiff_map::{Chart, Series};
use locdiff_sphere::{ACCURACY_RADII_KM, LatLon, PointScores};
use serde_json::{Value, json};

/// In the order of `experiments/objectives`: name, and the paper's row for photographs (quoted).
const RUNS: [(&str, &str); 7] = [
    ("reverse KL, anchors", "10.9 | 34.0 | 53.3 | 72.5 | 85.2"),
    ("reverse KL, transform", ""),
    ("likelihood, anchors", ""),
    ("likelihood, transform", ""),
    ("cosine", "7.5 | 32.2 | 53.0 | 71.5 | 84.9"),
    ("L1", "0.0 | 0.5 | 20.3 | 30.6 | 43.5"),
    ("L2", "0.0 | 0.7 | 20.1 | 32.7 | 44.9"),
];

fn main() -> Result<()> {
    let folder = Path::new("experiments/losses");
    let config = config(folder)?;
    let from = Path::new(config["from"].as_str().context("config.json doesn't say from where")?);
    let count = config["places"].as_u64().context("config.json doesn't say how many")? as usize;
    let values = read_npy(&from.join("predictions.npy"))?;
    ensure!(values.len() == 3 * count * (1 + RUNS.len()), "not the predictions of objectives");
    let about: Value = serde_json::from_slice(&std::fs::read(from.join("training.json"))?)?;
    let mut sets = values.chunks_exact(3 * count).map(|set| {
        let place = |row: &[f32]| Ok(LatLon::new(f64::from(row[0]), f64::from(row[1]))?);
        set.chunks_exact(3).map(place).collect::<Result<Vec<LatLon>>>()
    });
    let truths = sets.next().context("no truths")??;
    println!("# What to minimise\n");
    println!(
        "A simulation: {count} places of MP16, at least 1 km from each of {} training places, with made-up images; L = 23, one pass, mode; {} seconds of one core \
         for each loss, one seed. From the predictions of [objectives](../objectives/result.md). The paper's rows are for photographs at L = 47.\n",
        about["training_places"], about["runs"]["L2"]["seconds"],
    );
    println!("{}", table_head("loss | steps", "median km"));
    let mut figures = json!({ "n": count });
    let mut chart = Chart::new("radius, km", "test places, %")
        .log_x()
        .y_range(0.0..=100.0)
        .title("Losses on one network, 300 seconds each")
        .caption("A simulation: it compares losses, and says nothing about photographs.");
    for ((name, _), places) in RUNS.iter().zip(sets) {
        let places = places?;
        let of_loss = shares(&places, &truths)?;
        let median_km = PointScores::of(&places, &truths)?.median_km().value();
        let steps = &about["runs"][*name]["steps"];
        println!("| {name} | {steps} | {} | {median_km:.0} |", cells(&of_loss));
        let key = name.replace([',', ' '], "_").replace("__", "_").to_lowercase();
        figures[format!("{key}_within_200")] = json!(round(of_loss[2]));
        let points = ACCURACY_RADII_KM.into_iter().zip(of_loss);
        chart = chart.series(Series::points(*name, points).joined());
    }
    println!("\nWhat the paper reports (quoted):\n\n{}", table_head("loss", ""));
    for (name, row) in RUNS.iter().filter(|run| !run.1.is_empty()) {
        println!("| {name} | {row} |");
    }
    std::fs::write(folder.join("losses.png"), chart.draw().png())?;
    println!("\n![accuracy by radius](losses.png)\n");
    println!("{}", std::fs::read_to_string(folder.join("reading.md"))?.trim());
    println!("\n{figures}");
    Ok(())
}
