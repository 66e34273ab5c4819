//! HEIC and AVIF, by libheif.

use libheif_rs::{
    ColorPrimaries, ColorSpace, HeifContext, HeifError, HeifErrorCode, ImageHandle, LibHeif,
    RgbChroma,
};

use super::Demand;
use super::error::PhotoError;
use super::format::PhotoFormat;
use super::options::ReadOptions;
use super::pixels::{Channels, Pixels, flatten_alpha};

fn damaged(format: PhotoFormat) -> impl Fn(HeifError) -> PhotoError {
    move |error| match error.code {
        // This libheif was built without a decoder for it, as some are for AVIF.
        HeifErrorCode::PluginLoadingError => PhotoError::Unsupported {
            format: format.to_string(),
            remedy: "this libheif has no decoder for it; convert the picture to JPEG",
        },
        _ => PhotoError::damaged(format, error.message),
    }
}

/// What decoding will take, by the header.
pub(super) fn examine(
    format: PhotoFormat,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<Demand, PhotoError> {
    let context = HeifContext::read_from_bytes(bytes).map_err(damaged(format))?;
    let handle = context.primary_image_handle().map_err(damaged(format))?;
    let (width, height) = (handle.width(), handle.height());
    options.check_pixels(width, height)?;
    let pixels = u64::from(width) * u64::from(height);
    // Planes of up to 16 bits with alpha, in the tiles' frame and the picture's; then interleaved.
    Ok(Demand { width, height, channels: Channels::Rgb, samples: 4 * pixels, beside: 20 * pixels })
}

/// Upright pixels: libheif applies the container's turns and mirrorings.
pub(super) fn decode(
    format: PhotoFormat,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<Pixels, PhotoError> {
    let damaged = damaged(format);
    let context = HeifContext::read_from_bytes(bytes).map_err(&damaged)?;
    let handle = context.primary_image_handle().map_err(&damaged)?;
    let (width, height) = (handle.width(), handle.height());
    options.check_pixels(width, height)?;

    let chroma = if handle.has_alpha_channel() { RgbChroma::Rgba } else { RgbChroma::Rgb };
    // Without options: libheif-rs 0.20, the last for the libheif of Debian 12, frees them before
    // it uses them. The defaults are what is wanted.
    let image = LibHeif::new().decode(&handle, ColorSpace::Rgb(chroma), None).map_err(&damaged)?;
    let plane = image
        .planes()
        .interleaved
        .ok_or_else(|| PhotoError::damaged(format, "libheif returned no pixels"))?;
    if (plane.width, plane.height) != (width, height) {
        let sizes = format!("{}×{}, its header has {width}×{height}", plane.width, plane.height);
        return Err(PhotoError::damaged(format, format!("it is {sizes}")));
    }
    let row = width as usize * if handle.has_alpha_channel() { 4 } else { 3 };
    let rows = plane.data.chunks(plane.stride).take(height as usize);
    let mut samples: Vec<u8> = Vec::with_capacity(row * height as usize);
    rows.for_each(|line| samples.extend_from_slice(&line[..row]));
    if handle.has_alpha_channel() {
        flatten_alpha(&mut samples, 4);
    }
    Ok(Pixels { width, height, channels: Channels::Rgb, samples, profile: profile_of(&handle) })
}

/// The ICC profile, or one for the primaries that the container names by number.
fn profile_of(handle: &ImageHandle) -> Option<Vec<u8>> {
    if let Some(profile) = handle.color_profile_raw() {
        return Some(profile.data);
    }
    let named = handle.color_profile_nclx()?;
    // SMPTE EG 432-1 is Display P3.
    (named.color_primaries() == ColorPrimaries::SMPTE_EG_432_1)
        .then(|| moxcms::ColorProfile::new_display_p3().encode().ok())
        .flatten()
}
