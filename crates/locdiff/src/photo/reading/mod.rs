//! From the bytes of a file to pixels, within limits.

mod colour;
mod error;
mod exif;
mod format;
#[cfg(feature = "heif")]
mod heif;
mod jpeg;
mod jpeg_bytes;
mod jpeg_outline;
mod options;
mod orientation;
mod pixels;
mod raster;

pub use error::PhotoError;
pub use exif::{ExifFacts, gps_of};
pub use format::PhotoFormat;
pub(super) use options::Deadline;
pub use options::ReadOptions;
pub(super) use orientation::mirror;
use pixels::Pixels;

/// Pixels as stored, and the orientation that is still to be applied.
pub(super) fn decode_pixels(
    format: PhotoFormat,
    bytes: &[u8],
    options: &ReadOptions,
    deadline: Deadline,
) -> Result<(Pixels, u8), PhotoError> {
    let pixels = match format {
        PhotoFormat::Jpeg => jpeg::decode(bytes, options, deadline)?,
        // The container has its own transformations, which libheif has applied; its Exif
        // repeats them.
        #[cfg(feature = "heif")]
        PhotoFormat::Heic | PhotoFormat::Avif => {
            return Ok((heif::decode(format, bytes, options)?, 1));
        }
        #[cfg(not(feature = "heif"))]
        PhotoFormat::Heic | PhotoFormat::Avif => {
            return Err(PhotoError::Unsupported {
                format: format.to_string(),
                remedy: "build with the feature `heif`, or convert the picture to JPEG",
            });
        }
        _ => raster::decode(format, bytes, options, deadline)?,
    };
    Ok((pixels, exif::orientation_of(bytes)))
}
