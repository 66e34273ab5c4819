//! The contract between models and everything around them: photographs in, densities out.
//!
//! A [`LocationModel`] implements it. A [`Geolocator`] runs a model with the options of an [`Inference`] and returns an [`Estimate`].
//! An [`Answer`] is the record that is printed, sent and stored.

mod answer;
mod answered;
mod calibration;
mod estimate;
mod features;
mod footprint;
mod geolocator;
mod in_turn;
mod inference;
mod model;
mod reference;

pub use answer::{
    Answer, AnswerOptions, CandidateFacts, ExifPlace, FootprintFacts, ImageFacts, ModelFacts,
    PlaceFacts, PointFacts, ReferenceFacts, RowFacts,
};
pub use answered::{Answered, ReadPicture, answer_all};
pub use calibration::{Calibration, Coverage, InvalidCalibration, calibrated};
pub use estimate::{Candidate, Estimate, Summary};
pub use features::{features, recorded_feature};
pub use footprint::Footprint;
pub use geolocator::Geolocator;
pub use in_turn::{ChosenBecause, LocateResult, NoAnswer, locate_because, locate_in_turn};
pub use inference::{Decode, Inference, InferenceOptions, InvalidInference, Sampler};
pub use model::{Frame, Located, LocationModel, ModelIdentity, NotItsKind};
pub use reference::Reference;
