//! A model of any kind, asked about photographs.

use locdiff_sphere::Coefficients;

use super::estimate::Estimate;
use super::model::{LocationModel, ModelIdentity, NotItsKind};
use crate::photo::Photo;

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

impl Geolocator {
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
