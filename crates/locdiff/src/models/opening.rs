//! How a model is opened, and why it may fail.

use std::path::PathBuf;

use burn::tensor::Device;

use super::geoclip::GeoClipError;
use super::home::{ModelHome, NoHome};
use crate::encoders::InvalidEncoder;

/// Why a model could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CannotOpen {
    /// No model has that name.
    #[error("there is no model `{0}`: use {KNOWN_MODELS}")]
    Unknown(String),
    /// Known, but not on this machine.
    #[error("model `{model}` is not complete: {missing}. {remedy}")]
    Missing {
        /// Its name.
        model: String,
        /// The part that isn't there.
        missing: String,
        /// What to do.
        remedy: String,
    },
    /// Nobody knows where models live.
    #[error(transparent)]
    Home(#[from] NoHome),
    /// GeoCLIP's files are damaged or others.
    #[error(transparent)]
    GeoClip(#[from] GeoClipError),
    /// The image encoder's files are damaged or others.
    #[error(transparent)]
    Encoder(#[from] InvalidEncoder),
}

const KNOWN_MODELS: &str = "earth-view, geoclip, geoclip-even";

/// How a model is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Where it computes.
    pub device: Device,
    /// Where models live. `None`: what the environment says.
    pub home: Option<ModelHome>,
    /// Ten views of each photograph instead of one, for models that can: ten times the work for
    /// slightly better answers.
    pub ten_crop: bool,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions { device: Device::flex(), home: None, ten_crop: false }
    }
}

/// A part of a model that isn't on this machine, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPart {
    /// What it is.
    pub part: String,
    /// Where it was looked for.
    pub looked_in: PathBuf,
    /// What to do.
    pub remedy: String,
}
