//! Normalised associated Legendre functions, stable for every degree that anybody needs.
//!
//! p_lm(θ) is scaled so that p_l0, p_lm·cos mφ and p_lm·sin mφ are orthonormal on the
//! sphere, without Condon-Shortley phase (p_mm ≥ 0).
//!
//! The textbook recurrence p_l = a·cos θ·p_(l−1) − b·p_(l−2) loses about l²·ε near the
//! poles, where it subtracts nearly equal numbers. We carry the difference to the
//! function's growth at the pole instead (Reinsch's modification of Clenshaw's scheme):
//!
//! ```text
//! d_l = h·d_(l−1) − (g + h)·(1 − cos θ)·p_(l−1)
//! p_l = g·p_(l−1) + d_l
//! g = √((2l+1)/(2l−1) · (l+m)/(l−m))         growth at the pole: p_l / p_(l−1) as θ → 0
//! h = √((2l+1)/(2l−1)) · (l−1−m) / √(l²−m²)   what the last difference still weighs
//! ```
//!
//! Tested against mpmath (`parity/sphere/basis_mpmath.json`): within 2e-14 to degree 128 and
//! 2e-13 to degree 2000, from pole to equator.

use crate::direction::Colatitude;
use crate::triangle::{self, LANES, lanes, lanes_mut};

/// Every p_lm inside the recurrence is multiplied by this power of two, and the factors
/// cos mφ, sin mφ by its inverse. The seeds p_mm ~ sin^m θ of orders that matter fall to
/// exp(−L/e), which leaves the range of f64 near L = 2000; with the scale, near 3100.
pub(crate) const SCALE: f64 = power_of_two(800);
/// Takes the scale off again.
pub(crate) const UNSCALE: f64 = power_of_two(-800);
/// Seeds below this are set to zero: their whole column is far below rounding, and
/// subnormal numbers are slow.
const NEGLIGIBLE: f64 = power_of_two(-1000);

/// The largest degree that the scaled recurrence carries without underflow that matters.
pub const LARGEST_DEGREE: usize = 3000;

const fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// The tables of the recurrence up to a degree, laid out as in [`triangle`].
#[derive(Debug, Clone)]
pub(crate) struct Legendre {
    max_degree: usize,
    growth: Vec<f64>,
    memory: Vec<f64>,
    /// p_mm / (p_(m−1,m−1)·sin θ).
    sectoral: Vec<f64>,
}

/// The two running rows of the recurrence.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    values: Vec<f64>,
    differences: Vec<f64>,
}

impl Rows {
    pub(crate) fn new(max_degree: usize) -> Rows {
        let row = vec![0.0; triangle::row_len(max_degree)];
        Rows { values: row.clone(), differences: row }
    }
}

impl Legendre {
    pub(crate) fn new(max_degree: usize) -> Legendre {
        assert!(
            max_degree <= LARGEST_DEGREE,
            "max_degree {max_degree} exceeds {LARGEST_DEGREE}, where f64 underflows"
        );
        let mut growth = vec![0.0; triangle::len(max_degree)];
        let mut memory = growth.clone();
        for l in 1..=max_degree {
            let ratio = (2 * l + 1) as f64 / (2 * l - 1) as f64;
            for m in 0..l {
                let (above, below) = ((l + m) as f64, (l - m) as f64);
                growth[triangle::row_start(l) + m] = (ratio * above / below).sqrt();
                memory[triangle::row_start(l) + m] =
                    (ratio / (above * below)).sqrt() * (below - 1.0);
            }
        }
        let sectoral = (0..=max_degree)
            .map(|m| match m {
                0 => 0.0,
                // One factor √2 on the way from m = 0, which has no sine partner.
                1 => 3.0_f64.sqrt(),
                _ => ((2 * m + 1) as f64 / (2 * m) as f64).sqrt(),
            })
            .collect();
        Legendre { max_degree, growth, memory, sectoral }
    }

    pub(crate) fn max_degree(&self) -> usize {
        self.max_degree
    }

    /// Starts at degree 0; each call of [`Walk::next`] gives the row of the next degree.
    #[inline(always)]
    pub(crate) fn walk<'a>(&'a self, theta: Colatitude, rows: &'a mut Rows) -> Walk<'a> {
        let seed = SCALE * (0.25 * std::f64::consts::FRAC_1_PI).sqrt();
        rows.values.fill(0.0);
        rows.differences.fill(0.0);
        Walk { legendre: self, theta, rows, seed, degree: 0 }
    }
}

/// The recurrence on its way up through the degrees at one colatitude.
///
/// Not a closure per row: only what is inlined is compiled for wide vectors, and closures
/// can't be told to be.
pub(crate) struct Walk<'a> {
    legendre: &'a Legendre,
    theta: Colatitude,
    rows: &'a mut Rows,
    seed: f64,
    degree: usize,
}

impl Walk<'_> {
    /// Degree l and p_lm·SCALE for m = 0..=l, followed by zeros up to the padded length.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<(usize, &[f64])> {
        let l = self.degree;
        if l > self.legendre.max_degree {
            return None;
        }
        self.degree += 1;
        let values = &mut self.rows.values[..triangle::row_len(l)];
        if l > 0 {
            let z = self.theta.one_minus_cos;
            let growth = lanes(triangle::row(&self.legendre.growth, l));
            let memory = lanes(triangle::row(&self.legendre.memory, l));
            let differences = &mut self.rows.differences[..triangle::row_len(l)];
            for (((p, d), g), h) in
                lanes_mut(values).iter_mut().zip(lanes_mut(differences)).zip(growth).zip(memory)
            {
                let (mut new_p, mut new_d) = ([0.0; LANES], [0.0; LANES]);
                for i in 0..LANES {
                    let grown = g[i] * p[i];
                    new_d[i] = h[i] * (d[i] - z * p[i]) - z * grown;
                    new_p[i] = grown + new_d[i];
                }
                (*p, *d) = (new_p, new_d);
            }
            self.seed *= self.legendre.sectoral[l] * self.theta.sin;
            if self.seed < NEGLIGIBLE {
                self.seed = 0.0;
            }
        }
        values[l] = self.seed;
        Some((l, values))
    }
}
