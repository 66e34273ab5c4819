//! The model inside the program: where a view of the Earth from above looks.
//!
//! A picture's central square is looked at in four directions (a photograph from orbit has no
//! up), and the mean of the four answers is the exponent of the density. `crates/locdiff/models/earth-view` has
//! the weights and the model card; `experiments/earth-view` makes them.

mod encoder;
mod model;
mod network;
mod packed_weights;
mod view_encoder;

pub use encoder::EarthViewEncoder;
pub use model::{EarthView, EarthViewSettings, NAME, Recogniser, ViewReading};
pub use network::{ViewNetwork, ViewNetworkConfig};
pub use packed_weights::PackedWeights;
pub use view_encoder::{ViewEncoder, ViewEncoderConfig};
