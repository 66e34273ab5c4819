//! The files of a diffusion: what `locdiff train` and `locdiff model export` write.

use std::fs;
use std::path::Path;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::directory::{
    CARD, FORMAT_1, InvalidModel, ModelDirectory, ModelKind, WEIGHTS, write_config,
};
use crate::diffusion::{Diffusion, DiffusionConfig, Standardization};
use crate::encoders::EncoderRecord;
use crate::locate::Inference;
use crate::tensors::{read_weights, write_weights};

/// What conditions are centered and scaled by.
pub const CONDITION_FILE: &str = "condition.safetensors";

/// What belongs to a diffusion besides its network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiffusionAbout {
    /// The encoder whose embeddings are the condition.
    pub encoder: EncoderRecord,
    /// How it answers unless somebody asks for something else: what suits its training.
    pub inference: Inference,
    /// What is known of its training.
    pub training: Option<TrainingFacts>,
}

impl DiffusionAbout {
    /// A diffusion of whose condition only a line of text is known: for embeddings, not for photographs.
    pub fn of_embeddings(encoder: &str) -> DiffusionAbout {
        DiffusionAbout {
            encoder: EncoderRecord::of_identity(encoder),
            inference: Inference::default(),
            training: None,
        }
    }
}

/// What is known of a training, as far as answers depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrainingFacts {
    /// Steps that were taken.
    pub steps: u64,
    /// Rows per step.
    pub batch: usize,
    /// Rows of the data set.
    pub rows: u64,
    /// Share of rows at the highest noise level, beyond those that are there by chance.
    pub share_at_full_noise: f64,
    /// Share of rows whose condition was dropped.
    pub condition_dropout: f64,
}

/// The part of `config.json` that only diffusions have.
#[derive(Serialize, Deserialize)]
struct DiffusionFile {
    #[serde(flatten)]
    about: DiffusionAbout,
    #[serde(flatten)]
    config: DiffusionConfig,
}

impl Diffusion {
    /// Writes the model into a directory, which is made if need be. `card` is the text of the model card.
    pub fn save(
        &self,
        directory: &Path,
        about: &DiffusionAbout,
        card: &str,
    ) -> Result<(), InvalidModel> {
        let make = InvalidModel::file("make", directory.to_owned());
        fs::create_dir_all(directory).map_err(make)?;
        let mut files = vec![WEIGHTS];
        write_weights(self.denoiser(), &directory.join(WEIGHTS), &[("format", "locdiff-model")])?;
        if let Some(standardization) = self.standardization() {
            standardization.save(&directory.join(CONDITION_FILE))?;
            files.push(CONDITION_FILE);
        }
        let path = directory.join(CARD);
        fs::write(&path, card).map_err(InvalidModel::file("write", path))?;
        let file = DiffusionFile { about: about.clone(), config: self.config().clone() };
        let config = serde_json::to_value(file).expect("a configuration is JSON");
        write_config(directory, ModelKind::Diffusion, config, &files)
    }

    /// Reads a model that [`Diffusion::save`] wrote, or version 1 of it.
    pub fn open(directory: &Path, device: &Device) -> Result<Diffusion, InvalidModel> {
        Ok(read_diffusion(&ModelDirectory::read(directory)?, device)?.0)
    }
}

/// A diffusion and what belongs to it.
pub(super) fn read_diffusion(
    directory: &ModelDirectory,
    device: &Device,
) -> Result<(Diffusion, DiffusionAbout), InvalidModel> {
    directory.expect(ModelKind::Diffusion)?;
    let path = directory.path();
    let mut value = directory.config().clone();
    if value["format"] == FORMAT_1 {
        // Version 1 stores a line of text about its encoder, and nothing about inference and training.
        let identity = value["encoder"].as_str().unwrap_or("unknown").to_owned();
        value["encoder"] =
            serde_json::to_value(EncoderRecord::of_identity(identity)).expect("a record is JSON");
        value["inference"] = serde_json::to_value(Inference::default()).expect("plain values");
        value["training"] = Value::Null;
    }
    let DiffusionFile { about, config } = serde_json::from_value(value).map_err(|error| {
        InvalidModel::Config { path: path.join(super::directory::CONFIG), error }
    })?;
    let weights = path.join(WEIGHTS);
    let problem = config.denoiser.problem();
    // A network that is larger than its file is not made: it might need all memory.
    let bytes = fs::metadata(&weights).map_err(InvalidModel::file("read", weights.clone()))?.len();
    let problem = problem.or_else(|| {
        let count = config.denoiser.weights();
        (count > bytes / 4)
            .then(|| format!("has {bytes} bytes, config.json needs {count} weights of 4 bytes"))
    });
    if let Some(reason) = problem {
        return Err(InvalidModel::Contents { path: weights, reason });
    }
    let denoiser = read_weights(config.denoiser.init(device), &weights)?;
    let width = config.denoiser.condition_size;
    let mut diffusion = Diffusion::with_denoiser(config, denoiser, device)?;
    let condition = path.join(CONDITION_FILE);
    if directory.files().contains_key(CONDITION_FILE) {
        let standardization = Standardization::open(&condition)?;
        if standardization.width() != width {
            let found = standardization.width();
            let reason = format!("is for {found} numbers, the network needs {width}");
            return Err(InvalidModel::Contents { path: condition, reason });
        }
        diffusion = diffusion.standardized(Some(standardization));
    }
    Ok((diffusion, about))
}
