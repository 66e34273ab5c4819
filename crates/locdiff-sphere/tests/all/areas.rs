//! Areas: circles by distance, boxes across the antimeridian, polygons against closed forms,
//! Monte Carlo and a naive reference, GeoJSON there and back.

use std::f64::consts::{PI, TAU};

use locdiff_sphere::{Area, EARTH_RADIUS_KM, InvalidArea, LatLon, MultiPolygon, uniform_place};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

const SPHERE_KM2: f64 = 4.0 * PI * EARTH_RADIUS_KM * EARTH_RADIUS_KM;

type Ring = Vec<[f64; 2]>;

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn place(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).unwrap()
}

fn any_place() -> impl Strategy<Value = LatLon> {
    let latitude = prop_oneof![4 => -90.0..=90.0, 1 => Just(90.0), 1 => Just(-90.0)];
    let longitude = prop_oneof![4 => -180.0..180.0, 1 => Just(-180.0), 1 => 179.9..180.0];
    (latitude, longitude).prop_map(|(latitude, longitude)| place(latitude, longitude))
}

fn rectangle(south: f64, west: f64, north: f64, east: f64) -> Ring {
    vec![[west, south], [east, south], [east, north], [west, north]]
}

fn polygon(rings: &[Ring]) -> MultiPolygon {
    MultiPolygon::of_polygon(rings.to_vec()).unwrap()
}

fn assert_ratio(ours: f64, expected: f64, tolerance: f64, name: &str) {
    let error = ours / expected - 1.0;
    assert!(error.abs() <= tolerance, "{name}: {ours}, expected {expected}, off by {error}");
}

/// A ring around a point whose radius jumps about, at most `size` degrees of longitude; at a
/// pole, half of one that runs back along the pole.
fn star(rng: &mut ChaCha8Rng, [x, y]: [f64; 2], size: f64, points: usize) -> Ring {
    let at_pole = y.abs() == 90.0;
    let turn = if at_pole { -PI * y.signum() / (points - 1) as f64 } else { TAU / points as f64 };
    let squeeze = if at_pole { 1.0 } else { (90.0 - y.abs()) / 180.0 };
    let mut corner = |point: usize| {
        let radius = size * rng.random_range(0.5..1.0);
        let (sin, cos) = (turn * point as f64).sin_cos();
        [x + radius * cos, (y + squeeze * radius * sin).clamp(-90.0, 90.0)]
    };
    (0..points).map(&mut corner).collect()
}

/// Two or three stars with holes, in boxes of longitude that don't overlap: one may be across
/// the antimeridian, and some are at a pole.
fn stars(rng: &mut ChaCha8Rng) -> Vec<Vec<Ring>> {
    let from = rng.random_range(-180.0..180.0);
    (0..rng.random_range(2..=3))
        .map(|number| {
            let latitude = [90.0, -90.0, rng.random_range(-80.0..80.0)][rng.random_range(0..3)];
            let (centre, points) =
                ([from + 120.0 * f64::from(number), latitude], rng.random_range(3..300));
            let size = 60.0 * 10f64.powf(rng.random_range(-1.5..0.0));
            let exterior = star(rng, centre, size, points);
            vec![exterior, star(rng, centre, 0.2 * size, points)]
        })
        .collect()
}

/// The textbook's ray, with all edges and the division that it has.
fn ring_contains(ring: &Ring, x: f64, y: f64) -> bool {
    let mut inside = false;
    for (i, &[x1, y1]) in ring.iter().enumerate() {
        let [x0, y0] = ring[(i + ring.len() - 1) % ring.len()];
        if (y0 > y) != (y1 > y) && x < x0 + (x1 - x0) * (y - y0) / (y1 - y0) {
            inside = !inside;
        }
    }
    inside
}

fn naive_contains(polygons: &[Vec<Ring>], place: LatLon) -> bool {
    [-720.0, -360.0, 0.0, 360.0, 720.0].into_iter().any(|turn| {
        let (x, y) = (place.longitude() + turn, place.latitude());
        polygons.iter().any(|rings| {
            ring_contains(&rings[0], x, y)
                && !rings[1..].iter().any(|hole| ring_contains(hole, x, y))
        })
    })
}

