//! The tree of edges against a count over all edges, exactly: on vertices, edges and cuts too.

use std::f64::consts::TAU;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Ring;
use super::edge_tree::EdgeTree;
use super::edge_tree_builder::Crowds;
use super::edges::Edge;
use crate::area::Rectangle;

type Polygons = Vec<Vec<Ring>>;

fn tree(polygons: &Polygons) -> EdgeTree {
    EdgeTree::new(polygons, &vec![1.0; polygons.len()], Crowds::Accepted).unwrap()
}

fn closed(mut ring: Ring) -> Ring {
    ring.push(ring[0]);
    ring
}

fn edges(ring: &Ring) -> impl Iterator<Item = Edge> {
    ring.windows(2).map(|ends| Edge::between(ends[0], ends[1]))
}

/// The even-odd rule as it is written, with all edges.
fn encloses(polygons: &Polygons, x: f64, y: f64) -> bool {
    let odd = |ring: &Ring, x: f64| edges(ring).filter(|e| e.is_east_of([x, y])).count() % 2 == 1;
    [-360.0, 0.0, 360.0].into_iter().any(|turn| {
        let x = x + turn;
        let inside = |rings: &Vec<Ring>| odd(&rings[0], x) && !rings[1..].iter().any(|r| odd(r, x));
        polygons.iter().any(inside)
    })
}

/// A ring with detail at all scales.
fn coast(rng: &mut impl Rng, [x, y]: [f64; 2], size: f64, points: usize) -> Ring {
    let phases: Vec<f64> = (0..points.ilog2()).map(|_| rng.random_range(0.0..TAU)).collect();
    let point = |k: usize| {
        let turn = TAU * k as f64 / points as f64;
        let waves = phases.iter().zip(0..).map(|(phase, k)| {
            let frequency = f64::from(k).exp2();
            0.15 * frequency.powf(-0.8) * (frequency * turn + phase).cos()
        });
        let radius = size * (1.0 + waves.sum::<f64>());
        [x + radius * turn.cos(), y + 0.4 * radius * turn.sin()]
    };
    closed((0..points).map(point).collect())
}

fn square([x, y]: [f64; 2], side: f64) -> Ring {
    vec![[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]
}

/// A ring of random points, which crosses itself. On a lattice many of them are in line.
fn zigzag(rng: &mut impl Rng, [x, y]: [f64; 2], size: f64, points: usize, lattice: bool) -> Ring {
    let mut step = || {
        let step = rng.random_range(0.0..size);
        if lattice { step.round() } else { step }
    };
    closed((0..points).map(|_| [x + step(), y + step()]).collect())
}

/// Rings that cross themselves, polygons that overlap or share edges, holes anywhere, and
/// longitudes beyond 180.
fn some_polygons(rng: &mut impl Rng, kind: usize) -> Polygons {
    let start = [[0.0, 0.0], [165.0, -10.0], [190.0, 40.0], [-520.0, -89.0]];
    let start = start[rng.random_range(0..4)];
    let points = rng.random_range(3..100);
    match kind {
        0 => vec![vec![zigzag(rng, start, 20.0, points, false)]],
        1 => {
            let mut ring = |_| zigzag(rng, start, 9.0, points, true);
            vec![(0..3).map(&mut ring).collect(), (0..2).map(&mut ring).collect()]
        }
        2 => {
            let triangle = |_| vec![zigzag(rng, start, 20.0, 3, false)];
            (0..points).map(triangle).collect()
        }
        3 => {
            let place = |k: usize| [start[0] + (k % 8) as f64, start[1] + (k / 8) as f64];
            let some = (0..64).filter(|_| rng.random_bool(0.7));
            some.map(|k| vec![square(place(k), 1.0)]).collect()
        }
        _ => {
            let middle = [start[0], 0.3 * start[1]];
            let hole = coast(rng, middle, 5.0, 10 * points);
            vec![vec![coast(rng, middle, 30.0, 30 * points), hole]]
        }
    }
}

const KINDS: usize = 5;

/// Points on vertices and edges, on the borders between leaves, and anywhere.
fn some_points(rng: &mut impl Rng, polygons: &Polygons, tree: &EdgeTree) -> Vec<[f64; 2]> {
    let edges: Vec<Edge> = polygons.iter().flatten().flat_map(edges).collect();
    let cuts: Vec<(usize, f64)> = tree.cuts().collect();
    let mut points = Vec::new();
    for _ in 0..100 {
        let Edge { lower, upper } = edges[rng.random_range(0..edges.len())];
        let share = rng.random::<f64>();
        let on_edge = [0, 1].map(|axis| lower[axis] + share * (upper[axis] - lower[axis]));
        let nearby = [on_edge[0] + rng.random_range(-3.0..3.0), on_edge[1]];
        let mut at_cut = [nearby[0], on_edge[1] + rng.random_range(-3.0..3.0)];
        points.extend([lower, on_edge, nearby, at_cut, [lower[0] - 1.0, lower[1]]]);
        if !cuts.is_empty() {
            let (axis, at) = cuts[rng.random_range(0..cuts.len())];
            at_cut[axis] = at;
            points.push(at_cut);
        }
    }
    points
}

#[test]
fn edge_tree_encloses_what_all_edges_enclose() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut enclosed = [[0; 2]; KINDS];
    for case in 0..20 * KINDS {
        let polygons = some_polygons(&mut rng, case % KINDS);
        let tree = tree(&polygons);
        for [x, y] in some_points(&mut rng, &polygons, &tree) {
            let expected = encloses(&polygons, x, y);
            assert_eq!(tree.enclose(x, y), expected, "[{x}, {y}] in {polygons:?}");
            enclosed[case % KINDS][usize::from(expected)] += 1;
        }
    }
    assert!(enclosed.as_flattened().iter().all(|count| *count > 1000), "{enclosed:?}");
}

