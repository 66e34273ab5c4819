//! The border of a circle, by distances from its middle alone: much cheaper than an area's in general.

use super::{Border, Extent, Patch, Point, Range};
use crate::area::{Area, Cover};
use crate::cells::{CellId, Rule, Tiling, place_at};
use crate::{LatLon, UnitVector};

/// Only the probability is asked for, and shares of what points stand for are exact for straight lines.
const SMALL: Extent = Extent { mass: 2e-3, area: f64::INFINITY };

pub(super) struct CircleBorder<'a> {
    tiling: Tiling,
    area: &'a Area,
    centre: [f64; 3],
    /// Radius in radians.
    radius: f64,
}

impl<'a> CircleBorder<'a> {
    pub(super) fn new(
        tiling: Tiling,
        area: &'a Area,
        centre: LatLon,
        radius: f64,
    ) -> CircleBorder<'a> {
        CircleBorder { tiling, area, centre: UnitVector::from(centre).to_array(), radius }
    }

    /// Where everything within `reach` of a direction lies.
    pub(super) fn cover_of_disc(&self, middle: [f64; 3], reach: f64) -> Cover {
        let angle = angle_between(self.centre, middle);
        if angle + reach <= self.radius {
            Cover::Inside
        } else if angle - reach >= self.radius {
            Cover::Outside
        } else {
            Cover::Cut
        }
    }
}

impl Border for CircleBorder<'_> {
    fn cover(&self, id: CellId, _range: Range) -> Cover {
        self.cover_of_disc(self.tiling.middle(id).to_array(), self.tiling.reach(id))
    }

    /// The circle's rim is a straight line across the little rectangle that a point stands for.
    fn share(&self, patch: &Patch, point: &Point) -> f64 {
        if patch.cut || patch.stepped {
            // As for areas in general: yes or no.
            return f64::from(self.area.contains(place_at(point.theta, point.phi)));
        }
        let ((sin, cos), (sin_phi, cos_phi)) = (point.theta.sin_cos(), point.phi.sin_cos());
        let away = angle_between(self.centre, [sin * cos_phi, sin * sin_phi, cos]);
        let [x, y, z] = self.centre;
        // How fast the distance grows to the south and to the east.
        let south = -(x * cos * cos_phi + y * cos * sin_phi - z * sin);
        let east = -(y * cos_phi - x * sin_phi);
        let norm = south.hypot(east).max(f64::MIN_POSITIVE);
        let ((row, column), edges) = (point.index, &Rule::get().edges);
        let height = 0.5 * self.tiling.height(patch.id.level) * (edges[row + 1] - edges[row]);
        let width = 0.5 * self.tiling.width(patch.id) * (edges[column + 1] - edges[column]) * sin;
        // The rectangle isn't centred on its point, but nearly.
        share_below(self.radius - away, (south / norm).abs() * height, (east / norm).abs() * width)
    }

    /// What is allowed may be the circle itself.
    fn share_of(&self, allowed: f64, patch: &Patch, point: &Point) -> f64 {
        allowed.min(self.share(patch, point))
    }

    fn small(&self, _patch: &Patch) -> Extent {
        SMALL
    }
}

fn angle_between(a: [f64; 3], b: [f64; 3]) -> f64 {
    let squared: f64 = (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum();
    2.0 * (0.5 * squared.sqrt()).min(1.0).asin()
}

/// How much of a rectangle lies on one side of a straight line, `inside` from its middle: its half sides, seen
/// across the line, are `a` and `b` long.
fn share_below(inside: f64, a: f64, b: f64) -> f64 {
    let (long, short) = (a.max(b), a.min(b));
    if long == 0.0 {
        return f64::from(inside >= 0.0);
    }
    if short < 1e-6 * long {
        return (0.5 + 0.5 * inside / long).clamp(0.0, 1.0);
    }
    let ramp = |x: f64| x.max(0.0).powi(2);
    let sum =
        ramp(inside + a + b) - ramp(inside + a - b) - ramp(inside - a + b) + ramp(inside - a - b);
    (sum / (8.0 * a * b)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_a_rectangle() {
        // Counted on a grid: the line x·cos t + y·sin t = inside, half sides 2 and 1.
        for (turn, inside) in [(0.0_f64, 0.7), (0.3, -1.1), (1.0, 0.2), (1.5, 0.4), (0.8, 5.0)] {
            let (sin, cos) = turn.sin_cos();
            let steps = 400;
            let mut count = 0;
            for i in 0..steps {
                for j in 0..steps {
                    let at = |k: i32, half: f64| {
                        half * (2.0 * (f64::from(k) + 0.5) / f64::from(steps) - 1.0)
                    };
                    count += i32::from(at(i, 2.0) * cos + at(j, 1.0) * sin <= inside);
                }
            }
            let counted = f64::from(count) / f64::from(steps * steps);
            let share = share_below(inside, 2.0 * cos.abs(), sin.abs());
            assert!((share - counted).abs() < 3e-3, "{turn} {inside}: {share}, not {counted}");
        }
    }
}
