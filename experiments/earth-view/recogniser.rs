//! What tells views of the Earth from other pictures: a logistic regression on embeddings, against
//! photographs and drawings from Debian's packages.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use locdiff::Photo;
use locdiff::models::earth_view::{EarthView, Recogniser, ViewReading};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Wallpapers in their largest sizes would only cost time.
const MOST_BYTES: u64 = 1_500_000;
/// Squares that are cut from each picture.
const CUTS: usize = 4;
const ROUNDS: usize = 400;
const DECAY: f64 = 1e-3;

pub fn fit(model: &EarthView, views: &[ViewReading]) -> Result<Recogniser> {
    let mut paths = Vec::new();
    collect(Path::new("target/experiments/earth/negatives"), &mut paths)?;
    paths.sort();
    ensure!(paths.len() > 100, "run experiments/earth-view/fetch first");
    let side = model.settings().model.encoder.side as u32;
    let squares: Vec<Vec<u8>> = paths
        .par_iter()
        .enumerate()
        .flat_map_iter(|(number, path)| cuts(path, number as u64, side))
        .collect();
    let others: Vec<ViewReading> =
        squares.par_chunks(16).flat_map_iter(|part| model.read_squares(&part.concat())).collect();
    eprintln!("{} pictures of other things, {} squares", paths.len(), others.len());
    let rows: Vec<(&[f32], f64)> = views
        .iter()
        .map(|reading| (&reading.embedding[..], 1.0))
        .chain(others.iter().map(|reading| (&reading.embedding[..], 0.0)))
        .collect();
    Ok(regression(&rows))
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let kind = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if ["jpg", "jpeg", "png", "webp"].contains(&&*kind)
            && path.metadata()?.len() < MOST_BYTES
        {
            paths.push(path);
        }
    }
    Ok(())
}

/// The middle of a picture, and squares from anywhere in it.
fn cuts(path: &Path, seed: u64, side: u32) -> Vec<Vec<u8>> {
    let Ok(photo) = Photo::open(path) else { return Vec::new() };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let shortest = photo.width().min(photo.height());
    let mut squares = vec![photo.square(side)];
    while squares.len() < CUTS && shortest >= side {
        let size = rng.random_range(side.max(shortest / 3)..=shortest);
        let left = rng.random_range(0..=photo.width() - size) as usize;
        let top = rng.random_range(0..=photo.height() - size) as usize;
        let (width, size_px) = (photo.width() as usize, size as usize);
        let row = |y: usize| &photo.rgb()[3 * ((top + y) * width + left)..][..3 * size_px];
        let pixels: Vec<u8> = (0..size_px).flat_map(|y| row(y).iter().copied()).collect();
        if let Some(cut) = Photo::from_rgb(size, size, pixels) {
            squares.push(cut.square(side));
        }
    }
    squares
}

/// Both classes weigh the same.
fn regression(rows: &[(&[f32], f64)]) -> Recogniser {
    let width = rows[0].0.len();
    let positive = rows.iter().filter(|(_, is)| *is == 1.0).count() as f64;
    let share = [0.5 / (rows.len() as f64 - positive), 0.5 / positive];
    let mut weights = vec![0.0_f64; width + 1];
    let (mut mean, mut square) = (vec![0.0_f64; width + 1], vec![0.0_f64; width + 1]);
    let mut loss = 0.0;
    for round in 1..=ROUNDS {
        let parts: Vec<(Vec<f64>, f64)> = rows
            .par_chunks(256)
            .map(|rows| {
                let (mut gradient, mut loss) = (vec![0.0; width + 1], 0.0);
                for (x, is) in rows {
                    let products = weights.iter().zip(x.iter());
                    let logit =
                        weights[width] + products.map(|(w, x)| w * f64::from(*x)).sum::<f64>();
                    let probability = 1.0 / (1.0 + (-logit).exp());
                    let weight = share[*is as usize];
                    loss -= weight * (1.0 - (is - probability).abs()).max(1e-12).ln();
                    let slope = weight * (probability - is);
                    for (sum, x) in gradient.iter_mut().zip(x.iter()) {
                        *sum += slope * f64::from(*x);
                    }
                    gradient[width] += slope;
                }
                (gradient, loss)
            })
            .collect();
        loss = parts.iter().map(|(_, loss)| loss).sum();
        for k in 0..=width {
            let decay = if k < width { DECAY * weights[k] } else { 0.0 };
            let slope = parts.iter().map(|(gradient, _)| gradient[k]).sum::<f64>() + decay;
            mean[k] = 0.9 * mean[k] + 0.1 * slope;
            square[k] = 0.99 * square[k] + 0.01 * slope * slope;
            let corrected = mean[k] / (1.0 - 0.9_f64.powi(round as i32));
            let deviation = (square[k] / (1.0 - 0.99_f64.powi(round as i32))).sqrt();
            weights[k] -= 0.02 * corrected / (deviation + 1e-9);
        }
    }
    eprintln!("likeness: loss {loss:.4} nats");
    let bias = weights.pop().unwrap_or(0.0) as f32;
    Recogniser { weights: weights.into_iter().map(|w| w as f32).collect(), bias }
}
