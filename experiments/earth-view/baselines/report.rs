//! Tables of the committed predictions.

use std::path::Path;

use anyhow::{Context, Result};
use locdiff_experiments::baselines::Method;
use locdiff_experiments::round;
use locdiff_sphere::{Interval, LatLon, PointScores, Resampling, Score, UNIFORM_NLL_NATS};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::predictions::{Prediction, Predictions};
use crate::views::SETS;

const RADII_KM: [f64; 4] = [25.0, 200.0, 750.0, 2500.0];
/// At which we want to be first.
const GOAL_KM: [f64; 3] = [200.0, 750.0, 2500.0];
const LEVELS: [f64; 3] = [0.5, 0.8, 0.9];

/// One method on one set.
struct Row {
    method: Method,
    points: PointScores,
    nlls: Score,
    levels: Vec<f64>,
}

impl Row {
    fn within(&self, radius_km: f64) -> f64 {
        100.0 * self.points.accuracy(radius_km).value()
    }
}

pub fn report(folder: &Path) -> Result<()> {
    let predictions = Predictions::read(&folder.join("predictions.npy"))?;
    let fits: Value = serde_json::from_slice(&std::fs::read(folder.join("fits.json"))?)?;
    println!("# Baselines on the embeddings of earth-view\n");
    println!(
        "{} rendered training views (not photographs); each trained method had {} seconds of one core, after {} learning rates were tried with {} of that each. \
         Rate, sharpness (or kernel), uniform share and the rule for one place were fitted for all alike on {} other views of the unseen source, \
         from the white squares of a chess board of 15°; its black squares are the test. 95 % bootstrap intervals. NLL in nats per steradian; uniform: {UNIFORM_NLL_NATS:.2}.\n",
        fits["training_views"],
        fits["seconds"],
        fits["rates"].as_array().map_or(0, Vec::len),
        fits["tuning_share"],
        fits["calibration_views"],
    );
    let mut figures = Value::Null;
    for (number, (name, ..)) in SETS.iter().enumerate() {
        let rows = rows_of(&predictions, number)?;
        println!("## {name}: n = {}\n", rows[0].points.len());
        table(&rows, &fits);
        if number == 0 {
            figures = compare(&rows)?;
        }
        println!();
    }
    how(&fits);
    println!("\n{figures}");
    Ok(())
}

fn rows_of(predictions: &Predictions, set: usize) -> Result<Vec<Row>> {
    let of_set: Vec<usize> =
        (0..predictions.truths.len()).filter(|k| predictions.truths[*k].set == set).collect();
    let truths: Vec<LatLon> = of_set.iter().map(|k| predictions.truths[*k].place).collect();
    let methods = Method::ALL.iter().zip(&predictions.methods);
    methods
        .map(|(method, all)| {
            let rows: Vec<Prediction> = of_set.iter().map(|k| all[*k]).collect();
            let places: Vec<LatLon> = rows.iter().map(|row| row.place).collect();
            Ok(Row {
                method: *method,
                points: PointScores::of(&places, &truths)?,
                nlls: Score::mean(rows.iter().map(|row| row.nll_nats).collect())?,
                levels: rows.iter().map(|row| row.level).collect(),
            })
        })
        .collect()
}

fn interval(score: &Score) -> Interval {
    score.interval(&Resampling::default(), &mut ChaCha8Rng::seed_from_u64(5))
}

