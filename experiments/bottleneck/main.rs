//! The paper's ablation of the bottleneck: the narrowest part of each module, at L = 31.
//!
//! The paper's objective and ours with widths of 32, 128 and none (the module's own). All see the same
//! number of made-up images of MP16 places and answer Im2GPS3k's places in one pass (see `paper.rs`).
//! The head has full rank, so that only the width differs. `--quick` scores the committed answers.

use std::path::Path;

use anyhow::{Context, Result};
use locdiff_experiments::paper::{
    Answers, STEPS, Task, Variant, answer_all, cells, ours, published, table_head, training_config,
};
use locdiff_experiments::round;
use locdiff_map::{Chart, Series};
use locdiff_sphere::ACCURACY_RADII_KM;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Width, percent by radius: quoted.
const PAPER: [(&str, &str); 2] =
    [("w = 32", "5.1 | 27.2 | 50.9 | 71.2 | 84.1"), ("w = 128", "4.7 | 27.0 | 50.2 | 70.8 | 84.3")];

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let folder = Path::new("experiments/bottleneck");
    let config = training_config(folder)?;
    match std::env::args().nth(1).as_deref() {
        Some("--quick") => {}
        Some("--train") => {
            let task = Task::build()?;
            answer_all(&task, &variants(&config, task.simulation.width)?, folder)?;
        }
        _ => anyhow::bail!("--quick, or --train"),
    }
    report(folder, &config)
}

fn variants(config: &Value, condition: usize) -> Result<Vec<Variant>> {
    let degree = config["degree"].as_u64().context("no degree")? as usize;
    let steps = STEPS;
    let mut variants = Vec::new();
    for width in config["widths"].as_array().context("no widths")? {
        // None: the module's own.
        let bottleneck = width["width"].as_u64().map(|width| width as usize);
        let rate = |key: &str| width[key].as_f64().with_context(|| format!("no {key}"));
        let name = bottleneck.map_or("full width".to_owned(), |width| format!("w = {width}"));
        variants.push(Variant {
            name: format!("as published, {name}"),
            config: published(degree, condition, bottleneck),
            steps,
            rates: vec![rate("rate_published")?],
        });
        let mut with_full_head = ours(degree, condition, bottleneck);
        with_full_head.denoiser.head_rank = None;
        variants.push(Variant {
            name: format!("ours, {name}"),
            config: with_full_head,
            steps,
            rates: vec![rate("rate_ours")?],
        });
    }
    Ok(variants)
}

fn report(folder: &Path, config: &Value) -> Result<()> {
    let answers = Answers::read(folder)?;
    println!("# Width of the bottleneck\n");
    println!(
        "A simulation: Im2GPS3k's places (n = {}) with made-up images, L = {}, one pass, mode. Each variant saw {} batches of 256 images of {} training places (MP16; {} images each), \
         one seed, the learning rate that was the better of two after 300 batches. Trained from commits {}.\n",
        answers.truths.len(),
        config["degree"],
        answers.about["methods"][0]["steps"],
        answers.about["training_places"],
        answers.about["images_per_place"],
        answers.commits(),
    );
    println!("{}", table_head("variant | parameters, M | training, s | rate", "median km"));
    let mut figures = json!({ "n": answers.truths.len() });
    let mut chart = Chart::new("radius, km", "test places, %")
        .log_x()
        .y_range(0.0..=100.0)
        .title("Width of the bottleneck, L = 31")
        .caption("A simulation: it compares variants, and says nothing about photographs.");
    let mut order: Vec<usize> = (0..answers.methods.len()).collect();
    order.sort_by_key(|k| answers.name(*k).starts_with("ours"));
    for k in order {
        let (name, about) = (answers.name(k), &answers.about["methods"][k]);
        let shares = answers.shares(k)?;
        println!(
            "| {name} | {:.1} | {:.0} | {} | {} | {:.0} |",
            about["parameters"].as_f64().unwrap_or(f64::NAN) / 1e6,
            about["seconds"].as_f64().unwrap_or(f64::NAN),
            about["rate"],
            cells(&shares),
            answers.median_km(k)?,
        );
        figures[format!("{}_within_200", name.replace([',', '='], "").replace(' ', "_"))] =
            json!(round(shares[2]));
        let points = ACCURACY_RADII_KM.into_iter().zip(shares);
        chart = chart.series(Series::points(name, points).joined());
    }
    std::fs::write(folder.join("bottleneck.png"), chart.draw().png())?;
    println!("\nWhat the paper reports for photographs (quoted):\n\n{}", table_head("width", ""));
    for (name, row) in PAPER {
        println!("| {name}, six modules | {row} |");
    }
    println!("\n![accuracy by width](bottleneck.png)\n");
    println!("{}", std::fs::read_to_string(folder.join("reading.md"))?.trim());
    println!("\n{figures}");
    Ok(())
}
