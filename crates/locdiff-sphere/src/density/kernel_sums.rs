//! Sums of a kernel around many points, at the 64 points of a cell at once.
//!
//! A gallery has tens of thousands of points near a city, and a map of it thousands of cells: this is
//! where such a map's time goes. In single precision, which is right to a millionth here since everything is relative to the cell
//! and in widths of the kernel. Tested against plain loops.

use crate::cells::POINTS;
use crate::simd::{Kernel, vectorised};

/// Points of a cell.
const PLACES: usize = POINTS * POINTS;
/// Points that are summed side by side.
const LANES: usize = 16;
/// An exponential of less is zero.
const LEAST_EXPONENT: f32 = -86.0;

/// Σ w·exp(−|a − b|²/2σ²) over points b, at each place a of a cell.
pub(super) struct KernelSums {
    /// Coordinates are relative to it: differences of near points keep their digits.
    origin: [f64; 3],
    /// 1/σ.
    per_width: f64,
    places: [[f32; 3]; PLACES],
    /// Coordinates, logarithms of weights and half sharpnesses of points that are still to be added.
    waiting: [Vec<f32>; 5],
    sums: [f32; PLACES],
}

impl KernelSums {
    pub(super) fn new(width: f64) -> KernelSums {
        KernelSums {
            origin: [0.0; 3],
            per_width: width.recip(),
            places: [[0.0; 3]; PLACES],
            waiting: std::array::from_fn(|_| Vec::new()),
            sums: [0.0; PLACES],
        }
    }

    /// Starts the sums again at other places.
    pub(super) fn start(&mut self, origin: [f64; 3], places: [[f64; 3]; PLACES]) {
        self.origin = origin;
        self.places = places.map(|place| self.relative(place));
        self.sums = [0.0; PLACES];
        self.waiting.iter_mut().for_each(Vec::clear);
    }

    /// Adds a point; the logarithm of its weight is at most zero. The sharpness is 1 for kernels of the width.
    pub(super) fn push(&mut self, point: [f64; 3], log_weight: f64, sharpness: f64) {
        let [x, y, z] = self.relative(point);
        let half = 0.5 * sharpness as f32;
        for (list, number) in self.waiting.iter_mut().zip([x, y, z, log_weight as f32, half]) {
            list.push(number);
        }
    }

    /// The sums over all points so far.
    pub(super) fn take(&mut self) -> &[f32; PLACES] {
        let count = self.waiting[0].len().next_multiple_of(LANES);
        let nothing = [0.0, 0.0, 0.0, f32::NEG_INFINITY, 0.0];
        for (list, nothing) in self.waiting.iter_mut().zip(nothing) {
            list.resize(count, nothing);
        }
        let points = self.waiting.each_ref().map(Vec::as_slice);
        vectorised(Add { places: &self.places, points, sums: &mut self.sums });
        self.waiting.iter_mut().for_each(Vec::clear);
        &self.sums
    }

    /// In widths, from the origin.
    fn relative(&self, point: [f64; 3]) -> [f32; 3] {
        std::array::from_fn(|axis| ((point[axis] - self.origin[axis]) * self.per_width) as f32)
    }
}

struct Add<'a> {
    places: &'a [[f32; 3]; PLACES],
    points: [&'a [f32]; 5],
    sums: &'a mut [f32; PLACES],
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [x, y, z, logs, halves] = self.points.map(|list| list.as_chunks::<LANES>().0);
        for (sum, &[here_x, here_y, here_z]) in self.sums.iter_mut().zip(self.places) {
            let mut lanes = [0.0; LANES];
            for ((((x, y), z), logs), halves) in x.iter().zip(y).zip(z).zip(logs).zip(halves) {
                for lane in 0..LANES {
                    let (dx, dy, dz) = (x[lane] - here_x, y[lane] - here_y, z[lane] - here_z);
                    let squared_chord = dx * dx + dy * dy + dz * dz;
                    lanes[lane] += exp(logs[lane] - halves[lane] * squared_chord);
                }
            }
            *sum += lanes.iter().sum::<f32>();
        }
    }
}

/// e^x for x ≤ 0, to 3e-7; zero below −86.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// 1.5·2²³: adding it rounds to a whole number, which then stands in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let small = x < LEAST_EXPONENT;
    let x = if small { LEAST_EXPONENT } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut sum = 1.0 / 5_040.0;
    for inverse in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = sum * r + inverse;
    }
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if small { 0.0 } else { sum * power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_the_library_s() {
        for k in 0..100_000 {
            let x = -0.00086 * k as f32;
            let (found, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((found - expected).abs() <= 3e-7 * expected || x <= -85.9, "{x}: {found}");
        }
        assert_eq!([exp(0.0), exp(-1e6), exp(f32::NEG_INFINITY)], [1.0, 0.0, 0.0]);
    }

    #[test]
    fn sums_are_those_of_plain_loops() {
        let point = |k: usize| [(k as f64).sin(), (2.0 * k as f64).cos(), (k as f64 * 0.7).sin()];
        let places = std::array::from_fn(|k| point(1000 + k));
        let sharpness = |k: usize| 1.0 - 0.02 * k as f64;
        let mut sums = KernelSums::new(7.5_f64.sqrt().recip());
        for count in [0, 1, 15, 16, 33] {
            sums.start([0.1, 0.2, 0.3], places);
            for k in 0..count {
                sums.push(point(k), -(k as f64), sharpness(k));
                if k == 9 {
                    sums.take();
                }
            }
            for (place, sum) in places.iter().zip(sums.take()) {
                let chord =
                    |k| (0..3).map(|axis| (point(k)[axis] - place[axis]).powi(2)).sum::<f64>();
                let plain =
                    (0..count).map(|k| (-(k as f64) - 3.75 * sharpness(k) * chord(k)).exp());
                let plain: f64 = plain.sum();
                let off = (f64::from(*sum) - plain).abs();
                assert!(off <= 1e-5 * plain + 1e-30, "{count}: {sum} {plain}");
            }
        }
    }
}
