//! Image encoders that others trained: vision transformers, and the hub that they come from.

mod embedder;
#[cfg(feature = "hub")]
pub mod hub;
mod image_encoder;
mod reading;
mod record;
mod vision_transformer;

pub use embedder::Embedder;
pub use image_encoder::ImageEncoder;
pub use reading::Reading;
pub use record::{DifferentEncoder, EncoderRecord, SAME_ENCODER_COSINE};
pub use vision_transformer::{Family, InvalidEncoder, VisionConfig, VisionTransformer};
