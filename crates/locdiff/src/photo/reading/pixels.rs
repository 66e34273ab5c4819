//! Pixels as decoders give them, and their way to upright sRGB.

use super::colour;
use super::orientation::upright;

/// How samples make a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channels {
    Grey,
    Rgb,
}

impl Channels {
    pub(super) fn count(self) -> usize {
        match self {
            Channels::Grey => 1,
            Channels::Rgb => 3,
        }
    }
}

/// Opaque pixels in the colours of a profile.
#[derive(Debug)]
pub(in crate::photo) struct Pixels {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) channels: Channels,
    pub(super) samples: Vec<u8>,
    /// The ICC profile that came with the picture.
    pub(super) profile: Option<Vec<u8>>,
}

impl Pixels {
    /// Width, height and RGB of the picture as it should be seen. `orientation` is Exif's, from
    /// 1 to 8.
    pub(in crate::photo) fn into_upright_srgb(self, orientation: u8) -> (u32, u32, Vec<u8>) {
        let Pixels { width, height, channels, mut samples, profile } = self;
        let profile = profile.as_deref();
        let rgb = match channels {
            Channels::Grey => colour::rgb_of_grey(&samples, profile),
            Channels::Rgb => {
                colour::convert_to_srgb(&mut samples, profile);
                samples
            }
        };
        upright(width, height, rgb, orientation)
    }
}

/// Grey and alpha, over white.
pub(super) fn flatten_grey(samples: &[u8]) -> Vec<u8> {
    samples.as_chunks::<2>().0.iter().map(|&[grey, alpha]| over_white(grey, alpha)).collect()
}

/// RGB and alpha, over white.
pub(super) fn flatten_rgb(samples: &[u8]) -> Vec<u8> {
    let mut rgb = Vec::with_capacity(samples.len() / 4 * 3);
    for &[r, g, b, alpha] in samples.as_chunks::<4>().0 {
        rgb.extend([over_white(r, alpha), over_white(g, alpha), over_white(b, alpha)]);
    }
    rgb
}

/// A sample on white paper. What a transparent pixel would show without its alpha (Pillow's
/// `convert("RGB")`) is arbitrary: often black, sometimes what an editor had erased. Pages are
/// white, and so is the paper of the drawings and logos that have alpha at all.
fn over_white(sample: u8, alpha: u8) -> u8 {
    let (sample, alpha) = (u32::from(sample), u32::from(alpha));
    ((sample * alpha + 255 * (255 - alpha) + 127) / 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transparency_shows_white() {
        assert_eq!(flatten_rgb(&[10, 20, 30, 255, 10, 20, 30, 0]), [10, 20, 30, 255, 255, 255]);
        assert_eq!(flatten_rgb(&[0, 100, 255, 128]), [127, 177, 255]);
        assert_eq!(flatten_grey(&[0, 255, 0, 0, 0, 51]), [0, 255, 204]);
    }
}
