//! The paper's table of the gallery's inductive bias: how many places of a gallery lie near the places
//! of Im2GPS3k?
//!
//! A perfect picker over a gallery finds a test place within a radius if at least one place of the
//! gallery is that near. Coordinates only: the galleries are GeoCLIP's (MP16, 100,000 rows) and even
//! grids (Fibonacci lattices). `--quick` makes the table from the committed counts.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use locdiff::models::geoclip::GeoClip;
use locdiff_experiments::paper::{WHEEL, commit, config, im2gps3k, whole_numbers};
use locdiff_experiments::{read_npy, round, write_npy};
use locdiff_map::{Chart, Panels, Series};
use locdiff_sphere::{Anchors, EARTH_RADIUS_KM, LatLon, UnitVector};
use serde_json::{Value, json};

const RADII_KM: [f64; 2] = [1.0, 25.0];
const AT_LEAST: [f32; 4] = [1.0, 10.0, 50.0, 100.0];
const GALLERIES: [&str; 6] = [
    "MP16, 100,000 rows",
    "MP16, 94,123 distinct",
    "grid of 1M",
    "grid of 500k",
    "grid of 100k",
    "grid of 21k",
];
/// What the paper reports for MP16 and for its grid, by radius.
const PAPER: [[[&str; 4]; 2]; 2] = [
    [["63.5", "32.7", "14.9", "9.78"], ["0.1", "0.0", "0.0", "0.0"]],
    [["95.2", "75.7", "51.9", "42.0"], ["38.9", "0.0", "0.0", "0.0"]],
];

fn main() -> Result<()> {
    let folder = Path::new("experiments/paper/gallery-bias");
    match std::env::args().nth(1).as_deref() {
        Some("--quick") => {}
        Some("--count") => count_all(folder)?,
        _ => anyhow::bail!("--quick, or --count"),
    }
    report(folder)
}

/// `[gallery, radius, place]`.
fn count_all(folder: &Path) -> Result<()> {
    let places = im2gps3k()?;
    let mp16 = GeoClip::import(WHEEL.as_ref(), &Device::flex())?.gallery;
    let mut distinct = mp16.clone();
    distinct.sort_by(|a, b| {
        (a.latitude(), a.longitude()).partial_cmp(&(b.latitude(), b.longitude())).unwrap()
    });
    distinct.dedup();
    let mut galleries = vec![mp16, distinct];
    for count in whole_numbers(&config(folder)?["grids"])? {
        galleries.push(Anchors::fibonacci(count).places().to_vec());
    }
    let mut counts: Vec<f32> = Vec::new();
    for gallery in &galleries {
        counts.extend(counts_near(gallery, &places));
    }
    let shape = [galleries.len(), RADII_KM.len(), places.len()];
    write_npy(&folder.join("counts.npy"), &shape, &counts)?;
    let about = json!({
        "places": places.len(),
        "rows": galleries.iter().map(Vec::len).collect::<Vec<_>>(),
        "commit": commit(),
    });
    Ok(std::fs::write(folder.join("about.json"), format!("{about:#}\n"))?)
}

/// How many of a gallery lie within each radius of each place: `[radius, place]`.
fn counts_near(gallery: &[LatLon], places: &[LatLon]) -> Vec<f32> {
    let mut sorted: Vec<LatLon> = gallery.to_vec();
    sorted.sort_by(|a, b| a.latitude().total_cmp(&b.latitude()));
    let vectors: Vec<[f64; 3]> =
        sorted.iter().map(|place| UnitVector::from(*place).to_array()).collect();
    let widest_km = RADII_KM[RADII_KM.len() - 1];
    // Only places within a band of latitudes can be near enough.
    let margin = (1.01 * widest_km / EARTH_RADIUS_KM).to_degrees();
    let mut counts = vec![0.0; RADII_KM.len() * places.len()];
    for (k, place) in places.iter().enumerate() {
        let centre = UnitVector::from(*place).to_array();
        let first = sorted.partition_point(|other| other.latitude() < place.latitude() - margin);
        let last = sorted.partition_point(|other| other.latitude() <= place.latitude() + margin);
        for vector in &vectors[first..last] {
            let squared: f64 = (0..3).map(|axis| (vector[axis] - centre[axis]).powi(2)).sum();
            let distance_km = 2.0 * (0.5 * squared.sqrt()).asin() * EARTH_RADIUS_KM;
            for (radius, limit_km) in RADII_KM.iter().enumerate() {
                if distance_km <= *limit_km {
                    counts[radius * places.len() + k] += 1.0;
                }
            }
        }
    }
    counts
}

