//! GeoCLIP's location encoder, image head, logit scale and gallery.
//!
//! GeoCLIP (Vivanco Cepeda, Nayak and Shah, NeurIPS 2023, <https://arxiv.org/abs/2309.16020>)
//! places photographs and coordinates in one space of 512 dimensions: the cosine between an
//! image and a place, times the logit scale, is a logit over places. Here is everything of it
//! but the image backbone (CLIP ViT-L/14), whose 768 features the image head takes.
//!
//! The weights (MIT) aren't part of this program: [`GeoClip::import`] reads them out of the
//! wheel of `geoclip` 1.3.0, checksums and all, and runs none of the Python in it.
//! [`GeoClip::save`] writes a directory of `config.json`, `model.safetensors`, the gallery and a
//! model card, in the layout and with the tensor names of geoclip's own releases;
//! [`GeoClip::open`] reads it.
//!
//! Tested against PyTorch running the same weights: `parity/geoclip`.

mod directory;
mod embedded_places;
mod error;
mod image_head;
mod location_encoder;
mod locator;
mod named_tensors;
#[cfg(test)]
mod tests;
mod wheel;

use burn::tensor::{Device, Tensor};
use locdiff_sphere::LatLon;

pub use directory::Existing;
pub use embedded_places::EmbeddedPlaces;
pub use error::GeoClipError;
pub use image_head::ImageHead;
pub use location_encoder::LocationEncoder;
pub use locator::{GeoClipLocator, GeoClipOptions};
use named_tensors::{NamedTensors, NamedValues};

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
    ln_logit_scale: f32,
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

    fn from_tensors(
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

    fn to_tensors(&self) -> NamedTensors {
        let mut tensors = NamedTensors::default();
        self.location_encoder.put_into(&mut tensors);
        self.image_head.put_into(&mut tensors);
        let scale = NamedValues { shape: Vec::new(), values: vec![self.ln_logit_scale] };
        tensors.insert(LOGIT_SCALE.to_owned(), scale);
        tensors
    }
}

const LOGIT_SCALE: &str = "logit_scale";

/// Rows of length one, as `torch.nn.functional.normalize` makes them.
fn unit_rows(rows: Tensor<2>) -> Tensor<2> {
    let lengths = rows.clone().square().sum_dim(1).sqrt();
    rows / lengths.clamp_min(1e-12)
}
