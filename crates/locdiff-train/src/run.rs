//! A whole run: data in, checkpoints and a model out, interruptible at any moment.
//!
//! ```text
//! RUN/config.toml    the configuration it was started with
//!     data.json      what the embeddings are; see `run_data.rs`
//!     log.jsonl      one line per report
//!     checkpoints/   see `checkpoint.rs`
//!     model/         the model directory, once it is done
//!     training.png   loss and scores over the steps
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use burn::tensor::Device;

use crate::checkpoint::{Checkpoint, Checkpoints, InvalidCheckpoint};
use crate::config::{RunConfig, TrainingConfig};
use crate::data::{DataError, Dataset, Ids, Part, Position, Skipped, Split, StreamOptions};
use crate::log::{Log, Record};
use crate::replicas::Replicas;
use crate::run_data::RunData;
use crate::training::{StepReport, Training};
use crate::training_error::TrainingError;
use crate::validation::{HeldOut, Validation};

/// Seconds between two lines of the log.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// Also for a short run: every so many steps.
const LOG_EVERY_STEPS: u64 = 50;

/// What to do, beyond the configuration.
#[derive(Debug)]
pub struct RunOptions {
    /// Where everything is written.
    pub directory: PathBuf,
    /// Whether to go on from the newest checkpoint there.
    pub start: Start,
    /// Stop, with a checkpoint, after so long.
    pub at_most: Option<Duration>,
    /// Where to compute.
    pub device: Device,
    /// What shares the steps' work, if the batch is cut into slices for it. The result doesn't depend on how many
    /// replicas there are, and a run can be resumed with another number of them.
    pub replicas: Option<Replicas>,
}

/// How a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// From nothing; the directory must not hold a run.
    New,
    /// From the newest checkpoint, or from nothing if there is none.
    Resume,
}

