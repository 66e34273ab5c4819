//! The edges of polygons, found by their latitude.
//!
//! A point is inside a ring if a ray from it to the east crosses the ring an odd number of
//! times. Only edges at the point's latitude count, so edges are listed by bands of
//! latitude; there are as many bands as the lists can have while the edges are listed three
//! times on average, and a query then costs about as much as there are crossings.

use super::Ring;
use crate::area::Rectangle;

/// An edge with its lower end first: two polygons that share it compute with the same
/// numbers, so that a point is on the same side of it for both.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Edge {
    lower: [f64; 2],
    upper: [f64; 2],
    polygon: u32,
    /// 0 for the exterior, from 1 on for holes.
    ring: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct EdgeIndex {
    /// By polygon, then ring.
    edges: Vec<Edge>,
    west: f64,
    east: f64,
    south: f64,
    north: f64,
    bands: usize,
    bands_per_degree: f64,
    /// Where each band's list starts in `listed`, and where the last one ends.
    starts: Vec<usize>,
    /// Numbers of edges, ascending within a band.
    listed: Vec<u32>,
}

/// Coordinates reach to ±540 degrees, so that products of two rounded differences are good
/// to about 1e-13 degrees times the size of the edge.
const MARGIN_DEGREES: f64 = 1e-11;

impl EdgeIndex {
    pub(super) fn new(coordinates: &[Vec<Ring>]) -> EdgeIndex {
        let edges: Vec<Edge> = coordinates.iter().zip(0..).flat_map(polygon_edges).collect();
        let bound = |pick: fn(f64, f64) -> f64, axis: usize, start: f64| {
            edges
                .iter()
                .flat_map(|edge| [edge.lower, edge.upper])
                .fold(start, |extreme, point| pick(extreme, point[axis]))
        };
        let (south, north) =
            (bound(f64::min, 1, f64::INFINITY), bound(f64::max, 1, f64::NEG_INFINITY));
        let heights: f64 = edges.iter().map(|edge| edge.upper[1] - edge.lower[1]).sum();
        // Each edge is listed once, and once more for every border between bands it crosses:
        // heights × bands per degree times in all.
        let most = edges.len() as f64;
        let bands = (2.0 * most * (north - south) / heights).clamp(1.0, most.max(1.0)).floor();
        let mut index = EdgeIndex {
            west: bound(f64::min, 0, f64::INFINITY),
            east: bound(f64::max, 0, f64::NEG_INFINITY),
            south,
            north,
            bands: bands as usize,
            bands_per_degree: bands / (north - south),
            starts: Vec::new(),
            listed: Vec::new(),
            edges,
        };
        index.list_edges();
        index
    }

    /// Whether a polygon encloses the point, at its longitude or full turns from it.
    pub(super) fn enclose(&self, longitude: f64, latitude: f64) -> bool {
        // No edge is above the north pole, so a ray along it would cross nothing.
        let latitude = latitude.min(90f64.next_down());
        self.south <= latitude
            && latitude <= self.north
            && self
                .turns(longitude, longitude)
                .any(|turn| self.enclose_in_plane([longitude + turn, latitude]))
    }

    /// Whether an edge, or a copy of it full turns away, enters the rectangle's interior.
    /// May say so when it passes within 1e-11 degrees; if not, [`enclose`](Self::enclose) is
    /// the same everywhere in the interior.
    pub(super) fn meet(&self, rectangle: &Rectangle) -> bool {
        if rectangle.north <= self.south || rectangle.south >= self.north {
            return false;
        }
        let bands = self.band(rectangle.south)..self.band(rectangle.north) + 1;
        let listed = &self.listed[self.starts[bands.start]..self.starts[bands.end]];
        self.turns(rectangle.west, rectangle.east).any(|turn| {
            let (west, east) = (rectangle.west + turn, rectangle.east + turn);
            let turned = Rectangle { west, east, ..*rectangle };
            listed.iter().any(|&edge| self.edges[edge as usize].enters(&turned))
        })
    }

    /// The full turns, in degrees, by which longitudes between the two come between those of
    /// the edges.
    fn turns(&self, west: f64, east: f64) -> impl Iterator<Item = f64> {
        [0.0, -360.0, 360.0]
            .into_iter()
            .filter(move |turn| self.west <= east + turn && west + turn <= self.east)
    }

