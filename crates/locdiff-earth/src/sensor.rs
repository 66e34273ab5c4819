//! From light to bytes: exposure, lens, tone curve, noise, JPEG.

use std::sync::OnceLock;

use crate::canvas::Canvas;
use crate::random::Random;
use crate::style::Style;

const CURVE_STEPS: usize = 512;
/// The curve's last entry stands for this square root of light.
const CURVE_END: f32 = 1.4;

/// What camera and developer do to a picture.
#[derive(Clone, Debug)]
pub(crate) struct Sensor {
    /// Weight of the neighbours: positive blurs, negative sharpens.
    neighbours: f32,
    passes: usize,
    vignette: f32,
    saturation: f32,
    curves: Box<[[f32; CURVE_STEPS]; 3]>,
    /// Deviation in bytes.
    noise: f32,
    jpeg_quality: Option<u8>,
}

impl Sensor {
    pub(crate) fn draw(random: &mut Random, style: &Style, night: bool) -> Self {
        let soft = random.chance(0.3);
        let neighbours =
            if soft { random.between_f32(0.0, 0.25) } else { random.between_f32(-0.12, 0.05) };
        let noise = random.log_between(0.4, if night { 12.0 } else { 6.0 }) as f32;
        let jpeg = random.chance(style.jpeg_share.into());
        let quality = random.between(35.0, 95.0) as u8;
        let saturation = ((random.normal() * 0.25 - 0.12) * f64::from(style.colour)).exp() as f32;
        Self {
            neighbours: neighbours * style.blur.min(1.0),
            passes: if soft && random.chance(0.4) { 2 } else { 1 },
            vignette: if random.chance(0.5) {
                random.between_f32(0.0, 0.5) * style.vignette
            } else {
                0.0
            },
            saturation,
            curves: curves(random, style.colour, night),
            noise: if style.noise > 0.0 { noise * style.noise } else { 0.0 },
            jpeg_quality: jpeg.then_some(quality),
        }
    }

    /// Blur or sharpening, in place.
    #[inline(always)]
    pub(crate) fn filter(&self, canvas: &mut Canvas) {
        if self.neighbours.abs() < 0.005 {
            return;
        }
        let size = canvas.size;
        let Canvas { red, green, blue, spare, .. } = canvas;
        for plane in [red, green, blue] {
            for _ in 0..self.passes {
                filter_plane(plane, spare, size, self.neighbours);
            }
        }
    }

    /// Bytes of the picture, red, green, blue for each pixel.
    #[inline(always)]
    pub(crate) fn develop(&self, canvas: &Canvas, gain: f32, random: &mut Random) -> Vec<u8> {
        let size = canvas.size;
        let mut bytes = vec![0u8; size * size * 3];
        let grain = grain();
        let step = 2.0 / size as f32;
        let to_index = (CURVE_STEPS - 1) as f32 / CURVE_END;
        let [red_curve, green_curve, blue_curve] = &*self.curves;
        for row in 0..size {
            let y = (row as f32 + 0.5) * step - 1.0;
            let span = row * size..(row + 1) * size;
            let (red, green) =
                (&canvas.red[span.clone()][..size], &canvas.green[span.clone()][..size]);
            let blue = &canvas.blue[span][..size];
            let out = &mut bytes[row * size * 3..][..size * 3];
            let start = (random.bits() % (GRAINS - 3 * size).max(1) as u64) as usize;
            let grain = &grain[start..][..size * 3];
            for at in 0..size {
                let x = (at as f32 + 0.5) * step - 1.0;
                let shade = gain * (1.0 - self.vignette * 0.5 * (x * x + y * y));
                let (r, g, b) = (red[at] * shade, green[at] * shade, blue[at] * shade);
                let grey = 0.3 * r + 0.55 * g + 0.15 * b;
                let tone = |light: f32, curve: &[f32; CURVE_STEPS], grain: f32| {
                    let light = (grey + (light - grey) * self.saturation).max(0.0);
                    let index = (light.sqrt() * to_index).min((CURVE_STEPS - 1) as f32) as i32;
                    (curve[index as usize & (CURVE_STEPS - 1)] + grain * self.noise + 0.5) as u8
                };
                out[3 * at] = tone(r, red_curve, grain[3 * at]);
                out[3 * at + 1] = tone(g, green_curve, grain[3 * at + 1]);
                out[3 * at + 2] = tone(b, blue_curve, grain[3 * at + 2]);
            }
        }
        match self.jpeg_quality {
            Some(quality) => through_jpeg(&bytes, size, quality).unwrap_or(bytes),
            None => bytes,
        }
    }
}

