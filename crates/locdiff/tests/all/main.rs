//! What models, encoders and the diffusion promise. One program, because each that is linked costs as much as all of its tests.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

mod diffusion;
mod earth_view;
mod flow;
mod geoclip;
#[cfg(feature = "hub")]
mod hub;
mod hybrid;
mod layout;
mod models;
mod vision_transformer;
