//! The encoder of whole pictures that the first version of this model had: embeddings of views of the Earth from above, to
//! train on. Answers from whole pictures did not carry over to real ones, but experiments and the example model
//! (`examples/models/earth`, where it is) are made of its embeddings.

use std::path::Path;

use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

use super::packed_weights::PackedWeights;
use super::view_encoder::{ViewEncoder, ViewEncoderConfig};
use crate::checksum::sha256;
use crate::encoders::{Embedder, EncoderRecord, InvalidEncoder};
use crate::photo::{Photo, Preprocessing};
use crate::tensors::InvalidWeights;
use crate::tensors::fused::numbers_of;

const FILE: &str = "view-encoder.safetensors";
/// A photograph from orbit has no up: it is looked at in four directions.
const TURNS: usize = 4;
/// The header's entry with the settings, and the weights' name.
const SETTINGS: &str = "earth-view";
const ENCODER: &str = "view.encoder";

/// The mean embedding of a picture in four directions.
#[derive(Debug)]
pub struct EarthViewEncoder {
    encoder: ViewEncoder,
    preprocessing: Preprocessing,
    record: EncoderRecord,
}

impl EarthViewEncoder {
    /// The encoder in a directory; `None` if there is another one, or none.
    pub fn open(
        directory: &Path,
        device: &Device,
    ) -> Option<Result<EarthViewEncoder, InvalidEncoder>> {
        let path = directory.join(FILE);
        let open = || {
            let bytes = std::fs::read(&path)
                .map_err(|error| InvalidEncoder::file(&path, error.to_string()))?;
            EarthViewEncoder::from_bytes(&bytes, device)
                .map_err(|error| InvalidEncoder::file(&path, error.to_string()))
        };
        path.is_file().then(open)
    }

    fn from_bytes(bytes: &[u8], device: &Device) -> Result<EarthViewEncoder, InvalidWeights> {
        let (weights, about) = PackedWeights::from_bytes(bytes)?;
        let wrong = |reason: String| InvalidWeights::Format { path: FILE.into(), reason };
        let settings: serde_json::Value = about
            .get(SETTINGS)
            .and_then(|settings| serde_json::from_str(settings).ok())
            .ok_or_else(|| wrong("it has no settings".to_owned()))?;
        let config: ViewEncoderConfig =
            serde_json::from_value(settings["model"]["encoder"].clone())
                .map_err(|error| wrong(error.to_string()))?;
        if let Some(problem) = config.problem(weights.count()) {
            return Err(wrong(problem));
        }
        let encoder = weights.apply(ENCODER, config.init(device))?;
        let side = encoder.side() as u32;
        // Levels from 0 to 255: the network takes bytes.
        let (mean, std) = ([0.0; 3], [1.0 / 255.0; 3]);
        let preprocessing = Preprocessing::plain(side, side, mean, std);
        let sha256 = sha256(bytes);
        let record = EncoderRecord {
            preprocessing: Some(preprocessing.clone()),
            ..EncoderRecord::of_identity(format!("earth-view id:{}", &sha256[..16]))
        };
        let record = EncoderRecord { sha256: Some(sha256), ..record };
        let mut encoder = EarthViewEncoder { encoder, preprocessing, record };
        let pixels = encoder.preprocessing.apply(&Photo::test_picture());
        encoder.record.test_embedding = encoder.embed_pixels(pixels);
        Ok(encoder)
    }

    /// Pixels along a side of the pictures that it takes.
    pub fn side(&self) -> usize {
        self.encoder.side()
    }

    /// Embeddings of squares as red, green and blue bytes, as they are: in one direction.
    pub fn embed_upright(&self, pixels: &[u8]) -> Vec<f32> {
        numbers_of(&self.encoder.forward(pixels))
    }
}

impl Embedder for EarthViewEncoder {
    fn record(&self) -> &EncoderRecord {
        &self.record
    }

    fn width(&self) -> usize {
        self.record.test_embedding.len()
    }

    fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    fn embed_pixels(&self, pixels: Vec<f32>) -> Vec<f32> {
        let (each, side) = (self.preprocessing.len(), self.encoder.side());
        assert!(pixels.len().is_multiple_of(each), "pixels of whole pictures");
        let mut turned = Vec::with_capacity(TURNS * pixels.len());
        for picture in pixels.chunks_exact(each) {
            let mut square = bytes_of(picture);
            for _ in 0..TURNS {
                turned.extend_from_slice(&square);
                square = quarter_turn(&square, side);
            }
        }
        if turned.is_empty() {
            return Vec::new();
        }
        // Both cores, also for a single picture.
        let squares = turned.len() / each;
        let part = squares.div_ceil(rayon::current_num_threads()).max(2) * each;
        let encode = |part: &[u8]| self.encoder.forward(part);
        let embeddings = Tensor::cat(turned.par_chunks(part).map(encode).collect(), 0);
        let [rows, width] = embeddings.dims();
        let means = embeddings.reshape([rows / TURNS, TURNS, width]).mean_dim(1);
        numbers_of(&means.reshape([rows / TURNS, width]))
    }
}

/// From `[3, side, side]` to `[side, side, 3]`.
pub(super) fn bytes_of(picture: &[f32]) -> Vec<u8> {
    let (red, rest) = picture.split_at(picture.len() / 3);
    let (green, blue) = rest.split_at(picture.len() / 3);
    let colors = red.iter().zip(green).zip(blue).flat_map(|((r, g), b)| [r, g, b]);
    colors.map(|level| level.round() as u8).collect()
}

/// The picture turned to the left.
fn quarter_turn(pixels: &[u8], side: usize) -> Vec<u8> {
    let mut turned = Vec::with_capacity(pixels.len());
    for row in 0..side {
        for column in 0..side {
            let from = 3 * (column * side + side - 1 - row);
            turned.extend_from_slice(&pixels[from..from + 3]);
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::photo::Crops;

    #[test]
    fn four_quarter_turns_are_none() {
        let pixels: Vec<u8> = (0..27).collect();
        // The top right corner comes to the top left.
        assert_eq!(quarter_turn(&pixels, 3)[..3], pixels[6..9]);
        let turned = (0..4).fold(pixels.clone(), |pixels, _| quarter_turn(&pixels, 3));
        assert_eq!(turned, pixels);
    }

    /// The Earth has no up: a picture that is turned has the same embedding.
    #[test]
    fn turning_a_picture_changes_nothing() {
        let directory =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/earth/encoder");
        let encoder = EarthViewEncoder::open(&directory, &Device::flex()).unwrap().unwrap();
        let side = encoder.side();
        let photo = Photo::test_picture();
        let square = photo.square(side as u32);
        let turned = quarter_turn(&square, side);
        let embed = |pixels: Vec<u8>| {
            let photo = Photo::from_rgb(side as u32, side as u32, pixels).unwrap();
            encoder.embed_photos(&[photo], &Crops::Single)
        };
        let (a, b) = (embed(square), embed(turned));
        assert_eq!(a.len(), encoder.width());
        let largest = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(largest < 1e-4, "{largest:e}");
        assert!(encoder.embed_pixels(Vec::new()).is_empty());
    }
}
