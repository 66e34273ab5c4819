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
            Channels::Grey => {
                let rgb = colour::rgb_of_grey(&samples, profile);
                drop(samples);
                rgb
            }
            Channels::Rgb => {
                colour::convert_to_srgb(&mut samples, profile);
                samples
            }
        };
        upright(width, height, rgb, orientation)
    }
}

/// Samples of `width` bytes each (whole numbers of two, floating-point numbers of four), rounded to one byte each, where Pillow
/// cuts. They stay where they are, at the beginning of their memory.
pub(super) fn round_to_bytes(samples: &mut Vec<u8>, width: usize) {
    let rounded = |sample: &[u8]| match *sample {
        [a, b] => ((u32::from(u16::from_ne_bytes([a, b])) + 128) / 257) as u8,
        [a, b, c, d] => {
            let number = f32::from_ne_bytes([a, b, c, d]);
            // What is not a number is taken for white.
            let number = if number < 1.0 { number.max(0.0) } else { 1.0 };
            (255.0 * number).round() as u8
        }
        _ => sample.first().copied().unwrap_or_default(),
    };
    if width > 1 {
        let count = samples.len() / width;
        for k in 0..count {
            samples[k] = rounded(&samples[k * width..][..width]);
        }
        samples.truncate(count);
    }
}

/// Pixels of `channels` bytes each, the last of them alpha, over white: where they are.
pub(super) fn flatten_alpha(samples: &mut Vec<u8>, channels: usize) {
    let (count, colors) = (samples.len() / channels, channels - 1);
    for pixel in 0..count {
        let alpha = samples[pixel * channels + colors];
        for color in 0..colors {
            samples[pixel * colors + color] = over_white(samples[pixel * channels + color], alpha);
        }
    }
    samples.truncate(count * colors);
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
        let flat = |channels, samples: &[u8]| {
            let mut samples = samples.to_vec();
            flatten_alpha(&mut samples, channels);
            samples
        };
        assert_eq!(flat(4, &[10, 20, 30, 255, 10, 20, 30, 0]), [10, 20, 30, 255, 255, 255]);
        assert_eq!(flat(4, &[0, 100, 255, 128]), [127, 177, 255]);
        assert_eq!(flat(2, &[0, 255, 0, 0, 0, 51]), [0, 255, 204]);
    }

    #[test]
    fn deep_samples_are_rounded() {
        let mut whole: Vec<u8> =
            [0_u16, 128, 129, 257, 65_406, 65_407, 65_535].map(u16::to_ne_bytes).concat();
        round_to_bytes(&mut whole, 2);
        assert_eq!(whole, [0, 0, 1, 1, 254, 255, 255]);
        let mut real: Vec<u8> =
            [-1.0_f32, 0.0, 0.5, 1.0, 7.0, f32::NAN].map(f32::to_ne_bytes).concat();
        round_to_bytes(&mut real, 4);
        assert_eq!(real, [0, 0, 128, 255, 255, 255]);
        let mut bytes = vec![1, 2, 3];
        round_to_bytes(&mut bytes, 1);
        assert_eq!(bytes, [1, 2, 3]);
    }
}
