//! Image in, probability map of the Earth out.
//!
//! ```no_run
//! use locdiff::{Geolocator, Photo};
//!
//! let estimate = Geolocator::open("earth-view")?.locate(&Photo::open("photo.jpg")?)?;
//! println!("{}", estimate.summary(5).best());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what is there |
//! |---|---|
//! | [`locate`] | the contract: what a model is, what it answers |
//! | [`models`] | kinds of models that fulfil it, and how they are opened |
//! | [`diffusion`] | the paper's network, noise levels, objectives and samplers |
//! | [`encoders`] | image encoders, and the hub that they come from |
//! | [`photo`] | reading and preparing pictures |
//! | [`geography`] | countries, continents, names of places, constraints |
//! | [`tensors`] | what stands between Burn and our networks |

pub mod checksum;
pub mod diffusion;
pub mod encoders;
pub mod geography;
pub mod locate;
pub mod models;
pub mod photo;
pub mod tensors;

pub use geography::Constraint;
pub use locate::{
    Answer, Candidate, Estimate, Footprint, Geolocator, Inference, InferenceOptions, Located,
    LocationModel, ModelIdentity, NotItsKind, Reference, Summary,
};
pub use models::{CannotOpen, ModelHome, OpenOptions};
pub use photo::Photo;

/// Documentation tests compile the Rust blocks of these pages.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../docs/predict.md")]
#[doc = include_str!("../../../docs/encoders.md")]
struct Pages;
