//! Cells of colatitude × longitude with Gauss points, and exp F on them.
//!
//! A cell's points are the product of a few colatitudes and a few longitudes, so F there is
//! a small matrix product: sums over the degree per colatitude, waves per longitude. Cells of
//! one ring share the former, cells of one sector the latter.

use std::collections::HashMap;
use std::f64::consts::{PI, TAU};

use crate::derivatives::SplitFunction;
use crate::direction::Colatitude;
use crate::legendre::{Rows, UNSCALE};
use crate::quadrature::northern_nodes;
use crate::simd::{Kernel, vectorised};
use crate::triangle::{self, LANES, lanes, lanes_mut};
use crate::{Basis, Peak};

/// Gauss points per cell and axis.
pub(crate) const POINTS: usize = 8;

/// Gauss points and weights on [0, 1], and the transform to Legendre coefficients.
pub(crate) struct Rule {
    points: [f64; POINTS],
    weights: [f64; POINTS],
    /// `[k][i]`: value at point i → coefficient k, scaled so that |P_k| has unit maximum.
    to_coefficients: [[f64; POINTS]; POINTS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CellId {
    pub(crate) level: u32,
    pub(crate) ring: u32,
    pub(crate) sector: u32,
}

pub(crate) struct Cell {
    pub(crate) id: CellId,
    /// ∫ exp(F − reference) over the cell, and its estimated error.
    pub(crate) mass: f64,
    pub(crate) error: f64,
}

impl PartialEq for Cell {
    fn eq(&self, other: &Cell) -> bool {
        self.error == other.error
    }
}
impl Eq for Cell {}
impl Ord for Cell {
    fn cmp(&self, other: &Cell) -> std::cmp::Ordering {
        self.error.total_cmp(&other.error)
    }
}
impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Cell) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Standard deviation, in radians, of the narrow axis of exp F at a peak.
pub(crate) fn sigma(peak: &Peak) -> f64 {
    let [_, (steepest, _)] = peak.jet.principal_curvatures();
    1.0 / (-steepest).max(f64::MIN_POSITIVE).sqrt()
}

impl CellId {
    pub(crate) fn children(self) -> [CellId; 4] {
        std::array::from_fn(|quarter| CellId {
            level: self.level + 1,
            ring: 2 * self.ring + quarter as u32 / 2,
            sector: 2 * self.sector + quarter as u32 % 2,
        })
    }
}

impl Rule {
    pub(crate) fn new() -> Rule {
        let nodes = northern_nodes(POINTS);
        let (mut points, mut weights) = ([0.0; POINTS], [0.0; POINTS]);
        for (index, node) in nodes.iter().enumerate() {
            // From cos θ in (0, 1) to both halves of [0, 1].
            let (above, below) =
                (0.5 * (1.0 + node.colatitude.cos()), 0.5 * (1.0 - node.colatitude.cos()));
            (points[POINTS - 1 - index], points[index]) = (above, below);
            (weights[POINTS - 1 - index], weights[index]) = (0.5 * node.weight, 0.5 * node.weight);
        }
        let to_coefficients = std::array::from_fn(|k| {
            std::array::from_fn(|i| {
                let value = legendre_polynomial(k, 2.0 * points[i] - 1.0);
                (2 * k + 1) as f64 * weights[i] * value
            })
        });
        Rule { points, weights, to_coefficients }
    }

    /// How much of the values along an axis sits in the last two coefficients, 0 to 1.
    fn tail(
        &self,
        values: &[[f64; POINTS]; POINTS],
        along: impl Fn(usize, usize) -> (usize, usize),
    ) -> f64 {
        let (mut last, mut all) = (0.0_f64, 0.0_f64);
        for line in 0..POINTS {
            for (k, row) in self.to_coefficients.iter().enumerate() {
                let coefficient: f64 = (0..POINTS)
                    .map(|i| {
                        let (a, b) = along(line, i);
                        row[i] * values[a][b]
                    })
                    .sum();
                all = all.max(coefficient.abs());
                if k >= POINTS - 2 {
                    last = last.max(coefficient.abs());
                }
            }
        }
        if all > 0.0 { last / all } else { 0.0 }
    }
}

fn legendre_polynomial(degree: usize, x: f64) -> f64 {
    let (mut last, mut value) = (0.0, 1.0);
    for k in 1..=degree {
        let k = k as f64;
        (last, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * last) / k);
    }
    value
}

/// F on cells, with the sums over degrees shared by all cells of one ring of cells.
pub(crate) struct Field<'a> {
    basis: &'a Basis,
    function: &'a SplitFunction,
    rule: &'a Rule,
    base: usize,
    reference: f64,
    rows: Rows,
    rings: HashMap<(u32, u32), Vec<f64>>,
    sectors: HashMap<(u32, u32), Vec<f64>>,
}

