//! The sphere as cells of colatitude × longitude, each with 8 × 8 Gauss points.
//!
//! The coarsest cells are `base` rings × 2·`base` sectors. Every cell may be cut into smaller ones that are about as
//! wide as high on the ground: quarters, or two halves, one above the other, where meridians are close together.
//! Ring 0 touches the north pole, sector 0 begins at longitude −180°, so that the
//! antimeridian is always a border of cells.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, PI};
use std::sync::OnceLock;

use crate::area::Rectangle;
use crate::quadrature::northern_nodes;
use crate::{LatLon, UnitVector};

/// Gauss points per cell and axis.
pub(crate) const POINTS: usize = 8;

/// A cell that is wider than this part of its height, on the ground, is halved in longitude too: so that cells are at most √2
/// times as wide as high, or as high as wide.
const LEAST_WIDTH: f64 = FRAC_1_SQRT_2;

/// One number per point of a cell, `[colatitude, longitude]`.
pub(crate) type PointValues = [[f64; POINTS]; POINTS];

/// A cell of a [`Tiling`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CellId {
    /// How often a coarsest cell was halved in colatitude.
    pub(crate) level: u32,
    /// How often it was halved in longitude. It follows from level and ring.
    pub(crate) across: u32,
    pub(crate) ring: u32,
    pub(crate) sector: u32,
}

/// What a cell is cut into, from north to south and then from west to east.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Two halves, one above the other.
    Halves([CellId; 2]),
    /// Four quarters.
    Quarters([CellId; 4]),
}

impl Cut {
    pub(crate) fn ids(&self) -> &[CellId] {
        match self {
            Cut::Halves(ids) => ids,
            Cut::Quarters(ids) => ids,
        }
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
        cells.map(|(ring, sector)| CellId { level: 0, across: 0, ring, sector })
    }

    /// Side of a cell of a level in colatitude.
    pub(crate) fn height(self, level: u32) -> f64 {
        PI / f64::from(self.base << level)
    }

    /// Side of a cell in longitude.
    pub(crate) fn width(self, id: CellId) -> f64 {
        self.height(id.across)
    }

    /// Height and greatest width of a cell on the ground.
    pub(crate) fn sides(self, id: CellId) -> [f64; 2] {
        [self.height(id.level), self.width(id) * self.widest(id.level, id.ring).sin()]
    }

    /// The longer side of a cell on the ground.
    pub(crate) fn size(self, id: CellId) -> f64 {
        let [height, width] = self.sides(id);
        height.max(width)
    }

    /// The smaller cells that a cell is cut into.
    pub(crate) fn cut(self, id: CellId) -> Cut {
        let CellId { level, across, ring, sector } = id;
        let child = |down: u32, right: u32, across: u32| {
            let sector = (sector << (across - id.across)) + right;
            CellId { level: level + 1, across, ring: 2 * ring + down, sector }
        };
        if self.is_wide(level, across, ring) {
            let quarter = |k: usize| child(k as u32 / 2, k as u32 % 2, across + 1);
            Cut::Quarters(std::array::from_fn(quarter))
        } else {
            Cut::Halves(std::array::from_fn(|k| child(k as u32, 0, across)))
        }
    }

    /// Whether halves of a cell, one above the other, would be too wide.
    fn is_wide(self, level: u32, across: u32, ring: u32) -> bool {
        // It is π/base·2^−across·sin θ wide and π/base·2^−level high. A sine is at least 2/π of its angle up to 90°.
        let least = LEAST_WIDTH / f64::from(1_u32 << (level - across));
        let widest = self.widest(level, ring);
        2.0 / PI * widest > least || widest > least && widest.sin() > least
    }

    /// How often cells of a level and ring were halved in longitude.
    fn across(self, level: u32, ring: u32) -> u32 {
        (0..level).fold(0, |across, above| {
            across + u32::from(self.is_wide(above, across, ring >> (level - above)))
        })
    }

    /// The colatitude of a ring's longest parallel, counted from the nearer pole.
    fn widest(self, level: u32, ring: u32) -> f64 {
        let (rings, height) = (self.base << level, self.height(level));
        let south = ring + 1;
        if 2 * ring < rings && 2 * south > rings {
            return FRAC_PI_2;
        }
        height * f64::from(south.min(rings - ring))
    }

    /// Colatitude of a cell's northern and longitude of its western side.
    pub(crate) fn corner(self, id: CellId) -> (f64, f64) {
        (f64::from(id.ring) * self.height(id.level), f64::from(id.sector) * self.width(id) - PI)
    }

    /// Area on the unit sphere.
    pub(crate) fn area(self, id: CellId) -> f64 {
        let height = self.height(id.level);
        let (north, _) = self.corner(id);
        // cos a − cos b without cancellation.
        2.0 * (north + 0.5 * height).sin() * (0.5 * height).sin() * self.width(id)
    }

