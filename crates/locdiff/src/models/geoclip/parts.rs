//! GeoCLIP's trained parts together.

use burn::tensor::{Device, Tensor};
use locdiff_sphere::LatLon;

use super::error::GeoClipError;
use super::image_head::ImageHead;
use super::location_encoder::LocationEncoder;
use super::named_tensors::{NamedTensors, NamedValues};
use crate::checksum::Checksum;

/// GeoCLIP without its image backbone.
///
/// ```no_run
/// use burn::tensor::Device;
/// use locdiff::models::geoclip::GeoClip;
/// use locdiff_sphere::LatLon;
///
/// let geoclip = GeoClip::import("geoclip-1.3.0-py3-none-any.whl".as_ref(), &Device::flex())?;
/// let places = [LatLon::new(48.8566, 2.3522)?, LatLon::new(-33.8568, 151.2153)?];
/// let embeddings = geoclip.location_encoder.embed(&places);
/// assert_eq!(embeddings.dims(), [2, 512]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct GeoClip {
    /// From places to embeddings.
    pub location_encoder: LocationEncoder,
    /// From the backbone's features of an image to embeddings.
    pub image_head: ImageHead,
    /// The places that GeoCLIP chooses among; some occur more than once.
    pub gallery: Vec<LatLon>,
    /// As trained and stored: the logarithm.
    pub(super) ln_logit_scale: f32,
}

impl GeoClip {
    /// What a cosine is multiplied with to make a logit: about 39.69.
    pub fn logit_scale(&self) -> f32 {
        self.ln_logit_scale.exp()
    }

    /// Logits of places for images, from the embeddings of both: `[images, places]`. The
    /// probability of a place is the softmax over all places that were offered.
    pub fn logits(&self, images: Tensor<2>, places: Tensor<2>) -> Tensor<2> {
        images.matmul(places.transpose()) * self.logit_scale()
    }

    /// How many numbers were trained.
    pub fn parameter_count(&self) -> usize {
        let tensors = self.to_tensors();
        tensors.iter().map(|(_, tensor)| tensor.values.len()).sum()
    }

    /// A checksum of everything that was trained: SHA-256 of names and numbers.
    pub fn weights_sha256(&self) -> String {
        self.checksum().finish()
    }

    /// Changes with the weights.
    pub(super) fn checksum(&self) -> Checksum {
        let mut checksum = Checksum::default();
        for (name, tensor) in self.to_tensors().iter() {
            checksum.update(name);
            checksum.update(bytemuck::cast_slice::<f32, u8>(&tensor.values));
        }
        checksum
    }

    pub(super) fn from_tensors(
        mut tensors: NamedTensors,
        gallery: Vec<LatLon>,
        device: &Device,
    ) -> Result<GeoClip, GeoClipError> {
        let location_encoder = LocationEncoder::take_from(&mut tensors, device)?;
        let image_head = ImageHead::take_from(&mut tensors, device)?;
        let (place_width, image_width) = (location_encoder.width(), image_head.width());
        if place_width != image_width {
            return Err(GeoClipError::Widths { place_width, image_width });
        }
        let ln_logit_scale = tensors.take(LOGIT_SCALE)?.into_scalar(LOGIT_SCALE)?;
        tensors.expect_empty()?;
        Ok(GeoClip { location_encoder, image_head, gallery, ln_logit_scale })
    }

    pub(super) fn to_tensors(&self) -> NamedTensors {
        let mut tensors = NamedTensors::default();
        self.location_encoder.put_into(&mut tensors);
        self.image_head.put_into(&mut tensors);
        let scale = NamedValues { shape: Vec::new(), values: vec![self.ln_logit_scale] };
        tensors.insert(LOGIT_SCALE.to_owned(), scale);
        tensors
    }
}

pub(super) const LOGIT_SCALE: &str = "logit_scale";
