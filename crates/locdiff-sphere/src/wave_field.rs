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

/// What a cell and a ring of cells cost, per degree and per its square, in cells.
pub(crate) const COST_OF_CELL: f64 = 1e-3;
pub(crate) const COST_OF_RING: f64 = 1e-4;

pub(crate) struct WaveField<'a> {
    basis: &'a Basis,
    function: &'a SplitFunction,
    tiling: Tiling,
    rows: Rows,
    /// By level and ring: per colatitude the factors of all waves, `[point, wave]`.
    rings: HashMap<(u32, u32), Vec<f64>>,
    /// By halvings and sector: the waves cos mφ, then sin mφ, `[wave, point]`.
    sectors: HashMap<(u32, u32), Vec<[f64; POINTS]>>,
    /// Not yet asked for, in cells.
    cost: f64,
}

impl<'a> WaveField<'a> {
    pub(crate) fn new(basis: &'a Basis, function: &'a SplitFunction, tiling: Tiling) -> Self {
        let rows = Rows::new(basis.max_degree());
        let (rings, sectors) = (HashMap::new(), HashMap::new());
        WaveField { basis, function, tiling, rows, rings, sectors, cost: 0.0 }
    }

    /// The largest degree of the function.
    pub(crate) fn max_degree(&self) -> usize {
        self.basis.max_degree()
    }

    /// What was done since this was last asked, in cells.
    pub(crate) fn take_cost(&mut self) -> f64 {
        std::mem::take(&mut self.cost)
    }

    /// F at the points of a cell.
    pub(crate) fn values(&mut self, id: CellId) -> PointValues {
        self.prepare_ring(id);
        self.cost += COST_OF_CELL * self.basis.max_degree() as f64;
        let waves = self.sectors.entry((id.across, id.sector)).or_insert_with(|| {
            let points = Rule::get().points.map(|point| self.tiling.point(id, 0.0, point).1);
            vectorised(FillWaves { longitudes: points, max_degree: self.basis.max_degree() })
        });
        let factors = &self.rings[&(id.level, id.ring)];
        let mut values = vectorised(Products { factors, waves });
        for value in values.as_flattened_mut() {
            *value *= self.function.scale;
        }
        values
    }

    /// The factors of a cell's ring; for the coarsest cells, which are all needed, those of
    /// its mirror image across the equator come for free.
    fn prepare_ring(&mut self, id: CellId) {
        let key = (id.level, id.ring);
        if self.rings.contains_key(&key) {
            return;
        }
        self.cost += COST_OF_RING * (self.basis.max_degree() as f64).powi(2);
        let half = triangle::row_len(self.basis.max_degree());
        let waves_count = 2 * half;
        let (mut even, mut odd) = (vec![0.0; waves_count], vec![0.0; waves_count]);
        let mirror = (id.level == 0).then(|| (0, self.tiling.base - 1 - id.ring));
        let (mut north, mut south) =
            (vec![0.0; POINTS * waves_count], vec![0.0; POINTS * waves_count]);
        for (k, point) in Rule::get().points.iter().enumerate() {
            let (theta, _) = self.tiling.point(id, *point, 0.0);
            let theta_from_pole = theta.min(PI - theta);
            even.fill(0.0);
            odd.fill(0.0);
            vectorised(DegreeSums {
                basis: self.basis,
                function: self.function,
                theta: theta_from_pole,
                rows: &mut self.rows,
                even: &mut even,
                odd: &mut odd,
            });
            let here = &mut north[k * waves_count..][..waves_count];
            let there = &mut south[(POINTS - 1 - k) * waves_count..][..waves_count];
            let (here, there) = if theta > 0.5 * PI { (there, here) } else { (here, there) };
            for i in 0..waves_count {
                // Across the equator p_lm changes its sign by (−1)^(l+m).
                let sign = if (i % half) % 2 == 1 { -1.0 } else { 1.0 };
                here[i] = even[i] + odd[i];
                there[i] = sign * (even[i] - odd[i]);
            }
        }
        // A cell that the equator halves has both in itself.
        self.rings.insert(key, north);
        if let Some(mirror) = mirror.filter(|mirror| *mirror != key) {
            self.rings.insert(mirror, south);
        }
    }
}

/// cos mφ, then sin mφ, for all longitudes of a cell: `[wave, point]`.
struct FillWaves {
    longitudes: [f64; POINTS],
    max_degree: usize,
}

impl Kernel for FillWaves {
    type Output = Vec<[f64; POINTS]>;

    #[inline(always)]
    fn run(self) -> Vec<[f64; POINTS]> {
        let half = triangle::row_len(self.max_degree);
        let mut waves = vec![[0.0; POINTS]; 2 * half];
        let (c, s) = (self.longitudes.map(f64::cos), self.longitudes.map(f64::sin));
        let (mut cos, mut sin) = ([1.0; POINTS], [0.0; POINTS]);
        for m in 0..self.max_degree + 1 {
            (waves[m], waves[half + m]) = (cos, sin);
            for j in 0..POINTS {
                (cos[j], sin[j]) = (cos[j] * c[j] - sin[j] * s[j], sin[j] * c[j] + cos[j] * s[j]);
            }
        }
        waves
    }
}

/// Per order, the sums of p_lm·c_lm over even and over odd degrees at one northern
/// colatitude: cosine, then sine part.
struct DegreeSums<'a> {
    basis: &'a Basis,
    function: &'a SplitFunction,
    theta: f64,
    rows: &'a mut Rows,
    even: &'a mut [f64],
    odd: &'a mut [f64],
}

impl Kernel for DegreeSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let half = triangle::row_len(self.basis.max_degree());
        let mut walk = self.basis.legendre.walk(Colatitude::from_radians(self.theta), self.rows);
        while let Some((l, p)) = walk.next() {
            let (c, s) = self.function.rows(l);
            let sums = if l % 2 == 0 { &mut *self.even } else { &mut *self.odd };
            let (cosines, sines) = sums.split_at_mut(half);
            let (cosines, sines) = (lanes_mut(cosines), lanes_mut(sines));
            for (block, p) in lanes(p).iter().enumerate() {
                let (c, s) = (&lanes(c)[block], &lanes(s)[block]);
                let (mut cos, mut sin) = (cosines[block], sines[block]);
                for i in 0..LANES {
                    cos[i] += UNSCALE * p[i] * c[i];
                    sin[i] += UNSCALE * p[i] * s[i];
                }
                (cosines[block], sines[block]) = (cos, sin);
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