proptest! {
    #[test]
    fn area_circle_contains_by_distance(
        centre in any_place(), other in any_place(), radius_km in 1.0..25_000.0,
    ) {
        let circle = Area::circle(centre, radius_km).unwrap();
        prop_assert_eq!(circle.contains(other), centre.distance_km(other) <= radius_km);
    }

    #[test]
    fn area_box_contains_what_lies_east_of_west(
        south in -90.0..80.0, height in 0.1..10.0,
        west in -180.0..180.0, width in 0.1..359.9_f64, other in any_place(),
    ) {
        let east = place(0.0, west + width).longitude();
        let area = Area::bounding_box(south, west, south + height, east).unwrap();
        // Away from the edges, where the sum of west and width is rounded.
        let eastwards = (other.longitude() - west).rem_euclid(360.0);
        prop_assume!((eastwards - width).abs() > 1e-9 && eastwards < 360.0 - 1e-9);
        let between = (south..=south + height).contains(&other.latitude());
        prop_assert_eq!(area.contains(other), between && eastwards <= width);
        // The same box as a polygon, which goes on beyond 180.
        let ring = rectangle(south, west, south + height, west + width);
        assert_ratio(polygon(&[ring]).area_km2(), area.area_km2(), 1e-9, "box as polygon");
    }

    #[test]
    fn polygon_geojson_comes_back(seed in any::<u64>()) {
        let polygons = stars(&mut rng(seed));
        let original = MultiPolygon::new(polygons.clone()).unwrap();
        let back = from_geojson(&original.to_geojson());
        let pairs = original.coordinates().iter().flatten().flatten()
            .zip(back.coordinates().iter().flatten().flatten());
        for (ours, theirs) in pairs {
            prop_assert!((ours[0] - theirs[0]).abs() < 5.1e-7, "{:?} {:?}", ours, theirs);
            prop_assert!((ours[1] - theirs[1]).abs() < 5.1e-7, "{:?} {:?}", ours, theirs);
        }
        let lengths = |polygon: &MultiPolygon| -> Vec<Vec<usize>> {
            polygon.coordinates().iter().map(|rings| rings.iter().map(Vec::len).collect()).collect()
        };
        prop_assert_eq!(lengths(&original), lengths(&back));
        // What has six decimals already comes back exactly.
        prop_assert_eq!(&from_geojson(&back.to_geojson()), &back);
    }
}

fn from_geojson(text: &str) -> MultiPolygon {
    let value: Value = serde_json::from_str(text).unwrap();
    let coordinates = value["coordinates"].clone();
    match value["type"].as_str() {
        Some("Polygon") => {
            let rings: Vec<Ring> = serde_json::from_value(coordinates).unwrap();
            assert!(rings.iter().all(|ring| ring.first() == ring.last()));
            MultiPolygon::of_polygon(rings).unwrap()
        }
        Some("MultiPolygon") => {
            MultiPolygon::new(serde_json::from_value(coordinates).unwrap()).unwrap()
        }
        other => panic!("{other:?} in {text}"),
    }
}