    /// The product of a cell's sides.
    pub(crate) fn square(self, id: CellId) -> f64 {
        self.height(id.level) * self.width(id)
    }

    /// The cell of a level that holds a point.
    pub(crate) fn cell_at(self, level: u32, theta: f64, phi: f64) -> CellId {
        let number = |angle: f64, level: u32, count: u32| {
            ((angle / self.height(level)) as u32).min((count << level) - 1)
        };
        let ring = number(theta, level, self.base);
        let across = self.across(level, ring);
        CellId { level, across, ring, sector: number(phi + PI, across, 2 * self.base) }
    }

    /// Goes from a cell to that part of it that holds a point, and returns which it is: 0 or 1 down, 0 or 1 right.
    pub(crate) fn part_at(
        self,
        id: &mut CellId,
        is_quartered: bool,
        theta: f64,
        phi: f64,
    ) -> (u32, u32) {
        let half = |angle: f64, first: u32, level: u32| {
            u32::from(angle >= f64::from(first + 1) * self.height(level))
        };
        id.level += 1;
        id.ring *= 2;
        let down = half(theta, id.ring, id.level);
        id.ring += down;
        if !is_quartered {
            return (down, 0);
        }
        id.across += 1;
        id.sector *= 2;
        let right = half(phi + PI, id.sector, id.across);
        id.sector += right;
        (down, right)
    }

    /// The point at fractions (down, right) of a cell's sides.
    pub(crate) fn point(self, id: CellId, down: f64, right: f64) -> (f64, f64) {
        let (north, west) = self.corner(id);
        (north + down * self.height(id.level), west + right * self.width(id))
    }

    /// The directions of a cell's points.
    pub(crate) fn directions(self, id: CellId) -> [[f64; 3]; POINTS * POINTS] {
        let points = Rule::get().points;
        let thetas = points.map(|down| self.point(id, down, 0.0).0.sin_cos());
        let phis = points.map(|right| self.point(id, 0.0, right).1.sin_cos());
        std::array::from_fn(|k| {
            let ((sin, cos), (sin_phi, cos_phi)) = (thetas[k / POINTS], phis[k % POINTS]);
            [sin * cos_phi, sin * sin_phi, cos]
        })
    }

    /// Half the diagonal of a cell: no point is farther from its middle.
    pub(crate) fn reach(self, id: CellId) -> f64 {
        // The chord's square is at most the sum of its sides' on the ground, of which no parallel is longer than the widest.
        let [height, width] = self.sides(id);
        2.0 * (0.25 * height.hypot(width)).min(1.0).asin()
    }

    /// The cell in degrees.
    pub(crate) fn rectangle(self, id: CellId) -> Rectangle {
        let side = |number: u32, level: u32, origin: f64| {
            f64::from(number) * (180.0 / f64::from(self.base << level)) - origin
        };
        Rectangle {
            south: -side(id.ring + 1, id.level, 90.0).min(90.0),
            west: side(id.sector, id.across, 180.0),
            north: -side(id.ring, id.level, 90.0),
            east: side(id.sector + 1, id.across, 180.0).min(180.0),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells of some levels around a place, from the coarsest down.
    fn path(tiling: Tiling, theta: f64, phi: f64) -> Vec<CellId> {
        (0..=tiling.deepest()).map(|level| tiling.cell_at(level, theta, phi)).collect()
    }

    #[test]
    fn each_cell_is_cut_into_the_cells_of_the_next_level() {
        for base in [2, 3, 7, 16] {
            let tiling = Tiling { base };
            for (theta, phi) in
                [(1e-9, 0.3), (0.01, -3.0), (0.4, 3.1), (1.6, 0.0), (2.9, 1.0), (PI - 1e-7, -1.0)]
            {
                for pair in path(tiling, theta, phi).windows(2) {
                    let parts = tiling.cut(pair[0]);
                    assert!(parts.ids().contains(&pair[1]), "{pair:?} {parts:?}");
                    let area: f64 = parts.ids().iter().map(|id| tiling.area(*id)).sum();
                    let whole = tiling.area(pair[0]);
                    // Next to the south pole the sine of the colatitude has few digits left.
                    assert!((area / whole - 1.0).abs() < 1e-5, "{area} {whole}");
                }
            }
        }
    }

    #[test]
    fn cells_are_about_as_wide_as_high_on_the_ground() {
        let tiling = Tiling { base: 4 };
        for theta in [1e-6, 1e-4, 0.02, 0.3, 1.0, 1.57, 2.5, 3.1] {
            for id in path(tiling, theta, 0.7).into_iter().skip(3) {
                let ground = tiling.width(id) * tiling.widest(id.level, id.ring).sin();
                let ratio = ground / tiling.height(id.level);
                assert!((0.35..=1.45).contains(&ratio), "{theta} {id:?}: {ratio}");
            }
        }
    }
}
