//! The model inside the program: where a view of the Earth from above looks.
//!
//! A picture's central square is described part by part, compared in all headings with a gallery of all land at several
//! widths, and the best places are registered against a mosaic: the likeliest become the density, and the footprint that
//! people see. `crates/locdiff/models/earth-view` has the files and the model card; `experiments/earth-view` makes them.

mod aligned_embedder;
mod aligned_encoder;
mod atlas;
mod encoder;
mod evidence;
mod gallery;
mod gallery_file;
mod local_contrast;
mod locator;
mod mosaic;
mod packed_weights;
mod search;
mod view_encoder;

pub use aligned_embedder::AlignedEmbedder;
pub use aligned_encoder::{AlignedEncoder, AlignedEncoderConfig, NUMBERS, PART};
pub use atlas::{Atlas, AtlasSettings};
pub use encoder::EarthViewEncoder;
pub use evidence::{Errors, Finding, Odds, density, weighed};
pub use gallery::{Gallery, GalleryMap, Precision, SEA};
pub use local_contrast::local_contrast;
pub(crate) use locator::built_in_embedder;
pub use locator::{EarthLocator, NAME, Weights};
pub use mosaic::Mosaic;
pub use packed_weights::PackedWeights;
pub use search::{Known, Query, SearchResult, VIEW};
pub use view_encoder::{ViewEncoder, ViewEncoderConfig};
