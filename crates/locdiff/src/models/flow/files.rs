//! The directory of a flow: `config.json`, `model.safetensors` as it was published, and `README.md`.

use std::fs;
use std::path::Path;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::network::{FlowConfig, FlowNetwork};
use crate::encoders::EncoderRecord;
use crate::locate::{Inference, Sampler};
use crate::models::directory::{
    CARD, CONFIG, InvalidModel, ModelDirectory, ModelKind, WEIGHTS, write_config,
};

/// Draws of a flow unless somebody asks for something else.
const SAMPLES: usize = 512;

/// What belongs to a flow besides its weights: the part of `config.json` that only flows have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowAbout {
    /// The shape of the network.
    pub network: FlowConfig,
    /// The encoder whose embeddings are the condition.
    pub encoder: EncoderRecord,
    /// How it answers unless somebody asks for something else.
    pub inference: Inference,
    /// Where the weights come from.
    #[serde(default)]
    pub source: Option<FlowSource>,
}

/// Where published weights come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSource {
    /// `owner/name` on the hub.
    pub repository: String,
    /// Commit of the repository.
    pub revision: String,
    /// License of the weights.
    pub licence: String,
    /// Whose photographs the network was trained on.
    pub trained_on: String,
}

impl FlowAbout {
    /// A flow that answers with samples.
    pub fn new(network: FlowConfig, encoder: EncoderRecord) -> FlowAbout {
        let inference =
            Inference { sampler: Sampler::Flow, samples: SAMPLES, ..Inference::default() };
        FlowAbout { network, encoder, inference, source: None }
    }

    /// Makes a model directory, or replaces the model in one, with a copy of a published file of weights. The weights are read
    /// first: what can't be used is not installed.
    pub fn install(&self, directory: &Path, weights: &Path) -> Result<(), InvalidModel> {
        self.read(weights, &Device::flex())?;
        fs::create_dir_all(directory).map_err(InvalidModel::file("make", directory.to_owned()))?;
        let (config, to) = (directory.join(CONFIG), directory.join(WEIGHTS));
        // A directory with a configuration is whole.
        for old in [&config, &to] {
            match fs::remove_file(old) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(InvalidModel::file("remove", old.clone())(error));
                }
                _ => {}
            }
        }
        // The hub's cache has links to its files; the file itself is shared if that is possible.
        let file = weights.canonicalize().map_err(InvalidModel::file("read", weights.into()))?;
        if fs::hard_link(&file, &to).is_err() {
            fs::copy(&file, &to).map_err(InvalidModel::file("write", to))?;
        }
        let card = directory.join(CARD);
        fs::write(&card, self.card()).map_err(InvalidModel::file("write", card))?;
        let value = serde_json::to_value(self).expect("a configuration is JSON");
        write_config(directory, ModelKind::Flow, value, &[WEIGHTS])
    }

    fn card(&self) -> String {
        let FlowConfig { dim, depth, .. } = self.network;
        let mut text = format!(
            "# A flow on the sphere\n\nA network of plonk (\"Around the World in 80 Timesteps\", \
             <https://arxiv.org/abs/2412.06781>) of width {dim} and depth {depth}, on embeddings of {}.\n\n\
             Its probabilities are not calibrated: calibrate them with `locdiff calibrate`.\n",
            self.encoder
        );
        if let Some(FlowSource { repository, revision, licence, trained_on }) = &self.source {
            text.push_str(&format!(
                "\n| | |\n|---|---|\n| from | {repository} at {revision} |\n| license | {licence} |\n\
                 | trained on | {trained_on} |\n"
            ));
        }
        text
    }

    /// The network with the weights of a file.
    fn read(&self, weights: &Path, device: &Device) -> Result<FlowNetwork, InvalidModel> {
        if let Some(reason) = self.network.problem() {
            return Err(InvalidModel::Contents { path: weights.to_owned(), reason });
        }
        Ok(FlowNetwork::read(&self.network, weights, device)?)
    }
}

/// A flow and what belongs to it.
pub(super) fn read_flow(
    directory: &ModelDirectory,
    device: &Device,
) -> Result<(FlowNetwork, FlowAbout), InvalidModel> {
    directory.expect(ModelKind::Flow)?;
    let path = directory.path();
    let about: FlowAbout = serde_json::from_value(directory.config().clone())
        .map_err(|error| InvalidModel::Config { path: path.join(CONFIG), error })?;
    Ok((about.read(&path.join(WEIGHTS), device)?, about))
}