impl<'a> Field<'a> {
    pub(crate) fn new(
        basis: &'a Basis,
        function: &'a SplitFunction,
        rule: &'a Rule,
        base: usize,
        reference: f64,
    ) -> Field<'a> {
        let rows = Rows::new(basis.max_degree());
        Field {
            basis,
            function,
            rule,
            base,
            reference,
            rows,
            rings: HashMap::new(),
            sectors: HashMap::new(),
        }
    }

    /// Side of a cell in radians of colatitude, and of longitude.
    pub(crate) fn width(&self, id: CellId) -> f64 {
        PI / (self.base as f64 * f64::from(1 << id.level))
    }

    pub(crate) fn area(&self, id: CellId) -> f64 {
        let width = self.width(id);
        let top = f64::from(id.ring) * width;
        (top.cos() - (top + width).cos()) * width
    }

    pub(crate) fn contains(&self, id: CellId, peak: &Peak) -> bool {
        // A peak's mass reaches into the cells beside it, where all points of a wide cell
        // might miss it.
        let (width, margin) = (self.width(id), 5.0 * sigma(peak));
        let theta = (90.0 - peak.place.latitude()).to_radians();
        let (top, left) = (f64::from(id.ring) * width, f64::from(id.sector) * width);
        let near_theta = theta > top - margin && theta < top + width + margin;
        let sideways = margin / theta.sin().max(1e-9);
        let phi = (peak.place.longitude().to_radians() - left).rem_euclid(TAU);
        near_theta && (phi < width + sideways || phi > TAU - sideways)
    }

    pub(crate) fn integrate(&mut self, id: CellId) -> Cell {
        let width = self.width(id);
        let (ring_key, sector_key) = ((id.level, id.ring), (id.level, id.sector));
        let stride = 2 * triangle::row_len(self.basis.max_degree());
        if !self.rings.contains_key(&ring_key) {
            let mut sums = vec![0.0; POINTS * stride];
            for (point, sums) in self.rule.points.iter().zip(sums.chunks_exact_mut(stride)) {
                let theta = (f64::from(id.ring) + point) * width;
                vectorised(RingSums {
                    basis: self.basis,
                    function: self.function,
                    theta,
                    rows: &mut self.rows,
                    sums,
                });
            }
            self.rings.insert(ring_key, sums);
        }
        if !self.sectors.contains_key(&sector_key) {
            let mut waves = vec![0.0; POINTS * stride];
            for (point, waves) in self.rule.points.iter().zip(waves.chunks_exact_mut(stride)) {
                let phi = (f64::from(id.sector) + point) * width;
                fill_waves(phi, self.basis.max_degree(), waves);
            }
            self.sectors.insert(sector_key, waves);
        }
        let (rings, waves) = (&self.rings[&ring_key], &self.sectors[&sector_key]);
        let values = vectorised(Products { rings, waves, stride });
        let mut weighted = [[0.0; POINTS]; POINTS];
        let mut mass = 0.0;
        for (i, row) in values.iter().enumerate() {
            let sin = ((f64::from(id.ring) + self.rule.points[i]) * width).sin();
            for (j, value) in row.iter().enumerate() {
                let density = sin * (self.function.scale * value - self.reference).exp();
                weighted[i][j] = density;
                mass += self.rule.weights[i] * self.rule.weights[j] * density;
            }
        }
        let area = width * width;
        let tail = self
            .rule
            .tail(&weighted, |line, i| (i, line))
            .max(self.rule.tail(&weighted, |line, i| (line, i)));
        // With 8 points a coefficient of degree 16 is the first to be missed. Coefficients
        // fall at least geometrically, so it is about the square of the eighth.
        let largest = weighted.iter().flatten().fold(0.0_f64, |largest, value| largest.max(*value));
        Cell { id, mass: mass * area, error: 4.0 * tail * tail * largest * area }
    }
}

/// cos mφ, then sin mφ.
fn fill_waves(phi: f64, max_degree: usize, waves: &mut [f64]) {
    let (cosines, sines) = waves.split_at_mut(triangle::row_len(max_degree));
    let (s, c) = phi.sin_cos();
    let (mut cos, mut sin) = (1.0, 0.0);
    for m in 0..max_degree + 1 {
        (cosines[m], sines[m]) = (cos, sin);
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

/// Every ring's sums times every longitude's waves: F at the points of a cell.
struct Products<'a> {
    rings: &'a [f64],
    waves: &'a [f64],
    stride: usize,
}

impl Kernel for Products<'_> {
    type Output = [[f64; POINTS]; POINTS];

    #[inline(always)]
    fn run(self) -> [[f64; POINTS]; POINTS] {
        let mut values = [[0.0; POINTS]; POINTS];
        for (row, ring) in values.iter_mut().zip(self.rings.chunks_exact(self.stride)) {
            for (value, waves) in row.iter_mut().zip(self.waves.chunks_exact(self.stride)) {
                let mut sums = [0.0; LANES];
                for (ring, waves) in lanes(ring).iter().zip(lanes(waves)) {
                    for i in 0..LANES {
                        sums[i] += ring[i] * waves[i];
                    }
                }
                *value = sums.iter().sum();
            }
        }
        values
    }
}
