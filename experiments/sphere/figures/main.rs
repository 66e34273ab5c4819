//! The numbers behind the paper's pictures that need no model, as .npy arrays for `plot.py`.
//!
//! `figures DIRECTORY [--quick]`

use std::f64::consts::PI;
use std::path::Path;

use anyhow::{Context, Result};
use locdiff_sphere::{Basis, LatLon, reference, uniform_place};
use npyz::WriterBuilder;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().context("usage: figures DIRECTORY [--quick]")?;
    let directory = Path::new(&directory);
    let quick = arguments.any(|argument| argument == "--quick");
    spatial_resolution(directory)?;
    largest_coefficients(directory, if quick { 20 } else { 400 })
}

/// F along a great circle from the encoded place, relative to its peak: a zonal function,
/// so that one profile is the whole picture. `[degree, 2, distance]`: distance in km, F.
fn spatial_resolution(directory: &Path) -> Result<()> {
    const SAMPLES: usize = 4000;
    let degrees = [15, 23, 31, 47, 95, 191];
    let mut profiles = Vec::new();
    for max_degree in degrees {
        let basis = Basis::new(max_degree);
        let encoding = basis.encode(LatLon::NORTH_POLE);
        // To the corner of the picture, which is 4000 km wide.
        let reach_km = 2000.0 * 2.0_f64.sqrt();
        let distances = (0..SAMPLES).map(|k| reach_km * k as f64 / SAMPLES as f64);
        let values = distances.clone().map(|distance_km| {
            encoding.value_at(&basis, LatLon::NORTH_POLE.destination(0.0, distance_km))
        });
        profiles.extend(distances.clone().chain(values.collect::<Vec<_>>()));
    }
    write(&directory.join("resolution.npy"), &[degrees.len(), 2, SAMPLES], profiles)?;
    write(&directory.join("resolution_degrees.npy"), &[degrees.len()], degrees.map(|l| l as f64))
}

/// The largest absolute value of each coefficient over places: by the paper's formula, and
/// by ours. `[2, dimension]`.
fn largest_coefficients(directory: &Path, places: usize) -> Result<()> {
    const MAX_DEGREE: usize = 63;
    let mut rng = ChaCha8Rng::seed_from_u64(63);
    let places: Vec<LatLon> = (0..places).map(|_| uniform_place(&mut rng)).collect();
    let basis = Basis::new(MAX_DEGREE);
    let mut ours = vec![0.0_f64; basis.len()];
    let mut paper = vec![0.0_f64; basis.len()];
    let mut first_wrong = MAX_DEGREE + 1;
    for place in &places {
        let harmonics = basis.encode(*place);
        for degree in 0..=MAX_DEGREE {
            for order in -(degree as isize)..=degree as isize {
                let index = (degree * degree + degree).wrapping_add_signed(order);
                let exact = harmonics.as_slice()[index];
                let published = reference::harmonic_by_paper_formula(degree, order, *place);
                ours[index] = ours[index].max(exact.abs());
                paper[index] = paper[index].max(published.abs());
                if (published - exact).abs() > 0.01 * ((2 * degree + 1) as f64 / (4.0 * PI)).sqrt()
                {
                    first_wrong = first_wrong.min(degree);
                }
            }
        }
    }
    let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let figures = json!({
        "n": places.len(),
        "largest_by_paper_formula": largest(&paper),
        "largest_by_recurrence": largest(&ours),
        "first_degree_off_by_1_percent": first_wrong,
    });
    write(&directory.join("largest.npy"), &[2, basis.len()], paper.into_iter().chain(ours))?;
    println!("{figures}");
    Ok(())
}

fn write(path: &Path, shape: &[usize], values: impl IntoIterator<Item = f64>) -> Result<()> {
    let file =
        std::fs::File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let shape: Vec<u64> = shape.iter().map(|&side| side as u64).collect();
    let options = npyz::WriteOptions::new().default_dtype().shape(&shape);
    let mut writer = options.writer(std::io::BufWriter::new(file)).begin_nd()?;
    writer.extend(values)?;
    Ok(writer.finish()?)
}
