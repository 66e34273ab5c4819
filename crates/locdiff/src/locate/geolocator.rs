//! A model of any kind, asked about photographs.

use std::sync::Arc;

use super::calibration::Calibration;
use super::estimate::Estimate;
use super::inference::{Inference, InferenceOptions, InvalidInference};
use super::model::{Frame, Located, LocationModel, ModelIdentity, NotItsKind};
use crate::checksum::Checksum;
use crate::encoders::EncoderRecord;
use crate::geography::Constraint;
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
#[derive(Clone)]
pub struct Geolocator {
    model: Arc<dyn LocationModel>,
    /// The model's own, and whether its numbers are probabilities here.
    identity: ModelIdentity,
    calibration: Option<Arc<Calibration>>,
    inference: Inference,
    warnings: Vec<String>,
    within: Vec<Constraint>,
}

impl std::fmt::Debug for Geolocator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Geolocator({:?}, {:?})", self.model.identity(), self.inference)
    }
}

impl Geolocator {
    /// Any model, asked in its own way; refused if its own way is none.
    pub fn from_model(model: impl LocationModel + 'static) -> Result<Geolocator, InvalidInference> {
        let inference = model.inference();
        let (warnings, within, identity) = (Vec::new(), Vec::new(), model.identity().clone());
        let model = Arc::new(model);
        Geolocator { model, identity, calibration: None, inference, warnings, within }
            .with(&InferenceOptions::default())
    }

    /// The same model, asked in another way. That costs nothing: the model is shared.
    pub fn with(&self, options: &InferenceOptions) -> Result<Geolocator, InvalidInference> {
        let mut inference = self.inference.with(options);
        if inference.sampler.takes_steps() && inference.steps.is_none() {
            inference.steps = self.model.usual_steps(inference.sampler);
        }
        inference.check()?;
        if !self.model.compares_with_maps() {
            inference.expect_no_maps(&self.identity().name)?;
        }
        let mut warnings = self.model.check(&inference)?;
        let mut identity = self.model.identity().clone();
        if let Some(calibration) = &self.calibration {
            let mismatch = calibration.mismatch(&identity.version, &inference);
            if mismatch.is_none() {
                identity.calibrated = true;
                let mut sum = Checksum::default();
                sum.update(format!("{} {}", calibration.sharpness, calibration.background));
                identity.version = format!("{}+{}", identity.version, sum.finish_short());
            }
            warnings.extend(mismatch);
        }
        Ok(Geolocator { identity, inference, warnings, ..self.clone() })
    }

    /// The same model with a calibration, which counts as long as the model is asked in the way that it is for.
    pub fn with_calibration(
        &self,
        calibration: Calibration,
    ) -> Result<Geolocator, InvalidInference> {
        Geolocator { calibration: Some(Arc::new(calibration)), ..self.clone() }
            .with(&InferenceOptions::default())
    }

    /// The same model without its calibration.
    pub fn uncalibrated(&self) -> Result<Geolocator, InvalidInference> {
        Geolocator { calibration: None, ..self.clone() }.with(&InferenceOptions::default())
    }

    /// The calibration, if it counts for how the model is asked.
    pub fn calibration(&self) -> Option<&Calibration> {
        let calibration = self.calibration.as_deref()?;
        let version = &self.model.identity().version;
        calibration.mismatch(version, &self.inference).is_none().then_some(calibration)
    }

    /// The same model, asked about photographs that were taken in all of these areas: answers are restricted to them, and
    /// models that can look more closely there do so.
    pub fn within(&self, areas: &[Constraint]) -> Geolocator {
        Geolocator { within: areas.to_vec(), ..self.clone() }
    }

    /// The same model for a model that is made of it, asked in a way that [`LocationModel::check`] accepted: the warnings of that
    /// are the other model's, those of an estimate concern its density only.
    pub(crate) fn asked(&self, inference: &Inference) -> Geolocator {
        Geolocator { inference: *inference, warnings: Vec::new(), ..self.clone() }
    }

    pub(crate) fn model(&self) -> &dyn LocationModel {
        &*self.model
    }

    /// Name, version and description of the model, and whether it is calibrated.
    pub fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    /// The inference options, resolved.
    pub fn inference(&self) -> &Inference {
        &self.inference
    }

    /// What the model's training supports badly of that.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Where a photograph was taken.
    pub fn locate(&self, photo: &Photo) -> Result<Estimate, NotItsKind> {
        self.locate_all(std::slice::from_ref(photo)).pop().expect("one answer for one photograph")
    }

    /// Where photographs were taken, each by itself; together they are a little faster.
    pub fn locate_all(&self, photos: &[Photo]) -> Vec<Result<Estimate, NotItsKind>> {
        let answers = self.model.locate_within(photos, &self.inference, &self.within).into_iter();
        answers.map(|answer| answer.and_then(|located| self.restricted(located))).collect()
    }

    /// [`LocationModel::locate_embeddings`].
    pub fn locate_embeddings(&self, embeddings: &[f32], views: usize) -> Option<Vec<Estimate>> {
        let located = self.model.locate_embeddings(embeddings, views, &self.inference)?;
        Some(located.into_iter().map(|located| self.estimate(located)).collect())
    }

    /// [`LocationModel::takes_embeddings_of`].
    pub fn takes_embeddings_of(&self) -> Option<(&EncoderRecord, usize)> {
        self.model.takes_embeddings_of()
    }

    /// [`LocationModel::rejects_pictures`].
    pub fn rejects_pictures(&self) -> bool {
        self.model.rejects_pictures()
    }

    /// How often the network is evaluated for one photograph.
    pub fn evaluations(&self) -> usize {
        self.model.evaluations(&self.inference)
    }

    /// [`LocationModel::embed`].
    pub fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        self.model.embed(photos)
    }

    /// [`LocationModel::can_denoise`].
    pub fn can_denoise(&self) -> bool {
        self.model.can_denoise()
    }

    /// [`LocationModel::steps_of_denoising`].
    pub fn steps_of_denoising(&self) -> usize {
        self.model.steps_of_denoising(&self.inference)
    }

    /// [`LocationModel::denoising`].
    pub fn denoising(&self, photo: &Photo, frames: usize) -> Vec<Frame> {
        self.model.denoising(photo, frames, &self.inference)
    }

    fn restricted(&self, located: Located) -> Result<Estimate, NotItsKind> {
        self.within.iter().try_fold(self.estimate(located), |estimate, area| {
            estimate.restricted_to(area).map_err(|error| NotItsKind::Outside {
                within: area.to_string(),
                reason: error.to_string(),
            })
        })
    }

    fn estimate(&self, mut located: Located) -> Estimate {
        if let Some(calibration) = self.calibration() {
            located.density = calibration.apply(&located.density);
        }
        Estimate::new(located, self.identity.clone(), self.inference, self.warnings.clone())
    }
}
