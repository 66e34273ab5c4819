//! An edge of a polygon and the tests that decide on which side of it a point is.

use crate::area::Rectangle;

/// An edge with its lower end first: two polygons that share it compute with the same
/// numbers, so that a point is on the same side of it for both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Edge {
    pub(super) lower: [f64; 2],
    pub(super) upper: [f64; 2],
}

/// Coordinates reach to ±540 degrees, so that products of two rounded differences are good
/// to about 1e-13 degrees times the size of the edge.
const MARGIN_DEGREES: f64 = 1e-11;

impl Edge {
    pub(super) fn between(a: [f64; 2], b: [f64; 2]) -> Edge {
        let (lower, upper) = if a[1] <= b[1] { (a, b) } else { (b, a) };
        Edge { lower, upper }
    }

    /// Whether a ray from the point to the east crosses the edge. The lower end belongs to
    /// the edge and the upper does not, so that a ray through a vertex crosses one of two
    /// edges that go on, and none or both of two that turn back.
    pub(super) fn is_east_of(&self, [x, y]: [f64; 2]) -> bool {
        let ([x0, y0], [x1, y1]) = (self.lower, self.upper);
        if !(y0 <= y && y < y1) {
            return false;
        }
        // Beside the edge no product is needed and nothing is rounded.
        let (west, east) = (x0.min(x1), x0.max(x1));
        x < west || x < east && (x1 - x0) * (y - y0) > (x - x0) * (y1 - y0)
    }

    /// Whether the edge enters the rectangle's interior, or nearly so.
    pub(super) fn enters(&self, rectangle: &Rectangle) -> bool {
        let ([x0, y0], [x1, y1]) = (self.lower, self.upper);
        let (west, east) = (x0.min(x1), x0.max(x1));
        if east <= rectangle.west
            || rectangle.east <= west
            || y1 <= rectangle.south
            || rectangle.north <= y0
        {
            return false;
        }
        // The edge's line passes the rectangle if the distance of the centre from it exceeds
        // the rectangle's half width across it (both times the edge's length).
        let (dx, dy) = (x1 - x0, y1 - y0);
        let (half_width, half_height) =
            ((rectangle.east - rectangle.west) / 2.0, (rectangle.north - rectangle.south) / 2.0);
        let (x, y) = (rectangle.west + half_width, rectangle.south + half_height);
        let distance = (dx * (y - y0) - (x - x0) * dy).abs();
        let reach = dx.abs() * half_height + dy * half_width;
        distance <= reach + MARGIN_DEGREES * (dx.abs() + dy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polygon_edges_pass_or_enter_at_a_corner() {
        let rectangle = Rectangle { south: 10.0, west: 20.0, north: 11.0, east: 23.0 };
        for (corner, outwards) in [
            ([20.0, 10.0], [-1.0, -1.0]),
            ([23.0, 10.0], [1.0, -1.0]),
            ([23.0, 11.0], [1.0, 1.0]),
            ([20.0, 11.0], [-1.0, 1.0]),
        ] {
            for slope in [0.1, 1.0, 7.0] {
                for (shift, enters) in [(1e-8, false), (-1e-8, true)] {
                    // Slanted so that the line leaves all of the rectangle on one side.
                    let end = |t: f64| {
                        [
                            corner[0] + outwards[0] * (shift + t),
                            corner[1] + outwards[1] * (shift - slope * t),
                        ]
                    };
                    let [lower, upper] =
                        if outwards[1] > 0.0 { [5.0, -5.0] } else { [-5.0, 5.0] }.map(end);
                    let edge = Edge { lower, upper };
                    assert_eq!(edge.enters(&rectangle), enters, "{edge:?} {shift}");
                }
            }
        }
    }
}
