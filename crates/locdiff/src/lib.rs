//! Image in, probability map of the Earth out.
//!
//! What stands today is the diffusion over coefficients: the network ([`Denoiser`]), noise
//! levels ([`Schedule`]), objectives ([`Loss`]) and samplers ([`Diffusion`]), on Burn: tensors
//! live on a device that is chosen at run time.

mod adam;
mod average;
mod cpu_integrals;
mod denoiser;
mod device;
mod diffusion;
mod fused;
mod geoclip;
#[cfg(feature = "hub")]
pub mod hub;
mod image_encoder;
mod model_directory;
mod named_parameters;
mod objective;
mod photo;
mod schedule;
mod sphere_tensors;
mod views;
mod vision_transformer;
mod weights;

pub use adam::{Adam, AdamConfig, AdamState};
pub use average::moved_towards;
pub use denoiser::{Denoiser, DenoiserConfig};
pub use device::{UnknownDevice, device_by_name};
pub use diffusion::{Diffusion, DiffusionConfig, Meaning, Method, SampleOptions, Step, rows};
pub use geoclip::{Existing, GeoClip, GeoClipError, ImageHead, LocationEncoder};
pub use image_encoder::ImageEncoder;
pub use model_directory::InvalidModel;
pub use objective::{Loss, Objective, Quadrature};
pub use photo::{
    InvalidPreprocessing, Photo, PhotoError, PhotoFormat, Preprocessing, ReadOptions, Views, gps_of,
};
pub use schedule::{InvalidSchedule, LEAKAGE_LIMIT, Schedule, ScheduleConfig, ScheduleKind};
pub use sphere_tensors::{SphereGrid, encodings};
pub use vision_transformer::{Family, Gelu, InvalidEncoder, VisionConfig, VisionTransformer};
pub use weights::{InvalidWeights, read_weights, write_weights};
