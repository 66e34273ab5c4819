//! Kinds of models that fulfil the contract of [`crate::locate`], and how they are opened.

mod directory;
pub mod earth_view;
pub mod geoclip;
mod home;
mod opening;
mod registry;
mod self_test;

pub use directory::InvalidModel;
pub use home::{ModelHome, NoHome};
pub use opening::{CannotOpen, MissingPart, OpenOptions};
pub use registry::installed_models;
pub use self_test::{
    SelfTest, SelfTestFailed, record_published_geoclip, test_earth_view, test_encoder, test_geoclip,
};
