//! What a model is, and what it says of itself.

use locdiff_sphere::{Coefficients, Density};

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