fn table(rows: &[Row], fits: &Value) {
    print!("| method | steps | ");
    RADII_KM.iter().for_each(|radius| print!("≤ {radius} km, % | "));
    println!("median km | NLL | 50 / 80 / 90 % regions hold | ms per view |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for row in rows {
        let fit = &fits["methods"][row.method.name()];
        print!("| {} | {} | ", row.method.name(), fit["steps"]);
        for radius in RADII_KM {
            let Interval { estimate, low, high, .. } = interval(&row.points.accuracy(radius));
            print!("{:.1} ({:.1}–{:.1}) | ", 100.0 * estimate, 100.0 * low, 100.0 * high);
        }
        let nll = interval(&row.nlls);
        let held = |level: &f64| {
            let count = row.levels.iter().filter(|of_truth| *of_truth <= level).count();
            format!("{:.0}", 100.0 * count as f64 / row.levels.len() as f64)
        };
        let measured = row.levels.iter().all(|level| level.is_finite());
        let held: Vec<String> = LEVELS.iter().map(held).collect();
        let held = if measured { held.join(" / ") } else { "not measured".to_owned() };
        println!(
            "{:.0} | {:.2} ({:.2}–{:.2}) | {held} | {} |",
            row.points.median_km().value(),
            nll.estimate,
            nll.low,
            nll.high,
            fit["ms_per_view"],
        );
    }
}

/// Ours against the best of the others, by each measure, view by view.
fn compare(rows: &[Row]) -> Result<Value> {
    let (ours, peers) = rows.split_first().context("no methods")?;
    anyhow::ensure!(ours.method == Method::Harmonics, "ours comes first");
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let options = Resampling::default();
    let mut figures = json!({ "n": ours.points.len() });
    println!("\nOurs against the best of the others, view by view:\n");
    println!("| | ours | best other | which | difference | p |\n|---|---|---|---|---|---|");
    let mut first = true;
    for radius in GOAL_KM {
        let best = peers.iter().max_by(|a, b| a.within(radius).total_cmp(&b.within(radius)));
        let best = best.context("no peers")?;
        let (a, b) = (ours.points.accuracy(radius), best.points.accuracy(radius));
        let comparison = a.compared_with(&b, &options, &mut rng)?;
        let Interval { estimate, low, high, .. } = comparison.difference;
        println!(
            "| ≤ {radius} km, % | {:.1} | {:.1} | {} | {:+.1} ({:+.1} to {:+.1}) | {:.4} |",
            ours.within(radius),
            best.within(radius),
            best.method.name(),
            100.0 * estimate,
            100.0 * low,
            100.0 * high,
            comparison.p_value
        );
        first &= ours.within(radius) >= best.within(radius);
        figures[format!("ours_within_{radius}")] = json!(round(ours.within(radius)));
        figures[format!("best_peer_within_{radius}")] = json!(round(best.within(radius)));
        if radius == GOAL_KM[0] {
            figures["best_peer"] = json!(best.method.name());
        }
    }
    let best = peers.iter().min_by(|a, b| a.nlls.value().total_cmp(&b.nlls.value()));
    let best = best.context("no peers")?;
    let comparison = ours.nlls.compared_with(&best.nlls, &options, &mut rng)?;
    let Interval { estimate, low, high, .. } = comparison.difference;
    println!(
        "| NLL | {:.3} | {:.3} | {} | {estimate:+.3} ({low:+.3} to {high:+.3}) | {:.4} |",
        ours.nlls.value(),
        best.nlls.value(),
        best.method.name(),
        comparison.p_value
    );
    first &= ours.nlls.value() <= best.nlls.value();
    figures["ours_nll"] = json!(round(ours.nlls.value()));
    figures["best_peer_nll"] = json!(round(best.nlls.value()));
    figures["best_peer_by_nll"] = json!(best.method.name());
    figures["first_everywhere"] = json!(first);
    Ok(figures)
}

fn how(fits: &Value) {
    println!("## How each was fitted and read\n");
    println!(
        "| method | rate | NLL of the rates tried | sharpness or kernel | uniform share, % | place | density |"
    );
    println!("|---|---|---|---|---|---|---|");
    for method in Method::ALL {
        let fit = &fits["methods"][method.name()];
        let text = |key: &str| fit[key].as_str().unwrap_or_default().to_owned();
        let rates: Vec<String> = fit["nll_by_rate"]
            .as_array()
            .map(|rates| rates.iter().map(Value::to_string).collect())
            .unwrap_or_default();
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            method.name(),
            fit["rate"],
            rates.join(" / "),
            text("shape"),
            fit["uniform_percent"],
            text("rule"),
            text("density"),
        );
    }
}
