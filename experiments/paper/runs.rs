//! Trains the rows and writes their answers down. What is there with the same key is not made again.

use std::cell::LazyCell;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::diffusion::{Diffusion, Method, SampleOptions};
use locdiff_experiments::baselines::{
    Calibration, FitOptions, Method as Baseline, Rule, log_with_uniform,
};
use locdiff_experiments::paper::{KEPT, Task, modes, step_clock};
use locdiff_experiments::{cpu_seconds, flat, places_of, read_npy, round, write_npy};
use locdiff_sphere::{Density, LatLon, coefficient_count, mean_place};
use locdiff_train::{Event, Outcome, RunOptions, Start, train};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lists::{self, LISTS};
use crate::retrieval::Places;
use crate::rows::{EVERY, How, Row, Rows, key_of_retrieval};

/// Samples of each image.
const SAMPLES: u64 = 16;
const TOGETHER: usize = 250;
/// Of the uniform density in a likelihood.
pub const UNIFORM_SHARE: f64 = 0.01;
/// Rows of coefficients that are written down.
pub const KEPT_OUTPUTS: usize = 40;
/// Of the flow, which has no configuration: what `experiments/earth-view/baselines` chose.
const FLOW_RATE: f64 = 4.5e-3;
/// Held-out places of MP16 by which the flow's kernel and rule are chosen.
const TUNING: usize = 500;

/// What is committed of a row and a seed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    pub row: String,
    pub seed: u64,
    pub key: String,
    pub steps: u64,
    pub batch: usize,
    pub parameters: usize,
    /// Of the processor.
    pub training_s: f64,
    pub last_loss: Option<f64>,
    /// As it was run.
    pub config: Value,
}

impl Run {
    pub fn folder() -> PathBuf {
        PathBuf::from("experiments/paper/answers")
    }

    pub fn path(row: &str, seed: u64, how: How) -> PathBuf {
        Run::folder().join(format!("{row}{}-{seed}.npy", how.suffix()))
    }

    fn record(row: &str, seed: u64) -> PathBuf {
        Run::folder().join(format!("{row}-{seed}.json"))
    }

    /// What is there of a row, if it was made by what the row says now.
    pub fn read(row: &Row, seed: u64) -> Result<Option<Run>> {
        let path = Run::record(&row.name, seed);
        if !path.exists() {
            return Ok(None);
        }
        let run: Run = serde_json::from_slice(&fs::read(path)?)?;
        let is_whole = row.answers.iter().all(|how| Run::path(&row.name, seed, *how).exists());
        Ok((is_whole && run.key == row.key(seed)?).then_some(run))
    }
}

/// Goes through all rows, seed by seed, until the minutes are over.
pub fn work(rows: &Rows, task: &Task, minutes: f64) -> Result<()> {
    let began = Instant::now();
    fs::create_dir_all(Run::folder())?;
    let truths = Run::folder().join("truths.npy");
    write_npy(&truths, &[task.test.places.len(), 2], &flat(&task.test.places))?;
    // Takes minutes, and few rows need it.
    let gallery = LazyCell::new(|| Places::new(task).expect("a gallery in a temporary directory"));
    let everywhere = Run::folder().join("retrieval.npy");
    if !is_retrieval_current() {
        let _ = fs::remove_file(Run::folder().join("retrieval-lists.npy"));
        write_places(&everywhere, &gallery.best(&task.test.conditions, None)?)?;
    }
    fs::write(Run::folder().join("retrieval.key"), key_of_retrieval() + "\n")?;
    for row in rows.iter() {
        for seed in 1..=row.seeds {
            if Run::read(row, seed)?.is_some() {
                continue;
            }
            if began.elapsed().as_secs_f64() > 60.0 * minutes {
                return Ok(());
            }
            // By the training, which rows may share.
            let Some(_mine) = Claim::on(&row.key(seed)?)? else { continue };
            // Answers of another configuration must not be taken for this one's.
            let _ = fs::remove_file(Run::record(&row.name, seed));
            let run = match row.flow_steps {
                Some(steps) => flow(row, steps, seed, task)?,
                None => diffusion(row, seed, task, &|| &gallery)?,
            };
            fs::write(Run::record(&row.name, seed), serde_json::to_string(&run)? + "\n")?;
            eprintln!(
                "{}, seed {seed}: {:.0} s, loss {:?}",
                row.name, run.training_s, run.last_loss
            );
        }
    }
    if began.elapsed().as_secs_f64() < 60.0 * minutes {
        retrieve(task)?;
    }
    Ok(())
}

