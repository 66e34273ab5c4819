//! Image encoders that others trained: vision transformers, and the hub that they come from.

#[cfg(feature = "hub")]
pub mod hub;
pub(crate) mod image_encoder;
pub(crate) mod vision_transformer;

pub use image_encoder::ImageEncoder;
pub use vision_transformer::{Family, InvalidEncoder, VisionConfig, VisionTransformer};
