//! An upright picture in sRGB.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::reading::{
    Deadline, PhotoError, PhotoFormat, PhotoHeader, ReadOptions, decode_pixels, examine,
};

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
        let photo = without_panic(format, || {
            let (pixels, orientation) = decode_pixels(format, bytes, options, deadline)?;
            let (width, height, rgb) = pixels.into_upright_srgb(orientation);
            Ok(Photo { width, height, rgb })
        })?;
        deadline.check(format)?;
        Ok(photo)
    }

    /// What can be said against some bytes without decoding them: that they are too many, no picture of a
    /// known kind, or one with a damaged header or too many pixels. Cheap, but not free: a header may hold megabytes of
    /// color profile.
    pub fn examine(bytes: &[u8], options: &ReadOptions) -> Result<PhotoHeader, PhotoError> {
        options.check_bytes(bytes.len() as u64)?;
        let format = PhotoFormat::of(bytes)?;
        without_panic(format, || examine(format, bytes, options, Deadline::new(options)))
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

/// Decoders meet bytes that nobody foresaw; one that panics must not take a server along.
fn without_panic<T>(
    format: PhotoFormat,
    work: impl FnOnce() -> Result<T, PhotoError>,
) -> Result<T, PhotoError> {
    let report = "internal error while decoding this image, please report it";
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(PhotoError::damaged(format, report)))
}
