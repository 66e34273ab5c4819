//! What turns prepared pixels into embeddings, whatever is inside.

use super::record::EncoderRecord;
use crate::photo::{Crops, Photo, Preprocessing};

/// Crops that are prepared together.
const CROPS_TOGETHER: usize = 64;

/// A frozen encoder of images.
pub trait Embedder: Send + Sync {
    /// Identity of the encoder, which data sets and models store.
    fn record(&self) -> &EncoderRecord;

    /// Numbers per embedding.
    fn width(&self) -> usize;

    /// What is done to pictures beforehand.
    fn preprocessing(&self) -> &Preprocessing;

    /// From pictures side by side, each `preprocessing().len()` numbers, to embeddings side by
    /// side. It may use all threads of rayon.
    ///
    /// # Panics
    /// If the numbers aren't those of whole pictures.
    fn embed_pixels(&self, pixels: Vec<f32>) -> Vec<f32>;

    /// The embeddings of the crops of each photograph: `[photographs, crops, width]`.
    fn embed_photos(&self, photos: &[Photo], crops: &Crops) -> Vec<f32> {
        let each = crops.count() * self.preprocessing().len();
        let embed = |photos: &[Photo]| {
            let mut pixels = vec![0.0; photos.len() * each];
            for (photo, pixels) in photos.iter().zip(pixels.chunks_exact_mut(each)) {
                crops.prepare_into(photo, self.preprocessing(), pixels);
            }
            self.embed_pixels(pixels)
        };
        // Pixels of many crops take more memory than the photographs.
        photos.chunks((CROPS_TOGETHER / crops.count()).max(1)).flat_map(embed).collect()
    }
}
