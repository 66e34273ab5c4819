//! Colours of an embedded ICC profile, in sRGB.
//!
//! Networks were trained on pictures whose profiles nobody looked at, most of them sRGB. A
//! telephone's Display P3 or a camera's Adobe RGB, read as if it were sRGB, is a paler picture
//! than the one that was taken.

use moxcms::{ColorProfile, DataColorSpace, Layout, Transform8BitExecutor, TransformOptions};
use std::sync::Arc;

/// Samples converted at a time: source and result stay in the cache.
const CHUNK: usize = 3 * 4096;

/// RGB in the colours of a profile, to sRGB. Without a profile the picture is taken for sRGB;
/// a profile that is broken, or for something else than RGB, is no profile.
pub(super) fn convert_to_srgb(rgb: &mut [u8], profile: Option<&[u8]>) {
    let Some(transform) = profile.and_then(|profile| transform_of(profile, Layout::Rgb)) else {
        return;
    };
    if changes_nothing(transform.as_ref()) {
        return;
    }
    let mut source = [0; CHUNK];
    for chunk in rgb.chunks_mut(CHUNK) {
        let source = &mut source[..chunk.len()];
        source.copy_from_slice(chunk);
        if transform.transform(source, chunk).is_err() {
            chunk.copy_from_slice(source);
        }
    }
}

/// Grey in the tones of a profile, as sRGB.
pub(super) fn rgb_of_grey(grey: &[u8], profile: Option<&[u8]>) -> Vec<u8> {
    let shades: Vec<u8> = (0..=255).collect();
    let mut table: Vec<u8> = shades.iter().flat_map(|&shade| [shade; 3]).collect();
    if let Some(transform) = profile.and_then(|profile| transform_of(profile, Layout::Gray)) {
        let mut converted = vec![0; table.len()];
        if transform.transform(&shades, &mut converted).is_ok() {
            table = converted;
        }
    } else {
        // Grey pixels with a profile of colours do happen.
        convert_to_srgb(&mut table, profile);
    }
    let (table, _) = table.as_chunks::<3>();
    let mut rgb = Vec::with_capacity(3 * grey.len());
    grey.iter().for_each(|&shade| rgb.extend(table[usize::from(shade)]));
    rgb
}

fn transform_of(profile: &[u8], layout: Layout) -> Option<Arc<Transform8BitExecutor>> {
    let profile = ColorProfile::new_from_slice(profile).ok()?;
    let expected = match layout {
        Layout::Gray => DataColorSpace::Gray,
        _ => DataColorSpace::Rgb,
    };
    if profile.color_space != expected {
        return None;
    }
    let srgb = ColorProfile::new_srgb();
    profile.create_transform_8bit(layout, &srgb, Layout::Rgb, TransformOptions::default()).ok()
}

/// Whether a profile is sRGB under whatever name: no colour of a coarse cube moves by more
/// than one level. Most pictures with a profile are like that, and done here.
fn changes_nothing(transform: &Transform8BitExecutor) -> bool {
    let steps = || (0..=255u8).step_by(15);
    let cube: Vec<u8> = steps()
        .flat_map(|r| steps().flat_map(move |g| steps().flat_map(move |b| [r, g, b])))
        .collect();
    let mut moved = vec![0; cube.len()];
    transform.transform(&cube, &mut moved).is_ok()
        && cube.iter().zip(&moved).all(|(a, b)| a.abs_diff(*b) <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_profile_changes_nothing() {
        let picture: Vec<u8> = (0..=254).collect();
        let srgb = ColorProfile::new_srgb().encode().unwrap();
        let mut other = ColorProfile::new_display_p3().encode().unwrap();
        other.truncate(200);
        for profile in [None, Some(&b"no profile"[..]), Some(&other), Some(&srgb), Some(&[])] {
            let mut rgb = picture.clone();
            convert_to_srgb(&mut rgb, profile);
            assert_eq!(rgb, picture);
            assert_eq!(rgb_of_grey(&[0, 7, 255], profile), [0, 0, 0, 7, 7, 7, 255, 255, 255]);
        }
    }

    #[test]
    fn chunks_leave_no_seam() {
        let profile = ColorProfile::new_display_p3().encode().unwrap();
        let mut one = vec![200, 100, 50];
        convert_to_srgb(&mut one, Some(&profile));
        assert_ne!(one, [200, 100, 50]);
        let mut many = [200, 100, 50].repeat(10_000);
        convert_to_srgb(&mut many, Some(&profile));
        assert!(many.chunks(3).all(|pixel| pixel == one));
    }
}
