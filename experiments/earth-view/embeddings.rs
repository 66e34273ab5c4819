//! Embeddings of views by the frozen encoder, for what is trained or searched on them: retrieval, the
//! denoiser, and the methods of `experiments/baselines`.
//!
//! A row is latitude, longitude, width of the view in km, and the embedding as it comes out of the
//! network (mean 0, variance 1), of the picture as it is: in one direction.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::models::earth_view::EarthView;
use locdiff_earth::{Renderer, View};
use locdiff_experiments::{read_npy, write_npy};
use locdiff_sphere::LatLon;
use rayon::prelude::*;

use crate::predictions::{SEED, open_model};
use crate::sets::{SETS, pixels, place};
use locdiff_experiments::earth_sources::Folders;

const TRAINING_SEED: u64 = 4_000_037;
const VALIDATION_SEED: u64 = 5_000_011;
/// What stands before the embedding.
const EXTRA: usize = 3;
/// Rendered at a time.
const PART: u64 = 4096;

/// What a file holds.
pub struct Embedded {
    pub places: Vec<LatLon>,
    /// Row by row.
    pub embeddings: Vec<f32>,
    /// Of one embedding.
    pub size: usize,
}

impl Embedded {
    pub fn open(name: &str, size: usize) -> Result<Embedded> {
        let path = path_of(name);
        let numbers = read_npy(&path)?;
        ensure!(numbers.len().is_multiple_of(EXTRA + size), "{} is another's", path.display());
        let rows = || numbers.chunks_exact(EXTRA + size);
        let place = |row: &[f32]| LatLon::new(row[0].into(), row[1].into());
        Ok(Embedded {
            places: rows().map(place).collect::<Result<_, _>>()?,
            embeddings: rows().flat_map(|row| &row[EXTRA..]).copied().collect(),
            size,
        })
    }

    /// Some rows as a tensor.
    pub fn rows(&self, numbers: &[usize], device: &Device) -> Tensor<2> {
        let mut values = Vec::with_capacity(numbers.len() * self.size);
        for number in numbers {
            values.extend_from_slice(&self.embeddings[number * self.size..][..self.size]);
        }
        Tensor::from_data(TensorData::new(values, [numbers.len(), self.size]), device)
    }
}

fn path_of(name: &str) -> PathBuf {
    PathBuf::from(format!("target/experiments/earth/embeddings/{name}.npy"))
}

/// Renders and embeds views like those of training, and the two largest sets of the tests: the
/// same views that `predict` locates.
pub fn embed(weights: &Path, training: u64, tests: usize) -> Result<()> {
    let model = open_model(weights)?;
    let folders = Folders::from_environment()?;
    std::fs::create_dir_all(path_of("").parent().unwrap())?;
    let mask = folders.mask()?;
    let open = |name: &str| folders.open(name, &mask);
    let day = vec![open("blue-marble")?, open("bmng")?, open("may")?];
    let renderer = Renderer::new(mask.clone(), day, vec![open("black-marble")?]);
    let side = model.settings().model.encoder.side;
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
        let views = set.render(&folders, SEED, set.count(tests), side)?;
        write(set.name, views.len(), &rows_of(&model, &views))?;
    }
    Ok(())
}

fn write(name: &str, count: usize, rows: &[f32]) -> Result<()> {
    write_npy(&path_of(name), &[count, rows.len() / count], rows)
}

fn rows_of(model: &EarthView, views: &[View]) -> Vec<f32> {
    let parts = views.par_chunks(32).map(|part| {
        let numbers = model.network().encoder().forward(&pixels(part)).into_data();
        let numbers: Vec<f32> = numbers.try_to_vec().expect("f32");
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