#[test]
fn polygon_geojson_of_one_is_a_polygon() {
    let one = polygon(&[rectangle(0.0, 170.0, 10.0, 190.0), rectangle(1.0, 171.0, 2.0, 172.0)]);
    assert_eq!(from_geojson(&one.to_geojson()), one);
    assert!(one.to_geojson().starts_with(r#"{"type":"Polygon","coordinates":[[[170,0],"#));
    let [exterior, hole] = &one.coordinates()[0][..] else { panic!("two rings") };
    let two = MultiPolygon::new(vec![vec![exterior.clone()], vec![hole.clone()]]).unwrap();
    assert!(two.to_geojson().starts_with(r#"{"type":"MultiPolygon","coordinates":[[[[170,0],"#));
}

#[test]
fn area_edges_of_the_world() {
    let (dateline, pole) = (place(0.0, 180.0), LatLon::NORTH_POLE);
    assert!(Area::whole().contains(dateline) && Area::whole().contains(pole));
    assert!(Area::bounding_box(-1.0, 170.0, 1.0, 180.0).unwrap().contains(dateline));
    assert!(Area::bounding_box(-1.0, -180.0, 1.0, -170.0).unwrap().contains(dateline));
    let across = Area::bounding_box(-1.0, 170.0, 1.0, -170.0).unwrap();
    assert!(across.contains(dateline) && !across.contains(place(0.0, 0.0)));
    let all_round = Area::circle(place(10.0, 20.0), PI * EARTH_RADIUS_KM).unwrap();
    assert!(all_round.contains(place(-10.0, -160.0)));
    assert_ratio(all_round.area_km2(), SPHERE_KM2, 1e-15, "circle of half the circumference");
    assert_ratio(Area::whole().area_km2(), SPHERE_KM2, 1e-15, "whole");
    assert_ratio(Area::circle(pole, 1e-3).unwrap().area_km2(), PI * 1e-6, 1e-9, "metre");
}

#[test]
fn area_refuses_what_is_none() {
    let area = |south, west, north, east| Area::bounding_box(south, west, north, east).unwrap_err();
    assert!(matches!(area(-91.0, 0.0, 0.0, 1.0), InvalidArea::Latitude(-91.0)));
    assert!(matches!(area(0.0, 170.0, 1.0, 190.0), InvalidArea::Longitude(190.0)));
    assert!(matches!(area(1.0, 0.0, 0.0, 1.0), InvalidArea::NoHeight { .. }));
    assert!(matches!(area(0.0, 180.0, 1.0, -180.0), InvalidArea::NoWidth { .. }));
    assert!(matches!(area(f64::NAN, 0.0, 1.0, 1.0), InvalidArea::Latitude(_)));
    for radius_km in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = Area::circle(LatLon::NORTH_POLE, radius_km).unwrap_err();
        assert!(error.to_string().contains(&format!("radius {radius_km} km")));
    }
}

#[test]
fn polygon_areas_have_closed_forms() {
    for (south, west, north, east) in [
        (-90.0, -180.0, 90.0, 180.0),
        (0.0, -180.0, 90.0, 180.0),
        (-90.0, 0.0, 0.0, 360.0),
        (-90.0, -30.0, 90.0, 150.0),
        (10.0, 20.0, 10.001, 20.001),
        (89.0, 20.0, 90.0, 21.0),
    ] {
        let ours = polygon(&[rectangle(south, west, north, east)]).area_km2();
        let heights = south.to_radians().sin()..north.to_radians().sin();
        let share = (heights.end - heights.start) / 2.0 * (east - west) / 360.0;
        assert_ratio(ours, SPHERE_KM2 * share, 1e-11, "rectangle");
    }
    // Two straight edges of a triangle from the equator to the pole: the share of the
    // longitudes at latitude φ is 1 − φ / 90°, and its integral over sin φ is 2/π.
    let triangle = vec![[0.0, 0.0], [90.0, 0.0], [0.0, 90.0]];
    assert_ratio(polygon(&[triangle]).area_km2(), SPHERE_KM2 / 4.0 / PI, 1e-14, "triangle");
    let holed = [rectangle(-10.0, 170.0, 10.0, 190.0), rectangle(-10.0, 175.0, 10.0, 180.0)];
    let share = (10f64).to_radians().sin() * 15.0 / 360.0;
    assert_ratio(polygon(&holed).area_km2(), SPHERE_KM2 * share, 1e-14, "hole");
}

#[test]
fn polygon_of_many_edges_becomes_a_circle() {
    for centre in [place(0.0, 0.0), place(-60.0, 179.0), place(40.0, -180.0)] {
        let circle = Area::circle(centre, 2000.0).unwrap();
        let edges = 20_000;
        let ring: Ring = (0..edges)
            .map(|edge| {
                let rim = centre.destination(360.0 * f64::from(edge) / f64::from(edges), 2000.0);
                let east = place(0.0, rim.longitude() - centre.longitude()).longitude();
                [centre.longitude() + east, rim.latitude()]
            })
            .collect();
        let polygon = polygon(&[ring]);
        assert_ratio(polygon.area_km2(), circle.area_km2(), 1e-7, "circle");
        let mut rng = rng(3);
        for _ in 0..20_000 {
            let other = uniform_place(&mut rng);
            if (other.distance_km(centre) - 2000.0).abs() > 0.1 {
                assert_eq!(polygon.contains(other), circle.contains(other), "{other}");
            }
        }
    }
}

#[test]
fn polygon_contains_as_the_naive_reference_and_area_as_monte_carlo() {
    let mut rng = rng(4);
    for _ in 0..40 {
        let stars = stars(&mut rng);
        let polygon = MultiPolygon::new(stars.clone()).unwrap();
        let (places, mut hits) = (5_000, 0.0);
        for _ in 0..places {
            let place = uniform_place(&mut rng);
            let inside = polygon.contains(place);
            assert_eq!(inside, naive_contains(&stars, place), "{place} {stars:?}");
            hits += f64::from(inside);
        }
        let (share, exact) = (hits / f64::from(places), polygon.area_km2() / SPHERE_KM2);
        // Five standard deviations; for the rare hit of a small area, of one hit at least.
        let deviation = (exact.max(1.0 / f64::from(places)) / f64::from(places)).sqrt();
        assert!((share - exact).abs() < 5.0 * deviation, "{share} {exact} {stars:?}");
    }
}

#[test]
fn polygon_neighbours_share_every_place() {
    // Cut through vertices and along slanted edges; every place is in exactly one part.
    let slanted = [[-7.3, -90.0], [11.1, -33.3], [-2.7, 0.0], [19.9, 47.1], [0.1, 90.0]];
    let side = |x: f64| vec![[x, 90.0], [x, -90.0]];
    let west = [slanted.to_vec(), side(-180.0)].concat();
    let mut backwards = slanted.to_vec();
    backwards.reverse();
    let east = [backwards, vec![[180.0, -90.0], [180.0, 90.0]]].concat();
    let (west, east) = (polygon(&[west]), polygon(&[east]));
    assert_ratio(west.area_km2() + east.area_km2(), SPHERE_KM2, 1e-14, "both");
    let mut places: Vec<LatLon> = slanted.iter().map(|&[x, y]| place(y, x)).collect();
    places.extend([LatLon::NORTH_POLE, LatLon::SOUTH_POLE, place(0.0, 180.0)]);
    let mut rng = rng(5);
    for ends in slanted.windows(2) {
        places.extend((0..10_000).map(|_| {
            let t: f64 = rng.random();
            let [x, y] = [0, 1].map(|axis| ends[0][axis] + t * (ends[1][axis] - ends[0][axis]));
            place(y, x)
        }));
    }
    for place in places {
        assert!(west.contains(place) != east.contains(place), "{place}");
    }
}

#[test]
fn polygon_around_the_pole_contains_it() {
    for sign in [1.0, -1.0] {
        let cap = polygon(&[vec![
            [0.0, 60.0 * sign],
            [360.0, 60.0 * sign],
            [360.0, 90.0 * sign],
            [0.0, 90.0 * sign],
        ]]);
        for longitude in [-180.0, -90.0, 0.0, 179.9] {
            assert!(cap.contains(place(90.0 * sign, longitude)));
            assert!(cap.contains(place(60.1 * sign, longitude)));
            assert!(!cap.contains(place(59.9 * sign, longitude)));
        }
    }
}

/// A ring with detail at all scales.
fn coast(rng: &mut ChaCha8Rng, [x, y]: [f64; 2], size: f64, points: usize) -> Ring {
    let phases: Vec<f64> = (0..points.ilog2()).map(|_| rng.random_range(0.0..TAU)).collect();
    let point = |point: usize| {
        let turn = TAU * point as f64 / points as f64;
        let waves = phases.iter().zip(0..).map(|(phase, octave)| {
            let frequency = f64::from(octave).exp2();
            0.15 * frequency.powf(-0.8) * (frequency * turn + phase).cos()
        });
        let radius = size * (1.0 + waves.sum::<f64>());
        [x + radius * turn.cos(), y + 0.4 * radius * turn.sin()]
    };
    (0..points).map(point).collect()
}

#[test]
fn polygon_of_a_hundred_thousand_edges() {
    let mut rng = rng(6);
    let coast = vec![vec![
        coast(&mut rng, [170.0, 0.0], 100.0, 100_000),
        coast(&mut rng, [170.0, 0.0], 20.0, 10_000),
    ]];
    let polygon = MultiPolygon::new(coast.clone()).unwrap();
    for _ in 0..300 {
        let place = uniform_place(&mut rng);
        assert_eq!(polygon.contains(place), naive_contains(&coast, place), "{place}");
    }
}

#[test]
fn polygons_that_cross_and_overlap_follow_the_even_odd_rule() {
    let mut rng = rng(7);
    for points in [3, 10, 100, 1000] {
        let mut zigzag = |points: usize| -> Ring {
            let longitude = rng.random_range(-300.0..200.0);
            let mut point =
                |_| [longitude + rng.random_range(0.0..100.0), rng.random_range(-90.0..90.0)];
            (0..points).map(&mut point).collect()
        };
        let polygons: Vec<Vec<Ring>> =
            (0..2000 / points).map(|_| vec![zigzag(points)]).take(50).collect();
        let polygon = MultiPolygon::new(polygons.clone()).unwrap();
        for _ in 0..500 {
            let place = uniform_place(&mut rng);
            assert_eq!(polygon.contains(place), naive_contains(&polygons, place), "{place}");
        }
    }
}

#[test]
fn polygons_in_great_numbers_are_accepted() {
    // A grid of the whole Earth, whose squares share all edges.
    let squares = (0..64_800).map(|k| {
        let (west, south) = (f64::from(k % 360) - 180.0, f64::from(k / 360) - 90.0);
        vec![rectangle(south, west, south + 1.0, west + 1.0)]
    });
    let grid = MultiPolygon::new(squares.collect()).unwrap();
    assert_ratio(grid.area_km2(), SPHERE_KM2, 1e-12, "grid");
    // Sectors that meet in a point, each with two long edges beside those of others.
    let rim = |k: i32| {
        let (sin, cos) = (TAU * f64::from(k) / 720.0).sin_cos();
        [10.0 + 5.0 * cos, 50.0 + 5.0 * sin]
    };
    let sectors = (0..720).map(|k| vec![vec![[10.0, 50.0], rim(k), rim(k + 1)]]);
    let sectors = MultiPolygon::new(sectors.collect()).unwrap();
    let mut rng = rng(8);
    for _ in 0..1000 {
        let place = uniform_place(&mut rng);
        assert!(grid.contains(place), "{place}");
        let (x, y) = (rng.random_range(4.0..16.0), rng.random_range(44.0..56.0));
        let radius = f64::hypot(x - 10.0, y - 50.0);
        if (radius - 5.0).abs() > 1e-3 {
            assert_eq!(sectors.contains(self::place(y, x)), radius < 5.0, "{y},{x}");
        }
    }
}

#[test]
fn polygons_that_no_index_helps_are_rejected() {
    let mut rng = rng(9);
    let star = |rng: &mut ChaCha8Rng, points: usize| -> Ring {
        let mut point = |_| [rng.random_range(20.0..40.0), rng.random_range(0.0..20.0)];
        (0..points).map(&mut point).collect()
    };
    let comb = |points: i32, slant: f64| -> Ring {
        let tooth = |k: i32| {
            let along = 20.0 * f64::from(k) / f64::from(points);
            if k % 2 == 0 { [along, 1.0] } else { [along + slant, 20.0] }
        };
        (0..points).map(tooth).chain([[20.0, 0.0], [0.0, 0.0]]).collect()
    };
    let island = coast(&mut rng, [-100.0, 0.0], 20.0, 10_000);
    for (name, polygon) in [
        ("star", star(&mut rng, 5000)),
        ("large star", star(&mut rng, 50_000)),
        ("spiky ring", self::star(&mut rng, [100.0, 0.0], 170.0, 100_000)),
        ("comb", comb(200_000, 0.0)),
        ("slanted comb", comb(200_000, 15.0)),
        ("lying comb", comb(200_000, 0.0).into_iter().map(|[x, y]| [y, x]).collect()),
    ] {
        let points = polygon.len() + 1;
        let error = MultiPolygon::new(vec![vec![island.clone()], vec![polygon]]).unwrap_err();
        let InvalidArea::Tangled { polygon, points: of_polygon, latitude, longitude, .. } = error
        else {
            panic!("{name}: {error}");
        };
        assert_eq!((polygon, of_polygon), (1, points), "{name}");
        assert!((-90.0..90.0).contains(&latitude) && longitude > -70.0, "{name}: {error}");
    }
    let error = polygon_error(vec![star(&mut rng, 5000)]);
    assert!(error.starts_with("the polygons are too tangled: on average, an edge passes closely"));
    assert!(error.contains("polygon 0, which has 5001 points"), "{error}");
    assert!(error.ends_with("Simplify the polygon"), "{error}");
    let error = polygon_error(vec![vec![[0.0, 0.0]; 10_000_001]]);
    assert_eq!(
        error,
        "the polygons have 10000001 points, at most 10000000 are accepted; simplify them"
    );
}

fn polygon_error(rings: Vec<Ring>) -> String {
    MultiPolygon::of_polygon(rings).unwrap_err().to_string()
}
