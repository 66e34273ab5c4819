//! Image in, probability map of the Earth out.
//!
//! [`Geolocator`] asks a model about a [`Photo`] and answers with an [`Estimate`]: a density, candidates
//! with names, regions. Beneath it is the diffusion over coefficients: the network ([`Denoiser`]), noise
//! levels ([`Schedule`]), objectives ([`Loss`]) and samplers ([`Diffusion`]), on Burn: tensors
//! live on a device that is chosen at run time.

mod adam;
mod average;
mod constraint;
mod continents;
mod countries;
mod cpu_integrals;
mod denoiser;
mod device;
mod diffusion;
mod earth_view;
mod estimate;
mod fused;
mod geoclip;
mod geolocator;
#[cfg(feature = "hub")]
pub mod hub;
mod image_encoder;
mod model_choice;
mod model_directory;
mod model_home;
mod named_parameters;
mod objective;
mod packed_weights;
mod photo;
mod place_names;
mod schedule;
mod self_test;
mod sphere_tensors;
mod view_encoder;
mod view_model;
mod views;
mod vision_transformer;
mod weights;

pub use adam::{Adam, AdamConfig, AdamState};
pub use average::moved_towards;
pub use constraint::{Constraint, InvalidConstraint};
pub use continents::{Continent, continent_at};
pub use countries::{Country, UnknownCountry, find as find_country, land};
pub use denoiser::{Denoiser, DenoiserConfig};
pub use device::{UnknownDevice, device_by_name};
pub use diffusion::{Diffusion, DiffusionConfig, Meaning, Method, SampleOptions, Step, rows};
pub use earth_view::{EarthView, EarthViewSettings, Recogniser, ViewReading};
pub use estimate::{Candidate, Estimate, Summary};
pub use fused::gelu;
pub use geoclip::{
    EmbeddedPlaces, Existing, GeoClip, GeoClipError, GeoClipLocator, GeoClipOptions, ImageHead,
    LocationEncoder,
};
pub use geolocator::{
    CannotOpen, Geolocator, LocationModel, MissingPart, ModelIdentity, NotItsKind, OpenOptions,
    installed_models,
};
pub use image_encoder::ImageEncoder;
pub use model_choice::{
    BUILT_IN, FOR_THE_GROUND, NAMED, NoAnswer, OTHERWISE, Said, ask, ask_in_turn,
};
pub use model_directory::InvalidModel;
pub use model_home::{ModelHome, NoHome};
pub use objective::{Loss, Objective, Quadrature};
pub use packed_weights::PackedWeights;
pub use photo::{
    InvalidPreprocessing, Photo, PhotoError, PhotoFormat, Preprocessing, ReadOptions, Views, gps_of,
};
pub use place_names::{PlaceName, place_name};
pub use schedule::{InvalidSchedule, LEAKAGE_LIMIT, Schedule, ScheduleConfig, ScheduleKind};
pub use self_test::{
    SelfTest, SelfTestFailed, record_published_geoclip, test_earth_view, test_encoder, test_geoclip,
};
pub use sphere_tensors::{SphereGrid, encodings};
pub use view_encoder::{ViewEncoder, ViewEncoderConfig};
pub use view_model::{ViewModel, ViewModelConfig};
pub use vision_transformer::{Family, Gelu, InvalidEncoder, VisionConfig, VisionTransformer};
pub use weights::{InvalidWeights, read_weights, write_weights};