/// Retrieval over all lists, if it is not there.
pub fn retrieve(task: &Task) -> Result<()> {
    let path = Run::folder().join("retrieval-lists.npy");
    let Some(_mine) = Claim::on("retrieval")?.filter(|_| !path.exists()) else { return Ok(()) };
    let found = lists::lists(task).flat_map(|list| lists::nearest(task, &list)).collect();
    write_lists(&path, found)
}

/// Whether the committed answers by retrieval are of today's data and arithmetic.
pub fn is_retrieval_current() -> bool {
    let key = fs::read_to_string(Run::folder().join("retrieval.key"));
    key.is_ok_and(|key| key.trim() == key_of_retrieval())
}

/// A training that this process works on: others leave it alone until the process ends.
struct Claim(PathBuf);

impl Claim {
    fn on(what: &str) -> Result<Option<Claim>> {
        let path = Path::new(KEPT).join(format!("{what}.claim"));
        if let Ok(owner) = fs::read_to_string(&path) {
            if Path::new("/proc").join(owner.trim()).exists() {
                return Ok(None);
            }
            fs::remove_file(&path)?;
        }
        let Ok(mut file) = File::create_new(&path) else { return Ok(None) };
        write!(file, "{}", std::process::id())?;
        Ok(Some(Claim(path)))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn write_places(path: &Path, places: &[LatLon]) -> Result<()> {
    write_npy(path, &[places.len(), 2], &flat(places))
}

/// One list's answers after another's.
fn write_lists(path: &Path, places: Vec<LatLon>) -> Result<()> {
    write_npy(path, &[LISTS.len(), places.len() / LISTS.len(), 2], &flat(&places))
}

/// Of a training and its model.
pub fn directory(key: &str) -> PathBuf {
    Path::new(KEPT).join("runs").join(key)
}

/// Trains a row with the product's own loop, which goes on where it was stopped. The last loss, if it was trained now.
pub fn trained(row: &Row, seed: u64, task: &Task) -> Result<Option<f64>> {
    let directory = directory(&row.key(seed)?);
    let mut last_loss = None;
    if directory.join("model/config.json").exists() {
        return Ok(last_loss);
    }
    let options = RunOptions {
        directory: directory.clone(),
        start: Start::Resume,
        at_most: None,
        device: Device::flex(),
        replicas: None,
    };
    let seconds = directory.join("seconds");
    let before = fs::read_to_string(&seconds).ok().and_then(|text| text.parse::<f64>().ok());
    let began = cpu_seconds();
    let outcome = train(&row.config(seed)?, &task.train, &options, &|| false, &mut |event| {
        if let Event::Step(report) = event {
            last_loss = Some(round(report.loss));
        }
    })?;
    fs::write(&seconds, (before.unwrap_or(0.0) + cpu_seconds() - began).to_string())?;
    ensure!(matches!(outcome, Outcome::Finished(_)), "the training was stopped");
    Ok(last_loss)
}

/// Trains and answers.
fn diffusion<'a>(
    row: &Row,
    seed: u64,
    task: &Task,
    gallery: &dyn Fn() -> &'a Places,
) -> Result<Run> {
    let config = row.config(seed)?;
    let key = row.key(seed)?;
    let directory = directory(&key);
    let last_loss = trained(row, seed, task)?;
    let model = Diffusion::open(&directory.join("model"), &Device::flex())?;
    let degree = model.config().denoiser.max_degree;
    let one_pass = outputs(&model, &task.test.conditions, Method::OnePass, 0);
    let few = every(&task.test.conditions, task.simulation.width);
    for how in &row.answers {
        let path = Run::path(&row.name, seed, *how);
        match how {
            How::OnePass => write_places(&path, &modes(&one_pass, degree))?,
            How::HybridOnePass => {
                let around = modes(&one_pass, degree).into_iter().map(|place| vec![place]);
                let around: Vec<Vec<LatLon>> = around.collect();
                write_places(&path, &gallery().best(&task.test.conditions, Some(&around))?)?;
            }
            How::Sampled => {
                let draws = draws(&model, &few, &directory)?;
                let mean = |draws: &Vec<LatLon>| mean_place(draws).unwrap_or(draws[0]);
                write_places(&path, &draws.iter().map(mean).collect::<Vec<_>>())?;
            }
            How::HybridSampled => {
                let draws = draws(&model, &few, &directory)?;
                write_places(&path, &gallery().best(&few, Some(&draws))?)?;
            }
            How::Lists => {
                let of = |list: Vec<LatLon>| lists::highest(&one_pass, degree, &list);
                write_lists(&path, lists::lists(task).flat_map(of).collect())?;
            }
            How::Nll => {
                let nlls = nlls(&model, &one_pass, &task.test.places)?;
                write_npy(&path, &[nlls.len()], &nlls)?;
            }
            How::Outputs => {
                let size = coefficient_count(degree);
                write_npy(&path, &[KEPT_OUTPUTS, size], &one_pass[..KEPT_OUTPUTS * size])?;
            }
        }
    }
    Ok(Run {
        row: row.name.clone(),
        seed,
        key,
        steps: config.run.steps,
        batch: config.run.batch,
        parameters: model.denoiser().num_params(),
        training_s: round(fs::read_to_string(directory.join("seconds"))?.parse()?),
        last_loss,
        config: serde_json::to_value(&config)?,
    })
}

/// Rows of every sixth place.
fn every(conditions: &[f32], width: usize) -> Vec<f32> {
    conditions.chunks_exact(width).step_by(EVERY).flatten().copied().collect()
}

/// What a sampler gives for each image, row by row.
fn outputs(model: &Diffusion, conditions: &[f32], method: Method, seed: u64) -> Vec<f32> {
    let width = model.config().denoiser.condition_size;
    let mut outputs = Vec::new();
    for part in conditions.chunks(TOGETHER * width) {
        let condition = model.condition(part.to_vec());
        let options = SampleOptions { method, seed, ..SampleOptions::default() };
        let output = model.sample(Some(condition), part.len() / width, options, |_| ());
        outputs.extend(output.into_data().try_to_vec::<f32>().expect("f32"));
    }
    outputs
}

/// Minus the logarithms of the densities at the truth, with a little of the uniform density mixed in: a linear density is zero in
/// places and would be infinitely wrong there.
fn nlls(model: &Diffusion, outputs: &[f32], truths: &[LatLon]) -> Result<Vec<f32>> {
    let size = outputs.len() / truths.len();
    let rows = TensorData::new(outputs.to_vec(), [truths.len(), size]);
    let densities = model.densities(&Tensor::from_data(rows, model.device()));
    let nll = |(density, truth): (Density, &LatLon)| {
        -log_with_uniform(density.log_density(*truth), UNIFORM_SHARE) as f32
    };
    Ok(densities.context("no density")?.into_iter().zip(truths).map(nll).collect())
}

/// The modes of all samples, image by image. Each draw is kept: together they take long.
fn draws(model: &Diffusion, conditions: &[f32], directory: &Path) -> Result<Vec<Vec<LatLon>>> {
    let mut all = Vec::new();
    for seed in 0..SAMPLES {
        let path = directory.join(format!("draw-{seed}.npy"));
        if !path.exists() {
            let unfinished = directory.join("draw.unfinished");
            let degree = model.config().denoiser.max_degree;
            let outputs = outputs(model, conditions, Method::Ddpm, seed);
            write_places(&unfinished, &modes(&outputs, degree))?;
            fs::rename(&unfinished, &path)?;
        }
        all.push(places_of(&read_npy(&path)?)?);
    }
    let images = all.first().context("no draws")?.len();
    Ok((0..images).map(|image| all.iter().map(|draw| draw[image]).collect()).collect())
}

/// Riemannian flow matching, by the loop of all baselines.
fn flow(row: &Row, steps: usize, seed: u64, task: &Task) -> Result<Run> {
    let width = task.simulation.width;
    let began = cpu_seconds();
    // The last question ends the training.
    let options =
        FitOptions { seconds: steps as f64 + 1.0, rate: FLOW_RATE, seed, clock: step_clock };
    let train = &task.simulation.train;
    let fitted = Baseline::RiemannianFlow.fit(&train.conditions, &train.places, &options);
    let training_s = round(cpu_seconds() - began);
    let held_out = &task.simulation.test;
    let tuned = fitted.model.answers(&held_out.conditions[..TUNING * width], 1);
    let shape = Calibration::fit(&tuned, &held_out.places[..TUNING]).shape;
    let rule = Rule::fit(&tuned, &held_out.places[..TUNING], shape);
    let few = every(&task.test.conditions, width);
    let answers = fitted.model.answers(&few, 2);
    let places: Vec<LatLon> = answers.iter().map(|answer| answer.place(rule, shape)).collect();
    write_places(&Run::path(&row.name, seed, How::OnePass), &places)?;
    Ok(Run {
        row: row.name.clone(),
        seed,
        key: row.key(seed)?,
        steps: fitted.steps as u64,
        batch: 256,
        parameters: 0,
        training_s,
        last_loss: None,
        config: Value::Null,
    })
}