fn report(folder: &Path) -> Result<()> {
    let about: Value = serde_json::from_slice(&std::fs::read(folder.join("about.json"))?)?;
    let places = about["places"].as_u64().context("about.json has no places")? as usize;
    let counts = read_npy(&folder.join("counts.npy"))?;
    ensure!(counts.len() == GALLERIES.len() * RADII_KM.len() * places, "not our counts");
    let share = |gallery: usize, radius: usize, at_least: f32| {
        let row = &counts[(gallery * RADII_KM.len() + radius) * places..][..places];
        100.0 * row.iter().filter(|count| **count >= at_least).count() as f64 / places as f64
    };
    println!("# How near is the gallery to the test?\n");
    println!(
        "Share of Im2GPS3k's places (n = {places}) with at least so many places of a gallery within a radius, in percent. \
         Made from commit {}. The rows of the paper are quoted.\n",
        about["commit"].as_str().unwrap_or_default(),
    );
    println!("| within | gallery | counted | 1 | 10 | 50 | 100 |\n|---|---|---|---|---|---|---|");
    for (radius, km) in RADII_KM.iter().enumerate() {
        for (gallery, name) in GALLERIES.iter().enumerate() {
            let row = |more: f32| {
                let cell = |at: f32| format!("{:.2}", share(gallery, radius, at + more));
                AT_LEAST.map(cell).join(" | ")
            };
            println!("| {km} km | {name} | at least | {} |", row(0.0));
            if gallery == 0 {
                // Counts are whole.
                println!("| {km} km | {name} | more than | {} |", row(1.0));
            }
        }
        for (name, row) in ["MP16", "grid"].iter().zip(PAPER[radius]) {
            println!("| {km} km | *{name}, quoted* | *more than* | {} |", row.join(" | "));
        }
    }
    draw(folder, &share)?;
    println!("\n![share of places against how many of the gallery are near](gallery-bias.png)\n");
    println!("{}", std::fs::read_to_string(folder.join("reading.md"))?.trim());
    let figures = json!({
        "n": places,
        "mp16_within_1": round(share(0, 0, 1.0)),
        "mp16_within_25": round(share(0, 1, 1.0)),
        "grid_100k_within_25": round(share(4, 1, 1.0)),
        "grid_1m_within_1": round(share(2, 0, 1.0)),
        "grid_1m_within_25": round(share(2, 1, 1.0)),
    });
    println!("\n{figures}");
    Ok(())
}

fn draw(folder: &Path, share: &impl Fn(usize, usize, f32) -> f64) -> Result<()> {
    let thresholds: Vec<f32> = (0..=60).map(|k| 10_f32.powf(k as f32 / 20.0).round()).collect();
    let mut sheet = Panels::new().columns(1);
    for (radius, km) in RADII_KM.iter().enumerate() {
        let mut chart = Chart::new("places of the gallery, at least", "test places, %")
            .log_x()
            .y_range(0.0..=100.0)
            .height_px(340);
        for (gallery, name) in GALLERIES.iter().enumerate() {
            let points = thresholds.iter().map(|at| (f64::from(*at), share(gallery, radius, *at)));
            chart = chart.series(Series::line(*name, points));
        }
        sheet = sheet.panel(format!("within {km} km"), chart.draw());
    }
    let sheet = sheet
        .title("Im2GPS3k's places that have a gallery's places near them")
        .caption("Coordinates only. A perfect picker can't do better than the left ends.");
    Ok(std::fs::write(folder.join("gallery-bias.png"), sheet.draw().png())?)
}
