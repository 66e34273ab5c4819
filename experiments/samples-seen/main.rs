//! Accuracy against samples seen: the paper says that LocDiff needs 2 million steps where Riemannian
//! flow matching needs 10 million.
//!
//! LocDiff as published, ours, and Riemannian flow matching (all of `locdiff_experiments::baselines`) learn
//! from made-up images of MP16 places and answer places of Im2GPS3k (see `paper.rs`). Every point is a
//! training of its own that ends with a falling rate, so short trainings aren't cut off. `--quick`
//! scores the committed answers.

use std::path::Path;

use anyhow::{Context, Result};
use locdiff_experiments::baselines::{Calibration, FitOptions, Method, Rule};
use locdiff_experiments::paper::{
    Answers, IMAGES_PER_PLACE, Task, cells, commit, config, shares, step_clock, table_head,
    whole_numbers,
};
use locdiff_experiments::{round, thread_seconds};
use locdiff_map::{Chart, Panels, Series};
use locdiff_sphere::LatLon;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const METHODS: [(&str, Method); 3] = [
    ("ours", Method::Harmonics),
    ("published", Method::Published),
    ("riemannian flow", Method::RiemannianFlow),
];

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let folder = Path::new("experiments/samples-seen");
    match std::env::args().nth(1).as_deref() {
        Some("--quick") => {}
        Some("--train") => {
            let config = config(folder)?;
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
            pool.install(|| fit_all(folder, &config))?;
        }
        _ => anyhow::bail!("--quick, or --train"),
    }
    report(folder)
}

fn fit_all(folder: &Path, config: &Value) -> Result<()> {
    let task = Task::build()?;
    let whole =
        |key: &str| Ok::<_, anyhow::Error>(config[key].as_u64().context(key.to_owned())? as usize);
    let (tuning, every, batch) = (whole("tuning")?, whole("every")?, whole("batch")?);
    let width = task.simulation.width;
    let test: Vec<usize> = (0..task.test.places.len()).step_by(every).collect();
    let truths: Vec<LatLon> = test.iter().map(|k| task.test.places[*k]).collect();
    let images: Vec<f32> = test
        .iter()
        .flat_map(|k| task.test.conditions[k * width..(k + 1) * width].iter().copied())
        .collect();
    // What sharpness and rule are chosen by: places of MP16 that neither train nor test.
    let held_out = &task.simulation.test;
    let mut answers = Answers {
        truths,
        methods: Vec::new(),
        about: json!({ "commit": commit(), "training_places": task.training_places(), "images_per_place": IMAGES_PER_PLACE, "methods": [] }),
    };
    for entry in config["methods"].as_array().context("no methods")? {
        let key = entry["method"].as_str().context("no method")?;
        let (_, method) = METHODS.iter().find(|known| known.0 == key).context("unknown method")?;
        for steps in whole_numbers(&entry["steps"])? {
            let began = thread_seconds();
            let options = FitOptions {
                // The last question ends the training.
                seconds: steps as f64 + 1.0,
                rate: entry["rate"].as_f64().context("no rate")?,
                seed: 1,
                clock: step_clock,
            };
            let train = &task.simulation.train;
            let fitted = method.fit(&train.conditions, &train.places, &options);
            let seconds = thread_seconds() - began;
            let tuned = fitted.model.answers(&held_out.conditions[..tuning * width], 1);
            let shape = Calibration::fit(&tuned, &held_out.places[..tuning]).shape;
            let rule = Rule::fit(&tuned, &held_out.places[..tuning], shape);
            let places = fitted.model.answers(&images, 2);
            let places: Vec<LatLon> =
                places.iter().map(|answer| answer.place(rule, shape)).collect();
            let within = shares(&places, &answers.truths)?;
            eprintln!("{key}, {} steps, {seconds:.0} s: {}", fitted.steps, cells(&within));
            answers.methods.push(places);
            let methods = answers.about["methods"].as_array_mut().context("a list")?;
            methods.push(json!({
                "name": method.name(),
                "steps": fitted.steps,
                "samples": fitted.steps * batch,
                "seconds": round(seconds),
            }));
            answers.write(folder)?;
        }
    }
    Ok(())
}

