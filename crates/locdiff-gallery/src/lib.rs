//! Galleries: photographs whose places are known, searched by the embedding of another photograph.
//!
//! A gallery is a directory. `gallery.json` names the encoder and the segments; each segment stores
//! embeddings in three precisions, places and ids, sorted along a curve that fills the sphere. Files are
//! mapped into memory, so that opening reads nothing else. [`GalleryWriter`] builds and extends, and a
//! gallery is never seen half written.
//!
//! A search returns candidates. It returns a density only after [`Fit`] has measured, on
//! photographs that are not in the gallery, how near similar references are: see [`Evidence`].
//!
//! ```
//! use locdiff_gallery::{EncoderIdentity, Gallery, GalleryWriter};
//! use locdiff_sphere::LatLon;
//!
//! # let temporary = tempfile::tempdir()?;
//! # let directory = temporary.path().join("gallery");
//! let encoder = EncoderIdentity {
//!     name: "compass".to_owned(),
//!     digest: "sha256:1c".to_owned(),
//!     preprocessing: "none".to_owned(),
//!     dimension: 2,
//! };
//! let mut writer = GalleryWriter::create(&directory, &encoder)?;
//! writer.push(&[1.0, 0.0], LatLon::new(48.86, 2.35)?, "paris.jpg")?;
//! writer.push(&[0.0, 1.0], LatLon::new(35.68, 139.65)?, "tokyo.jpg")?;
//! writer.finish(|_| ())?;
//!
//! let gallery = Gallery::open(&directory)?;
//! let hits = gallery.search(&[0.1, 3.0], 1)?;
//! assert_eq!(gallery.id(hits[0].row), "tokyo.jpg");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(target_endian = "big")]
compile_error!("galleries are mapped into memory, and their numbers are little-endian");

mod coverage;
mod curve;
mod error;
mod evidence;
mod fit;
mod fusion;
mod gallery;
mod identity;
mod likelihood;
mod manifest;
mod nelder_mead;
mod prior;
mod quantize;
mod restriction;
mod search;
mod segment;
mod segment_writer;
mod simd;
mod writer;

pub use error::GalleryError;
pub use evidence::Evidence;
pub use fit::Fit;
pub use fusion::{Fusion, FusionFit};
pub use gallery::{Gallery, Info};
pub use identity::EncoderIdentity;
pub use likelihood::Likelihood;
pub use manifest::special_file;
pub use search::Hit;
pub use writer::GalleryWriter;
