//! The contract between a model and everything around it: photographs in, densities out.

use std::path::PathBuf;

use burn::tensor::Device;
use locdiff_sphere::{Coefficients, Density};

use super::estimate::Estimate;
use crate::encoders::InvalidEncoder;
use crate::models::earth_view::EarthView;
use crate::models::geoclip::{GeoClipError, GeoClipLocator, GeoClipOptions};
use crate::models::{ModelHome, NoHome};
use crate::photo::Photo;

/// What every model that locates photographs fulfils, whatever is inside.
pub trait LocationModel: Send + Sync {
    /// Which model this is, and what its numbers are worth.
    fn identity(&self) -> &ModelIdentity;

    /// A density for each photograph, in their order; or why a photograph is none of those that
    /// the model is for.
    fn locate(&self, photos: &[Photo]) -> Vec<Result<Density, NotItsKind>>;

    /// What the model's encoder makes of each photograph: the numbers that its answer is made of.
    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>>;

    /// One way to an answer by diffusion, to be watched: so many of its steps, from "anywhere" to a
    /// place, with the exponents of what is believed there. Nothing if the model has no diffusion.
    fn denoising(&self, _photo: &Photo, _frames: usize, _seed: u64) -> Vec<(usize, Coefficients)> {
        Vec::new()
    }

    /// Whether [`LocationModel::denoising`] has anything to show.
    fn can_denoise(&self) -> bool {
        false
    }
}

/// Which model gave an answer, and what its numbers are worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelIdentity {
    /// The name by which it is opened.
    pub name: String,
    /// Changes with the weights and whatever else changes answers.
    pub version: String,
    /// What it is, in a line.
    pub description: String,
    /// Whether 90 % means that nine of ten such answers hold the truth. If not, the numbers are
    /// the model's scores, and must not be called probabilities.
    pub calibrated: bool,
    /// What the numbers silently assume, if it is known: where photographs are taken.
    pub prior: Option<String>,
}

/// The photograph is none of those that a model is for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotItsKind {
    /// It shows something else: another model may know.
    #[error("not a picture for this model: {0}")]
    Other(String),
    /// It may be of the right kind, but nothing in it tells where it was taken.
    #[error("no answer: {0}")]
    TellsNothing(String),
}

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

/// Looks at photographs and answers with probability maps.
///
/// ```no_run
/// use locdiff::{Geolocator, Photo};
///
/// let estimate = Geolocator::open("earth-view")?.locate(&Photo::open("photo.jpg")?)?;
/// println!("{}", estimate.summary(5).best());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Geolocator {
    model: Box<dyn LocationModel>,
}

impl std::fmt::Debug for Geolocator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Geolocator({:?})", self.model.identity())
    }
}

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

impl Geolocator {
    /// A model on this machine, by name: `earth-view` (built in, for views of the Earth from above),
    /// `geoclip` (over its own gallery of places), or `geoclip-even` (over an even grid).
    pub fn open(name: &str) -> Result<Geolocator, CannotOpen> {
        Geolocator::open_with(name, &OpenOptions::default(), &mut |_, _| {})
    }

    /// A model on this machine, by name, with options. What is computed once and then kept (the embeddings of
    /// GeoCLIP's places) may take a minute: `progress` hears how much of how much is done.
    pub fn open_with(
        name: &str,
        options: &OpenOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Geolocator, CannotOpen> {
        if name == "earth-view" {
            return Ok(Geolocator::from_model(EarthView::built_in(&options.device)));
        }
        let home = match &options.home {
            Some(home) => home.clone(),
            None => ModelHome::from_env()?,
        };
        let even = match name {
            "geoclip" => false,
            "geoclip-even" => true,
            _ => return Err(CannotOpen::Unknown(name.to_owned())),
        };
        let geoclip = GeoClipOptions { even, ten_crop: options.ten_crop };
        let model = GeoClipLocator::open(&home, geoclip, &options.device, progress)?;
        Ok(Geolocator::from_model(model))
    }

    /// Any model.
    pub fn from_model(model: impl LocationModel + 'static) -> Geolocator {
        Geolocator { model: Box::new(model) }
    }

    /// Which model this is.
    pub fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }

    /// Where a photograph was taken.
    pub fn locate(&self, photo: &Photo) -> Result<Estimate, NotItsKind> {
        self.locate_all(std::slice::from_ref(photo)).pop().expect("one answer for one photograph")
    }

    /// [`LocationModel::embed`].
    pub fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        self.model.embed(photos)
    }

    /// [`LocationModel::can_denoise`].
    pub fn can_denoise(&self) -> bool {
        self.model.can_denoise()
    }

    /// [`LocationModel::denoising`].
    pub fn denoising(&self, photo: &Photo, frames: usize, seed: u64) -> Vec<(usize, Coefficients)> {
        self.model.denoising(photo, frames, seed)
    }

    /// Where photographs were taken, each by itself; together they are a little faster.
    pub fn locate_all(&self, photos: &[Photo]) -> Vec<Result<Estimate, NotItsKind>> {
        let identity = self.model.identity();
        let answers = self.model.locate(photos).into_iter();
        answers
            .map(|answer| answer.map(|density| Estimate::new(density, identity.clone())))
            .collect()
    }
}

/// Models that are complete on this machine, the one to ask first at the front.
pub fn installed_models(home: &ModelHome) -> Vec<&'static str> {
    let geoclip = GeoClipLocator::missing(home).is_none();
    if geoclip { vec!["earth-view", "geoclip", "geoclip-even"] } else { vec!["earth-view"] }
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
