//! Gradient fields: what of a picture survives other light, another season and another sensor.
//!
//! Two complex numbers per pixel, x to the right and y up. The first is the gradient of the
//! luminance. The second is the color tensor: the sum over the channels of the squared gradients,
//! with its angle doubled, so that dark on bright equals bright on dark. Amplitudes `a` become
//! `a / (a + mean of a nearby)`: a strong cloud edge counts at most twice as much as usual texture.

use crate::pyramid::overlaps;

/// Share of the picture's side over which amplitudes are compared, to each side.
const NEARBY: f32 = 0.2;
/// Share of the whole field's mean in the mean nearby: flat places stay flat.
const OVERALL: f32 = 0.35;

/// Both fields of a square picture: luminance (x, y), tensor (x, y).
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    pub(crate) side: usize,
    pub(crate) values: Vec<[f32; 4]>,
}

impl Fields {
    /// The fields of red, green, blue numbers, `side` × `side`; `across` is how many pixels a
    /// picture's side has at this resolution.
    #[inline(always)]
    pub(crate) fn of(colors: &[[f32; 3]], side: usize, across: usize) -> Self {
        let mut values = vec![[0.0; 4]; side * side];
        for y in 1..side - 1 {
            for x in 1..side - 1 {
                values[y * side + x] = gradients(colors, side, x, y);
            }
        }
        let reach = (NEARBY * across as f32).round().max(1.0) as usize;
        for field in [0, 2] {
            let amplitudes: Vec<f32> = values
                .iter()
                .map(|value| (value[field].powi(2) + value[field + 1].powi(2)).sqrt())
                .collect();
            let overall = amplitudes.iter().sum::<f32>() / amplitudes.len() as f32;
            let nearby = box_means(&amplitudes, side, reach);
            for ((value, amplitude), mean) in values.iter_mut().zip(&amplitudes).zip(&nearby) {
                let usual = mean + OVERALL * (overall - mean);
                let scale = 1.0 / (amplitude + usual + 1e-3);
                value[field] *= scale;
                value[field + 1] *= scale;
            }
        }
        Self { side, values }
    }

    /// The sums of squares of both fields.
    pub(crate) fn energies(&self) -> [f32; 2] {
        let mut sums = [0.0; 2];
        for value in &self.values {
            sums[0] += value[0] * value[0] + value[1] * value[1];
            sums[1] += value[2] * value[2] + value[3] * value[3];
        }
        sums
    }
}

#[inline(always)]
fn gradients(colors: &[[f32; 3]], side: usize, x: usize, y: usize) -> [f32; 4] {
    const LUMINANCE: [f32; 3] = [0.3, 0.55, 0.15];
    let at = |dx: usize, dy: usize| &colors[(y + dy - 1) * side + x + dx - 1];
    let mut out = [0.0; 4];
    for channel in 0..3 {
        let value = |dx, dy| at(dx, dy)[channel];
        // Scharr's operator: its angles are right to a degree.
        let right = 3.0 * (value(2, 0) - value(0, 0) + value(2, 2) - value(0, 2))
            + 10.0 * (value(2, 1) - value(0, 1));
        let up = 3.0 * (value(0, 0) - value(0, 2) + value(2, 0) - value(2, 2))
            + 10.0 * (value(1, 0) - value(1, 2));
        let (right, up) = (right / 32.0, up / 32.0);
        out[0] += LUMINANCE[channel] * right;
        out[1] += LUMINANCE[channel] * up;
        out[2] += right * right - up * up;
        out[3] += 2.0 * right * up;
    }
    // An amplitude like a gradient's, not its square.
    let root = (out[2] * out[2] + out[3] * out[3]).sqrt().sqrt().max(1e-6);
    [out[0], out[1], out[2] / root, out[3] / root]
}

/// Means over squares of `2 reach + 1` pixels, cut off at the edges.
#[inline(always)]
fn box_means(values: &[f32], side: usize, reach: usize) -> Vec<f32> {
    let wide = side + 1;
    let mut sums = vec![0.0; wide * wide];
    for y in 0..side {
        let mut row = 0.0;
        for x in 0..side {
            row += values[y * side + x];
            sums[(y + 1) * wide + x + 1] = sums[y * wide + x + 1] + row;
        }
    }
    let mut means = vec![0.0; side * side];
    for y in 0..side {
        let (top, bottom) = (y.saturating_sub(reach), (y + reach + 1).min(side));
        for x in 0..side {
            let (left, right) = (x.saturating_sub(reach), (x + reach + 1).min(side));
            let sum =
                sums[bottom * wide + right] - sums[top * wide + right] - sums[bottom * wide + left]
                    + sums[top * wide + left];
            means[y * side + x] = sum / ((bottom - top) * (right - left)) as f32;
        }
    }
    means
}

/// A square picture at another resolution: each pixel is the mean over its area.
pub(crate) fn reduced(colors: &[[f32; 3]], side: usize, target: usize) -> Vec<[f32; 3]> {
    let ratio = side as f64 / target as f64;
    let spans: Vec<Vec<(usize, f32)>> = (0..target)
        .map(|at| {
            overlaps(at as f64 * ratio, (at + 1) as f64 * ratio)
                .map(|(from, weight)| (from.min(side - 1), weight as f32))
                .collect()
        })
        .collect();
    let mut out = Vec::with_capacity(target * target);
    let mut lines = vec![[0.0f32; 3]; side];
    for rows in &spans {
        lines.fill([0.0; 3]);
        for &(row, weight) in rows {
            for (sum, color) in lines.iter_mut().zip(&colors[row * side..][..side]) {
                for channel in 0..3 {
                    sum[channel] += weight * color[channel];
                }
            }
        }
        out.extend(spans.iter().map(|columns| {
            let mut sum = [0.0; 3];
            for &(column, weight) in columns {
                for channel in 0..3 {
                    sum[channel] += weight * lines[column][channel];
                }
            }
            sum
        }));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduction_keeps_the_mean() {
        let colors: Vec<[f32; 3]> = (0..50 * 50)
            .map(|at| [(at * 7 % 31) as f32, (at % 50) as f32, (at / 50) as f32])
            .collect();
        let mean = |colors: &[[f32; 3]], channel: usize| {
            colors.iter().map(|color| color[channel]).sum::<f32>() / colors.len() as f32
        };
        for target in [7, 25, 32, 50, 64] {
            let small = reduced(&colors, 50, target);
            for channel in 0..3 {
                assert!((mean(&small, channel) - mean(&colors, channel)).abs() < 1e-3);
            }
        }
        assert_eq!(reduced(&colors, 50, 50), colors);
    }

    #[test]
    fn a_ramp_has_one_direction_and_its_tensor_ignores_the_sign() {
        let ramp = |sign: f32| -> Vec<[f32; 3]> {
            (0..256).map(|at| [sign * ((at % 16) as f32 - (at / 16) as f32); 3]).collect()
        };
        let [rising, falling] =
            [1.0, -1.0].map(|sign| Fields::of(&ramp(sign), 16, 16).values[7 * 16 + 7]);
        // Brighter to the right and upward.
        assert!(rising[0] > 0.2 && (rising[0] - rising[1]).abs() < 1e-4, "{rising:?}");
        assert!(rising[2].abs() < 1e-3 && rising[3] > 0.2, "{rising:?}");
        assert!((rising[0] + falling[0]).abs() < 1e-4 && (rising[3] - falling[3]).abs() < 1e-4);
    }
}