/// What happens on the way, for those who watch.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run begins at a step.
    Begun {
        /// Steps that were taken before.
        step: u64,
        /// Rows to train on, about: those held out are not yet told apart.
        rows: u64,
        /// Checkpoints that could not be read, and were passed over.
        damaged: &'a [InvalidCheckpoint],
    },
    /// A step was taken.
    Step(&'a StepReport),
    /// The averaged weights were scored.
    Validated(u64, &'a Validation),
    /// A checkpoint was written.
    Saved(&'a Path),
    /// A checkpoint could not be written; training goes on, earlier ones are intact.
    NotSaved(&'a InvalidCheckpoint),
    /// A line of the log could not be written; training goes on.
    NotLogged(&'a std::io::Error),
    /// A part of the data was left out.
    Skipped(&'a Skipped),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// All steps are done; the model is here.
    Finished(PathBuf),
    /// It was stopped after so many steps, and can be resumed.
    Stopped(u64),
}

/// Trains. `stop` is asked after each step; `watch` is called for each event.
pub fn train(
    config: &TrainingConfig,
    data: &Dataset,
    options: &RunOptions,
    stop: &dyn Fn() -> bool,
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, TrainingError> {
    config.check()?;
    let began = Instant::now();
    let directory = &options.directory;
    let checkpoints = Checkpoints::new(directory, config.checkpoint.keep);
    let config = &prepare(config, options, &checkpoints)?;
    let split = Split { share: config.validation.share, seed: config.run.seed };
    let run_data =
        RunData::prepare(directory, config, data, split, !checkpoints.steps().is_empty())?;
    let mut training = Training::begin(config.clone(), data.layout().width, &options.device)?
        .standardized(run_data.standardization.clone());
    if let Some(replicas) = &options.replicas {
        training = training.replicated(replicas.clone())?;
    }
    let mut position: Option<Position> = None;
    let mut damaged = Vec::new();
    if let Some((checkpoint, passed_over)) =
        checkpoints.newest::<_, Position>(training.denoiser())?
    {
        checkpoints.set_aside_after(checkpoint.step)?;
        position = Some(checkpoint.position.clone());
        damaged = passed_over;
        let averaged = checkpoint.averaged;
        training.restore(checkpoint.step, checkpoint.network, averaged, checkpoint.optimizer);
    }
    watch(Event::Begun { step: training.steps(), rows: data.rows(), damaged: &damaged });
    let mut log = Log::open(&directory.join("log.jsonl"), training.steps())
        .map_err(|source| file_error(directory.join("log.jsonl"), source))?;
    let held_out = held_out_rows(data, split, config)?;
    let stream_options = StreamOptions {
        batch: config.run.batch,
        seed: config.run.seed,
        part: Part::Train(split),
        ..StreamOptions::default()
    };
    let mut stream = match position {
        Some(position) => data.stream_from(stream_options, &position)?,
        None => data.stream(stream_options)?,
    };
    let mut saved_at = Instant::now();
    let mut since = Since::new();
    let mut skipped = 0;
    while training.steps() < config.run.steps {
        let Some(batch) = stream.next().transpose()? else { break };
        for part in &stream.skipped()[skipped..] {
            watch(Event::Skipped(part));
        }
        skipped = stream.skipped().len();
        let report = training.step(&batch.places, batch.embeddings);
        if !(report.loss.is_finite() && report.gradient_norm.is_finite()) {
            return Err(TrainingError::Diverged { step: report.step, loss: report.loss });
        }
        since.add(&report);
        watch(Event::Step(&report));
        let last = report.step == config.run.steps;
        let every = config.validation.every_steps;
        let validate = last || every > 0 && report.step.is_multiple_of(every);
        let validation = if validate {
            let model = run_data.model(config, training.model()?, training.steps());
            Validation::of(&model, &held_out)
        } else {
            None
        };
        if let Some(validation) = &validation {
            watch(Event::Validated(report.step, validation));
        }
        if since.due() || validate {
            let record = Record {
                replicas: options.replicas.as_ref().map(Replicas::count),
                ..since.record(&report, validation)
            };
            if let Err(error) = log.write(&record) {
                watch(Event::NotLogged(&error));
            }
            since = Since::new();
        }
        let out_of_time = options.at_most.is_some_and(|most| began.elapsed() >= most);
        let stopping = stop() || out_of_time;
        let every = config.checkpoint.every_steps;
        let due = saved_at.elapsed().as_secs_f64() >= 60.0 * config.checkpoint.every_minutes
            || every > 0 && report.step.is_multiple_of(every);
        if last || stopping || due {
            let checkpoint = Checkpoint {
                step: training.steps(),
                position: stream.position().clone(),
                network: training.denoiser().clone(),
                averaged: training.averaged(),
                optimizer: training.optimizer(),
            };
            match checkpoints.save(&checkpoint) {
                Ok(path) => watch(Event::Saved(&path)),
                // Ten minutes later there may be room again.
                Err(error) if !(last || stopping) => watch(Event::NotSaved(&error)),
                Err(error) => return Err(error.into()),
            }
            saved_at = Instant::now();
        }
        if stopping && !last {
            return Ok(Outcome::Stopped(training.steps()));
        }
    }
    let model = directory.join("model");
    run_data.save(config, &training.model()?, training.steps(), &model)?;
    log.plot(&directory.join("training.png"))
        .map_err(|source| file_error(directory.join("training.png"), source))?;
    Ok(Outcome::Finished(model))
}

/// Makes the run's directory, or checks that it is that of this configuration. Gives the configuration with the run's
/// number of slices.
fn prepare(
    config: &TrainingConfig,
    options: &RunOptions,
    checkpoints: &Checkpoints,
) -> Result<TrainingConfig, TrainingError> {
    let directory = &options.directory;
    let path = directory.join("config.toml");
    let before = if path.exists() {
        if options.start == Start::New {
            return Err(TrainingError::Exists(directory.into()));
        }
        Some(TrainingConfig::read(&path)?)
    } else {
        None
    };
    let mut config = config.clone();
    // A run that was begun with replicas keeps its slices, also without replicas.
    config.run.slices = config.run.slices.or(before.as_ref().and_then(|before| before.run.slices));
    if let Some(replicas) = &options.replicas {
        config = config.shared_by(replicas.count())?;
    }
    let text = toml::to_string(&config).expect("a configuration is a table of plain values");
    if let Some(before) = before {
        // A run may be made longer; everything else would make it another one.
        if let Some(last) = checkpoints.steps().last().filter(|last| **last > config.run.steps) {
            return Err(TrainingError::Shorter { done: *last, steps: config.run.steps });
        }
        let run = RunConfig { steps: config.run.steps, ..before.run };
        let same = TrainingConfig { run, ..before };
        if same != config && !checkpoints.steps().is_empty() {
            let before = toml::to_string(&same).unwrap_or_default();
            return Err(TrainingError::OtherConfig {
                difference: differences(&before, &text),
                path,
            });
        }
    }
    // What is there already is not touched: a full disk must not cost it.
    if fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(config);
    }
    let partial = directory.join("config.partial");
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&partial, text))
        .and_then(|()| fs::rename(&partial, &path))
        .map_err(|source| file_error(path, source))?;
    Ok(config)
}

fn differences(before: &str, now: &str) -> String {
    let only = |of: &str, other: &str, when: &str| -> String {
        let lines = of.lines().filter(|line| !other.lines().any(|there| there == *line));
        lines.map(|line| format!("  {when} {line}\n")).collect()
    };
    only(before, now, "then:") + &only(now, before, "now: ")
}

fn file_error(path: PathBuf, source: std::io::Error) -> TrainingError {
    TrainingError::File { path, error: source }
}

fn held_out_rows(
    data: &Dataset,
    split: Split,
    config: &TrainingConfig,
) -> Result<HeldOut, TrainingError> {
    let mut held_out = HeldOut::default();
    let rows = config.validation.rows;
    if split.share == 0.0 || rows == 0 {
        return Ok(held_out);
    }
    let options = StreamOptions {
        batch: rows.min(256),
        part: Part::Validation(split),
        ids: Ids::Omit,
        epochs: Some(1),
        ..StreamOptions::default()
    };
    for batch in data.stream(options)? {
        let batch = match batch {
            // So few rows that none is held out.
            Err(DataError::Empty { .. }) => break,
            batch => batch?,
        };
        held_out.places.extend(batch.places);
        held_out.embeddings.extend(batch.embeddings);
        if held_out.places.len() >= rows {
            break;
        }
    }
    held_out.places.truncate(rows);
    held_out.embeddings.truncate(rows * data.layout().width);
    Ok(held_out)
}

/// What was done since the last line of the log.
struct Since {
    began: Instant,
    steps: u64,
    rows: usize,
    loss: f64,
}

impl Since {
    fn new() -> Since {
        Since { began: Instant::now(), steps: 0, rows: 0, loss: 0.0 }
    }

    fn add(&mut self, report: &StepReport) {
        self.steps += 1;
        self.rows += report.rows;
        self.loss += report.loss;
    }

    fn due(&self) -> bool {
        self.began.elapsed() >= LOG_EVERY || self.steps >= LOG_EVERY_STEPS
    }

    fn record(&self, report: &StepReport, validation: Option<Validation>) -> Record {
        Record {
            step: report.step,
            loss: self.loss / self.steps as f64,
            gradient_norm: report.gradient_norm,
            rate: report.rate,
            rows_per_s: self.rows as f64 / self.began.elapsed().as_secs_f64(),
            replicas: None,
            validation,
        }
    }
}
