//! PNG, WebP, GIF, TIFF and BMP, by the crate `image`.

use std::io::Cursor;

use image::codecs::{bmp, gif, png, tiff, webp};
use image::{ColorType, ImageDecoder, ImageError, ImageResult, Limits};

use super::error::PhotoError;
use super::exif;
use super::format::PhotoFormat;
use super::options::{Deadline, ReadOptions, TimedBytes};
use super::pixels::{Channels, Pixels, flatten_alpha, round_to_bytes};
use super::tiff_outline::impossible_tag;
use super::{Demand, WORKING_MEMORY};

pub(super) fn decode(
    format: PhotoFormat,
    bytes: &[u8],
    options: &ReadOptions,
    deadline: Deadline,
) -> Result<Pixels, PhotoError> {
    let read = Reading { format, deadline };
    let (mut decoder, demand) = read.open(bytes, options)?;
    // Of a TIFF, the decoder would take 32 times as much memory as the profile has bytes.
    let profile = match format {
        PhotoFormat::Tiff => exif::tiff_profile_of(bytes),
        _ => decoder.icc_profile().ok().flatten(),
    };
    let color = decoder.color_type();
    let mut samples = vec![0; demand.samples as usize];
    decoder.read_image_boxed(&mut samples).map_err(|error| read.error_of(error))?;
    make_opaque_bytes(&mut samples, color);
    let Demand { width, height, channels, .. } = demand;
    Ok(Pixels { width, height, channels, samples, profile })
}

/// What decoding will take, by the header.
pub(super) fn examine(
    format: PhotoFormat,
    bytes: &[u8],
    options: &ReadOptions,
    deadline: Deadline,
) -> Result<Demand, PhotoError> {
    Ok(Reading { format, deadline }.open(bytes, options)?.1)
}

struct Reading {
    format: PhotoFormat,
    deadline: Deadline,
}

impl Reading {
    /// A decoder that has read the header, within limits, and what it takes.
    fn open<'a>(
        &self,
        bytes: &'a [u8],
        options: &ReadOptions,
    ) -> Result<(Box<dyn ImageDecoder + 'a>, Demand), PhotoError> {
        let source = TimedBytes::new(bytes, self.deadline);
        match self.format {
            PhotoFormat::Png => {
                // Metadata is decompressed with the header, so it needs its limit from the start; half for a copy of the profile.
                let mut limits = Limits::no_limits();
                limits.max_alloc = Some(WORKING_MEMORY / 2);
                self.limited(png::PngDecoder::with_limits(source, limits), options, |_, _| 0)
            }
            PhotoFormat::WebP => {
                let decoder = webp::WebPDecoder::new(source);
                let is_animated = decoder.as_ref().is_ok_and(webp::WebPDecoder::has_animation);
                // Planes of colors, or the picture with alpha; the plane of alpha; the canvas and a frame of an animation.
                self.limited(decoder, options, |samples, pixels| match samples {
                    _ if is_animated => 10 * pixels,
                    samples if samples > 3 * pixels => 7 * pixels,
                    _ => 5 * pixels,
                })
            }
            // The first frame, which need not be the whole picture.
            PhotoFormat::Gif => {
                self.limited(gif::GifDecoder::new(source), options, |samples, _| samples)
            }
            // Before its reader has the values of tags in memory.
            PhotoFormat::Tiff if let Some(tag) = impossible_tag(bytes) => {
                let reason = format!("tag {tag} has more values than the file can have");
                Err(PhotoError::damaged(self.format, reason))
            }
            PhotoFormat::Tiff if exif::is_digital_negative(bytes) => Err(PhotoError::Unsupported {
                format: "camera raw (DNG)".to_owned(),
                remedy: "convert the picture to JPEG or PNG",
            }),
            // They would be decoded at whatever size each of them claims.
            PhotoFormat::Tiff if has_jpegs(bytes) => Err(PhotoError::Unsupported {
                format: "TIFF with JPEG compression".to_owned(),
                remedy: "convert the picture to JPEG",
            }),
            // The samples as stored, and a strip or tile.
            PhotoFormat::Tiff => {
                self.limited(tiff::TiffDecoder::new(source), options, |samples, _| 2 * samples)
            }
            PhotoFormat::Bmp => self.limited(bmp::BmpDecoder::new(source), options, |_, _| 0),
            PhotoFormat::Jpeg | PhotoFormat::Heic | PhotoFormat::Avif => {
                unreachable!("{} has a decoder of its own", self.format)
            }
        }
    }

    /// `beside`: what the decoder takes beside the samples that it returns, given their bytes and the pixels.
    fn limited<'a, D: ImageDecoder + 'a>(
        &self,
        decoder: ImageResult<D>,
        options: &ReadOptions,
        beside: impl FnOnce(u64, u64) -> u64,
    ) -> Result<(Box<dyn ImageDecoder + 'a>, Demand), PhotoError> {
        let mut decoder = decoder.map_err(|error| self.error_of(error))?;
        let (width, height) = decoder.dimensions();
        options.check_pixels(width, height)?;
        if width == 0 || height == 0 {
            return Err(PhotoError::damaged(self.format, "its width or height is zero"));
        }
        let samples = decoder.total_bytes();
        let beside = beside(samples, u64::from(width) * u64::from(height));
        let mut limits = Limits::no_limits();
        limits.max_alloc = Some(beside + WORKING_MEMORY);
        decoder.set_limits(limits).map_err(|error| self.error_of(error))?;
        // Grey stays grey, for the sake of its profile.
        let channels =
            if decoder.color_type().has_color() { Channels::Rgb } else { Channels::Grey };
        let demand = Demand { width, height, channels, samples, beside };
        Ok((Box::new(decoder), demand))
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

/// Whether the strips or tiles of a TIFF are JPEGs, by the reader that decodes it.
fn has_jpegs(bytes: &[u8]) -> bool {
    use ::tiff::tags::{CompressionMethod, Tag};
    let decoder = ::tiff::decoder::Decoder::new(Cursor::new(bytes));
    let method = decoder.and_then(|mut decoder| decoder.find_tag_unsigned::<u16>(Tag::Compression));
    let [old, new] = [CompressionMethod::JPEG, CompressionMethod::ModernJPEG].map(|it| it.to_u16());
    // Without an answer it is not decoded at all.
    method.is_ok_and(|method| method.is_some_and(|method| [old, new].contains(&method)))
}

/// `image` wraps errors in sentences about itself; the last one has the reason.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Where the samples are: a second copy of a large picture may be more memory than there is.
fn make_opaque_bytes(samples: &mut Vec<u8>, color: ColorType) {
    let channels = usize::from(color.channel_count());
    round_to_bytes(samples, usize::from(color.bytes_per_pixel()) / channels);
    if color.has_alpha() {
        flatten_alpha(samples, channels);
    }
}
