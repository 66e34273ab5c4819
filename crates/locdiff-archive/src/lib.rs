//! Photo archives: what a folder of pictures needs beyond one answer per picture.
//!
//! * [`fusion`]: pictures of one outing constrain each other.
//! * [`library`]: what is known, predicted and decided, in one SQLite file.
//! * [`tags`]: places written into XMP sidecars and Exif data, with an undo log.
//! * [`export`]: GeoJSON, KML, GPX and CSV.
//! * [`graphics`]: which pictures are screenshots, documents or drawings.
//!
//! The crate does not read pictures and does not run models. The program gives it what was read from a file
//! ([`library::Facts`]) and the density that a model returned, so that this crate compiles without the tensor framework.

pub mod export;
pub mod fusion;
pub mod graphics;
pub mod library;
mod moment;
pub mod tags;

pub use moment::Moment;