    fn enclose_in_plane(&self, point: [f64; 2]) -> bool {
        let band = self.band(point[1]);
        let listed = &self.listed[self.starts[band]..self.starts[band + 1]];
        let edge = |number: &u32| &self.edges[*number as usize];
        listed.chunk_by(|a, b| edge(a).polygon == edge(b).polygon).any(|polygon| {
            // Without edges of the exterior here, the point is not inside it.
            edge(&polygon[0]).ring == 0
                && polygon.chunk_by(|a, b| edge(a).ring == edge(b).ring).all(|ring| {
                    let crossings = ring.iter().filter(|number| edge(number).is_east_of(point));
                    let inside = crossings.count() % 2 == 1;
                    let is_exterior = edge(&ring[0]).ring == 0;
                    inside == is_exterior
                })
        })
    }

    /// The band of a latitude; the outermost bands go on to the poles. It ascends with the
    /// latitude even as rounded, so that an edge is listed in the band of each of its points.
    fn band(&self, latitude: f64) -> usize {
        (((latitude - self.south) * self.bands_per_degree) as usize).min(self.bands - 1)
    }

    fn bands_of(&self, edge: &Edge) -> std::ops::RangeInclusive<usize> {
        self.band(edge.lower[1])..=self.band(edge.upper[1])
    }

    /// Lists the edges by bands: counts them, then sums the counts up to where each band
    /// ends, then fills the lists from behind, which leaves where each band starts.
    fn list_edges(&mut self) {
        let mut starts = vec![0; self.bands + 1];
        for edge in &self.edges {
            self.bands_of(edge).for_each(|band| starts[band] += 1);
        }
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        self.listed = vec![0; total];
        for (number, edge) in self.edges.iter().enumerate().rev() {
            for band in self.bands_of(edge) {
                starts[band] -= 1;
                self.listed[starts[band]] = number as u32;
            }
        }
        self.starts = starts;
    }
}

fn polygon_edges((rings, polygon): (&Vec<Ring>, u32)) -> impl Iterator<Item = Edge> {
    rings.iter().zip(0..).flat_map(move |(points, ring)| {
        points.windows(2).map(move |ends| {
            let (a, b) = (ends[0], ends[1]);
            let (lower, upper) = if a[1] <= b[1] { (a, b) } else { (b, a) };
            Edge { lower, upper, polygon, ring }
        })
    })
}

impl Edge {
    fn longitudes(&self) -> (f64, f64) {
        (self.lower[0].min(self.upper[0]), self.lower[0].max(self.upper[0]))
    }

    /// Whether a ray from the point to the east crosses the edge. The lower end belongs to
    /// the edge and the upper does not, so that a ray through a vertex crosses one of two
    /// edges that go on, and none or both of two that turn back.
    fn is_east_of(&self, [x, y]: [f64; 2]) -> bool {
        let ([x0, y0], [x1, y1]) = (self.lower, self.upper);
        if !(y0 <= y && y < y1) {
            return false;
        }
        // Beside the edge no product is needed and nothing is rounded.
        let (west, east) = self.longitudes();
        x < west || x < east && (x1 - x0) * (y - y0) > (x - x0) * (y1 - y0)
    }

    /// Whether the edge enters the rectangle's interior, or nearly so.
    fn enters(&self, rectangle: &Rectangle) -> bool {
        let ([x0, y0], [x1, y1]) = (self.lower, self.upper);
        let (west, east) = self.longitudes();
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
    fn polygon_edges_are_listed_about_three_times() {
        // A comb: every edge spans all latitudes, which allows few bands only.
        let comb: Ring = (0..10_000).map(|i| [i as f64 * 0.01, (i % 2) as f64]).collect();
        // A fine circle: short edges, many bands.
        let circle: Ring = (0..10_001)
            .map(|i| {
                let (sin, cos) = (i as f64 * std::f64::consts::TAU / 1e4).sin_cos();
                [cos, sin]
            })
            .collect();
        for (ring, bands) in [(comb, 1..=4), (circle, 5_000..=10_000)] {
            let edges = ring.len() - 1;
            let index = EdgeIndex::new(&[vec![ring]]);
            assert!(bands.contains(&index.bands), "{} bands", index.bands);
            assert!(index.listed.len() <= 4 * edges, "{} listed", index.listed.len());
            assert!(index.starts.is_sorted());
        }
    }

    #[test]
    fn polygon_vertices_count_once() {
        // At the latitude of its left and right corners, rays pass through vertices.
        let diamond = vec![[0.0, -1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]];
        let index = EdgeIndex::new(&[vec![diamond]]);
        assert!(index.enclose(0.0, 0.0));
        assert!(index.enclose(-0.5, 0.0));
        assert!(!index.enclose(-1.5, 0.0));
        assert!(!index.enclose(-0.5, 1.0) && !index.enclose(-0.5, -1.0));
    }

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
                    let edge = Edge { lower, upper, polygon: 0, ring: 0 };
                    assert_eq!(edge.enters(&rectangle), enters, "{edge:?} {shift}");
                }
            }
        }
    }
}
