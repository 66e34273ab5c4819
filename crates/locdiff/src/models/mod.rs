//! Kinds of models that fulfil the contract of [`crate::locate`], and how they are opened.

mod diffusion_files;
mod diffusion_model;
mod directory;
pub mod earth_view;
mod encoder_search;
pub mod flow;
mod gallery_model;
pub mod geoclip;
mod home;
mod hybrid;
mod hybrid_files;
mod hybrid_making;
mod opening;
mod registry;
mod sample_kernel;
mod self_test;
mod shared_encoders;

pub use diffusion_files::{CONDITION_FILE, DiffusionAbout, TrainingFacts};
pub use diffusion_model::DiffusionModel;
pub use directory::{CheckedFile, InvalidModel, ModelDirectory, ModelKind};
pub use encoder_search::open_encoder;
pub use gallery_model::GalleryModel;
pub use home::{ModelHome, NoHome};
pub use hybrid::{HybridModel, most_similar_near};
pub use hybrid_files::{HybridConfig, HybridRule};
pub use hybrid_making::{HeldOut, create_hybrid};
pub use opening::{CannotOpen, EncoderSource, MissingPart, OpenOptions};
pub use registry::{
    BUILT_IN, FOR_THE_GROUND, calibration_directory, ground_model, installed_models,
    model_directories, model_directory,
};
pub use self_test::{
    SelfTest, SelfTestFailed, record_published_geoclip, test_earth_view, test_encoder, test_geoclip,
};
pub use shared_encoders::SharedEncoders;
