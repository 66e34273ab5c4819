//! Checkpoints: a directory each, complete or not there.
//!
//! ```text
//! RUN/checkpoints/000001200/model.safetensors      weights
//!                           averaged.safetensors   their moving average
//!                           optimizer.safetensors  means of gradients and squares
//!                           state.json             step, position in the data, checksums
//! ```
//!
//! A checkpoint is written under another name, flushed to the disk and renamed: whatever
//! stops the program (a kill, a full disk), the ones before it stay readable. Opening takes
//! the newest that is whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::AdamState;
use burn::module::Module;
use locdiff::checksum::sha256_of_file;
use locdiff::diffusion::Denoiser;
use locdiff::tensors::{read_weights, write_weights};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data::Position;

const WEIGHTS: &str = "model.safetensors";
const AVERAGED: &str = "averaged.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const STATE: &str = "state.json";
const PARTIAL: &str = "partial";

/// Where a run stands: a network, and where its data go on.
#[derive(Debug)]
pub struct Checkpoint<M = Denoiser, P = Position> {
    /// Steps that were taken.
    pub step: u64,
    /// Position in the data at which training continues.
    pub position: P,
    /// Weights of the last step.
    pub network: M,
    /// Moving average of the weights, which becomes the model.
    pub averaged: M,
    /// Moments of the optimizer.
    pub optimizer: AdamState,
}

#[derive(Debug, Serialize, Deserialize)]
struct State<P> {
    version: u32,
    step: u64,
    optimizer_steps: u64,
    position: P,
    /// SHA-256 of each other file.
    checksums: BTreeMap<String, String>,
}

/// A checkpoint that can't be written or read.
#[derive(Debug, thiserror::Error)]
#[error("checkpoint {path}: {reason}", path = path.display())]
pub struct InvalidCheckpoint {
    /// The directory or file.
    pub path: PathBuf,
    /// What is wrong.
    pub reason: String,
}

fn invalid(path: &Path, reason: impl ToString) -> InvalidCheckpoint {
    InvalidCheckpoint { path: path.into(), reason: reason.to_string() }
}

/// A checkpoint, and newer ones that are damaged.
pub type Found<M, P> = (Checkpoint<M, P>, Vec<InvalidCheckpoint>);

/// The checkpoints of a run.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    directory: PathBuf,
    keep: usize,
}

impl Checkpoints {
    /// Those of a run's directory, of which the newest `keep` are kept.
    pub fn new(run: &Path, keep: usize) -> Checkpoints {
        Checkpoints { directory: run.join("checkpoints"), keep: keep.max(1) }
    }

    /// Writes one, then removes those that are too many.
    pub fn save<M: Module, P: Serialize + Clone>(
        &self,
        checkpoint: &Checkpoint<M, P>,
    ) -> Result<PathBuf, InvalidCheckpoint> {
        let partial = self.directory.join(PARTIAL);
        let place = self.directory.join(format!("{:09}", checkpoint.step));
        let written = self.write(checkpoint, &partial);
        if let Err(error) = written {
            // Room for others; that it could not be removed is the lesser trouble.
            let _ = fs::remove_dir_all(&partial);
            return Err(error);
        }
        if place.exists() {
            fs::remove_dir_all(&place).map_err(|error| invalid(&place, error))?;
        }
        fs::rename(&partial, &place)
            .and_then(|()| flush(&self.directory))
            .map_err(|error| invalid(&place, error))?;
        // A later one belongs to another attempt.
        let mut steps = self.steps();
        steps.retain(|step| *step <= checkpoint.step);
        while steps.len() > self.keep {
            let old = self.directory.join(format!("{:09}", steps.remove(0)));
            fs::remove_dir_all(&old).map_err(|error| invalid(&old, error))?;
        }
        Ok(place)
    }

    fn write<M: Module, P: Serialize + Clone>(
        &self,
        checkpoint: &Checkpoint<M, P>,
        partial: &Path,
    ) -> Result<(), InvalidCheckpoint> {
        let here = |error: io::Error| invalid(partial, error);
        if partial.exists() {
            fs::remove_dir_all(partial).map_err(here)?;
        }
        fs::create_dir_all(partial).map_err(here)?;
        let weights = |network, name: &str| {
            let path = partial.join(name);
            write_weights(network, &path, &[]).map_err(|error| invalid(&path, error))
        };
        weights(&checkpoint.network, WEIGHTS)?;
        weights(&checkpoint.averaged, AVERAGED)?;
        write_optimizer(&checkpoint.optimizer, &partial.join(OPTIMIZER))?;
        let mut checksums = BTreeMap::new();
        for name in [WEIGHTS, AVERAGED, OPTIMIZER] {
            checksums.insert(name.to_owned(), sha256_of_file(&partial.join(name)).map_err(here)?);
            flush(&partial.join(name)).map_err(here)?;
        }
        let state = State {
            version: 1,
            step: checkpoint.step,
            optimizer_steps: checkpoint.optimizer.steps,
            position: checkpoint.position.clone(),
            checksums,
        };
        let state = serde_json::to_vec_pretty(&state).map_err(|error| invalid(partial, error))?;
        let mut file = File::create(partial.join(STATE)).map_err(here)?;
        file.write_all(&state).and_then(|()| file.sync_all()).map_err(here)?;
        flush(partial).map_err(here)
    }

