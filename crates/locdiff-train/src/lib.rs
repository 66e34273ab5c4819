//! Data sets and training of LocDiff models.
//!
//! Embeddings with places live in Parquet shards ([`ShardWriter`], [`Dataset`], [`Stream`]). A
//! [`TrainingConfig`] (TOML) fixes a run; [`train`] does it, with checkpoints, a log and scores
//! on held-out rows; [`Plan`] estimates beforehand what it will need.

mod adam;
mod average;
mod checkpoint;
mod config;
mod data;
mod embed;
mod export;
mod log;
mod plan;
mod replicas;
mod run;
mod run_data;
mod store;
mod training;
mod training_error;
mod validation;

pub use adam::{Adam, AdamConfig, AdamState};
pub use average::moved_towards;
pub use checkpoint::{Checkpoint, Checkpoints, Found, InvalidCheckpoint};
pub use config::{
    CheckpointConfig, Decay, InvalidConfig, NetworkConfig, ObjectiveConfig, OptimizerConfig,
    OptimizerKind, RunConfig, TrainingConfig, ValidationConfig,
};
pub use data::*;
pub use embed::{
    EmbedError, EmbedEvent, EmbedOptions, EmbedSummary, InvalidShare, Share, SkippedImage, embed,
    images,
};
pub use export::export;
pub use log::{Log, Record};
pub use plan::Plan;
pub use replicas::{Replicas, SLICES};
pub use run::{Event, Outcome, RunOptions, Start, train};
#[cfg(feature = "s3")]
pub use store::choose_cryptography;
pub use store::{Store, StoreError, Stored};
pub use training::{StepReport, Training};
pub use training_error::TrainingError;
pub use validation::{HeldOut, Validation};
