//! The contract between models and everything around them: photographs in, densities out.

mod estimate;
mod geolocator;
mod in_turn;
mod model;

pub use estimate::{Candidate, Estimate, Summary};
pub use geolocator::Geolocator;
pub use in_turn::{BUILT_IN, FOR_THE_GROUND, NAMED, NoAnswer, OTHERWISE, Said, ask, ask_in_turn};
pub use model::{LocationModel, ModelIdentity, NotItsKind};
