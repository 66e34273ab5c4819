//! What can stop a run.

use std::path::PathBuf;

use locdiff::diffusion::InvalidSchedule;
use locdiff::models::InvalidModel;

use crate::checkpoint::InvalidCheckpoint;
use crate::config::InvalidConfig;
use crate::data::DataError;

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// The configuration contradicts itself, or has names that are not known.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// The schedule has no steps, or its noisiest level still reveals the place.
    #[error(transparent)]
    Schedule(#[from] InvalidSchedule),
    /// The embeddings cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A checkpoint cannot be read, or belongs to another run.
    #[error(transparent)]
    Checkpoint(#[from] InvalidCheckpoint),
    /// The model directory could not be written.
    #[error(transparent)]
    Model(#[from] InvalidModel),
    /// A file of the run could not be written.
    #[error("cannot write {path}: {error}", path = path.display())]
    File {
        /// The file that could not be written.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file of the run can't be read.
    #[error("cannot read {path}: {error}", path = path.display())]
    Unreadable {
        /// The file that could not be read.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// An earlier version began the run, and didn't write what its embeddings are.
    #[error(
        "{path} is missing: an earlier version of the program began this run. Resume it once with `locdiff train … \
         --resume`, which writes the file", path = path.display()
    )]
    NoRunData {
        /// `data.json` of the run.
        path: PathBuf,
    },
    /// The run was begun on other embeddings.
    #[error("the run was begun on embeddings of {then} ({path}), these are of {now}", path = path.display())]
    OtherData {
        /// The run's own record.
        path: PathBuf,
        /// The encoder at the start of the run.
        then: String,
        /// The encoder of these embeddings.
        now: String,
    },
    /// There is a run already.
    #[error("{path} contains a run already: resume it with --resume, or choose another directory", path = .0.display())]
    Exists(PathBuf),
    /// The configuration of the run that is resumed is another one.
    #[error("{path} was started with another configuration:\n{difference}", path = path.display())]
    OtherConfig {
        /// The run's configuration.
        path: PathBuf,
        /// Lines that differ.
        difference: String,
    },
    /// Fewer steps than were taken.
    #[error("the run has taken {done} steps already, run.steps = {steps}")]
    Shorter {
        /// Steps that were taken.
        done: u64,
        /// Steps that the configuration has.
        steps: u64,
    },
    /// The loss or its gradient is not finite.
    #[error(
        "the loss is {loss}, or its gradient is not finite, at step {step}: lower optimizer.rate or set optimizer.clip_norm; the last checkpoint is kept"
    )]
    Diverged {
        /// Step at which this happened.
        step: u64,
        /// Value of the loss.
        loss: f64,
    },
}