#[test]
fn edge_tree_answers_for_many_points_as_for_each() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for case in 0..20 * KINDS {
        let polygons = some_polygons(&mut rng, case % KINDS);
        let tree = tree(&polygons);
        for [west, south] in some_points(&mut rng, &polygons, &tree) {
            let step = 10f64.powf(rng.random_range(-3.0..0.5));
            let columns: [f64; 40] = std::array::from_fn(|k| west + step * k as f64);
            let rows: [f64; 7] = std::array::from_fn(|k| south + 2.0 * step * k as f64);
            let marks = tree.enclosed(rows, columns);
            for (k, x) in columns.into_iter().enumerate().step_by(9) {
                for (i, y) in rows.into_iter().enumerate() {
                    assert_eq!(marks[i] >> k & 1 == 1, tree.enclose(x, y), "[{x}, {y}]");
                }
            }
            assert!(marks.iter().all(|mark| mark >> 40 == 0));
        }
    }
}

#[test]
fn edge_tree_meets_a_rectangle_where_what_it_encloses_changes() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut met = [0; 2];
    // Which side of an edge is inside is known only of rings that don't cross themselves in edges that others share.
    for case in (0..20 * KINDS).filter(|case| case % KINDS != 1) {
        let polygons = some_polygons(&mut rng, case % KINDS);
        let tree = tree(&polygons);
        for [west, south] in some_points(&mut rng, &polygons, &tree) {
            let mut side = || 10f64.powf(rng.random_range(-3.0..0.7));
            let (width, height) = (side(), side());
            let rectangle = Rectangle { south, west, north: south + height, east: west + width };
            let meets = tree.meet(&rectangle);
            met[usize::from(meets)] += 1;
            if meets {
                let mut all = polygons.iter().flatten().flat_map(edges);
                assert!(enters_turned(&mut all, &rectangle), "{rectangle:?} in {polygons:?}");
                continue;
            }
            let mut inside = || {
                let [u, v] = std::array::from_fn(|_| rng.random_range(0.001..0.999));
                tree.enclose(west + u * width, south + v * height)
            };
            let first = inside();
            assert!((0..20).all(|_| inside() == first), "{rectangle:?} in {polygons:?}");
        }
    }
    assert!(met[0] > 1000 && met[1] > 1000, "{met:?}");
}

fn enters_turned(edges: &mut impl Iterator<Item = Edge>, rectangle: &Rectangle) -> bool {
    let turned = [-360.0, 0.0, 360.0].map(|turn| Rectangle {
        west: rectangle.west + turn,
        east: rectangle.east + turn,
        ..*rectangle
    });
    edges.any(|edge| turned.iter().any(|rectangle| edge.enters(rectangle)))
}

#[test]
fn edge_tree_finds_the_smallest_polygon_with_an_edge_in_a_rectangle() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let polygons: Polygons = (0..900)
        .map(|k| {
            let corner = [150.0 + (k % 30) as f64 * 2.0, (k / 30) as f64 - 10.0];
            vec![square(corner, rng.random_range(0.01..0.9))]
        })
        .collect();
    let areas: Vec<f64> = (0..900).map(|_| rng.random_range(1.0..2.0)).collect();
    let tree = EdgeTree::new(&polygons, &areas, Crowds::Rejected).unwrap();
    let mut finite = 0;
    for _ in 0..3000 {
        let (west, south) = (rng.random_range(140.0..190.0), rng.random_range(-12.0..22.0));
        let mut side = || 10f64.powf(rng.random_range(-2.0..1.5));
        let rectangle = Rectangle { south, west, north: south + side(), east: west + side() };
        let near = polygons
            .iter()
            .zip(&areas)
            .filter(|(rings, _)| enters_turned(&mut edges(&rings[0]), &rectangle));
        let expected = near.fold(f64::INFINITY, |smallest, (_, area)| smallest.min(*area));
        assert_eq!(tree.smallest_km2(&rectangle), expected, "{rectangle:?}");
        finite += usize::from(expected.is_finite());
    }
    assert!((1000..2900).contains(&finite), "{finite}");
}

