//! GeoCLIP's image side as an encoder: photographs in the space of places, without a list of places.

use std::path::Path;

use burn::tensor::{Tensor, TensorData};

use super::image_head::ImageHead;
use super::locator::open_parts;
use crate::encoders::{Embedder, EncoderRecord, ImageEncoder};
use crate::models::{CannotOpen, OpenOptions};
use crate::photo::{Photo, Preprocessing};

/// CLIP's image tower and GeoCLIP's head. Its embeddings can be compared with those of
/// [`LocationEncoder`](super::LocationEncoder).
#[derive(Debug)]
pub struct GeoClipEmbedder {
    backbone: ImageEncoder,
    head: ImageHead,
    record: EncoderRecord,
}

impl GeoClipEmbedder {
    /// The name that its record has.
    pub const NAME: &str = "geoclip";

    /// From GeoCLIP's model directory; CLIP's image tower is found as for the whole model.
    pub fn open(directory: &Path, options: &OpenOptions) -> Result<GeoClipEmbedder, CannotOpen> {
        let (geoclip, backbone) = open_parts(directory, options)?;
        let sha256 = geoclip.weights_sha256();
        let identity = format!("geoclip id:{}; {}", &sha256[..16], backbone.record().identity);
        let record = EncoderRecord {
            name: Some(GeoClipEmbedder::NAME.to_owned()),
            sha256: Some(sha256),
            preprocessing: Some(backbone.preprocessing().clone()),
            ..EncoderRecord::of_identity(identity)
        };
        let mut embedder = GeoClipEmbedder { backbone, head: geoclip.image_head, record };
        let pixels = embedder.preprocessing().apply(&Photo::test_picture());
        embedder.record.test_embedding = embedder.embed_pixels(pixels);
        Ok(embedder)
    }
}

impl Embedder for GeoClipEmbedder {
    fn record(&self) -> &EncoderRecord {
        &self.record
    }

    fn width(&self) -> usize {
        self.head.width()
    }

    fn preprocessing(&self) -> &Preprocessing {
        self.backbone.preprocessing()
    }

    fn embed_pixels(&self, pixels: Vec<f32>) -> Vec<f32> {
        let features = self.backbone.embed_pixels(pixels);
        let width = self.backbone.width();
        let shape = [features.len() / width, width];
        let features = TensorData::new(features, shape);
        let device = self.backbone.network().device();
        let embeddings = self.head.embed(Tensor::from_data(features, &device));
        embeddings.into_data_as::<f32>().try_into_vec().expect("f32")
    }
}
