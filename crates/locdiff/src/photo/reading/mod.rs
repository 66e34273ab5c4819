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
mod tiff_outline;

pub use error::PhotoError;
pub use exif::{ExifFacts, gps_of};
pub use format::PhotoFormat;
pub(super) use options::Deadline;
pub use options::ReadOptions;
pub(super) use orientation::mirror;
use pixels::{Channels, Pixels};

/// What reading a picture may take beside its pixels: metadata, rows, a picture made smaller.
const WORKING_MEMORY: u64 = 8 << 20;

/// What a header says of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PhotoHeader {
    /// Pixels from left to right, before the picture is turned upright.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
    /// What decoding it and making it smaller takes at most, beside the bytes of the file.
    pub memory_bytes: u64,
}

/// Pixels and memory that decoding needs.
struct Demand {
    width: u32,
    height: u32,
    channels: Channels,
    /// Bytes of the samples that the decoder returns.
    samples: u64,
    /// And what it needs beside them, until it returns them.
    beside: u64,
}

/// The header of a picture, and whether it is within limits.
pub(super) fn examine(
    format: PhotoFormat,
    bytes: &[u8],
    options: &ReadOptions,
    deadline: Deadline,
) -> Result<PhotoHeader, PhotoError> {
    let demand = match format {
        PhotoFormat::Jpeg => jpeg::examine(bytes, options)?,
        #[cfg(feature = "heif")]
        PhotoFormat::Heic | PhotoFormat::Avif => heif::examine(format, bytes, options)?,
        #[cfg(not(feature = "heif"))]
        PhotoFormat::Heic | PhotoFormat::Avif => return Err(not_built(format)),
        _ => raster::examine(format, bytes, options, deadline)?,
    };
    let Demand { width, height, channels, samples, beside } = demand;
    // When the decoder is done, grey becomes colors, and a picture that lies on its side is turned.
    let rgb = 3 * u64::from(width) * u64::from(height);
    let colored = if channels == Channels::Grey { samples + rgb } else { samples };
    let turned = match (exif::orientation_of(bytes) > 4, channels) {
        (false, _) => 0,
        (true, Channels::Grey) => 2 * rgb,
        (true, Channels::Rgb) => samples + rgb,
    };
    // Exif data and color profiles are copied from the file.
    let metadata = 2 * bytes.len() as u64;
    let memory_bytes = (samples + beside).max(colored).max(turned) + metadata + WORKING_MEMORY;
    Ok(PhotoHeader { width, height, memory_bytes })
}

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
        PhotoFormat::Heic | PhotoFormat::Avif => return Err(not_built(format)),
        _ => raster::decode(format, bytes, options, deadline)?,
    };
    Ok((pixels, exif::orientation_of(bytes)))
}

#[cfg(not(feature = "heif"))]
fn not_built(format: PhotoFormat) -> PhotoError {
    let remedy = "build with the feature `heif`, or convert the picture to JPEG";
    PhotoError::Unsupported { format: format.to_string(), remedy }
}
