//! The encoder of earth-view as one that embeds pictures for training: all numbers of all parts, as the picture is.

use super::aligned_encoder::{AlignedEncoder, NUMBERS, PART};
use super::encoder::bytes_of;
use super::local_contrast::local_contrast;
use super::search::VIEW;
use crate::encoders::{Embedder, EncoderRecord};
use crate::photo::{Photo, Preprocessing};
use crate::tensors::fused::numbers_of;

/// Pictures that go through the network together.
const TOGETHER: usize = 8;

/// Embeds the central square of pictures: 64 parts with 32 numbers each.
#[derive(Debug)]
pub struct AlignedEmbedder {
    encoder: AlignedEncoder,
    preprocessing: Preprocessing,
    record: EncoderRecord,
}

impl AlignedEmbedder {
    /// Of an encoder with this name and checksum.
    pub(super) fn new(encoder: AlignedEncoder, name: &str, sha256: String) -> AlignedEmbedder {
        let side = VIEW as u32;
        // Levels from 0 to 255: the network takes bytes.
        let (mean, std) = ([0.0; 3], [1.0 / 255.0; 3]);
        let preprocessing = Preprocessing::plain(side, side, mean, std);
        let record = EncoderRecord {
            name: Some(name.to_owned()),
            preprocessing: Some(preprocessing.clone()),
            ..EncoderRecord::of_identity(format!("{name} id:{}", &sha256[..16]))
        };
        let record = EncoderRecord { sha256: Some(sha256), ..record };
        let mut embedder = AlignedEmbedder { encoder, preprocessing, record };
        let pixels = embedder.preprocessing.apply(&Photo::test_picture());
        embedder.record.test_embedding = embedder.embed_pixels(pixels);
        embedder
    }
}

impl Embedder for AlignedEmbedder {
    fn record(&self) -> &EncoderRecord {
        &self.record
    }

    fn width(&self) -> usize {
        (VIEW / PART).pow(2) * NUMBERS
    }

    fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    fn embed_pixels(&self, pixels: Vec<f32>) -> Vec<f32> {
        let each = self.preprocessing.len();
        assert!(pixels.len().is_multiple_of(each), "pixels of whole pictures");
        let embed = |pictures: &[f32]| {
            let contrast =
                pictures.chunks_exact(each).flat_map(|one| local_contrast(&bytes_of(one), VIEW));
            numbers_of(&self.encoder.parts(contrast.collect(), VIEW))
        };
        pixels.chunks(TOGETHER * each).flat_map(embed).collect()
    }
}
