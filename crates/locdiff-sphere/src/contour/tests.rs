mod checker;

use std::collections::HashSet;
use std::f64::consts::PI;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Polygon, outline};
use crate::area::Rectangle;
use crate::cells::{CellId, Tiling, place_at};
use crate::{LatLon, UnitVector, uniform_place};
use checker::{assert_valid, is_covered, spherical_area};

fn place(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).unwrap()
}

fn base_cells(base: usize) -> Vec<CellId> {
    Tiling { base: base as u32 }.base_cells().collect()
}

/// Leaves where every cell for which `splits` says so is cut.
fn tree(base: usize, mut splits: impl FnMut(CellId) -> bool) -> Vec<CellId> {
    let (mut open, mut leaves) = (base_cells(base), Vec::new());
    while let Some(cell) = open.pop() {
        if splits(cell) {
            open.extend(Tiling { base: base as u32 }.cut(cell).ids());
        } else {
            leaves.push(cell);
        }
    }
    leaves
}

/// Random leaves, some of them many levels deeper than their neighbours.
fn random_tree(rng: &mut impl Rng) -> (usize, Vec<CellId>) {
    let base = rng.random_range(1..=6);
    let mut targets: Vec<LatLon> = (0..2).map(|_| uniform_place(rng)).collect();
    targets.push(place(rng.random_range(-90.0..90.0), -180.0));
    targets.push(LatLon::NORTH_POLE);
    let often = rng.random_range(0.1..0.6);
    let leaves = tree(base, |cell| {
        let is_target = targets.iter().any(|&target| contains(base, cell, target));
        (is_target && cell.level < 7) || (cell.level < 5 && rng.random_bool(often))
    });
    (base, leaves)
}

/// The finest cells near the line f = 0, as a caller would refine.
fn refined_at_rim(base: usize, levels: u32, value: impl Fn(LatLon) -> f64) -> Vec<CellId> {
    tree(base, |cell| {
        let tiling = Tiling { base: base as u32 };
        let (theta, phi) = tiling.point(cell, 0.5, 0.5);
        cell.level < levels && value(place_at(theta, phi)).abs() <= 0.75 * tiling.size(cell)
    })
}

fn contains(base: usize, cell: CellId, place: LatLon) -> bool {
    let Rectangle { south, west, north, east } = Tiling { base: base as u32 }.rectangle(cell);
    (south..=north).contains(&place.latitude()) && (west..=east).contains(&place.longitude())
}

/// Radians inside the rim of a cap.
fn cap(centre: LatLon, radius: f64) -> impl Fn(LatLon) -> f64 {
    move |place| radius - centre.angle_to(place)
}

fn random_centre(rng: &mut impl Rng) -> LatLon {
    match rng.random_range(0..6) {
        0 => LatLon::NORTH_POLE,
        1 => LatLon::SOUTH_POLE,
        2 => place(rng.random_range(-90.0..90.0), -180.0),
        3 => place([1.0, -1.0][rng.random_range(0..2)] * rng.random_range(85.0..90.0), 77.0),
        _ => uniform_place(rng),
    }
}

/// What must hold for any outline: valid rings, equal cuts on both sides of the antimeridian,
/// each place asked for once and on the right side of the outline.
fn checked_outline(
    base: usize,
    leaves: &[CellId],
    mut value: impl FnMut(LatLon) -> f64,
) -> Vec<Polygon> {
    let mut known = Vec::new();
    let polygons = outline(base, leaves, |place| {
        let value = value(place);
        known.push((place, value));
        value
    });
    assert_valid(&polygons);
    assert_eq!(cuts(&polygons, -180.0), cuts(&polygons, 180.0));
    let mut asked = HashSet::new();
    for (place, value) in known {
        let (latitude, longitude) = (place.latitude(), place.longitude());
        let is_pole = latitude.abs() == 90.0;
        let key = [latitude, if is_pole { 0.0 } else { longitude }].map(f64::to_bits);
        assert!(asked.insert(key), "{place} asked twice");
        if !is_pole && longitude != -180.0 {
            assert_eq!(is_covered(&polygons, [longitude, latitude]), value >= 0.0, "{place}");
        }
    }
    polygons
}

/// Latitudes of the outline's corners on a meridian.
fn cuts(polygons: &[Polygon], longitude: f64) -> Vec<f64> {
    let rings = polygons.iter().flatten();
    let points = rings.flat_map(|ring| &ring[1..]).filter(|point| point[0] == longitude);
    let mut latitudes: Vec<f64> = points.map(|point| point[1]).collect();
    latitudes.sort_by(f64::total_cmp);
    latitudes
}

/// Outside the cells that the rim passes through, nothing may be on the wrong side of it:
/// `value` must have slope 1 at most, in radians.
fn assert_covers(
    polygons: &[Polygon],
    (base, leaves): (usize, &[CellId]),
    value: impl Fn(LatLon) -> f64,
    rng: &mut impl Rng,
) {
    for _ in 0..100 {
        let point = uniform_place(rng);
        let cell = leaves.iter().find(|&&cell| contains(base, cell, point)).unwrap();
        let diagonal = 2.0_f64.sqrt() * Tiling { base: base as u32 }.size(*cell);
        if value(point).abs() > diagonal {
            let is_covered = is_covered(polygons, [point.longitude(), point.latitude()]);
            assert_eq!(is_covered, value(point) > 0.0, "{point}");
        }
    }
}

