//! What the tables of the paper share: its test places with made-up images, variants of the network
//! that are trained and answer, and answers as they are committed.
//!
//! Training places are those of the simulation (MP16). Test places are the coordinates of Im2GPS3k,
//! as in the paper's ablations, whose images aren't ours to have: an "image" is GeoCLIP's embedding of
//! the place plus noise (see `simulation.rs`). It says how variants compare, nothing about photographs.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use burn::module::Module;
use burn::tensor::{Device, TensorData};
use locdiff::diffusion::{
    DenoiserConfig, Diffusion, DiffusionConfig, Method, Objective, Quadrature, SampleOptions,
    ScheduleConfig,
};
use locdiff::models::DiffusionAbout;
use locdiff_sphere::{
    ACCURACY_RADII_KM, Decoder, Grid, LatLon, PlaceIndex, PointScores, Transform, coefficient_count,
};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::simulation::{Simulation, Split};
use crate::training::{BATCH, Budget, conditions, train_for};
use crate::{flat, kept_places, places_of, read_npy, round, write_npy};

/// Where the scripts put GeoCLIP's wheel.
pub const WHEEL: &str = "target/experiments/geoclip-1.3.0-py3-none-any.whl";
/// Where trained variants and the simulation are kept.
pub const KEPT: &str = "target/experiments/paper";
/// Of the noise in the test images.
const IMAGE_SEED: u64 = 6;
/// Held-out places of MP16 by which rates are chosen.
const TUNING: usize = 1000;
/// A test place without training places within this distance is new.
const NEW_KM: f64 = 1.0;

/// The simulation, and Im2GPS3k's places with images by its rule.
pub struct Task {
    /// What variants learn from.
    pub simulation: Simulation,
    /// What they are judged by.
    pub test: Split,
}

impl Task {
    /// Needs GeoCLIP's wheel and the folder that `LOCDIFF_DATA` names.
    pub fn build() -> Result<Task> {
        let mut simulation = Simulation::cached(WHEEL.as_ref(), KEPT.as_ref(), &Device::flex())?;
        simulation.add_images(IMAGES_PER_PLACE, KEPT.as_ref())?;
        let test = simulation.images_of(&im2gps3k()?, IMAGE_SEED);
        Ok(Task { simulation, test })
    }

    /// Different places to learn from; each has several images.
    pub fn training_places(&self) -> usize {
        self.simulation.train.places.len() / IMAGES_PER_PLACE
    }

    /// What a variant gives out in one pass for every test place, row by row.
    pub fn one_pass(&self, diffusion: &Diffusion) -> Vec<f32> {
        self.sampled(diffusion, Method::OnePass, 0)
    }

    /// The same by any sampler.
    pub fn sampled(&self, diffusion: &Diffusion, method: Method, seed: u64) -> Vec<f32> {
        self.outputs(diffusion, &self.test, self.test.places.len(), method, seed)
    }

    /// One pass over held-out places of MP16, by which rates are chosen.
    fn tuning_pass(&self, diffusion: &Diffusion) -> Vec<f32> {
        self.outputs(diffusion, &self.simulation.test, TUNING, Method::OnePass, 0)
    }

    fn outputs(
        &self,
        diffusion: &Diffusion,
        split: &Split,
        count: usize,
        method: Method,
        seed: u64,
    ) -> Vec<f32> {
        let numbers: Vec<usize> = (0..count).collect();
        let mut outputs = Vec::new();
        for rows in numbers.chunks(BATCH) {
            let condition = conditions(split, rows, self.simulation.width, diffusion.device());
            let options = SampleOptions { method, seed, ..SampleOptions::default() };
            let output = diffusion.sample(Some(condition), rows.len(), options, |_| ());
            let data: TensorData = output.into_data();
            outputs.extend(data.try_to_vec::<f32>().expect("numbers of the backend are f32"));
        }
        outputs
    }

