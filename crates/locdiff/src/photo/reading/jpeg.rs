//! JPEG, the format of nearly all photographs: decoded straight to interleaved RGB by
//! zune-jpeg, or at a fraction of the size by jpeg-decoder.
//!
//! Colours follow libjpeg's and Pillow's rules: three components are YCbCr unless Adobe's
//! segment or their names say RGB, four are CMYK or YCCK, stored inverted as Adobe does.

use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::Demand;
use super::error::PhotoError;
use super::format::PhotoFormat;
use super::jpeg_bytes::{JpegBytes, Report};
use super::jpeg_outline::{JpegOutline, MAX_SCANS};
use super::options::{Deadline, ReadOptions, TimedBytes};
use super::pixels::{Channels, Pixels};

/// Rows that a decoder holds of each component, of two bytes per sample.
const ROWS: u64 = 64;

/// The markers of a picture that can be decoded.
fn outline_within(bytes: &[u8], options: &ReadOptions) -> Result<JpegOutline, PhotoError> {
    let outline = JpegOutline::of(bytes)?;
    options.check_pixels(outline.width, outline.height)?;
    if outline.scans > MAX_SCANS {
        let found = format!("{} scans in one JPEG", outline.scans);
        return Err(PhotoError::TooLarge { found, limit: MAX_SCANS, option: "MAX_SCANS" });
    }
    if let Some(kind) = unsupported_kind(&outline) {
        let remedy = "convert the picture to a baseline or progressive JPEG, or to PNG";
        return Err(PhotoError::Unsupported { format: kind.to_owned(), remedy });
    }
    Ok(outline)
}

/// What decoding will take, by the markers.
pub(super) fn examine(bytes: &[u8], options: &ReadOptions) -> Result<Demand, PhotoError> {
    let outline = outline_within(bytes, options)?;
    let JpegOutline { width, height, components, .. } = outline;
    let channels = if components == 1 { Channels::Grey } else { Channels::Rgb };
    let samples = u64::from(width) * u64::from(height) * channels.count() as u64;
    // Several scans are added up before anything is shown.
    let coefficients =
        if outline.scans > 1 || outline.frame == 0xc2 { 2 * outline.coefficients } else { 0 };
    let beside = coefficients + 2 * ROWS * u64::from(width) * u64::from(components);
    Ok(Demand { width, height, channels, samples, beside })
}

pub(super) fn decode(
    bytes: &[u8],
    options: &ReadOptions,
    deadline: Deadline,
) -> Result<Pixels, PhotoError> {
    let outline = outline_within(bytes, options)?;
    if let Some(shrink) = options.fast_decode.and_then(|side| shrink_for(&outline, side)) {
        return decode_shrunk(bytes, &outline, shrink, deadline);
    }
    decode_exactly(bytes, &outline, deadline)
}

fn unsupported_kind(outline: &JpegOutline) -> Option<&'static str> {
    match (outline.frame, outline.components) {
        (0xc3 | 0xc7 | 0xcb | 0xcf, _) => Some("lossless JPEG"),
        (0xc9 | 0xca | 0xcd | 0xce, _) => Some("arithmetic-coded JPEG"),
        (0xc5 | 0xc6, _) => Some("hierarchical JPEG"),
        (_, 1 | 3 | 4) => None,
        _ => Some("JPEG with two or more than four components"),
    }
}

fn decode_exactly(
    bytes: &[u8],
    outline: &JpegOutline,
    deadline: Deadline,
) -> Result<Pixels, PhotoError> {
    let report = Report::default();
    // Whatever a decoder makes of bytes that stopped coming, the reason was the clock.
    let failed = |error: zune_jpeg::errors::DecodeErrors| match deadline.check(PhotoFormat::Jpeg) {
        Err(too_slow) if report.expired.get() => too_slow,
        _ => PhotoError::damaged(PhotoFormat::Jpeg, format!("{error:?}")),
    };
    // A progressive picture in a single scan is only known to end by its marker.
    let padded = outline.frame != 0xc2 || outline.scans > 1;
    let source = JpegBytes::new(bytes, outline.end, padded, deadline, &report);
    let (channels, colour_space) = match outline.components {
        1 => (Channels::Grey, ColorSpace::Luma),
        _ => (Channels::Rgb, ColorSpace::RGB),
    };
    let lenient = DecoderOptions::new_fast()
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX)
        .jpeg_set_max_scans(MAX_SCANS as usize)
        .jpeg_set_out_colorspace(colour_space)
        .set_strict_mode(false);
    let mut decoder = JpegDecoder::new_with_options(source, lenient);
    // Cameras put odd things between headers. In the picture itself, leniency would mean grey.
    decoder.decode_headers().map_err(failed)?;
    decoder.set_options(lenient.set_strict_mode(true));

    let profile = decoder.icc_profile();
    let count = outline.width as usize * outline.height as usize * channels.count();
    if decoder.output_buffer_size() != Some(count) {
        return Err(PhotoError::damaged(PhotoFormat::Jpeg, "its headers contradict each other"));
    }
    let mut samples = vec![0; count];
    let result = decoder.decode_into(&mut samples);
    if report.expired.get() {
        deadline.check(PhotoFormat::Jpeg)?;
    }
    if report.ran_dry() {
        let reason = "its data ends before the picture does";
        return Err(PhotoError::damaged(PhotoFormat::Jpeg, reason));
    }
    result.map_err(failed)?;
    Ok(Pixels { width: outline.width, height: outline.height, channels, samples, profile })
}

/// By how much the sides can be divided and the shortest still be long enough.
fn shrink_for(outline: &JpegOutline, side: u32) -> Option<u32> {
    let shortest = outline.width.min(outline.height);
    // jpeg-decoder gives CMYK as it is stored; those rare ones are decoded exactly.
    (outline.components != 4)
        .then(|| [8, 4, 2].into_iter().find(|&shrink| shortest.div_ceil(shrink) >= side))
        .flatten()
}

fn decode_shrunk(
    bytes: &[u8],
    outline: &JpegOutline,
    shrink: u32,
    deadline: Deadline,
) -> Result<Pixels, PhotoError> {
    let failed = |error: jpeg_decoder::Error| match deadline.check(PhotoFormat::Jpeg) {
        Err(too_slow) => too_slow,
        Ok(()) => PhotoError::damaged(PhotoFormat::Jpeg, error),
    };
    let mut decoder = jpeg_decoder::Decoder::new(TimedBytes::new(bytes, deadline));
    decoder.read_info().map_err(failed)?;
    let size = |length: u32| length.div_ceil(shrink) as u16;
    let (width, height) =
        decoder.scale(size(outline.width), size(outline.height)).map_err(failed)?;
    let samples = decoder.decode().map_err(failed)?;
    let channels = match decoder.info().map(|info| info.pixel_format) {
        Some(jpeg_decoder::PixelFormat::L8) => Channels::Grey,
        Some(jpeg_decoder::PixelFormat::RGB24) => Channels::Rgb,
        _ => return decode_exactly(bytes, outline, deadline),
    };
    let (width, height) = (u32::from(width), u32::from(height));
    Ok(Pixels { width, height, channels, samples, profile: decoder.icc_profile() })
}
