//! Embeddings of views by the frozen encoder, for what is trained or searched on them: retrieval, the
//! denoiser, and the methods of `experiments/earth-view/baselines`.
//!
//! A row is latitude, longitude, width of the view in km, and the embedding as it comes out of the
//! network (mean 0, variance 1), of the picture as it is: in one direction.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use burn::tensor::Device;
use locdiff::models::earth_view::EarthViewEncoder;
use locdiff_earth::{Renderer, View};
use locdiff_experiments::write_npy;
use rayon::prelude::*;

use crate::sets::{SETS, pixels, place};
use locdiff_experiments::earth_sources::Folders;

/// Of the test views.
const SEED: u64 = 3_000_017;
const TRAINING_SEED: u64 = 4_000_037;
const VALIDATION_SEED: u64 = 5_000_011;
/// Rendered at a time.
const PART: u64 = 4096;

fn path_of(name: &str) -> PathBuf {
    PathBuf::from(format!("target/experiments/earth/embeddings/{name}.npy"))
}

/// Renders and embeds views like those of training, and the two largest sets of the tests: the
/// same views that `predict` locates.
pub fn embed(training: u64, tests: usize) -> Result<()> {
    let directory = Path::new("examples/models/earth/encoder");
    let model = EarthViewEncoder::open(directory, &Device::flex()).context("the encoder")??;
    let folders = Folders::from_environment()?;
    std::fs::create_dir_all(path_of("").parent().unwrap())?;
    let mask = folders.mask()?;
    let open = |name: &str| folders.open(name, &mask);
    let day = vec![open("blue-marble")?, open("bmng")?, open("may")?];
    let renderer = Renderer::new(mask.clone(), day, vec![open("black-marble")?]);
    let side = model.side();
    for (name, seed, count) in
        [("train", TRAINING_SEED, training), ("validation", VALIDATION_SEED, tests as u64)]
    {
        let mut rows = Vec::new();
        for start in (0..count).step_by(PART as usize) {
            let end = (start + PART).min(count);
            rows.extend(rows_of(&model, &renderer.render_range(seed, start..end, side)));
            eprintln!("{name}: {end} of {count} views");
        }
        write(name, count as usize, &rows)?;
    }
    for set in &SETS[..2] {
        let views = set.render(&folders, SEED, tests, side)?;
        write(set.name, views.len(), &rows_of(&model, &views))?;
    }
    Ok(())
}

fn write(name: &str, count: usize, rows: &[f32]) -> Result<()> {
    write_npy(&path_of(name), &[count, rows.len() / count], rows)
}

fn rows_of(model: &EarthViewEncoder, views: &[View]) -> Vec<f32> {
    let parts = views.par_chunks(32).map(|part| {
        let numbers = model.embed_upright(&pixels(part));
        let mut rows = Vec::new();
        for (view, numbers) in part.iter().zip(numbers.chunks_exact(numbers.len() / part.len())) {
            let place = place(view);
            let width = view.label.width_km;
            rows.extend([place.latitude(), place.longitude(), width].map(|x| x as f32));
            rows.extend_from_slice(numbers);
        }
        rows
    });
    parts.collect::<Vec<_>>().concat()
}