/// Each channel's way from the square root of light to a byte.
fn curves(random: &mut Random, strength: f32, night: bool) -> Box<[[f32; CURVE_STEPS]; 3]> {
    let gamma = (random.normal() * 0.13 * f64::from(strength)).exp() as f32;
    let contrast = random.between_f32(-0.25, 0.75) * strength;
    let shoulder = random.between_f32(0.75, 1.0);
    let shoulder = if strength > 0.0 { shoulder } else { 1.0 };
    let black = if night { 0.0 } else { random.between_f32(-0.05, 0.06) * strength };
    let balance: [f32; 3] =
        std::array::from_fn(|_| (random.normal() as f32 * 0.03 * strength).exp());
    let curve = |channel: usize| {
        std::array::from_fn(|step| {
            let value = step as f32 / (CURVE_STEPS - 1) as f32 * CURVE_END * balance[channel];
            // Straight up to the shoulder, then bending towards white.
            let value = if value > shoulder && shoulder < 1.0 {
                let room = 1.0 - shoulder;
                let beyond = (value - shoulder) / room;
                shoulder + room * beyond / (1.0 + beyond)
            } else {
                value.min(1.0)
            };
            let value = if gamma == 1.0 { value } else { value.powf(gamma) };
            let value = value + contrast * value * (1.0 - value) * (2.0 * value - 1.0);
            (black + value * (1.0 - black)) * 255.0
        })
    };
    Box::new(std::array::from_fn(curve))
}

/// A plane filtered with (w, 1 − 2w, w) along rows, then columns; edges repeat.
#[inline(always)]
fn filter_plane(plane: &mut [f32], spare: &mut [f32], size: usize, weight: f32) {
    let middle = 1.0 - 2.0 * weight;
    for row in 0..size {
        let line = &plane[row * size..][..size];
        let out = &mut spare[row * size..][..size];
        for at in 1..size - 1 {
            out[at] = middle * line[at] + weight * (line[at - 1] + line[at + 1]);
        }
        out[0] = (1.0 - weight) * line[0] + weight * line[1];
        out[size - 1] = (1.0 - weight) * line[size - 1] + weight * line[size - 2];
    }
    for row in 0..size {
        let above = &spare[row.saturating_sub(1) * size..][..size];
        let here = &spare[row * size..][..size];
        let below = &spare[(row + 1).min(size - 1) * size..][..size];
        let out = &mut plane[row * size..][..size];
        for at in 0..size {
            out[at] = (middle * here[at] + weight * (above[at] + below[at])).max(0.0);
        }
    }
}

const GRAINS: usize = 1 << 15;

/// Normal deviates, made once; each row of each picture begins somewhere else in them.
fn grain() -> &'static [f32] {
    static GRAIN: OnceLock<Vec<f32>> = OnceLock::new();
    GRAIN.get_or_init(|| {
        let mut random = Random::new(0x6a41);
        (0..GRAINS).map(|_| random.normal() as f32).collect()
    })
}

/// The picture after it was saved and opened again.
fn through_jpeg(bytes: &[u8], size: usize, quality: u8) -> Option<Vec<u8>> {
    let mut file = Vec::with_capacity(bytes.len() / 4);
    let mut encoder = jpeg_encoder::Encoder::new(&mut file, quality);
    encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_2_2);
    let side = u16::try_from(size).ok()?;
    encoder.encode(bytes, side, side, jpeg_encoder::ColorType::Rgb).ok()?;
    zune_jpeg::JpegDecoder::new(zune_core::bytestream::ZCursor::new(&file)).decode().ok()
}
