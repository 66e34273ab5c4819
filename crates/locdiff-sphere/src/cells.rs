//! The sphere as cells of colatitude × longitude, each with 8 × 8 Gauss points.
//!
//! The coarsest cells are `base` rings × 2·`base` sectors; every cell may be quartered.
//! Ring 0 touches the north pole, sector 0 begins at longitude −180°, so that the
//! antimeridian is always a border of cells.

use std::f64::consts::PI;
use std::sync::OnceLock;

use crate::area::Rectangle;
use crate::quadrature::northern_nodes;
use crate::{LatLon, UnitVector};

/// Gauss points per cell and axis.
pub(crate) const POINTS: usize = 8;

/// One number per point of a cell, `[colatitude, longitude]`.
pub(crate) type PointValues = [[f64; POINTS]; POINTS];

/// A cell of a [`Tiling`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CellId {
    pub(crate) level: u32,
    pub(crate) ring: u32,
    pub(crate) sector: u32,
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

/// How the sphere is cut into cells. Angles in radians.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// Rings of the coarsest cells; there are twice as many sectors.
    pub(crate) base: u32,
}

impl Tiling {
    pub(crate) fn base_cells(self) -> impl Iterator<Item = CellId> {
        let cells = (0..self.base).flat_map(move |ring| (0..2 * self.base).map(move |s| (ring, s)));
        cells.map(|(ring, sector)| CellId { level: 0, ring, sector })
    }

    /// Side of a cell in colatitude, and in longitude.
    pub(crate) fn width(self, level: u32) -> f64 {
        PI / (f64::from(self.base) * f64::from(level).exp2())
    }

    /// Colatitude of a cell's northern and longitude of its western side.
    pub(crate) fn corner(self, id: CellId) -> (f64, f64) {
        let width = self.width(id.level);
        (f64::from(id.ring) * width, f64::from(id.sector) * width - PI)
    }

    /// Area on the unit sphere.
    pub(crate) fn area(self, id: CellId) -> f64 {
        let width = self.width(id.level);
        let (north, _) = self.corner(id);
        // cos a − cos b without cancellation.
        2.0 * (north + 0.5 * width).sin() * (0.5 * width).sin() * width
    }

    /// The cell of a level that holds a point.
    pub(crate) fn cell_at(self, level: u32, theta: f64, phi: f64) -> CellId {
        let (width, rings) = (self.width(level), self.base << level);
        let number = |angle: f64, count: u32| ((angle / width) as u32).min(count - 1);
        CellId { level, ring: number(theta, rings), sector: number(phi + PI, 2 * rings) }
    }

    /// The point at fractions (down, right) of a cell's sides.
    pub(crate) fn point(self, id: CellId, down: f64, right: f64) -> (f64, f64) {
        let (width, (north, west)) = (self.width(id.level), self.corner(id));
        (north + down * width, west + right * width)
    }

    /// Half the diagonal of a cell: no point is farther from its middle.
    pub(crate) fn reach(self, id: CellId) -> f64 {
        let width = self.width(id.level);
        let (north, _) = self.corner(id);
        // The widest parallel of the cell.
        let widest = if north < 0.5 * PI && north + width > 0.5 * PI {
            1.0
        } else {
            north.sin().max((north + width).sin())
        };
        0.5 * width + 0.5 * width * widest
    }

    /// The cell in degrees.
    pub(crate) fn rectangle(self, id: CellId) -> Rectangle {
        let width = 180.0 / (f64::from(self.base) * f64::from(id.level).exp2());
        let side = |number: u32, origin: f64| f64::from(number) * width - origin;
        Rectangle {
            south: -side(id.ring + 1, 90.0).min(90.0),
            west: side(id.sector, 180.0),
            north: -side(id.ring, 90.0),
            east: side(id.sector + 1, 180.0).min(180.0),
        }
    }

    /// The part of a cell that a point stands for, in degrees.
    pub(crate) fn rectangle_of_point(self, id: CellId, row: usize, column: usize) -> Rectangle {
        let Rectangle { south, west, north, east } = self.rectangle(id);
        let edges = &Rule::get().edges;
        Rectangle {
            south: north - (north - south) * edges[row + 1],
            west: west + (east - west) * edges[column],
            north: north - (north - south) * edges[row],
            east: west + (east - west) * edges[column + 1],
        }
    }

    /// The deepest level of cells: about half a metre wide, and small enough for outlines to
    /// number what is finer still.
    pub(crate) fn deepest(self) -> u32 {
        25 - self.base.next_power_of_two().ilog2()
    }

    pub(crate) fn middle(self, id: CellId) -> UnitVector {
        let (theta, phi) = self.point(id, 0.5, 0.5);
        unit_vector(theta, phi)
    }
}

