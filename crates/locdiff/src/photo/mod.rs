//! Photographs, from files to what encoders take.
//!
//! [`Photo`] is a picture as a person would see it: upright, in sRGB, 8 bits, opaque.
//! [`Preprocessing`] makes it the normalised square that a vision network was trained on, as
//! Python's `transformers` do, and [`Crops`] makes several of them. Everything is tested against
//! Pillow, transformers and torchvision: `parity/photo`.
//!
//! What is done to a file, in this order:
//! 1. Its kind is told by its content, and its size checked against [`ReadOptions`].
//! 2. It is decoded. A file that ends early is an error, never a picture with a grey half. Of an
//!    animation it is the first frame.
//! 3. 16 bits are rounded to 8, and transparent pixels shown on white.
//! 4. An embedded ICC profile is applied (not those of CMYK, and not gAMA and cHRM of PNG).
//! 5. Exif's orientation is applied.

mod crops;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod parity_tests;
mod picture;
mod preprocessing;
mod preprocessor_config;
mod reading;
mod resize;
mod test_picture;

pub use crops::Crops;
pub use picture::Photo;
pub use preprocessing::Preprocessing;
pub use preprocessor_config::InvalidPreprocessing;
pub use reading::{ExifFacts, PhotoError, PhotoFormat, PhotoHeader, ReadOptions, gps_of};
