//! What a model is, and its identity.

use locdiff_gallery::EncoderIdentity;
use locdiff_sphere::{Density, DensityRecord};

use super::footprint::Footprint;
use super::inference::{Inference, InvalidInference, Sampler};
use super::reference::Reference;
use crate::encoders::EncoderRecord;
use crate::geography::Constraint;
use crate::photo::Photo;

/// What every model that locates photographs fulfils, whatever is inside.
pub trait LocationModel: Send + Sync {
    /// Which model this is, and what its numbers are worth.
    fn identity(&self) -> &ModelIdentity;

    /// How it answers unless somebody asks for something else.
    fn inference(&self) -> Inference {
        Inference::default()
    }

    /// Whether it can answer in some way. What its training supports badly comes back as warnings.
    fn check(&self, inference: &Inference) -> Result<Vec<String>, InvalidInference>;

    /// A density for each photograph, in their order, and its footprint if the model finds one; or why a photograph is
    /// none of those that the model is for. `inference` is one that [`LocationModel::check`] accepted.
    fn locate(&self, photos: &[Photo], inference: &Inference) -> Vec<Result<Located, NotItsKind>>;

    /// The same if it is known where the photographs were taken: for models that can then look more closely. The
    /// densities need not be restricted to that.
    fn locate_within(
        &self,
        photos: &[Photo],
        inference: &Inference,
        _within: &[Constraint],
    ) -> Vec<Result<Located, NotItsKind>> {
        self.locate(photos, inference)
    }

    /// What the model's encoder makes of each photograph: the numbers that its answer is made of.
    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>>;

    /// The same for each row of embeddings that were made beforehand, each of so many views: `[rows, views, width]`. `None`
    /// if the model takes photographs only.
    fn locate_embeddings(
        &self,
        _embeddings: &[f32],
        _views: usize,
        _inference: &Inference,
    ) -> Option<Vec<Located>> {
        None
    }

    /// The encoder whose embeddings [`LocationModel::locate_embeddings`] takes, and their length.
    fn takes_embeddings_of(&self) -> Option<(&EncoderRecord, usize)> {
        None
    }

    /// The encoder of [`LocationModel::embed`], as galleries store it: a gallery of the same can be searched with these
    /// embeddings. `None` if they are not made to be compared.
    fn embeds_with(&self) -> Option<EncoderIdentity> {
        self.takes_embeddings_of().map(|(record, width)| record.for_gallery(width))
    }

    /// One way to an answer by diffusion, to be watched: so many of the steps of this model, from "anywhere" to a
    /// place. Nothing if the model has no diffusion.
    fn denoising(&self, _photo: &Photo, _frames: usize, _inference: &Inference) -> Vec<Frame> {
        Vec::new()
    }

    /// Whether it rejects pictures that are not of its kind, so that another model may be asked about them.
    fn rejects_pictures(&self) -> bool {
        false
    }

    /// Whether it compares pictures with maps, so that it can be told their width, and not to register them.
    fn compares_with_maps(&self) -> bool {
        false
    }

    /// Default number of steps of a sampler; `None` if the model has no such sampler.
    fn usual_steps(&self, _sampler: Sampler) -> Option<usize> {
        None
    }

    /// How often the network is evaluated for one photograph.
    fn evaluations(&self, _inference: &Inference) -> usize {
        1
    }

    /// How often the network is evaluated for [`LocationModel::denoising`].
    fn steps_of_denoising(&self, _inference: &Inference) -> usize {
        0
    }

    /// Whether [`LocationModel::denoising`] has anything to show.
    fn can_denoise(&self) -> bool {
        false
    }
}

/// What a model makes of one photograph.
#[derive(Debug, Clone)]
pub struct Located {
    /// Where it was probably taken.
    pub density: Density,
    /// The ground that it shows, if the model registered it against a map.
    pub footprint: Option<Footprint>,
    /// Photographs of a gallery that resemble it, the most similar first; none without a gallery.
    pub references: Vec<Reference>,
    /// What to know before this density is used, such as its error.
    pub warnings: Vec<String>,
}

impl From<Density> for Located {
    fn from(density: Density) -> Located {
        Located { density, footprint: None, references: Vec::new(), warnings: Vec::new() }
    }
}

/// One step of a denoising.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Frame {
    /// Which step: 0 is pure noise.
    pub step: usize,
    /// Number of the last step.
    pub of: usize,
    /// What the network makes of the latent there.
    pub density: DensityRecord,
}

/// Which model gave an answer, and what its numbers are worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelIdentity {
    /// What it is called: the name by which it is opened, or that of its directory.
    pub name: String,
    /// Changes with the weights and whatever else changes answers.
    pub version: String,
    /// Description of the model in a line.
    pub description: String,
    /// Whether 90 % means that nine of ten such answers hold the truth. If not, the numbers are
    /// the model's scores, and must not be called probabilities.
    pub calibrated: bool,
    /// What the numbers silently assume, if it is known: where photographs are taken.
    pub prior: Option<String>,
}

/// The photograph is none of those that a model is for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NotItsKind {
    /// The picture is not of the model's kind: ask another model.
    #[error("not a picture for this model: {0}")]
    Other(String),
    /// It may be of the right kind, but matches no place.
    #[error("no answer: {0}")]
    TellsNothing(String),
    /// The picture was not taken in the area that was given.
    #[error("within {within}: {reason}")]
    Outside {
        /// The area that was given.
        within: String,
        /// Why the picture cannot be from there.
        reason: String,
    },
}
