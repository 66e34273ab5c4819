//! Photographs, from files to what encoders take.
//!
//! [`Photo`] is a picture as a person would see it: upright, in sRGB, 8 bits, opaque.
//! [`Preprocessing`] makes it the normalised square that a vision network was trained on, as
//! Python's `transformers` do, and [`Views`] makes several of them. Everything is tested against
//! Pillow, transformers and torchvision: `parity/photo`.
//!
//! What is done to a file, in this order:
//! 1. Its kind is told by its content, and its size checked against [`ReadOptions`].
//! 2. It is decoded. A file that ends early is an error, never a picture with a grey half. Of an
//!    animation it is the first frame.
//! 3. 16 bits are rounded to 8, and transparent pixels shown on white.
//! 4. An embedded ICC profile is applied (not those of CMYK, and not gAMA and cHRM of PNG).
//! 5. Exif's orientation is applied.

mod augment;
mod colour;
mod error;
mod exif;
mod format;
#[cfg(feature = "heif")]
mod heif;
mod jpeg;
mod jpeg_bytes;
mod jpeg_outline;
#[cfg(test)]
mod limit_tests;
mod options;
mod orientation;
#[cfg(test)]
mod parity_tests;
mod pixels;
mod preprocessing;
mod preprocessor_config;
mod raster;
mod resize;

use std::fmt;
use std::fs::File;
use std::io::{Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

pub use augment::Views;
pub use error::PhotoError;
pub use exif::gps_of;
pub use format::PhotoFormat;
pub use options::ReadOptions;
pub use preprocessing::Preprocessing;
pub use preprocessor_config::InvalidPreprocessing;

use options::Deadline;
use pixels::Pixels;

/// What a header may make a reader allocate.
const HEADER_BYTES: u64 = 16 << 20;

/// An upright picture in sRGB, 8 bits per channel.
#[derive(Clone, PartialEq, Eq)]
pub struct Photo {
    width: u32,
    height: u32,
    /// Row by row, red, green and blue of each pixel.
    rgb: Vec<u8>,
}

impl fmt::Debug for Photo {
    /// Without its millions of numbers.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Photo({}×{})", self.width, self.height)
    }
}

impl Photo {
    /// The picture in a file, within the default limits.
    pub fn open(path: impl AsRef<Path>) -> Result<Photo, PhotoError> {
        Photo::open_with(path, &ReadOptions::default())
    }

    /// The picture in a file. Only [`PhotoError::Unreadable`] names the file: the caller knows
    /// which one it was.
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Photo, PhotoError> {
        let path = path.as_ref();
        let unreadable = |source| PhotoError::Unreadable { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        options.check_bytes(length)?;
        let mut bytes = Vec::with_capacity(length as usize);
        // Files can grow, and pipes have no length.
        file.take(options.max_bytes.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        Photo::decode(&bytes, options)
    }

    /// The picture that is encoded in some bytes.
    pub fn decode(bytes: &[u8], options: &ReadOptions) -> Result<Photo, PhotoError> {
        let deadline = Deadline::new(options);
        options.check_bytes(bytes.len() as u64)?;
        let format = PhotoFormat::of(bytes)?;
        // Decoders meet bytes that nobody foresaw; one that panics must not take a server along.
        let photo = catch_unwind(AssertUnwindSafe(|| {
            let (pixels, orientation) = decode_pixels(format, bytes, options, deadline)?;
            let (width, height, rgb) = pixels.into_upright_srgb(orientation);
            Ok(Photo { width, height, rgb })
        }));
        let photo = photo.unwrap_or_else(|_| {
            Err(PhotoError::damaged(format, "its decoder fell over it, which it shouldn't"))
        })?;
        deadline.check(format)?;
        Ok(photo)
    }

    /// What can be said against some bytes without decoding them: that they are too many, no picture of a
    /// known kind, or the header of one with too many pixels. Width and height, if the header tells them. Cheap, but
    /// not free: a header may hold megabytes of colour profile.
    pub fn examine(bytes: &[u8], options: &ReadOptions) -> Result<Option<(u32, u32)>, PhotoError> {
        options.check_bytes(bytes.len() as u64)?;
        PhotoFormat::of(bytes)?;
        let size = || {
            let mut reader =
                image::ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
            let mut limits = image::Limits::default();
            limits.max_alloc = Some(HEADER_BYTES);
            reader.limits(limits);
            reader.into_dimensions().ok()
        };
        // Headers that this reader doesn't understand, or falls over, are our decoders' business.
        let size = catch_unwind(AssertUnwindSafe(size)).unwrap_or_default();
        if let Some((width, height)) = size {
            options.check_pixels(width, height)?;
        }
        Ok(size)
    }

    /// A picture from its pixels, row by row; `None` if they aren't `3·width·height` numbers, or
    /// none at all.
    pub fn from_rgb(width: u32, height: u32, rgb: Vec<u8>) -> Option<Photo> {
        let count = u64::from(width) * u64::from(height) * 3;
        (count > 0 && rgb.len() as u64 == count).then_some(Photo { width, height, rgb })
    }

    /// Pixels from left to right.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Pixels from top to bottom.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Red, green and blue of each pixel, row by row.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }
}

/// Pixels as stored, and the orientation that is still to be applied.
fn decode_pixels(
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
