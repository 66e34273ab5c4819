//! A leaf or a part of one, with the density from the polynomial through the leaf's points.

use super::{Extent, Range};
use crate::cells::{CellId, Cut, POINTS, PointValues, Rule, Tiling};
use crate::mesh::{Leaf, is_stepped};
use crate::simd::{Kernel, vectorised};

pub(super) struct Patch {
    pub(super) id: CellId,
    pub(super) tiling: Tiling,
    /// How often the leaf was cut.
    pub(super) depth: u32,
    /// Whether a border of the density's support may run through it.
    pub(super) cut: bool,
    /// Whether it lies beyond such a border.
    pub(super) beyond: bool,
    /// Whether the density jumps in it: then a point's value holds all over the part that it stands for.
    pub(super) stepped: bool,
    /// Log-densities, or densities if some are zero: a logarithm of zero has no polynomial. Steps need none.
    values: PointValues,
    logarithmic: bool,
}

/// A point of a patch with what it stands for.
pub(super) struct Point {
    /// Row and column of the point.
    pub(super) index: (usize, usize),
    pub(super) theta: f64,
    pub(super) phi: f64,
    pub(super) log_density: f64,
    pub(super) extent: Extent,
}

impl Patch {
    pub(super) fn of(leaf: &Leaf, tiling: Tiling) -> Patch {
        let mut values = leaf.sheet.values;
        let stepped = leaf.sheet.stepped;
        let logarithmic = stepped || values.as_flattened().iter().all(|value| value.is_finite());
        if !logarithmic {
            values.as_flattened_mut().iter_mut().for_each(|value| *value = value.exp());
        }
        let cut = leaf.sheet.is_cut();
        Patch { id: leaf.id, tiling, depth: 0, cut, beyond: false, stepped, values, logarithmic }
    }

    pub(super) fn parts(&self) -> Vec<Patch> {
        let cut = self.tiling.cut(self.id);
        let part = |(k, id): (usize, &CellId)| {
            let (down, right) = match cut {
                Cut::Halves(_) => (k, None),
                Cut::Quarters(_) => (k / 2, Some(k % 2)),
            };
            let values = if self.stepped {
                self.copied(down, right)
            } else {
                vectorised(Interpolate { values: &self.values, down, right })
            };
            Patch { id: *id, depth: self.depth + 1, values, ..*self }
        };
        cut.ids().iter().enumerate().map(part).collect()
    }

    /// Parts whose log-densities at their points are known.
    pub(super) fn parts_with(&self, values: impl Fn(CellId) -> PointValues) -> Vec<Patch> {
        let part = |id: &CellId| {
            let values = values(*id);
            let constant = !is_stepped(&values) && values[0][0].is_finite();
            Patch { id: *id, depth: self.depth + 1, values, stepped: !constant, ..*self }
        };
        self.tiling.cut(self.id).ids().iter().map(part).collect()
    }

    /// Values at the points of a part, each that of the point's share in which it lies.
    fn copied(&self, down: usize, right: Option<usize>) -> PointValues {
        let parts = &Rule::get().parts_of_halves;
        let columns = right.map_or(std::array::from_fn(|j| j), |right| parts[right]);
        parts[down].map(|i| columns.map(|j| self.values[i][j]))
    }

    fn log_density(&self, value: f64) -> f64 {
        if self.logarithmic { value } else { value.max(0.0).ln() }
    }

    pub(super) fn points(&self) -> impl Iterator<Item = Point> {
        let rule = Rule::get();
        let square = self.tiling.square(self.id);
        let sines = rule.points.map(|point| self.tiling.point(self.id, point, 0.0).0.sin());
        (0..POINTS * POINTS).map(move |k| {
            let (i, j) = (k / POINTS, k % POINTS);
            let (theta, phi) = self.tiling.point(self.id, rule.points[i], rule.points[j]);
            let log_density = self.log_density(self.values[i][j]);
            let area = square * sines[i] * rule.weights[i] * rule.weights[j];
            let extent = Extent { mass: area * log_density.exp(), area };
            Point { index: (i, j), theta, phi, log_density, extent }
        })
    }

    /// How much the log-density varies around a point, in the part that it stands for.
    pub(super) fn variation(&self, point: &Point) -> f64 {
        let ((i, j), weights) = (point.index, &Rule::get().weights);
        let at = |i: usize, j: usize| self.log_density(self.values[i][j]);
        let points = &Rule::get().points;
        let slope = |k: usize, value: &dyn Fn(usize) -> f64| {
            let (a, b) = (k.saturating_sub(1), (k + 1).min(POINTS - 1));
            ((value(b) - value(a)) / (points[b] - points[a]) * weights[k]).abs()
        };
        let variation = slope(i, &|k| at(k, j)) + slope(j, &|k| at(i, k));
        if variation.is_finite() && !self.stepped { variation.max(1e-15) } else { 1e-15 }
    }

    /// The lowest and highest log-density at the points.
    pub(super) fn range(&self) -> Range {
        let Range { lowest, highest } = Range::of(&self.values);
        Range { lowest: self.log_density(lowest), highest: self.log_density(highest) }
    }

    /// More than the patch's probability and its area.
    pub(super) fn most(&self) -> Extent {
        let area = self.tiling.area(self.id);
        Extent { mass: self.range().highest.exp() * area, area }
    }

    /// The log-density at a point of the patch.
    pub(super) fn log_density_at(&self, theta: f64, phi: f64) -> f64 {
        let (north, west) = self.tiling.corner(self.id);
        let down = (theta - north) / self.tiling.height(self.id.level);
        let right = (phi - west) / self.tiling.width(self.id);
        let rule = Rule::get();
        if self.stepped {
            return self.log_density(self.values[rule.part_at(down)][rule.part_at(right)]);
        }
        let (down, right) = (rule.interpolation(down), rule.interpolation(right));
        let value = (0..POINTS)
            .map(|i| {
                let along: f64 = (0..POINTS).map(|j| right[j] * self.values[i][j]).sum();
                down[i] * along
            })
            .sum();
        self.log_density(value)
    }
}

/// Values at the points of a part: a half down, and a half right or all.
struct Interpolate<'a> {
    values: &'a PointValues,
    down: usize,
    right: Option<usize>,
}

impl Kernel for Interpolate<'_> {
    type Output = PointValues;

    #[inline(always)]
    fn run(self) -> PointValues {
        let rule = Rule::get();
        let mut rows = [[0.0; POINTS]; POINTS];
        for i in 0..POINTS {
            for k in 0..POINTS {
                let factor = rule.halves[self.down][i][k];
                for j in 0..POINTS {
                    rows[i][j] += factor * self.values[k][j];
                }
            }
        }
        let Some(right) = self.right else { return rows };
        let mut values = [[0.0; POINTS]; POINTS];
        for i in 0..POINTS {
            for k in 0..POINTS {
                for j in 0..POINTS {
                    values[i][j] += rows[i][k] * rule.halves_transposed[right][k][j];
                }
            }
        }
        values
    }
}
