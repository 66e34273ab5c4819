//! Sums of a kernel around many points, at the 64 points of a cell at once.
//!
//! A gallery has tens of thousands of points near a city, and a map of it thousands of cells: this is
//! where such a map's time goes. Tested against plain loops.

use crate::cells::POINTS;
use crate::simd::{Kernel, vectorised};

/// Points of a cell.
const PLACES: usize = POINTS * POINTS;
/// Points that are summed side by side.
const LANES: usize = 16;

/// Σ w·exp(−κ·|a − b|²/2) over points b, at each place a of a cell.
pub(super) struct KernelSums {
    /// Coordinates are relative to it: differences of near points keep their digits.
    origin: [f64; 3],
    concentration: f64,
    places: [[f64; 3]; PLACES],
    /// Coordinates and logarithms of weights of points that are still to be added.
    waiting: [Vec<f64>; 4],
    sums: [f64; PLACES],
}

impl KernelSums {
    pub(super) fn new(
        origin: [f64; 3],
        concentration: f64,
        places: [[f64; 3]; PLACES],
    ) -> KernelSums {
        let places = places.map(|place| relative(place, origin));
        let waiting = std::array::from_fn(|_| Vec::new());
        KernelSums { origin, concentration, places, waiting, sums: [0.0; PLACES] }
    }

    pub(super) fn push(&mut self, point: [f64; 3], log_weight: f64) {
        let [x, y, z] = relative(point, self.origin);
        for (list, number) in self.waiting.iter_mut().zip([x, y, z, log_weight]) {
            list.push(number);
        }
    }

    /// The sums over all points so far.
    pub(super) fn take(&mut self) -> &[f64; PLACES] {
        let count = self.waiting[0].len().next_multiple_of(LANES);
        for (list, nothing) in self.waiting.iter_mut().zip([0.0, 0.0, 0.0, f64::NEG_INFINITY]) {
            list.resize(count, nothing);
        }
        let [x, y, z, log_weights] = &self.waiting;
        vectorised(Add {
            half_concentration: 0.5 * self.concentration,
            places: &self.places,
            points: [x, y, z, log_weights],
            sums: &mut self.sums,
        });
        self.waiting.iter_mut().for_each(Vec::clear);
        &self.sums
    }
}

fn relative(point: [f64; 3], origin: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| point[axis] - origin[axis])
}

struct Add<'a> {
    half_concentration: f64,
    places: &'a [[f64; 3]; PLACES],
    points: [&'a [f64]; 4],
    sums: &'a mut [f64; PLACES],
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [x, y, z, log_weights] = self.points.map(|list| list.as_chunks::<LANES>().0);
        for (sum, &[here_x, here_y, here_z]) in self.sums.iter_mut().zip(self.places) {
            let mut lanes = [0.0; LANES];
            for (((x, y), z), log_weights) in x.iter().zip(y).zip(z).zip(log_weights) {
                for lane in 0..LANES {
                    let (dx, dy, dz) = (x[lane] - here_x, y[lane] - here_y, z[lane] - here_z);
                    let squared_chord = dx * dx + dy * dy + dz * dz;
                    lanes[lane] += exp(log_weights[lane] - self.half_concentration * squared_chord);
                }
            }
            *sum += lanes.iter().sum::<f64>();
        }
    }
}

/// e^x for x ≤ 0, to 1e-14; zero below −690.
#[inline(always)]
fn exp(x: f64) -> f64 {
    /// 1.5·2⁵²: adding it rounds to a whole number, which then stands in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let small = x < -690.0;
    let x = if small { -690.0 } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut sum = 1.0 / 479_001_600.0;
    for inverse in [
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        sum = sum * r + inverse;
    }
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    if small { 0.0 } else { sum * power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_the_library_s() {
        for k in 0..100_000 {
            let x = -0.0069 * f64::from(k);
            let (found, expected) = (exp(x), x.exp());
            assert!((found - expected).abs() <= 3e-14 * expected || x < -689.9, "{x}: {found}");
        }
        assert_eq!([exp(0.0), exp(-1e6), exp(f64::NEG_INFINITY)], [1.0, 0.0, 0.0]);
    }

    #[test]
    fn sums_are_those_of_plain_loops() {
        let point = |k: usize| [(k as f64).sin(), (2.0 * k as f64).cos(), (k as f64 * 0.7).sin()];
        let places = std::array::from_fn(|k| point(1000 + k));
        for count in [0, 1, 15, 16, 33] {
            let mut sums = KernelSums::new([0.1, 0.2, 0.3], 7.5, places);
            for k in 0..count {
                sums.push(point(k), -(k as f64));
                if k == 9 {
                    sums.take();
                }
            }
            for (place, sum) in places.iter().zip(sums.take()) {
                let chord =
                    |k| (0..3).map(|axis| (point(k)[axis] - place[axis]).powi(2)).sum::<f64>();
                let plain: f64 = (0..count).map(|k| (-(k as f64) - 3.75 * chord(k)).exp()).sum();
                assert!((sum - plain).abs() <= 1e-12 * plain, "{count}: {sum} {plain}");
            }
        }
    }
}