#[test]
fn nothing_and_everything() {
    for (base, leaves) in [(3, base_cells(3)), random_tree(&mut ChaCha8Rng::seed_from_u64(1))] {
        assert!(outline(base, &leaves, |_| f64::NEG_INFINITY).is_empty());
        assert!(outline(base, &leaves, |_| -1e-300).is_empty());
        for value in [0.0, 1.0, f64::INFINITY] {
            let polygons = checked_outline(base, &leaves, |_| value);
            assert_eq!(spherical_area(&polygons), 4.0 * PI);
            let [[ring]] = &polygons.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] else {
                panic!("not one ring: {polygons:?}")
            };
            assert_eq!(ring.len(), 5);
        }
    }
}

#[test]
fn a_polar_cap_runs_along_the_pole() {
    for (pole, latitude) in [(LatLon::NORTH_POLE, 90.0), (LatLon::SOUTH_POLE, -90.0)] {
        let polygons = checked_outline(9, &base_cells(9), cap(pole, 0.5));
        assert_eq!(polygons.len(), 1);
        assert_eq!(polygons[0].len(), 1);
        for corner in [[-180.0, latitude], [180.0, latitude]] {
            assert!(polygons[0][0].contains(&corner));
        }
    }
}

#[test]
fn a_cap_on_the_antimeridian_is_cut_there() {
    let polygons = checked_outline(18, &base_cells(18), cap(place(20.0, 179.0), 0.4));
    assert_eq!(polygons.len(), 2);
    assert_eq!(cuts(&polygons, 180.0).len(), 2);
}

/// Values without any pattern, those that are hard to interpolate among them.
fn noise(inside: f64, rng: &mut impl Rng) -> f64 {
    let size = match rng.random_range(0..6) {
        0 => f64::INFINITY,
        1 => f64::MAX,
        2 => f64::MIN_POSITIVE,
        _ => rng.random_range(0.1..1.0),
    };
    match (rng.random_bool(inside), rng.random_bool(0.5)) {
        (true, true) => 0.0,
        (true, false) => size,
        (false, _) => -size,
    }
}

#[test]
fn noise_gives_valid_rings() {
    for seed in 0..60 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (base, leaves) = random_tree(&mut rng);
        let inside = rng.random_range(0.05..0.95);
        checked_outline(base, &leaves, |_| noise(inside, &mut rng));
    }
}

#[test]
fn the_smallest_leaves_give_valid_rings() {
    for seed in 0..20 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let target = random_centre(&mut rng);
        let leaves = tree(3, |cell| cell.level < 28 && contains(3, cell, target));
        checked_outline(3, &leaves, |_| noise(0.5, &mut rng));
    }
}

#[test]
fn caps_on_random_trees() {
    for seed in 0..120 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (base, leaves) = random_tree(&mut rng);
        let value = cap(random_centre(&mut rng), rng.random_range(0.01..PI));
        let polygons = checked_outline(base, &leaves, &value);
        assert_covers(&polygons, (base, &leaves), &value, &mut rng);
    }
}

#[test]
fn areas_of_caps_approach_the_truth() {
    for seed in 0..60 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (centre, radius) = (random_centre(&mut rng), rng.random_range(0.05..3.0));
        let value = cap(centre, radius);
        let truth = 2.0 * PI * (1.0 - radius.cos());
        for levels in [3, 5] {
            let leaves = refined_at_rim(8, levels, &value);
            let polygons = checked_outline(8, &leaves, &value);
            assert_covers(&polygons, (8, &leaves), &value, &mut rng);
            let width = PI / (8.0 * f64::from(1 << levels));
            // Of second order, as chords are.
            let error = (spherical_area(&polygons) - truth).abs();
            assert!(error < 0.5 * width * width, "{centre}, radius {radius}: off by {error}");
        }
    }
}

#[test]
fn rings_in_rings() {
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let centre = random_centre(&mut rng);
        // A disc, a gap around it, and a band around that: slope 1 everywhere.
        let value = |place: LatLon| {
            let distance = centre.angle_to(place);
            (0.2 - distance).max(0.3 - (distance - 0.8).abs())
        };
        let leaves = refined_at_rim(8, 4, value);
        let polygons = checked_outline(8, &leaves, value);
        assert_covers(&polygons, (8, &leaves), value, &mut rng);
        let cap = |radius: f64| 2.0 * PI * (1.0 - radius.cos());
        let truth = cap(0.2) + cap(1.1) - cap(0.5);
        assert!((spherical_area(&polygons) / truth - 1.0).abs() < 0.01);
        if centre.latitude().abs() < 20.0 && centre.longitude().abs() < 90.0 {
            let ring_counts: Vec<usize> = polygons.iter().map(Vec::len).collect();
            assert_eq!(ring_counts, [2, 1]);
        }
    }
}

#[test]
fn many_blobs() {
    for seed in 0..20 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let waves: Vec<(UnitVector, f64, f64)> = (0..12)
            .map(|_| {
                let direction = UnitVector::from(uniform_place(&mut rng));
                (direction, rng.random_range(5.0..25.0), rng.random_range(0.0..2.0 * PI))
            })
            .collect();
        let steepest: f64 = waves.iter().map(|wave| wave.1).sum();
        let level = rng.random_range(-3.0..3.0);
        let value = |place: LatLon| {
            let at = UnitVector::from(place);
            let wave = |&(direction, number, phase): &(UnitVector, f64, f64)| {
                (number * at.dot(direction) + phase).cos()
            };
            (waves.iter().map(wave).sum::<f64>() - level) / steepest
        };
        let base = rng.random_range(6..20);
        let leaves = tree(base, |cell| cell.level < 4 && rng.random_bool(0.35));
        let polygons = checked_outline(base, &leaves, value);
        assert!(polygons.iter().flatten().count() > 3);
        assert_covers(&polygons, (base, &leaves), value, &mut rng);
    }
}