/// The unit vector at a colatitude and longitude.
pub(crate) fn unit_vector(theta: f64, phi: f64) -> UnitVector {
    let ((sin, cos), (sin_phi, cos_phi)) = (theta.sin_cos(), phi.sin_cos());
    UnitVector::from_direction([sin * cos_phi, sin * sin_phi, cos]).unwrap_or(UnitVector::NORTH)
}

/// The place at a colatitude and longitude.
pub(crate) fn place_at(theta: f64, phi: f64) -> LatLon {
    let latitude = (90.0 - theta.to_degrees()).clamp(-90.0, 90.0);
    LatLon::new(latitude, phi.to_degrees()).unwrap_or(LatLon::NORTH_POLE)
}

/// Gauss points on [0, 1] and what polynomials through them are worth.
pub(crate) struct Rule {
    pub(crate) points: [f64; POINTS],
    pub(crate) weights: [f64; POINTS],
    /// Borders between the parts of [0, 1] that the points stand for.
    pub(crate) edges: [f64; POINTS + 1],
    /// `[k][i]`: value at point i → coefficient of the Legendre polynomial k, which has
    /// unit maximum.
    pub(crate) to_coefficients: PointValues,
    /// `[k]`: the second derivative at point k + 1 from the values at points k to k + 2.
    pub(crate) curvatures: [[f64; 3]; POINTS - 2],
    /// `[half][i][j]`: value at point j → value at point i of the first or second half.
    pub(crate) halves: [PointValues; 2],
    /// `[half][j][i]`.
    pub(crate) halves_transposed: [PointValues; 2],
    /// `[half][i]`: the point that stands for the part in which point i of the first or second half lies.
    pub(crate) parts_of_halves: [[usize; POINTS]; 2],
    barycentric: [f64; POINTS],
}

impl Rule {
    /// The one rule that every cell uses.
    pub(crate) fn get() -> &'static Rule {
        static RULE: OnceLock<Rule> = OnceLock::new();
        RULE.get_or_init(Rule::new)
    }

    fn new() -> Rule {
        let nodes = northern_nodes(POINTS);
        let (mut points, mut weights) = ([0.0; POINTS], [0.0; POINTS]);
        for (index, node) in nodes.iter().enumerate() {
            // From cos θ in (0, 1) to both halves of [0, 1].
            let (above, below) =
                (0.5 * (1.0 + node.colatitude.cos()), 0.5 * (1.0 - node.colatitude.cos()));
            (points[POINTS - 1 - index], points[index]) = (above, below);
            (weights[POINTS - 1 - index], weights[index]) = (0.5 * node.weight, 0.5 * node.weight);
        }
        let mut edges = [0.0; POINTS + 1];
        for i in 0..POINTS {
            edges[i + 1] = edges[i] + weights[i];
        }
        edges[POINTS] = 1.0;
        let to_coefficients = std::array::from_fn(|k| {
            std::array::from_fn(|i| {
                let value = legendre_polynomial(k, 2.0 * points[i] - 1.0);
                (2 * k + 1) as f64 * weights[i] * value
            })
        });
        let curvatures = std::array::from_fn(|k| {
            let [a, b, c] = [points[k], points[k + 1], points[k + 2]];
            [2.0 / ((a - b) * (a - c)), 2.0 / ((b - a) * (b - c)), 2.0 / ((c - a) * (c - b))]
        });
        let barycentric = std::array::from_fn(|i| {
            let others = (0..POINTS).filter(|j| *j != i);
            1.0 / others.map(|j| points[i] - points[j]).product::<f64>()
        });
        let halves = [[[0.0; POINTS]; POINTS]; 2];
        let mut rule = Rule {
            points,
            weights,
            edges,
            to_coefficients,
            curvatures,
            halves,
            halves_transposed: halves,
            parts_of_halves: [[0; POINTS]; 2],
            barycentric,
        };
        rule.halves = std::array::from_fn(|half| {
            std::array::from_fn(|i| rule.interpolation(0.5 * (half as f64 + points[i])))
        });
        rule.halves_transposed = std::array::from_fn(|half| {
            std::array::from_fn(|j| std::array::from_fn(|i| rule.halves[half][i][j]))
        });
        rule.parts_of_halves = std::array::from_fn(|half| {
            std::array::from_fn(|i| rule.part_at(0.5 * (half as f64 + points[i])))
        });
        rule
    }

    /// The point that stands for the part in which `x` lies.
    pub(crate) fn part_at(&self, x: f64) -> usize {
        self.edges[1..POINTS].partition_point(|edge| *edge <= x)
    }

    /// Factors of the values at the points in the polynomial's value at `x`.
    pub(crate) fn interpolation(&self, x: f64) -> [f64; POINTS] {
        if let Some(exact) = self.points.iter().position(|point| *point == x) {
            return std::array::from_fn(|i| if i == exact { 1.0 } else { 0.0 });
        }
        let factors: [f64; POINTS] =
            std::array::from_fn(|i| self.barycentric[i] / (x - self.points[i]));
        let sum: f64 = factors.iter().sum();
        factors.map(|factor| factor / sum)
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
