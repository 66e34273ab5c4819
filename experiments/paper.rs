//! What the tables of the paper share: its test places with made-up images, and answers as they are committed.
//!
//! Training places are those of the simulation (MP16). Test places are the coordinates of Im2GPS3k,
//! as in the paper's ablations, whose images aren't ours to have: an "image" is GeoCLIP's embedding of
//! the place plus noise (see `simulation.rs`). It compares variants, and gives no information about photographs.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use locdiff::encoders::EncoderRecord;
use locdiff_sphere::{ACCURACY_RADII_KM, Decoder, LatLon, PointScores, coefficient_count};
use locdiff_train::{Dataset, Layout, Numbers, OnBadShard, ShardWriter};
use rayon::prelude::*;
use serde_json::Value;

use crate::simulation::{Simulation, Split};
use crate::{flat, places_of, read_npy, write_npy};

/// Where the scripts put GeoCLIP's wheel.
pub const WHEEL: &str = "target/experiments/geoclip-1.3.0-py3-none-any.whl";
/// Where trained variants and the simulation are kept.
pub const KEPT: &str = "target/experiments/paper";
/// Made-up images of each training place: so many that few are seen twice in the longest training.
const IMAGES_PER_PLACE: usize = 4;
/// Of the noise in the test images.
const IMAGE_SEED: u64 = 6;

/// The simulation as data sets of the product: MP16's places with several made-up images each to learn from, Im2GPS3k's with one
/// to be asked about.
pub struct Task {
    /// Where it is from.
    pub simulation: Simulation,
    /// What variants are judged by.
    pub test: Split,
    /// What they learn from.
    pub train: Dataset,
}

impl Task {
    /// Needs GeoCLIP's wheel and the folder that `LOCDIFF_DATA` names.
    pub fn build() -> Result<Task> {
        let kept = Path::new(KEPT);
        let mut simulation = Simulation::cached(Path::new(WHEEL), kept, &Device::flex())?;
        simulation.add_images(IMAGES_PER_PLACE, kept)?;
        let folder = kept.join("embeddings");
        if !folder.join("shard-00000.parquet").exists() {
            let layout = Layout {
                encoder: EncoderRecord::of_identity("geoclip location embedding with noise"),
                width: simulation.width,
                views: 1,
                numbers: Numbers::F16,
            };
            let mut writer = ShardWriter::create(&folder, layout, Default::default())?;
            let Split { places, conditions } = &simulation.train;
            for (k, (place, row)) in
                places.iter().zip(conditions.chunks_exact(simulation.width)).enumerate()
            {
                writer.write(&k.to_string(), *place, row)?;
            }
            writer.finish()?;
        }
        let train = Dataset::open(&folder.display().to_string(), OnBadShard::Fail)?;
        let (found, wanted) = (train.rows(), simulation.train.places.len() as u64);
        ensure!(found == wanted, "{}: {found} rows, not {wanted}", folder.display());
        let test = simulation.images_of(&im2gps3k()?, IMAGE_SEED);
        Ok(Task { simulation, test, train })
    }

    /// Different places to learn from; each has several images.
    pub fn training_places(&self) -> &[LatLon] {
        let places = &self.simulation.train.places;
        &places[..places.len() / IMAGES_PER_PLACE]
    }
}

thread_local! {
    static CALLS: Cell<f64> = const { Cell::new(0.0) };
}

/// A clock that counts how often it is asked: training asks once before and once in each step, so a budget of `steps + 1`
/// "seconds" is one of steps.
pub fn step_clock() -> f64 {
    CALLS.with(|calls| calls.replace(calls.get() + 1.0))
}

/// The coordinates of Im2GPS3k, from the folder that `LOCDIFF_DATA` names.
pub fn im2gps3k() -> Result<Vec<LatLon>> {
    let data = std::env::var("LOCDIFF_DATA").context("LOCDIFF_DATA names no folder")?;
    let path = PathBuf::from(data).join("benchmarks/im2gps3k.csv");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let place = |line: &str| -> Result<LatLon> {
        let mut fields = line.rsplitn(3, ',');
        let longitude = fields.next().context("no longitude")?.trim().parse()?;
        let latitude = fields.next().context("no latitude")?.trim().parse()?;
        Ok(LatLon::new(latitude, longitude)?)
    };
    text.lines().skip(1).map(place).collect()
}

