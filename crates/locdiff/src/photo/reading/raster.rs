//! PNG, WebP, GIF, TIFF and BMP, by the crate `image`.

use image::codecs::{bmp, gif, png, tiff, webp};
use image::{DynamicImage, ImageDecoder, ImageError, ImageResult, Limits};

use super::error::PhotoError;
use super::exif;
use super::format::PhotoFormat;
use super::options::{Deadline, ReadOptions, TimedBytes};
use super::pixels::{Channels, Pixels, flatten_grey, flatten_rgb};

/// What a decoder may use beside the pixels themselves.
const WORKING_MEMORY: u64 = 64 << 20;

pub(super) fn decode(
    format: PhotoFormat,
    bytes: &[u8],
    options: &ReadOptions,
    deadline: Deadline,
) -> Result<Pixels, PhotoError> {
    let source = TimedBytes::new(bytes, deadline);
    // Metadata of a PNG is decompressed with its header, so it needs its limit from the start.
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(WORKING_MEMORY);
    let read = Reading { format, options, deadline };
    match format {
        PhotoFormat::Png => read.with(png::PngDecoder::with_limits(source, limits)),
        PhotoFormat::WebP => read.with(webp::WebPDecoder::new(source)),
        PhotoFormat::Gif => read.with(gif::GifDecoder::new(source)),
        PhotoFormat::Tiff if exif::is_digital_negative(bytes) => Err(PhotoError::Unsupported {
            format: "camera raw (DNG)".to_owned(),
            remedy: "convert the picture to JPEG or PNG",
        }),
        PhotoFormat::Tiff => {
            let mut pixels = read.with(tiff::TiffDecoder::new(source))?;
            pixels.profile = pixels.profile.or_else(|| exif::tiff_profile_of(bytes));
            Ok(pixels)
        }
        PhotoFormat::Bmp => read.with(bmp::BmpDecoder::new(source)),
        PhotoFormat::Jpeg | PhotoFormat::Heic | PhotoFormat::Avif => {
            unreachable!("{format} has a decoder of its own")
        }
    }
}

struct Reading<'a> {
    format: PhotoFormat,
    options: &'a ReadOptions,
    deadline: Deadline,
}

impl Reading<'_> {
    fn with<D: ImageDecoder>(&self, decoder: ImageResult<D>) -> Result<Pixels, PhotoError> {
        let mut decoder = decoder.map_err(|error| self.error_of(error))?;
        let (width, height) = decoder.dimensions();
        self.options.check_pixels(width, height)?;
        if width == 0 || height == 0 {
            return Err(PhotoError::damaged(self.format, "its width or height is zero"));
        }
        let mut limits = Limits::no_limits();
        limits.max_alloc = Some(decoder.total_bytes().saturating_mul(2) + WORKING_MEMORY);
        decoder.set_limits(limits).map_err(|error| self.error_of(error))?;
        let profile = decoder.icc_profile().ok().flatten();
        let image = DynamicImage::from_decoder(decoder).map_err(|error| self.error_of(error))?;
        let (channels, samples) = eight_bits_opaque(image);
        Ok(Pixels { width, height, channels, samples, profile })
    }

    fn error_of(&self, error: ImageError) -> PhotoError {
        // Whatever a decoder makes of bytes that stopped coming, the reason was the clock.
        if let Err(too_slow) = self.deadline.check(self.format) {
            return too_slow;
        }
        match error {
            ImageError::Unsupported(error) => PhotoError::Unsupported {
                format: format!("this kind of {} ({error})", self.format),
                remedy: "convert the picture to JPEG, or to PNG with 8 bits",
            },
            ImageError::Limits(error) => PhotoError::TooLarge {
                found: format!(
                    "{} needs more memory than its pixels account for ({error})",
                    self.format
                ),
                limit: WORKING_MEMORY,
                option: "WORKING_MEMORY",
            },
            ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                PhotoError::damaged(self.format, "it ends early, before its last pixel")
            }
            error => PhotoError::damaged(self.format, innermost(&error)),
        }
    }
}

/// `image` wraps errors in sentences about itself; the last one has the reason.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Grey stays grey, for the sake of its profile. 16 bits are rounded to 8, where Pillow cuts.
fn eight_bits_opaque(image: DynamicImage) -> (Channels, Vec<u8>) {
    let color = image.color();
    match (color.has_color(), color.has_alpha()) {
        (false, false) => (Channels::Grey, image.into_luma8().into_raw()),
        (false, true) => (Channels::Grey, flatten_grey(&image.into_luma_alpha8().into_raw())),
        (true, false) => (Channels::Rgb, image.into_rgb8().into_raw()),
        (true, true) => (Channels::Rgb, flatten_rgb(&image.into_rgba8().into_raw())),
    }
}
