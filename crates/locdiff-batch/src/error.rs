//! Why a job can't be planned, run or finished. Single bad images are no error: they are rows with an error.

use locdiff::CannotOpen;
use locdiff::encoders::InvalidEncoder;
use locdiff::locate::InvalidInference;
use locdiff_train::{EmbedError, StoreError};

/// Why a job can't be planned, run or finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// A directory or object store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The input can't be listed.
    #[error(transparent)]
    Input(#[from] EmbedError),
    /// A file or object is not what it should be.
    #[error("{location}: {reason}")]
    Wrong {
        /// Path or address of the file or object.
        location: String,
        /// What is wrong.
        reason: String,
    },
    /// The job was planned for something else.
    #[error("{location} is a job with other settings:\n{difference}choose another directory")]
    OtherPlan {
        /// Directory or address of the job.
        location: String,
        /// Lines with the earlier and the present values.
        difference: String,
    },
    /// The job has no such unit.
    #[error("there is no unit {unit}: the job has {units}, numbered from 0")]
    NoUnit {
        /// The number that was asked for.
        unit: u64,
        /// Number of units of the job.
        units: u64,
    },
    /// The model can't be opened.
    #[error(transparent)]
    Open(#[from] CannotOpen),
    /// The model can't be asked in this way.
    #[error(transparent)]
    Inference(#[from] InvalidInference),
    /// The encoder can't be opened.
    #[error("encoder `{name}`")]
    Encoder {
        /// The encoder as the plan names it.
        name: String,
        /// What is wrong with it.
        source: InvalidEncoder,
    },
    /// The encoder isn't on this machine.
    #[error(
        "encoder `{0}` is not on this machine: get it with `locdiff model fetch`, or plan the job with its directory"
    )]
    NoEncoder(String),
    /// This machine would give other answers than those that were planned.
    #[error(
        "{name} has version {here} on this machine, the job was planned with version {planned}"
    )]
    OtherVersion {
        /// The model or encoder.
        name: String,
        /// What was planned.
        planned: String,
        /// What this machine has.
        here: String,
    },
    /// Units have no output, or a wrong one.
    #[error("the job is not finished: {0}")]
    Unfinished(String),
}

impl BatchError {
    pub(crate) fn wrong(location: impl Into<String>, reason: impl ToString) -> BatchError {
        BatchError::Wrong { location: location.into(), reason: reason.to_string() }
    }
}
