//! A model on disk: a directory with `config.json`, `model.safetensors` and a `README.md`.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::diffusion::InvalidSchedule;
use crate::diffusion::{Diffusion, DiffusionConfig};
use crate::tensors::{InvalidWeights, read_weights, write_weights};

const FORMAT: &str = "locdiff-diffusion";
const VERSION: u32 = 1;
const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";

/// `config.json`.
#[derive(Debug, Serialize, Deserialize)]
struct ModelFile {
    format: String,
    version: u32,
    /// The program that wrote it.
    written_by: String,
    /// What the condition is: the encoder that the model was trained with.
    encoder: String,
    #[serde(flatten)]
    config: DiffusionConfig,
}

/// Why a directory is not a model.
#[derive(Debug, thiserror::Error)]
pub enum InvalidModel {
    /// A file can't be read or written.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// `config.json` is not what it should be.
    #[error("{path} is not a model's configuration: {source}")]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The model is of another kind or from another version.
    #[error("{path} is of format {found}, this program reads {FORMAT} version {VERSION}")]
    Version {
        /// The file.
        path: PathBuf,
        /// What the file says.
        found: String,
    },
    /// The noise levels are of no use.
    #[error(transparent)]
    Schedule(#[from] InvalidSchedule),
    /// The weights are not those of the configuration.
    #[error(transparent)]
    Weights(#[from] InvalidWeights),
}

impl Diffusion {
    /// Writes the model into a directory, which is made if need be. `encoder` names what the
    /// condition is; `card` is the text of the model card.
    pub fn save(&self, directory: &Path, encoder: &str, card: &str) -> Result<(), InvalidModel> {
        let file = |what, name: &str| {
            let path = directory.join(name);
            move |source| InvalidModel::File { what, path, source }
        };
        fs::create_dir_all(directory).map_err(file("make", ""))?;
        write_weights(self.denoiser(), &directory.join(WEIGHTS), &[("format", FORMAT)])?;
        let config = ModelFile {
            format: FORMAT.into(),
            version: VERSION,
            written_by: concat!("locdiff ", env!("CARGO_PKG_VERSION")).into(),
            encoder: encoder.into(),
            config: self.config().clone(),
        };
        let text = serde_json::to_string_pretty(&config).expect("a configuration is JSON");
        fs::write(directory.join("README.md"), card).map_err(file("write", "README.md"))?;
        // Last: a directory with a configuration is whole.
        fs::write(directory.join(CONFIG), text + "\n").map_err(file("write", CONFIG))
    }

    /// Reads a model that [`Diffusion::save`] wrote.
    pub fn open(directory: &Path, device: &Device) -> Result<Diffusion, InvalidModel> {
        let path = directory.join(CONFIG);
        let text = fs::read_to_string(&path).map_err(|source| InvalidModel::File {
            what: "read",
            path: path.clone(),
            source,
        })?;
        let invalid = |source| InvalidModel::Config { path: path.clone(), source };
        // Format and version first: the rest may be of another kind.
        let value: serde_json::Value = serde_json::from_str(&text).map_err(invalid)?;
        if value["format"] != FORMAT || value["version"] != VERSION {
            let found = format!("{} version {}", value["format"], value["version"]);
            return Err(InvalidModel::Version { path, found });
        }
        let file: ModelFile = serde_json::from_value(value).map_err(invalid)?;
        let denoiser = file.config.denoiser.init(device);
        let denoiser = read_weights(denoiser, &directory.join(WEIGHTS))?;
        Ok(Diffusion::with_denoiser(file.config, denoiser, device)?)
    }
}