/// Modes of outputs, row by row.
pub fn modes(outputs: &[f32], max_degree: usize) -> Vec<LatLon> {
    let decoder = Decoder::new(max_degree);
    let size = coefficient_count(max_degree);
    outputs.par_chunks(size).map(|row| decoder.modes_of_batch(row, 1)[0][0].place).collect()
}

/// FNV-1a: the name of a folder, the same in every run.
pub fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The commit that is checked out.
pub fn commit() -> String {
    let output = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output();
    output.map_or_else(
        |_| "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// Answers of several methods to the same places, as they are committed: `answers.npy`
/// `[1 + methods, places, 2]`, the truth first, and `about.json`.
pub struct Answers {
    /// True places.
    pub truths: Vec<LatLon>,
    /// Places of each method.
    pub methods: Vec<Vec<LatLon>>,
    /// What is known of them: at least `methods`, a list with their names.
    pub about: Value,
}

impl Answers {
    /// Writes both files.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let all = std::iter::once(&self.truths).chain(&self.methods);
        let values: Vec<f32> = all.flat_map(|places| flat(places)).collect();
        let shape = [1 + self.methods.len(), self.truths.len(), 2];
        write_npy(&folder.join("answers.npy"), &shape, &values)?;
        Ok(std::fs::write(folder.join("about.json"), format!("{:#}\n", self.about))?)
    }

    /// Reads both files.
    pub fn read(folder: &Path) -> Result<Answers> {
        let about: Value = serde_json::from_slice(&std::fs::read(folder.join("about.json"))?)?;
        let count = about["methods"].as_array().context("about.json names no methods")?.len();
        let values = read_npy(&folder.join("answers.npy"))?;
        let size = values.len() / (1 + count);
        ensure!(size * (1 + count) == values.len(), "answers.npy is not of {count} methods");
        let mut sets = values.chunks_exact(size).map(places_of);
        let truths = sets.next().context("no truths")??;
        Ok(Answers { truths, methods: sets.collect::<Result<_>>()?, about })
    }

    pub fn name(&self, method: usize) -> String {
        self.about["methods"][method]["name"].as_str().unwrap_or_default().to_owned()
    }

    /// Percent within 1, 25, 200, 750 and 2500 km.
    pub fn shares(&self, method: usize) -> Result<[f64; 5]> {
        shares(&self.methods[method], &self.truths)
    }

    /// Median distance.
    pub fn median_km(&self, method: usize) -> Result<f64> {
        Ok(PointScores::of(&self.methods[method], &self.truths)?.median_km().value())
    }
}

/// Percent within 1, 25, 200, 750 and 2500 km.
pub fn shares(places: &[LatLon], truths: &[LatLon]) -> Result<[f64; 5]> {
    let scores = PointScores::of(places, truths)?;
    Ok(ACCURACY_RADII_KM.map(|radius| 100.0 * scores.accuracy(radius).value()))
}

/// Cells of a table: numbers with one decimal.
pub fn cells(numbers: &[f64]) -> String {
    numbers.iter().map(|number| format!("{number:.1}")).collect::<Vec<_>>().join(" | ")
}

/// The head of a table by radius, with columns before and after.
pub fn table_head(before: &str, after: &str) -> String {
    let radii: Vec<String> = ACCURACY_RADII_KM.iter().map(|km| format!("≤ {km} km, %")).collect();
    let radii = radii.join(" | ");
    let titles: Vec<&str> =
        [before, &radii, after].into_iter().filter(|title| !title.is_empty()).collect();
    let head = format!("| {} |", titles.join(" | "));
    let rule = "|---".repeat(head.matches('|').count() - 1);
    format!("{head}\n{rule}|")
}

/// The folder's `config.json`.
pub fn config(folder: &Path) -> Result<Value> {
    let path = folder.join("config.json");
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// A list of whole numbers in a configuration.
pub fn whole_numbers(value: &Value) -> Result<Vec<usize>> {
    let list = value.as_array().context("not a list")?;
    let number = |value: &Value| Ok(value.as_u64().context("not a whole number")? as usize);
    list.iter().map(number).collect()
}
