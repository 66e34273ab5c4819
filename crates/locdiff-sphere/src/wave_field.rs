//! Band-limited functions F = e·Y at the points of cells.
//!
//! A cell's points are the product of a few colatitudes and a few longitudes, so F there is
//! a small matrix product: sums over the degree per colatitude, waves per longitude. Cells
//! of one ring share the former, cells of one sector the latter.

use std::collections::HashMap;
use std::f64::consts::PI;

use crate::Basis;
use crate::cells::{CellId, POINTS, PointValues, Rule, Tiling};
use crate::derivatives::SplitFunction;
use crate::direction::Colatitude;
use crate::legendre::{Rows, UNSCALE};
use crate::simd::{Kernel, vectorised};
use crate::triangle::{self, LANES, lanes, lanes_mut};

pub(crate) struct WaveField<'a> {
    basis: &'a Basis,
    function: &'a SplitFunction,
    tiling: Tiling,
    rows: Rows,
    /// By level and ring: per colatitude the factors of all waves, `[point, wave]`.
    rings: HashMap<(u32, u32), Vec<f64>>,
    /// By level and sector: the waves cos mφ, then sin mφ, `[wave, point]`.
    sectors: HashMap<(u32, u32), Vec<[f64; POINTS]>>,
}

impl<'a> WaveField<'a> {
    pub(crate) fn new(basis: &'a Basis, function: &'a SplitFunction, tiling: Tiling) -> Self {
        let rows = Rows::new(basis.max_degree());
        let (rings, sectors) = (HashMap::new(), HashMap::new());
        WaveField { basis, function, tiling, rows, rings, sectors }
    }

    /// F at the points of a cell.
    pub(crate) fn values(&mut self, id: CellId) -> PointValues {
        let waves_count = 2 * triangle::row_len(self.basis.max_degree());
        let rule = Rule::get();
        let factors = self.rings.entry((id.level, id.ring)).or_insert_with(|| {
            let mut sums = vec![0.0; POINTS * waves_count];
            for (point, sums) in rule.points.iter().zip(sums.chunks_exact_mut(waves_count)) {
                let (theta, _) = self.tiling.point(id, *point, 0.0);
                vectorised(RingSums {
                    basis: self.basis,
                    function: self.function,
                    theta,
                    rows: &mut self.rows,
                    sums,
                });
            }
            sums
        });
        let waves = self.sectors.entry((id.level, id.sector)).or_insert_with(|| {
            let mut waves = vec![[0.0; POINTS]; waves_count];
            for (column, point) in rule.points.iter().enumerate() {
                let (_, phi) = self.tiling.point(id, 0.0, *point);
                fill_waves(phi, self.basis.max_degree(), column, &mut waves);
            }
            waves
        });
        let mut values = vectorised(Products { factors, waves });
        for value in values.as_flattened_mut() {
            *value *= self.function.scale;
        }
        values
    }
}

/// cos mφ, then sin mφ, into one column.
fn fill_waves(phi: f64, max_degree: usize, column: usize, waves: &mut [[f64; POINTS]]) {
    let (cosines, sines) = waves.split_at_mut(triangle::row_len(max_degree));
    let (s, c) = phi.sin_cos();
    let (mut cos, mut sin) = (1.0, 0.0);
    for m in 0..max_degree + 1 {
        (cosines[m][column], sines[m][column]) = (cos, sin);
        (cos, sin) = (cos * c - sin * s, sin * c + cos * s);
    }
}

/// Per order, the sums over degrees of p_lm·c_lm at one colatitude: cosine, then sine part.
struct RingSums<'a> {
    basis: &'a Basis,
    function: &'a SplitFunction,
    theta: f64,
    rows: &'a mut Rows,
    sums: &'a mut [f64],
}

impl Kernel for RingSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let south = self.theta > 0.5 * PI;
        let theta = if south { PI - self.theta } else { self.theta };
        let (cosines, sines) = self.sums.split_at_mut(triangle::row_len(self.basis.max_degree()));
        let (cosines, sines) = (lanes_mut(cosines), lanes_mut(sines));
        let mut walk = self.basis.legendre.walk(Colatitude::from_radians(theta), self.rows);
        while let Some((l, p)) = walk.next() {
            let (c, s) = self.function.rows(l);
            // The southern sign (−1)^(l+m): the factor of l here, that of m below.
            let sign = if south && l % 2 == 1 { -UNSCALE } else { UNSCALE };
            for (block, p) in lanes(p).iter().enumerate() {
                let (c, s) = (&lanes(c)[block], &lanes(s)[block]);
                let (mut cos, mut sin) = (cosines[block], sines[block]);
                for i in 0..LANES {
                    cos[i] += sign * p[i] * c[i];
                    sin[i] += sign * p[i] * s[i];
                }
                (cosines[block], sines[block]) = (cos, sin);
            }
        }
        if south {
            for block in cosines.iter_mut().chain(sines) {
                for i in (1..LANES).step_by(2) {
                    block[i] = -block[i];
                }
            }
        }
    }
}

/// Every ring's factors times every longitude's waves: F at the points of a cell.
struct Products<'a> {
    factors: &'a [f64],
    waves: &'a [[f64; POINTS]],
}

impl Kernel for Products<'_> {
    type Output = PointValues;

    #[inline(always)]
    fn run(self) -> PointValues {
        let mut values = [[0.0; POINTS]; POINTS];
        let count = self.waves.len();
        let factors: [&[f64]; POINTS] =
            std::array::from_fn(|i| &self.factors[i * count..(i + 1) * count]);
        for (k, wave) in self.waves.iter().enumerate() {
            for i in 0..POINTS {
                let factor = factors[i][k];
                for j in 0..POINTS {
                    values[i][j] += factor * wave[j];
                }
            }
        }
        values
    }
}
