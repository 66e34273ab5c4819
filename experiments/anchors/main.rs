//! The paper's generalisation across anchors and galleries: MP16's 100k places, then even grids.
//!
//! The decoders choose among the anchors where F of a model's output is largest (the paper's
//! mode-seeking decoder with ρ → 0); ours needs none. Retrieval chooses the place of the same list whose
//! GeoCLIP embedding is nearest to the image. Models, places and made-up images are those of
//! `experiments/degree` at L = 23. `--quick` scores the committed answers.

mod streams;

use std::path::Path;

use anyhow::{Context, Result};
use locdiff_experiments::paper::{
    Answers, KEPT, Task, Variant, cells, commit, config, modes, table_head, whole_numbers,
};
use locdiff_experiments::{kept_places, round};
use locdiff_map::{Chart, Panels, Series};
use locdiff_sphere::{ACCURACY_RADII_KM, Anchors, LatLon};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const GALLERY: &str = "MP16, 100k";
const CONTINUOUS: &str = "none: continuous";
const MODELS: [&str; 3] = ["retrieval by GeoCLIP's embeddings", "LocDiff as published", "ours"];
/// Anchors, and GeoCLIP's and LocDiff's rows in the paper, for photographs: quoted.
const PAPER: [(&str, &str, &str); 5] = [
    ("MP16, 100k", "14.11 | 34.47 | 50.65 | 69.67 | 83.82", "0.57 | 11.1 | 44.42 | 68.35 | 82.50"),
    (
        "grid, 1M",
        "0.03 (−99.8) | 9.18 (−73.4) | 33.47 (−33.9) | 55.32 (−20.6) | 75.34 (−10.1)",
        "0.01 (−98.3) | 4.37 (−60.6) | 43.04 (−3.1) | 68.30 (−0.1) | 81.66 (−1.0)",
    ),
    (
        "grid, 500k",
        "0.03 (−99.8) | 7.17 (−79.2) | 29.40 (−42.0) | 52.29 (−24.9) | 73.11 (−12.8)",
        "0.07 (−87.7) | 4.47 (−59.7) | 43.18 (−2.8) | 68.36 (+0.0) | 81.65 (−1.0)",
    ),
    (
        "grid, 100k",
        "0.00 (−100.0) | 2.67 (−92.3) | 22.39 (−55.8) | 47.35 (−32.1) | 68.77 (−17.9)",
        "0.07 (−87.7) | 4.04 (−63.6) | 42.91 (−3.4) | 68.34 (−0.0) | 82.18 (−0.4)",
    ),
    (
        "grid, 21k",
        "0.00 (−100.0) | 0.87 (−97.5) | 19.55 (−61.4) | 43.78 (−37.2) | 64.33 (−23.3)",
        "0.03 (−94.7) | 4.90 (−55.9) | 43.44 (−2.2) | 68.29 (−0.1) | 81.68 (−1.0)",
    ),
];

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let folder = Path::new("experiments/anchors");
    match std::env::args().nth(1).as_deref() {
        Some("--quick") => {}
        Some("--decode") => decode_all(folder, &config(folder)?)?,
        _ => anyhow::bail!("--quick, or --decode"),
    }
    report(folder)
}

/// All decoders over all anchors, and retrieval over all lists.
fn decode_all(folder: &Path, config: &Value) -> Result<()> {
    let task = Task::build()?;
    let degree = config["degree"].as_u64().context("no degree")? as usize;
    let width = task.simulation.width;
    let mut answers = Answers {
        truths: task.test.places.clone(),
        methods: Vec::new(),
        about: json!({ "commit": commit(), "degree": degree, "methods": [] }),
    };
    let mut lists: Vec<(String, Vec<LatLon>)> =
        vec![(GALLERY.to_owned(), task.simulation.gallery.clone())];
    for count in whole_numbers(&config["grids"])? {
        lists.push((grid_name(count), Anchors::fibonacci(count).places().to_vec()));
    }
    let variants =
        [(MODELS[1], Variant::published(degree, width)), (MODELS[2], Variant::ours(degree, width))];
    for (name, variant) in variants {
        let outputs = task.one_pass(&variant.trained(&task)?.0);
        add(&mut answers, name, CONTINUOUS, modes(&outputs, degree));
        for (list, places) in &lists {
            add(&mut answers, name, list, streams::highest(&outputs, degree, places));
        }
        answers.write(folder)?;
    }
    for (list, places) in &lists {
        // It takes minutes and no model: kept.
        let path = Path::new(KEPT).join(format!("retrieval, {list}.npy"));
        let found = kept_places(&path, || streams::nearest(&task, places))?;
        add(&mut answers, MODELS[0], list, found);
        answers.write(folder)?;
    }
    Ok(())
}

