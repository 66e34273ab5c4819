//! How a model is opened, and why it may fail.

use std::path::PathBuf;

use burn::tensor::Device;
use locdiff_gallery::GalleryError;

use super::directory::InvalidModel;
use super::geoclip::GeoClipError;
use super::home::{ModelHome, NoHome};
use super::shared_encoders::SharedEncoders;
use crate::encoders::{DifferentEncoder, InvalidEncoder};
use crate::locate::InvalidInference;
use crate::tensors::{UnknownDevice, device_by_name};

/// How a model is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Where it computes, by name: `cpu`, `cuda:N`, `wgpu` or `metal`.
    pub device: String,
    /// The directory of models. `None`: as in the environment.
    pub home: Option<ModelHome>,
    /// Where the model's image encoder comes from.
    pub encoder: EncoderSource,
    /// Models that are opened with the same options, or with a copy of them, share their encoders.
    pub shared: SharedEncoders,
}

/// Where a model's image encoder comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncoderSource {
    /// Wherever it is on this machine: in the program, imported, or in the hub's cache.
    #[default]
    Installed,
    /// The encoder in this directory or file.
    Path(PathBuf),
    /// Nowhere: the model will be asked about embeddings only.
    NotNeeded,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            device: "cpu".to_owned(),
            home: None,
            encoder: EncoderSource::Installed,
            shared: SharedEncoders::default(),
        }
    }
}

impl OpenOptions {
    pub(super) fn home(&self) -> Result<ModelHome, NoHome> {
        self.home.clone().map_or_else(ModelHome::from_env, Ok)
    }

    /// Refuses an encoder for models that have their own.
    pub(super) fn expect_no_encoder(&self, model: &str) -> Result<(), CannotOpen> {
        match &self.encoder {
            EncoderSource::Path(_) => Err(CannotOpen::OwnEncoder(model.to_owned())),
            _ => Ok(()),
        }
    }

    pub(super) fn device(&self) -> Result<Device, UnknownDevice> {
        device_by_name(&self.device)
    }
}

/// Why a model could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CannotOpen {
    /// The model's calibration is damaged.
    #[error(transparent)]
    Calibration(#[from] crate::locate::InvalidCalibration),
    /// No model has that name, and no directory is there.
    #[error(
        "there is no model `{0}`: use {KNOWN_MODELS}, or the directory of a model such as runs/first/model"
    )]
    Unknown(String),
    /// Known, but not on this machine.
    #[error("model `{model}` is not complete: {missing}. {remedy}")]
    Missing {
        /// Name of the model.
        model: String,
        /// The part that isn't there.
        missing: String,
        /// What to do.
        remedy: String,
    },
    /// The encoder that was given is another one.
    #[error("model `{model}`: {error}")]
    OtherEncoder {
        /// The model's name.
        model: String,
        /// Both encoders.
        error: DifferentEncoder,
    },
    /// The gallery of a hybrid is of another encoder than its model.
    #[error(
        "model `{model}` needs embeddings of {expected}, the gallery {} contains embeddings of {found}: build the \
         gallery with the encoder of the model",
        gallery.display()
    )]
    OtherGallery {
        /// The density model's name.
        model: String,
        /// The density model's encoder.
        expected: String,
        /// The gallery's directory.
        gallery: PathBuf,
        /// The gallery's encoder.
        found: String,
    },
    /// A hybrid is fitted on embeddings, which its model doesn't take.
    #[error(
        "model `{model}` does not support embeddings: its product with a gallery can't be fitted"
    )]
    NoEmbeddings {
        /// The density model's name.
        model: String,
    },
    /// The gallery is damaged, not fitted, or of another encoder.
    #[error(transparent)]
    Gallery(#[from] GalleryError),
    /// It is not recorded which encoder made the embeddings that it was trained on.
    #[error(
        "model `{model}` was trained on embeddings of an encoder that is known only as `{encoder}`. For photographs, \
         give this encoder with --encoder PATH, or embed the training images again with `locdiff embed` and train \
         again. The model can be evaluated on embeddings: `locdiff evaluate --model … --data EMBEDDINGS`"
    )]
    UnknownEncoder {
        /// The model's name.
        model: String,
        /// What the model states about its encoder.
        encoder: String,
    },
    /// Two models can't be told apart.
    #[error("two models are named `{0}`: rename the directory of one of them")]
    SameName(String),
    /// It has its own encoder, and was given another.
    #[error(
        "model `{0}` has its own encoder: leave --encoder out, or choose the model of this encoder with --model"
    )]
    OwnEncoder(String),
    /// Its own way to answer is none.
    #[error("the inference settings in the model's config.json: {0}")]
    Inference(#[from] InvalidInference),
    /// This program can't compute there.
    #[error(transparent)]
    Device(#[from] UnknownDevice),
    /// The model's files are damaged or others.
    #[error(transparent)]
    Model(#[from] InvalidModel),
    /// There is no directory for models.
    #[error(transparent)]
    Home(#[from] NoHome),
    /// GeoCLIP's files are damaged or others.
    #[error(transparent)]
    GeoClip(#[from] GeoClipError),
    /// The image encoder's files are damaged or others.
    #[error(transparent)]
    Encoder(#[from] InvalidEncoder),
}

const KNOWN_MODELS: &str =
    "earth-view, geoclip, geoclip-even, plonk-yfcc, plonk-inaturalist, plonk-osv5m";

/// A part of a model that isn't on this machine, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPart {
    /// Name of the missing part, for people.
    pub part: String,
    /// Where it was looked for.
    pub looked_in: PathBuf,
    /// What to do.
    pub remedy: String,
}