    /// Renames the checkpoints after a step, which could not be read, so that the run can
    /// write its own there.
    pub(crate) fn set_aside_after(&self, step: u64) -> Result<(), InvalidCheckpoint> {
        for later in self.steps().into_iter().filter(|later| *later > step) {
            let path = self.directory.join(format!("{later:09}"));
            let aside = self.directory.join(format!("damaged-{later:09}"));
            let _ = fs::remove_dir_all(&aside);
            fs::rename(&path, &aside).map_err(|error| invalid(&path, error))?;
        }
        Ok(())
    }

    /// The steps that have a checkpoint, oldest first.
    pub fn steps(&self) -> Vec<u64> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut steps: Vec<u64> = names.filter_map(|name| name.parse().ok()).collect();
        steps.sort_unstable();
        steps
    }

    /// The newest checkpoint that is whole, and what was wrong with newer ones; `None` if
    /// there is none at all.
    pub fn newest<M: Module, P: DeserializeOwned>(
        &self,
        template: &M,
    ) -> Result<Option<Found<M, P>>, InvalidCheckpoint> {
        let mut damaged = Vec::new();
        for step in self.steps().into_iter().rev() {
            match self.read(step, template) {
                Ok(checkpoint) => return Ok(Some((checkpoint, damaged))),
                Err(error) => damaged.push(error),
            }
        }
        match damaged.into_iter().next() {
            None => Ok(None),
            Some(error) => Err(error),
        }
    }

    /// The checkpoint of a step; if there is none, the error names those that there are.
    pub fn at<M: Module, P: DeserializeOwned>(
        &self,
        step: u64,
        template: &M,
    ) -> Result<Checkpoint<M, P>, InvalidCheckpoint> {
        let steps = self.steps();
        if !steps.contains(&step) {
            let known: Vec<String> = steps.iter().map(u64::to_string).collect();
            let reason =
                format!("there is no checkpoint of step {step}, use one of {}", known.join(", "));
            return Err(invalid(&self.directory, reason));
        }
        self.read(step, template)
    }

    fn read<M: Module, P: DeserializeOwned>(
        &self,
        step: u64,
        template: &M,
    ) -> Result<Checkpoint<M, P>, InvalidCheckpoint> {
        let place = self.directory.join(format!("{step:09}"));
        let here = |error: io::Error| invalid(&place, error);
        let state = fs::read(place.join(STATE)).map_err(here)?;
        let state: State<P> =
            serde_json::from_slice(&state).map_err(|error| invalid(&place, error))?;
        if state.version != 1 {
            let reason = format!("is of version {}, this program reads version 1", state.version);
            return Err(invalid(&place, reason));
        }
        for (name, expected) in &state.checksums {
            let found = sha256_of_file(&place.join(name)).map_err(here)?;
            if found != *expected {
                let reason = format!("has checksum {found}, {STATE} has {expected}");
                return Err(invalid(&place.join(name), reason));
            }
        }
        let weights = |template: M, name: &str| {
            let path = place.join(name);
            read_weights(template, &path).map_err(|error| invalid(&path, error))
        };
        // The average takes no part in gradients.
        let averaged = weights(template.valid(), AVERAGED)?;
        Ok(Checkpoint {
            step: state.step,
            position: state.position,
            network: weights(template.clone(), WEIGHTS)?,
            averaged,
            optimizer: read_optimizer(&place.join(OPTIMIZER), state.optimizer_steps)?,
        })
    }
}

/// To the disk, not only to the system's memory.
fn flush(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn write_optimizer(state: &AdamState, path: &Path) -> Result<(), InvalidCheckpoint> {
    let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let mut tensors: Vec<(String, usize, Vec<u8>)> = Vec::new();
    for (name, (mean, square)) in &state.moments {
        tensors.push((format!("mean.{name}"), mean.len(), bytes(mean)));
        tensors.push((format!("square.{name}"), square.len(), bytes(square)));
    }
    let views = tensors.iter().map(|(name, count, bytes)| {
        let view = TensorView::new(Dtype::F32, vec![*count], bytes);
        (name.clone(), view.expect("the bytes are those of the shape"))
    });
    let file = serialize(views, None).map_err(|error| invalid(path, error))?;
    fs::write(path, file).map_err(|error| invalid(path, error))
}

fn read_optimizer(path: &Path, steps: u64) -> Result<AdamState, InvalidCheckpoint> {
    let file = fs::read(path).map_err(|error| invalid(path, error))?;
    let tensors = SafeTensors::deserialize(&file).map_err(|error| invalid(path, error))?;
    let numbers = |name: &str| -> Result<Vec<f32>, InvalidCheckpoint> {
        let view = tensors.tensor(name).map_err(|error| invalid(path, error))?;
        let (numbers, _) = view.data().as_chunks::<4>();
        Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    };
    let mut moments = BTreeMap::new();
    for name in tensors.names() {
        if let Some(parameter) = name.strip_prefix("mean.") {
            let both = (numbers(name)?, numbers(&format!("square.{parameter}"))?);
            moments.insert(parameter.to_owned(), both);
        }
    }
    Ok(AdamState { steps, moments })
}
