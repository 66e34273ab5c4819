//! The paper's figure of accuracy by degree L, and beyond its ceiling of 47.
//!
//! As published: its network in full width, reverse KL over random anchors, L = 15, 23, 31, 47. Ours:
//! likelihood, narrow modules and a low-rank head, up to L = 63. All see the same number of made-up
//! images of MP16 places and answer Im2GPS3k's places in one pass (see `paper.rs`). `--quick` scores
//! the committed answers. What the encoding alone allows is computed in every run.

use std::path::Path;

use anyhow::Result;
use locdiff_experiments::paper::{
    Answers, Task, Variant, answer_all, cells, table_head, training_config, whole_numbers,
};
use locdiff_experiments::{round, standard_normal};
use locdiff_map::{Chart, Panels, Series};
use locdiff_sphere::{ACCURACY_RADII_KM, Basis, Decoder, LatLon, uniform_place};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Of the noise that encodings are decoded under, as in the paper's test of drift.
const VARIANCE: f64 = 0.01;
/// What the paper's text gives for Im2GPS3k: degree, where, percent by radius.
const PAPER: [(usize, &str, &str); 3] = [
    (23, "its table of anchors, MP16", "0.57 | 11.1 | 44.42 | 68.35 | 82.50"),
    (31, "its table of widths, w = 32", "5.1 | 27.2 | 50.9 | 71.2 | 84.1"),
    (47, "its main table", "10.9 | 34.0 | 53.3 | 72.5 | 85.2"),
];

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let folder = Path::new("experiments/degree");
    match std::env::args().nth(1).as_deref() {
        Some("--quick") => {}
        Some("--train") => {
            let config = training_config(folder)?;
            let task = Task::build()?;
            let width = task.simulation.width;
            let published = whole_numbers(&config["published"]["degrees"])?;
            let ours = whole_numbers(&config["ours"]["degrees"])?;
            let mut variants: Vec<Variant> =
                ours.into_iter().map(|degree| Variant::ours(degree, width)).collect();
            variants.extend(published.into_iter().map(|degree| Variant::published(degree, width)));
            // The cheap ones first.
            variants.sort_by_key(|variant| variant.config.denoiser.max_degree);
            answer_all(&task, &variants, folder)?;
        }
        _ => anyhow::bail!("--quick, or --train"),
    }
    report(folder)
}

fn report(folder: &Path) -> Result<()> {
    let answers = Answers::read(folder)?;
    println!("# Accuracy by degree\n");
    println!(
        "A simulation: Im2GPS3k's places (n = {}) with made-up images, one pass, mode. Each variant saw {} batches of 256 images of {} training places (MP16; {} images each), one seed, the better of two learning rates by other places of MP16. \
         \"New\" are the {} places without a training place within 1 km. Trained from commits {}.\n",
        answers.truths.len(),
        answers.about["methods"][0]["steps"],
        answers.about["training_places"],
        answers.about["images_per_place"],
        answers.new_count(),
        answers.commits(),
    );
    println!(
        "{}",
        table_head("variant | parameters, M | training, s | rate", "median km | ≤ 25 km, new, %")
    );
    let mut series: [(&str, Vec<(f64, [f64; 5])>); 2] =
        [("ours", Vec::new()), ("as published", Vec::new())];
    let mut figures = json!({ "n": answers.truths.len() });
    let mut order: Vec<usize> = (0..answers.methods.len()).collect();
    order.sort_by_key(|k| (answers.name(*k).starts_with("ours"), degree_of(&answers.name(*k))));
    for k in order {
        let (name, about) = (answers.name(k), &answers.about["methods"][k]);
        let shares = answers.shares(k)?;
        println!(
            "| {name} | {:.1} | {:.0} | {} | {} | {:.0} | {:.1} |",
            about["parameters"].as_f64().unwrap_or(f64::NAN) / 1e6,
            about["seconds"].as_f64().unwrap_or(f64::NAN),
            about["rate"],
            cells(&shares),
            answers.median_km(k)?,
            answers.shares_of_new(k)?[1],
        );
        let line = usize::from(!name.starts_with("ours"));
        series[line].1.push((degree_of(&name) as f64, shares));
        let key = if line == 0 { "ours" } else { "published" };
        figures[format!("{key}_l{}_within_200", degree_of(&name))] = json!(round(shares[2]));
    }
    println!("\nWhat the paper reports for photographs (quoted):\n");
    println!("{}", table_head("L", "from"));
    for (degree, from, row) in PAPER {
        println!("| {degree} | {row} | {from} |");
    }
    println!(
        "\nWhat the encoding itself allows, without any model: mean error of decoding under noise of variance {VARIANCE} on each coefficient, and the paper's rule of thumb.\n"
    );
    println!("| L | numbers | continuous decoder, km | 20,000 km / L |\n|---|---|---|---|");
    for degree in [15, 23, 31, 47, 63, 95] {
        let error_km = error_under_noise(degree);
        println!(
            "| {degree} | {} | {error_km:.2} | {:.0} |",
            (degree + 1) * (degree + 1),
            20_000.0 / degree as f64
        );
        figures[format!("noisy_error_l{degree}_km")] = json!(round(error_km));
    }
    draw(folder, &series)?;
    println!("\n![accuracy by degree](degree.png)\n");
    println!("{}", std::fs::read_to_string(folder.join("reading.md"))?.trim());
    println!("\n{figures}");
    Ok(())
}

fn degree_of(name: &str) -> usize {
    name.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Mean distance of what is decoded from a noisy encoding to the truth.
fn error_under_noise(max_degree: usize) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(47);
    let places: Vec<LatLon> = (0..200).map(|_| uniform_place(&mut rng)).collect();
    let basis = Basis::new(max_degree);
    let mut encodings = vec![0.0_f32; places.len() * basis.len()];
    basis.encode_into(&places, &mut encodings);
    for value in &mut encodings {
        *value += (VARIANCE.sqrt() * standard_normal(&mut rng)) as f32;
    }
    let decoded = Decoder::new(max_degree).modes_of_batch(&encodings, 1);
    let distances =
        decoded.iter().zip(&places).map(|(peaks, place)| peaks[0].place.distance_km(*place));
    distances.sum::<f64>() / places.len() as f64
}

fn draw(folder: &Path, series: &[(&str, Vec<(f64, [f64; 5])>); 2]) -> Result<()> {
    let mut sheet = Panels::new().columns(2);
    for (name, points) in series {
        let mut chart = Chart::new("degree L", "test places, %")
            .y_range(0.0..=100.0)
            .x_range(10.0..=70.0)
            .width_px(560)
            .height_px(400);
        for (k, radius) in ACCURACY_RADII_KM.iter().enumerate() {
            let points = points.iter().map(|(degree, shares)| (*degree, shares[k]));
            chart = chart.series(Series::points(format!("≤ {radius} km"), points).joined());
        }
        sheet = sheet.panel(*name, chart.draw());
    }
    let sheet = sheet
        .title("Accuracy by degree, the same number of training rows for all")
        .caption("A simulation: it compares variants, and says nothing about photographs.");
    Ok(std::fs::write(folder.join("degree.png"), sheet.draw().png())?)
}
