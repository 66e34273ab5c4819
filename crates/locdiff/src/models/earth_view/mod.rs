//! The model inside the program: where a view of the Earth from above looks.
//!
//! A picture's central square is looked at in four directions (a photograph from orbit has no
//! up), and the mean of the four answers is the exponent of the density. `crates/locdiff/models/earth-view` has
//! the weights and the model card; `experiments/earth-view` makes them.

mod aligned_encoder;
mod atlas;
mod encoder;
mod evidence;
mod gallery;
mod gallery_file;
mod local_contrast;
mod model;
mod network;
mod packed_weights;
mod search;
mod view_encoder;

pub use aligned_encoder::{AlignedEncoder, AlignedEncoderConfig, NUMBERS, PART};
pub use atlas::{Atlas, AtlasSettings};
pub use encoder::EarthViewEncoder;
pub use evidence::{Errors, Finding, Odds, density, weighed};
pub use gallery::{Gallery, GalleryMap, Precision, SEA};
pub use local_contrast::local_contrast;
pub use model::{EarthView, EarthViewSettings, NAME, Recogniser, ViewReading};
pub use network::{ViewNetwork, ViewNetworkConfig};
pub use packed_weights::PackedWeights;
pub use search::{Query, SearchResult, VIEW};
pub use view_encoder::{ViewEncoder, ViewEncoderConfig};