fn report(folder: &Path) -> Result<()> {
    let answers = Answers::read(folder)?;
    println!("# Accuracy against samples seen\n");
    println!(
        "A simulation: every fourth of Im2GPS3k's places (n = {}) with made-up images, {} training places (MP16; {} images each). Each row is a training of its own; sharpness and rule were \
         chosen on other places of MP16. Made from commit {}.\n",
        answers.truths.len(),
        answers.about["training_places"],
        answers.about["images_per_place"],
        answers.about["commit"].as_str().unwrap_or_default(),
    );
    println!("{}", table_head("method | steps | samples seen | training, s", "median km"));
    let mut curves: Vec<(String, Vec<(f64, [f64; 5])>)> = Vec::new();
    for k in 0..answers.methods.len() {
        let (name, about, within) =
            (answers.name(k), &answers.about["methods"][k], answers.shares(k)?);
        println!(
            "| {name} | {} | {} | {:.0} | {} | {:.0} |",
            about["steps"],
            about["samples"],
            about["seconds"].as_f64().unwrap_or(f64::NAN),
            cells(&within),
            answers.median_km(k)?,
        );
        if curves.last().is_none_or(|curve| curve.0 != name) {
            curves.push((name, Vec::new()));
        }
        let samples = about["samples"].as_f64().context("no samples")?;
        curves.last_mut().expect("one was pushed").1.push((samples, within));
    }
    let mut sheet = Panels::new().columns(2);
    for (k, radius) in [(2, 200), (3, 750)] {
        let mut chart = Chart::new("samples seen", format!("within {radius} km, %"))
            .log_x()
            .y_range(0.0..=100.0)
            .width_px(560)
            .height_px(420);
        for (name, points) in &curves {
            let points = points.iter().map(|(samples, within)| (*samples, within[k]));
            let short = name.split([':', ' ']).next().unwrap_or(name);
            chart = chart.series(Series::points(short, points).joined());
        }
        sheet = sheet.panel("", chart.draw());
    }
    let sheet = sheet
        .title("Accuracy against samples seen")
        .caption("A simulation: it compares methods, and says nothing about photographs.");
    std::fs::write(folder.join("samples-seen.png"), sheet.draw().png())?;
    println!("\n![accuracy against samples](samples-seen.png)\n");
    let flow = curves.last().context("no curves")?;
    let reached = flow.1.last().context("no points")?;
    let mut figures = json!({ "n": answers.truths.len() });
    for (k, radius) in [(2, 200), (3, 750), (4, 2500)] {
        println!(
            "The flow's best, {:.1} % within {radius} km after {} samples, is reached",
            reached.1[k], reached.0
        );
        for (name, points) in &curves[..curves.len() - 1] {
            let needed = samples_for(points, k, reached.1[k]);
            let key = name.split([':', ' ']).next().unwrap_or(name).to_lowercase();
            let factor = needed.map(|samples| reached.0 / samples);
            match needed {
                Some(samples) => println!(
                    "- by {name} after {samples:.0}: {:.1} times as soon;",
                    reached.0 / samples
                ),
                None => println!("- by {name} not within its longest training;"),
            }
            figures[format!("{key}_sooner_within_{radius}")] = json!(factor.map(round));
        }
        println!();
    }
    println!(
        "What the paper reports (quoted): about 2 million steps to converge on YFCC, where the best results of Riemannian flow matching took 10 million.\n"
    );
    println!("{}", std::fs::read_to_string(folder.join("reading.md"))?.trim());
    println!("\n{figures}");
    Ok(())
}

/// Samples at which a curve first reaches a share, between points by their logarithms.
fn samples_for(points: &[(f64, [f64; 5])], radius: usize, share: f64) -> Option<f64> {
    let first = points.iter().position(|point| point.1[radius] >= share)?;
    let (samples, reached) = (points[first].0, points[first].1[radius]);
    if first == 0 {
        return Some(samples);
    }
    let (before, low) = (points[first - 1].0, points[first - 1].1[radius]);
    Some(before * (samples / before).powf((share - low) / (reached - low)))
}