    /// Which test places have no training place within a kilometre: a digit for each.
    fn is_new(&self) -> String {
        let count = self.training_places();
        let index = PlaceIndex::new(&self.simulation.train.places[..count]);
        let far = |place: &LatLon| index.nearest(*place).is_none_or(|found| found.1 > NEW_KM);
        self.test.places.iter().map(|place| if far(place) { '1' } else { '0' }).collect()
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

/// The highest nodes of a grid instead, about 100 km apart: enough to choose a rate by, and fast also for
/// the ragged outputs of a network that has learned little.
pub fn coarse_modes(outputs: &[f32], max_degree: usize) -> Vec<LatLon> {
    let rings = 192.max(3 * (max_degree + 1));
    let transform: Transform<f32> = Transform::new(Grid::new(rings, 2 * rings), max_degree);
    let grid = transform.grid();
    let mut values = vec![0.0; grid.len()];
    let rows = outputs.chunks_exact(coefficient_count(max_degree)).map(|row| {
        transform.synthesize_into(row, &mut values);
        let nodes = 0..values.len();
        let best = nodes.max_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap_or(0);
        grid.place(best / grid.longitudes(), best % grid.longitudes())
    });
    rows.collect()
}

/// A network, an objective and how long it is trained.
pub struct Variant {
    /// Its name in tables.
    pub name: String,
    /// What fixes it.
    pub config: DiffusionConfig,
    /// Batches of 256.
    pub steps: usize,
    /// The highest learning rates that are tried.
    pub rates: Vec<f64>,
}

impl Variant {
    /// As published, at a degree.
    pub fn published(max_degree: usize, condition: usize) -> Variant {
        // The lower rate was better at 23 and 31, and a training at 47 takes twenty minutes.
        let rates = &RATES_PUBLISHED[..if max_degree < 47 { 2 } else { 1 }];
        Variant {
            name: format!("as published, L = {max_degree}"),
            config: published(max_degree, condition, None),
            steps: STEPS,
            rates: rates.to_vec(),
        }
    }

    /// Ours at a degree, with narrow modules and a low-rank head.
    pub fn ours(max_degree: usize, condition: usize) -> Variant {
        // The lower rate was better at 47, and the higher degrees take long.
        let rates = &RATES_OURS[..if max_degree < 63 { 2 } else { 1 }];
        Variant {
            name: format!("ours, L = {max_degree}"),
            config: ours(max_degree, condition, Some(128)),
            steps: STEPS,
            rates: rates.to_vec(),
        }
    }

    /// The model with the better rate, and what its training took. The rate is chosen by the mean of
    /// the shares within 200, 750 and 2500 km on places of MP16 that neither train nor test.
    pub fn trained(&self, task: &Task) -> Result<(Diffusion, Value)> {
        let mut tried: Vec<Value> = Vec::new();
        let mut best: Option<(f64, Diffusion, Value)> = None;
        for rate in &self.rates {
            let (diffusion, training) = self.trained_at(*rate, task)?;
            let max_degree = self.config.denoiser.max_degree;
            let places = coarse_modes(&task.tuning_pass(&diffusion), max_degree);
            let within = shares(&places, &task.simulation.test.places[..TUNING])?;
            let score = within[2..].iter().sum::<f64>() / 3.0;
            tried.push(json!([rate, round(score)]));
            if best.as_ref().is_none_or(|best| score > best.0) {
                best = Some((score, diffusion, training));
            }
        }
        let (_, diffusion, mut training) = best.context("no rates")?;
        training["tried"] = json!(tried);
        Ok((diffusion, training))
    }

    /// The test places' modes in one pass of the model with the better rate, and what its training
    /// took. They are kept beside the model.
    pub fn answers(&self, task: &Task) -> Result<(Vec<LatLon>, Value)> {
        let (diffusion, training) = self.trained(task)?;
        let rate = training["rate"].as_f64().context("a training has a rate")?;
        let max_degree = self.config.denoiser.max_degree;
        let places = kept_places(&self.directory(rate).join("modes.npy"), || {
            modes(&task.one_pass(&diffusion), max_degree)
        })?;
        Ok((places, training))
    }

    fn directory(&self, rate: f64) -> PathBuf {
        let text = json!([self.config, self.steps, rate, IMAGES_PER_PLACE]).to_string();
        Path::new(KEPT).join(format!("{:016x}", digest(&text)))
    }

    /// One that was trained before is opened.
    fn trained_at(&self, rate: f64, task: &Task) -> Result<(Diffusion, Value)> {
        let directory = self.directory(rate);
        let about = directory.join("training.json");
        if !about.exists() {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
            let simulation = &task.simulation;
            let trained = pool.install(|| {
                let budget = Budget::Steps(self.steps);
                let config = self.config.clone();
                train_for(budget, config, &simulation.train, simulation.width, rate, 1)
            });
            let card = "A model of the paper's tables: a simulation, of no use for photographs.\n";
            let model = DiffusionAbout::of_embeddings("geoclip location embedding with noise");
            trained.diffusion.save(&directory, &model, card)?;
            let training = json!({
                "name": self.name,
                "steps": trained.steps,
                "seconds": round(trained.seconds),
                "last_loss": round(trained.last_loss),
                "parameters": trained.diffusion.denoiser().num_params(),
                "commit": commit(),
            });
            std::fs::write(&about, training.to_string())?;
            eprintln!("{training}");
        }
        let mut training: Value = serde_json::from_slice(&std::fs::read(&about)?)?;
        training["name"] = json!(self.name);
        training["rate"] = json!(rate);
        Ok((Diffusion::open(&directory, &Device::flex())?, training))
    }
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

    /// The name of a method.
    pub fn name(&self, method: usize) -> String {
        self.about["methods"][method]["name"].as_str().unwrap_or_default().to_owned()
    }

    /// The commits that the methods were trained from.
    pub fn commits(&self) -> String {
        let methods = self.about["methods"].as_array();
        let mut commits: Vec<&str> =
            methods.into_iter().flatten().filter_map(|method| method["commit"].as_str()).collect();
        commits.sort_unstable();
        commits.dedup();
        commits.join(", ")
    }

    /// Percent within 1, 25, 200, 750 and 2500 km.
    pub fn shares(&self, method: usize) -> Result<[f64; 5]> {
        shares(&self.methods[method], &self.truths)
    }

    /// The same over places that have no training place within a kilometre.
    pub fn shares_of_new(&self, method: usize) -> Result<[f64; 5]> {
        let is_new = self.about["is_new"].as_str().context("about.json says not what is new")?;
        let numbers = || is_new.bytes().enumerate().filter(|(_, digit)| *digit == b'1');
        let pick = |all: &[LatLon]| -> Vec<LatLon> { numbers().map(|(k, _)| all[k]).collect() };
        shares(&pick(&self.methods[method]), &pick(&self.truths))
    }

    /// How many places have no training place within a kilometre.
    pub fn new_count(&self) -> usize {
        self.about["is_new"].as_str().map_or(0, |digits| digits.matches('1').count())
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

/// The paper's network and objective at a degree: full width unless a bottleneck is given. Without
/// dropout, because few images are seen twice.
pub fn published(
    max_degree: usize,
    condition: usize,
    bottleneck: Option<usize>,
) -> DiffusionConfig {
    DiffusionConfig {
        denoiser: DenoiserConfig {
            bottleneck,
            dropout: 0.0,
            ..DenoiserConfig::new(max_degree, condition)
        },
        schedule: ScheduleConfig::default(),
        objective: Objective::ReverseKl,
        quadrature: Quadrature::Anchors(2048),
    }
}

/// Ours at a degree: likelihood by the transform, narrow modules and a low-rank head.
pub fn ours(max_degree: usize, condition: usize, bottleneck: Option<usize>) -> DiffusionConfig {
    let rings = 3 * (max_degree + 1);
    let mut config = published(max_degree, condition, bottleneck);
    config.denoiser.head_rank = bottleneck.map(|width| 2 * width);
    DiffusionConfig {
        objective: Objective::Likelihood,
        quadrature: Quadrature::Transform(rings),
        ..config
    }
}

/// Batches that every variant sees: what two hours of a shared core allow for all of them.
pub const STEPS: usize = 1500;
/// Made-up images of each training place: half as many again as STEPS batches take, so that few are seen
/// twice and none is learned by heart.
pub const IMAGES_PER_PLACE: usize = 8;
/// Learning rates that are tried for the paper's objective, around what `experiments/baselines` found.
const RATES_PUBLISHED: [f64; 2] = [1.5e-4, 5e-4];
/// Learning rates that are tried for ours.
const RATES_OURS: [f64; 2] = [5e-4, 1.5e-3];

/// The folder's `config.json`.
pub fn config(folder: &Path) -> Result<Value> {
    let path = folder.join("config.json");
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The same for trainings: it must name the steps and the batch that the code takes.
pub fn training_config(folder: &Path) -> Result<Value> {
    let config = config(folder)?;
    let right = config["steps"] == json!(STEPS) && config["batch"] == json!(BATCH);
    ensure!(right, "{}: config.json has other steps or another batch", folder.display());
    Ok(config)
}

/// A list of whole numbers in a configuration.
pub fn whole_numbers(value: &Value) -> Result<Vec<usize>> {
    let list = value.as_array().context("not a list")?;
    let number = |value: &Value| Ok(value.as_u64().context("not a whole number")? as usize);
    list.iter().map(number).collect()
}

/// Trains or opens variants one after another and answers the test places in one pass, by the mode.
pub fn answer_all(task: &Task, variants: &[Variant], folder: &Path) -> Result<()> {
    let mut answers = Answers {
        truths: task.test.places.clone(),
        methods: Vec::new(),
        about: json!({
            "commit": commit(),
            "training_places": task.training_places(),
            "images_per_place": IMAGES_PER_PLACE,
            "is_new": task.is_new(),
            "methods": [],
        }),
    };
    for variant in variants {
        let (places, training) = variant.answers(task)?;
        answers.methods.push(places);
        answers.about["methods"].as_array_mut().context("a list")?.push(training);
        let k = answers.methods.len() - 1;
        eprintln!("{}: {}", variant.name, cells(&answers.shares(k)?));
        // After each: an interruption costs one variant.
        answers.write(folder)?;
    }
    Ok(())
}
