//! earth-view's encoder by itself: embeddings of views of the Earth from above, to train on.

use super::model::{EarthView, NAME};
use crate::encoders::{Embedder, EncoderRecord};
use crate::locate::LocationModel;
use crate::photo::{Photo, Preprocessing};
use crate::tensors::fused::numbers_of;

/// The mean embedding of a picture in four directions, by earth-view's network.
#[derive(Debug)]
pub struct EarthViewEncoder {
    model: EarthView,
    preprocessing: Preprocessing,
    record: EncoderRecord,
}

impl EarthViewEncoder {
    /// The encoder of a model.
    pub fn new(model: EarthView) -> EarthViewEncoder {
        let side = model.network().encoder().side() as u32;
        // Levels from 0 to 255: the network takes bytes.
        let (mean, std) = ([0.0; 3], [1.0 / 255.0; 3]);
        let preprocessing = Preprocessing { shortest_side: side, crop: side, mean, std };
        let record = EncoderRecord {
            name: Some(NAME.to_owned()),
            sha256: Some(model.sha256().to_owned()),
            preprocessing: Some(preprocessing.clone()),
            ..EncoderRecord::of_identity(format!("{NAME} id:{}", model.identity().version))
        };
        let mut encoder = EarthViewEncoder { model, preprocessing, record };
        let pixels = encoder.preprocessing.apply(&Photo::test_picture());
        encoder.record.test_embedding = encoder.embed_pixels(pixels);
        encoder
    }
}

impl Embedder for EarthViewEncoder {
    fn record(&self) -> &EncoderRecord {
        &self.record
    }

    fn width(&self) -> usize {
        self.model.settings().model.encoder.embedding
    }

    fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    fn embed_pixels(&self, pixels: Vec<f32>) -> Vec<f32> {
        let each = self.preprocessing.len();
        assert!(pixels.len().is_multiple_of(each), "pixels of whole pictures");
        let mut bytes = Vec::with_capacity(pixels.len());
        for picture in pixels.chunks_exact(each) {
            // From [3, side, side] to [side, side, 3].
            let (red, rest) = picture.split_at(each / 3);
            let (green, blue) = rest.split_at(each / 3);
            for ((r, g), b) in red.iter().zip(green).zip(blue) {
                bytes.extend([r, g, b].map(|level| level.round() as u8));
            }
        }
        self.model.mean_embeddings(&bytes).map_or(Vec::new(), |means| numbers_of(&means))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::photo::Crops;

    /// Embeddings that are trained on are those that the model answers with.
    #[test]
    fn pixels_are_embedded_as_the_model_embeds_photographs() {
        let encoder = EarthViewEncoder::new(EarthView::built_in(&Device::flex()));
        let photo = Photo::test_picture();
        let by_model = encoder.model.embed(std::slice::from_ref(&photo)).remove(0);
        let by_encoder = encoder.embed_photos(&[photo], &Crops::Single);
        assert_eq!(by_encoder.len(), encoder.width());
        let pairs = by_model.iter().zip(&by_encoder);
        let largest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(largest < 1e-5, "{largest:e}");
        assert!(encoder.embed_pixels(Vec::new()).is_empty());
    }
}