fn grid_name(count: usize) -> String {
    match count {
        1_000_000.. => format!("grid, {}M", count / 1_000_000),
        _ => format!("grid, {}k", count / 1000),
    }
}

fn add(answers: &mut Answers, model: &str, list: &str, places: Vec<LatLon>) {
    answers.methods.push(places);
    let methods = answers.about["methods"].as_array_mut().expect("it was made as a list");
    methods.push(json!({ "name": format!("{model}; {list}") }));
    let last = answers.methods.len() - 1;
    eprintln!("{model}, {list}: {:?}", answers.shares(last).ok());
}

fn find(answers: &Answers, model: &str, list: &str) -> Option<usize> {
    let name = format!("{model}; {list}");
    (0..answers.methods.len()).find(|k| answers.name(*k) == name)
}

fn report(folder: &Path) -> Result<()> {
    let answers = Answers::read(folder)?;
    println!("# Other anchors, other galleries\n");
    println!(
        "A simulation: Im2GPS3k's places (n = {}) with made-up images, L = {}. Percent, and in brackets the change relative to MP16's places in percent of it, as in the \
         paper. Made from commit {}.\n",
        answers.truths.len(),
        answers.about["degree"],
        answers.about["commit"].as_str().unwrap_or_default(),
    );
    println!("{}", table_head("model | anchors or gallery", "median km"));
    let lists = [CONTINUOUS, GALLERY, "grid, 1M", "grid, 500k", "grid, 100k", "grid, 21k"];
    let mut figures = json!({ "n": answers.truths.len() });
    let mut curves: Vec<(&str, Vec<(f64, [f64; 5])>)> = Vec::new();
    for model in MODELS {
        let gallery = find(&answers, model, GALLERY).context("nothing over MP16's places")?;
        let gallery = answers.shares(gallery)?;
        let mut curve = Vec::new();
        for (position, list) in lists.into_iter().enumerate() {
            let Some(k) = find(&answers, model, list) else { continue };
            let shares = answers.shares(k)?;
            let median_km = answers.median_km(k)?;
            if list == CONTINUOUS || list == GALLERY {
                println!("| {model} | {list} | {} | {median_km:.0} |", cells(&shares));
            } else {
                let both = shares.iter().zip(gallery).map(|(share, before)| {
                    let change = 100.0 * (share - before) / before;
                    // Of nothing there is no part.
                    let change = if before > 0.0 { format!("{change:+.1}") } else { "–".into() };
                    format!("{share:.1} ({change})")
                });
                let both: Vec<String> = both.collect();
                println!("| {model} | {list} | {} | {median_km:.0} |", both.join(" | "));
            }
            if list != CONTINUOUS {
                curve.push((position as f64, shares));
            }
            let key = format!("{} {list} within 200", model.split(' ').next().unwrap_or(model));
            let key = key.to_lowercase().replace([',', ':'], "").replace(' ', "_");
            figures[key] = json!(round(shares[2]));
        }
        curves.push((model, curve));
    }
    println!("\nWhat the paper reports for photographs (quoted):\n");
    println!("{}", table_head("model | anchors or gallery", ""));
    for (list, geoclip, _) in PAPER {
        println!("| GeoCLIP | {list} | {geoclip} |");
    }
    for (list, _, locdiff) in PAPER {
        println!("| LocDiff, L = 23 | {list} | {locdiff} |");
    }
    draw(folder, &curves)?;
    println!("\n![accuracy by list](anchors.png)\n");
    println!("{}", std::fs::read_to_string(folder.join("reading.md"))?.trim());
    println!("\n{figures}");
    Ok(())
}

/// The paper's five panels, one for each radius.
fn draw(folder: &Path, curves: &[(&str, Vec<(f64, [f64; 5])>)]) -> Result<()> {
    let mut sheet = Panels::new().columns(3);
    for (k, radius) in ACCURACY_RADII_KM.iter().enumerate() {
        let mut chart = Chart::new("MP16, then grids of 1M, 500k, 100k, 21k", "test places, %")
            .x_range(0.5..=5.5)
            .y_range(0.0..)
            .width_px(460)
            .height_px(320);
        for (model, curve) in curves {
            let points = curve.iter().map(|(position, shares)| (*position, shares[k]));
            let name = model.split(" by ").next().unwrap_or(model);
            chart = chart.series(Series::points(name, points).joined());
        }
        sheet = sheet.panel(format!("within {radius} km"), chart.draw());
    }
    let sheet = sheet
        .title("Accuracy by the list of places that is chosen from")
        .caption("A simulation: it compares decoders, and says nothing about photographs.");
    Ok(std::fs::write(folder.join("anchors.png"), sheet.draw().png())?)
}
