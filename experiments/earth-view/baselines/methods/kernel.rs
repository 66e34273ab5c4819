//! A round kernel on the sphere with a tail of any weight, in closed form.
//!
//! Convention: with the squared chord y = |a − b|², which is 2·(1 − cos of the angle) and runs evenly
//! over the sphere's area (dA = π dy on each kernel), the density is proportional to
//! (1 + y/(2·tail·width²))^(−tail): a spherical Student kernel. An infinite tail is von Mises-Fisher's
//! exp(−y/(2·width²)), κ = 1/width².

use std::f64::consts::{PI, TAU};

use locdiff_sphere::{EARTH_RADIUS_KM, UnitVector};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The largest squared chord, between antipodes.
const FARTHEST: f64 = 4.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RoundKernel {
    /// Square of the width in radians.
    variance: f64,
    tail: f64,
    log_normaliser: f64,
}

impl RoundKernel {
    /// The tail must exceed 1.
    pub(super) fn new(variance: f64, tail: f64) -> RoundKernel {
        let log_normaliser = if tail.is_finite() {
            let scale = 2.0 * variance * tail;
            let rest = 1.0 - (1.0 + FARTHEST / scale).powf(1.0 - tail);
            (PI * scale / (tail - 1.0) * rest).ln()
        } else {
            (TAU * variance * -(-FARTHEST / (2.0 * variance)).exp_m1()).ln()
        };
        RoundKernel { variance, tail, log_normaliser }
    }

    pub(super) fn of_width_km(width_km: f64, tail: f64) -> RoundKernel {
        RoundKernel::new((width_km / EARTH_RADIUS_KM).powi(2), tail)
    }

    /// The log-density per steradian at a squared chord from the middle.
    pub(super) fn log_density(&self, squared_chord: f64) -> f64 {
        let shape = if self.tail.is_finite() {
            -self.tail * (squared_chord / (2.0 * self.variance * self.tail)).ln_1p()
        } else {
            -squared_chord / (2.0 * self.variance)
        };
        shape - self.log_normaliser
    }

    pub(super) fn variance(&self) -> f64 {
        self.variance
    }

    /// A point around a middle, by the inverse of the share of mass within a chord.
    pub(super) fn sample(&self, middle: [f64; 3], rng: &mut ChaCha8Rng) -> [f64; 3] {
        let share: f64 = rng.random();
        let squared_chord = if self.tail.is_finite() {
            let scale = 2.0 * self.variance * self.tail;
            let rest = 1.0 - (1.0 + FARTHEST / scale).powf(1.0 - self.tail);
            scale * ((1.0 - share * rest).powf(1.0 / (1.0 - self.tail)) - 1.0)
        } else {
            let rest = -(-FARTHEST / (2.0 * self.variance)).exp_m1();
            -2.0 * self.variance * (-share * rest).ln_1p()
        };
        let cos = (1.0 - 0.5 * squared_chord).clamp(-1.0, 1.0);
        let sin = (squared_chord * (1.0 - 0.25 * squared_chord)).max(0.0).sqrt();
        let [first, second] = tangents(middle);
        let (s, c) = rng.random_range(0.0..TAU).sin_cos();
        [0, 1, 2].map(|axis| cos * middle[axis] + sin * (c * first[axis] + s * second[axis]))
    }
}

/// Two directions across a unit vector and across each other.
pub(super) fn tangents(vector: [f64; 3]) -> [[f64; 3]; 2] {
    // The axis that is farthest from the vector's line.
    let axis =
        (0..3).min_by(|a, b| vector[*a].abs().total_cmp(&vector[*b].abs())).unwrap_or_default();
    let mut along = [0.0; 3];
    along[axis] = 1.0;
    let first = cross(vector, along);
    let first = UnitVector::from_direction(first).unwrap_or(UnitVector::NORTH).to_array();
    [first, cross(vector, first)]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|k| a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3])
}

pub(super) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn squared_chord(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use locdiff_sphere::{Grid, LatLon};
    use rand::SeedableRng;

    use super::*;

    const KERNELS: [(f64, f64); 6] = [
        (0.01, 1.2),
        (0.05, 1.5),
        (0.3, 3.0),
        (2.0, f64::INFINITY),
        (0.02, f64::INFINITY),
        (0.1, 8.0),
    ];

    #[test]
    fn baseline_kernels_integrate_to_one() {
        let grid = Grid::new(160, 320);
        for (variance, tail) in KERNELS {
            let kernel = RoundKernel::new(variance, tail);
            for middle in [LatLon::NORTH_POLE, LatLon::new(-13.0, 179.99).unwrap()] {
                let middle = UnitVector::from(middle).to_array();
                let density = |ring, longitude| {
                    let place = UnitVector::from(grid.place(ring, longitude)).to_array();
                    kernel.log_density(squared_chord(place, middle)).exp()
                };
                let values: Vec<f64> = (0..grid.len()).map(|k| density(k / 320, k % 320)).collect();
                let sum = grid.integrate(&values);
                assert!((sum - 1.0).abs() < 2e-3, "{variance}, {tail}: {sum}");
            }
        }
    }

    /// Samples of von Mises-Fisher have the mean coth κ − 1/κ; samples of all kernels have its entropy.
    #[test]
    fn baseline_kernels_samples_have_their_moments() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let middle = UnitVector::from(LatLon::new(89.9, 10.0).unwrap()).to_array();
        for (variance, tail) in KERNELS {
            let kernel = RoundKernel::new(variance, tail);
            let count = 20_000;
            let mut mean = 0.0;
            for _ in 0..count {
                let point = kernel.sample(middle, &mut rng);
                assert!((dot(point, point) - 1.0).abs() < 1e-12);
                mean += dot(point, middle) / f64::from(count);
            }
            // ∫ (1 − y/2)·density·π dy, by the midpoint rule on shares of a fine cut.
            let pieces = 200_000;
            let expected: f64 = (0..pieces)
                .map(|k| {
                    let y = 4.0 * (f64::from(k) + 0.5) / f64::from(pieces);
                    (1.0 - 0.5 * y) * kernel.log_density(y).exp() * PI * 4.0 / f64::from(pieces)
                })
                .sum();
            assert!((mean - expected).abs() < 0.02, "{variance}, {tail}: {mean}, {expected}");
            if tail.is_infinite() {
                let k = 1.0 / variance;
                assert!((expected - (1.0 / k.tanh() - variance)).abs() < 1e-5);
            }
        }
    }

    /// A long tail's limit is von Mises-Fisher, and its normaliser stays finite when it is sharp.
    #[test]
    fn baseline_kernels_limits() {
        let (heavy, normal) = (RoundKernel::new(0.1, 1e7), RoundKernel::new(0.1, f64::INFINITY));
        for y in [0.0, 0.3, 1.7, 4.0] {
            assert!((heavy.log_density(y) - normal.log_density(y)).abs() < 1e-4);
        }
        let sharp = RoundKernel::of_width_km(0.01, f64::INFINITY);
        assert!((sharp.log_density(0.0) - (1.0 / (TAU * sharp.variance())).ln()).abs() < 1e-9);
        for vector in [[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [0.6, 0.0, -0.8]] {
            let [a, b] = tangents(vector);
            for (x, y, product) in
                [(a, a, 1.0), (b, b, 1.0), (a, b, 0.0), (a, vector, 0.0), (b, vector, 0.0)]
            {
                assert!((dot(x, y) - product).abs() < 1e-12);
            }
        }
    }
}
