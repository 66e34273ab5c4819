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
mod embedder;
mod error;
mod image_head;
mod location_encoder;
mod locator;
mod named_tensors;
mod parts;
#[cfg(test)]
mod tests;
mod wheel;

pub use directory::Existing;
pub use embedded_places::EmbeddedPlaces;
pub use embedder::GeoClipEmbedder;
pub use error::GeoClipError;
pub use image_head::ImageHead;
pub use location_encoder::LocationEncoder;
pub use locator::GeoClipLocator;
pub use parts::GeoClip;
