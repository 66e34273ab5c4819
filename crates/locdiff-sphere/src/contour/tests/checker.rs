//! What RFC 7946 and plane geometry say about polygons, checked the slow and plain way.

use crate::contour::{Polygon, Ring};

/// Panics unless these are the coordinates of a valid MultiPolygon.
pub(super) fn assert_valid(polygons: &[Polygon]) {
    for polygon in polygons {
        assert!(!polygon.is_empty(), "a polygon without rings");
        for (index, ring) in polygon.iter().enumerate() {
            assert_ring(ring);
            let area = plane_area(ring);
            assert!(area != 0.0 && (area > 0.0) == (index == 0), "ring {index} has area {area}");
        }
        for hole in &polygon[1..] {
            let around = polygons.iter().map(|p| &p[0]).filter(|ring| is_in_ring(ring, hole[0]));
            let smallest = around.min_by(|a, b| plane_area(a).total_cmp(&plane_area(b)));
            assert_eq!(smallest, Some(&polygon[0]), "a hole is not in the smallest exterior");
        }
    }
    assert_simple(polygons);
}

fn assert_ring(ring: &Ring) {
    assert!(ring.len() >= 4, "{} positions: {ring:?}", ring.len());
    assert_eq!(ring.first(), ring.last(), "an open ring");
    for [longitude, latitude] in ring {
        assert!((-180.0..=180.0).contains(longitude), "longitude {longitude}");
        assert!((-90.0..=90.0).contains(latitude), "latitude {latitude}");
    }
    for edge in ring.windows(2) {
        assert_ne!(edge[0], edge[1], "an edge of length zero");
    }
}

/// No two edges meet, but neighbours of a ring in the point they share.
fn assert_simple(polygons: &[Polygon]) {
    let mut edges = Vec::new();
    for (number, ring) in polygons.iter().flatten().enumerate() {
        let count = ring.len() - 1;
        edges.extend((0..count).map(|i| (number, i, count, [ring[i], ring[i + 1]])));
    }
    // By their west ends, so that most pairs are far apart and left out.
    edges.sort_by(|a, b| span(&a.3, 0).0.total_cmp(&span(&b.3, 0).0));
    for (index, &(ring, i, count, a)) in edges.iter().enumerate() {
        let east = span(&a, 0).1;
        for &(other, j, _, b) in edges[index + 1..].iter().take_while(|e| span(&e.3, 0).0 <= east) {
            let follows = |i: usize, j: usize| ring == other && (i + 1) % count == j;
            let meets = if follows(i, j) {
                folds_back(a, b)
            } else if follows(j, i) {
                folds_back(b, a)
            } else {
                touches(a, b)
            };
            assert!(!meets, "edges meet: {a:?} of ring {ring}, {b:?} of ring {other}");
        }
    }
}

type Edge = [[f64; 2]; 2];

fn span(edge: &Edge, axis: usize) -> (f64, f64) {
    let [a, b] = [edge[0][axis], edge[1][axis]];
    (a.min(b), a.max(b))
}

/// Whether the second edge, which starts at the end of the first, runs back over it.
fn folds_back([a, b]: Edge, [start, c]: Edge) -> bool {
    assert_eq!(b, start);
    let along = (b[0] - a[0]) * (c[0] - b[0]) + (b[1] - a[1]) * (c[1] - b[1]);
    turn(a, b, c) == 0.0 && along < 0.0
}

fn touches(a: Edge, b: Edge) -> bool {
    let overlap = (0..2).all(|axis| {
        let ((a_low, a_high), (b_low, b_high)) = (span(&a, axis), span(&b, axis));
        a_low <= b_high && b_low <= a_high
    });
    overlap
        && turn(a[0], a[1], b[0]) * turn(a[0], a[1], b[1]) <= 0.0
        && turn(b[0], b[1], a[0]) * turn(b[0], b[1], a[1]) <= 0.0
}

fn turn(a: [f64; 2], b: [f64; 2], c: [f64; 2]) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

fn plane_area(ring: &Ring) -> f64 {
    let trapezium = |e: &[[f64; 2]]| (e[0][0] - e[1][0]) * (e[0][1] + e[1][1] - 2.0 * ring[0][1]);
    0.5 * ring.windows(2).map(trapezium).sum::<f64>()
}

fn is_in_ring(ring: &Ring, [x, y]: [f64; 2]) -> bool {
    let crossed = ring.windows(2).filter(|edge| {
        let [[x0, y0], [x1, y1]] = [edge[0], edge[1]];
        (y0 > y) != (y1 > y) && x < x0 + (y - y0) / (y1 - y0) * (x1 - x0)
    });
    crossed.count() % 2 == 1
}

/// By the parity of the rings around a point of the plane.
pub(super) fn is_covered(polygons: &[Polygon], point: [f64; 2]) -> bool {
    polygons.iter().flatten().filter(|ring| is_in_ring(ring, point)).count() % 2 == 1
}

/// Area on the unit sphere: −∮ sin(latitude) d(longitude), in closed form on each edge.
pub(super) fn spherical_area(polygons: &[Polygon]) -> f64 {
    let below = |edge: &[[f64; 2]]| {
        let [[x0, y0], [x1, y1]] = [edge[0], edge[1]].map(|point| point.map(f64::to_radians));
        let half = 0.5 * (y1 - y0);
        let mean = if half == 0.0 { 1.0 } else { half.sin() / half } * (0.5 * (y0 + y1)).sin();
        (x1 - x0) * mean
    };
    -polygons.iter().flatten().map(|ring| ring.windows(2).map(below).sum::<f64>()).sum::<f64>()
}
