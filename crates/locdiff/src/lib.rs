//! Image in, probability map of the Earth out.

mod geoclip;

pub use geoclip::{Existing, GeoClip, GeoClipError, ImageHead, LocationEncoder};
