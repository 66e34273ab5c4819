//! A model directory from a checkpoint, so that a run that was stopped is a model too.

use std::path::Path;

use burn::tensor::Device;
use locdiff::diffusion::Diffusion;

use crate::checkpoint::{Checkpoint, Checkpoints, InvalidCheckpoint};
use crate::config::TrainingConfig;
use crate::data::Position;
use crate::run_data::RunData;
use crate::training_error::TrainingError;

/// Writes the model of a run's checkpoint into a directory: the one of a step, or the newest that is whole. The step it is of.
pub fn export(run: &Path, step: Option<u64>, directory: &Path) -> Result<u64, TrainingError> {
    let config = TrainingConfig::read(&run.join("config.toml"))?;
    let run_data = RunData::read(run)?;
    let device = Device::flex();
    let model = config.diffusion(run_data.width);
    let template = model.denoiser.init(&device);
    let checkpoints = Checkpoints::new(run, config.checkpoint.keep);
    let checkpoint: Checkpoint<_, Position> = match step {
        Some(step) => checkpoints.at(step, &template)?,
        None => {
            let none = || {
                InvalidCheckpoint {
                path: run.join("checkpoints"),
                reason: "there is no checkpoint yet: let `locdiff train` run longer, or save one with Ctrl-C".to_owned(),
            }
            };
            checkpoints.newest(&template)?.ok_or_else(none)?.0
        }
    };
    let diffusion = Diffusion::with_denoiser(model, checkpoint.averaged, &device)?
        .standardized(run_data.standardization.clone());
    run_data.save(&config, &diffusion, checkpoint.step, directory)?;
    Ok(checkpoint.step)
}
