//! The library's encoder embeds.

use locdiff::encoders::ImageEncoder;
use locdiff::photo::Preprocessing;

use super::Embedder;

impl Embedder for ImageEncoder {
    fn identity(&self) -> &str {
        self.identity()
    }

    fn width(&self) -> usize {
        self.width()
    }

    fn preprocessing(&self) -> &Preprocessing {
        self.preprocessing()
    }

    fn embed(&self, pixels: Vec<f32>) -> Vec<f32> {
        self.embed(pixels)
    }
}