#[test]
fn edge_tree_lists_coasts_once_or_twice_however_long_they_are() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for points in [1000, 10_000, 100_000, 300_000] {
        let tree = tree(&vec![vec![coast(&mut rng, [0.0, 0.0], 50.0, points)]]);
        let [chains, listings, nodes] = tree.sizes();
        assert!(chains <= points / 6, "{chains} chains of {points} edges");
        assert!(listings <= 2 * chains, "{listings} listings of {chains} chains");
        assert!(nodes <= chains, "{nodes} nodes for {chains} chains");
    }
}

#[test]
fn edge_tree_does_not_list_crossing_edges_without_end() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for points in [3000, 30_000] {
        let tree = tree(&vec![vec![zigzag(&mut rng, [0.0, 0.0], 20.0, points, false)]]);
        let [chains, listings, _] = tree.sizes();
        assert_eq!(chains, points, "long edges are chains of their own");
        assert!(listings <= 16 * points + 1_000_000, "{listings} listings of {points} edges");
    }
}

#[test]
fn edge_tree_counts_vertices_once() {
    // At the latitude of its left and right corners, rays pass through vertices.
    let diamond = closed(vec![[0.0, -1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]);
    let tree = tree(&vec![vec![diamond]]);
    assert!(tree.enclose(0.0, 0.0));
    assert!(tree.enclose(-0.5, 0.0));
    assert!(!tree.enclose(-1.5, 0.0));
    assert!(!tree.enclose(-0.5, 1.0) && !tree.enclose(-0.5, -1.0));
}

#[test]
fn edge_tree_has_no_borders_between_neighbors() {
    let turned = |mut ring: Ring| {
        ring.reverse();
        ring
    };
    // A chessboard of 6 x 6 fields across the antimeridian, in both ways round.
    let mut polygons: Polygons = (0..36)
        .map(|k| {
            let column = (k % 6) as f64;
            // East of it, longitudes may be written either way.
            let west = if column > 2.0 { column - 183.0 } else { column + 177.0 };
            let field = square([west, (k / 6) as f64], 1.0);
            vec![if k % 2 == 0 { field } else { turned(field) }]
        })
        .collect();
    // One field has a hole, which another polygon fills.
    polygons[14].push(square([179.25, 2.25], 0.5));
    polygons.push(vec![square([179.25, 2.25], 0.5)]);
    let areas = vec![1.0; polygons.len()];
    let tree = EdgeTree::new(&polygons, &areas, Crowds::Rejected).unwrap();
    let at = |west: f64, south: f64, side: f64| Rectangle {
        south,
        west,
        north: south + side,
        east: west + side,
    };
    assert!(!tree.meet(&at(177.1, 0.1, 2.8)) && tree.enclose(178.0, 1.0));
    assert!(!tree.meet(&at(-180.0, 0.1, 2.8)) && !tree.meet(&at(179.0, 2.0, 0.99)));
    assert!(tree.meet(&at(176.9, 0.1, 0.5)) && tree.meet(&at(-177.1, 0.1, 0.5)));
    assert_eq!(tree.smallest_km2(&at(170.0, -5.0, 9.0)), 37.0);
    assert_eq!(tree.smallest_km2(&at(178.5, 1.5, 2.0)), f64::INFINITY);
    // Polygons on the same side of an edge: it is a border.
    let overlapping = vec![
        vec![square([0.0, 0.0], 1.0)],
        vec![vec![[0.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]],
    ];
    assert!(
        EdgeTree::new(&overlapping, &[1.0, 0.2], Crowds::Rejected)
            .unwrap()
            .meet(&at(0.4, -0.1, 0.2))
    );
    // So are the southern edges of two halves of the Earth, which have the same ends.
    let halves = [-90.0, 90.0].map(|west| {
        vec![closed(vec![[west, 0.0], [west + 180.0, 0.0], [west + 180.0, 90.0], [west, 90.0]])]
    });
    assert!(
        EdgeTree::new(&halves, &[1.0; 2], Crowds::Rejected).unwrap().meet(&at(10.0, -1.0, 2.0))
    );
}
