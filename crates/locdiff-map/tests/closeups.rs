//! Laws of close-ups: distances, bearings, round trips, and what of lines and areas is drawn.

use locdiff_map::{Graticule, Map, Outline, Picture, Projection, Theme};
use locdiff_sphere::{EARTH_RADIUS_KM, LatLon};
use proptest::prelude::*;

fn at(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).expect("degrees of a place")
}

fn place() -> impl Strategy<Value = LatLon> {
    // Uniform on the sphere, with the poles, the antimeridian and Greenwich more often than never.
    let latitude = prop_oneof![
        8 => (-1.0..=1.0f64).prop_map(|z| z.asin().to_degrees()),
        1 => prop::sample::select(vec![-90.0, 90.0, 0.0, 89.999_999, -89.999_999]),
    ];
    let longitude = prop_oneof![
        8 => -180.0..180.0,
        1 => prop::sample::select(vec![-180.0, 0.0, 90.0, 179.999_999_999]),
    ];
    (latitude, longitude).prop_map(|(latitude, longitude)| at(latitude, longitude))
}

fn radius_km() -> impl Strategy<Value = f64> {
    (5f64.ln()..10_000f64.ln()).prop_map(f64::exp)
}

proptest! {
    #[test]
    fn distances_and_bearings_from_the_centre_are_true(
        centre in place(), radius_km in radius_km(), bearing in 0.0..360.0f64, share in 0.0..1.0f64,
    ) {
        let closeup = Projection::Around { centre, radius_km };
        let place = centre.destination(bearing, share * radius_km);
        let [x, y] = closeup.forward(place).expect("within the radius");
        let (sin, cos) = bearing.to_radians().sin_cos();
        let distance = share * radius_km / EARTH_RADIUS_KM;
        prop_assert!((x - distance * sin).hypot(y - distance * cos) < 1e-12);
        let back = closeup.inverse([x, y]).expect("on the map");
        prop_assert!(back.distance_km(place) < 1e-8, "{place} {back}");
    }

    #[test]
    fn points_of_the_square_have_a_place_and_others_have_none(
        centre in place(), radius_km in radius_km(), x in -1.5..1.5f64, y in -1.5..1.5f64,
    ) {
        let closeup = Projection::Around { centre, radius_km };
        let [half, _] = closeup.half_size();
        let point = [x * half, y * half];
        match closeup.inverse(point) {
            None => prop_assert!(x.abs() > 1.0 || y.abs() > 1.0),
            Some(place) => {
                prop_assert!(x.abs() <= 1.0 && y.abs() <= 1.0);
                let again = closeup.forward(place);
                // Rounding may carry a point of the edge over it.
                if x.abs().max(y.abs()) < 1.0 - 1e-9 {
                    let again = again.expect("visible");
                    prop_assert!((again[0] - point[0]).hypot(again[1] - point[1]) < 1e-12);
                }
            }
        }
    }

    #[test]
    fn places_out_of_reach_are_not_shown(centre in place(), radius_km in radius_km(), other in place()) {
        let closeup = Projection::Around { centre, radius_km };
        let distance_km = centre.distance_km(other);
        if distance_km > radius_km * 1.4143 {
            prop_assert_eq!(closeup.forward(other), None);
        }
        if distance_km < radius_km * (1.0 - 1e-9) {
            prop_assert!(closeup.forward(other).is_some());
        }
    }
}

#[test]
fn every_radius_is_a_map() {
    let centre = at(47.0, 8.5);
    for (radius_km, taken) in [
        (-5.0, 0.1),
        (0.0, 0.1),
        (f64::NAN, 0.1),
        (300.0, 300.0),
        (1e9, 10_000.0),
        (f64::INFINITY, 10_000.0),
    ] {
        let [width, height] = Projection::Around { centre, radius_km }.half_size();
        assert_eq!(width, height);
        assert!((width * EARTH_RADIUS_KM - taken).abs() < 1e-9, "{radius_km}");
    }
    let closeup = Projection::Around { centre, radius_km: 300.0 };
    for point in [[f64::NAN, 0.0], [0.0, f64::NAN], [f64::INFINITY, 0.0]] {
        assert_eq!(closeup.inverse(point), None);
    }
}

/// Decoded RGB pixels.
fn pixels(picture: &Picture) -> Vec<[u8; 3]> {
    let mut reader =
        png::Decoder::new(std::io::Cursor::new(picture.png())).read_info().expect("a PNG header");
    let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
    reader.next_frame(&mut bytes).expect("PNG data");
    bytes.chunks_exact(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect()
}

fn ring(centre: LatLon, radius_km: f64, points: usize) -> Vec<LatLon> {
    let bearing = |index| 360.0 * index as f64 / points as f64;
    (0..points).map(|index| centre.destination(bearing(index), radius_km)).collect()
}

fn colour_at(picture: &Picture, place: LatLon) -> [u8; 3] {
    let [x, y] = picture.position_px(place).expect("visible");
    pixels(picture)[y as usize * picture.width_px() as usize + x as usize]
}

#[test]
fn land_is_filled_where_no_coast_is_near() {
    let map = |latitude, longitude, radius_km| {
        let centre = at(latitude, longitude);
        let picture = Map::new(Projection::Around { centre, radius_km })
            .graticule(Graticule::Hidden)
            .width_px(200)
            .draw();
        colour_at(&picture, centre)
    };
    for radius_km in [5.0, 100.0, 1000.0, 3000.0, 10_000.0] {
        let land = map(23.0, 5.0, radius_km);
        let sea = map(0.0, -150.0, radius_km);
        assert_ne!(land, sea);
        // A pixel of the smallest scale may touch a coast.
        let is_land = |latitude, longitude| {
            let colour = map(latitude, longitude, radius_km);
            let apart = |other: [u8; 3]| -> u32 {
                colour.iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(b))).sum()
            };
            apart(land) < apart(sea)
        };
        for (latitude, longitude) in [
            (67.0, 179.99),
            (-89.0, 10.0),
            (60.0, 100.0),
            (-25.0, 134.0),
            (40.0, -4.0),
            (-90.0, 0.0),
        ] {
            assert!(is_land(latitude, longitude), "{latitude},{longitude} {radius_km}");
        }
        // Among them a place opposite to Spain, and the Caspian Sea.
        for (latitude, longitude) in
            [(-40.0, 179.0), (88.0, 0.0), (90.0, 0.0), (42.0, 51.0), (-60.0, 179.9)]
        {
            assert!(!is_land(latitude, longitude), "{latitude},{longitude} {radius_km}");
        }
    }
}

#[test]
fn countries_replace_the_coastlines_and_may_run_either_way() {
    // In the open sea: two countries with a common border, one of them with a lake.
    let centre = at(-17.0, 179.8);
    let corner = |east: f64, north: f64| {
        let place = centre.destination(90.0, east);
        at(place.latitude() + north / 111.2, place.longitude())
    };
    let square = |west, east, half: f64| {
        vec![corner(west, -half), corner(east, -half), corner(east, half), corner(west, half)]
    };
    let rings =
        || vec![square(-60.0, 0.0, 40.0), square(0.0, 60.0, 40.0), square(20.0, 40.0, 10.0)];
    let draw = |rings: Vec<Vec<LatLon>>, radius_km| {
        Map::new(Projection::Around { centre, radius_km })
            .countries(rings)
            .graticule(Graticule::Hidden)
            .width_px(239)
            .draw()
    };
    let picture = draw(rings(), 100.0);
    let land = colour_at(&picture, corner(-30.0, 0.0));
    let sea = colour_at(&picture, corner(0.0, 60.0));
    assert_ne!(land, sea);
    assert_eq!(colour_at(&picture, corner(50.0, 20.0)), land);
    assert_eq!(colour_at(&picture, corner(30.0, 0.0)), sea);
    let border = colour_at(&picture, corner(0.0, 20.0));
    assert!(border != land && border != sea);

    let reversed: Vec<Vec<LatLon>> =
        rings().into_iter().map(|ring| ring.into_iter().rev().collect()).collect();
    // Thin strokes are rounded differently; land instead of sea would make a difference of 22.
    let apart = |(a, b): (&[u8; 3], &[u8; 3])| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max();
    let largest =
        pixels(&draw(reversed, 100.0)).iter().zip(&pixels(&picture)).filter_map(apart).max();
    assert!(largest < Some(11), "{largest:?}");
    // Within one country, none of its outline is near.
    let centre = corner(-30.0, 0.0);
    let inland = Map::new(Projection::Around { centre, radius_km: 5.0 })
        .countries(rings())
        .graticule(Graticule::Hidden)
        .width_px(100)
        .draw();
    assert_eq!(colour_at(&inland, centre), land);
}

#[test]
fn outlines_are_where_they_belong_and_nowhere_else() {
    let cases = [
        (at(-17.6, 179.9), 20.0),
        (at(86.0, -120.0), 800.0),
        (at(-90.0, 0.0), 50.0),
        (at(78.2, 15.6), 300.0),
        (at(10.0, 20.0), 9000.0),
    ];
    for (centre, radius_km) in cases {
        // Whole, cut by each side, and from far away around the antipode.
        for (shift, ring_km) in [(0.1, 0.6), (0.6, 0.9), (1.3, 0.8), (0.0, 1.2)] {
            let projection = Projection::Around { centre, radius_km };
            let middle = centre.destination(70.0, shift * radius_km);
            let map = || Map::new(projection).width_px(300).theme(Theme::Dark);
            let bare = pixels(&map().draw());
            let outline = Outline::new([ring(middle, ring_km * radius_km, 360)]);
            let drawn = map().outline(outline).draw();
            let expected: Vec<[f64; 2]> = ring(middle, ring_km * radius_km, 5000)
                .into_iter()
                .filter_map(|place| drawn.position_px(place))
                .collect();
            let width = drawn.width_px() as usize;
            let changed: Vec<[f64; 2]> = pixels(&drawn)
                .iter()
                .zip(&bare)
                .enumerate()
                .filter(|(_, (with, without))| with != without)
                .map(|(index, _)| [(index % width) as f64 + 0.5, (index / width) as f64 + 0.5])
                .collect();
            let nearest = |to: [f64; 2], all: &[[f64; 2]]| {
                all.iter().map(|p| (p[0] - to[0]).hypot(p[1] - to[1])).fold(f64::MAX, f64::min)
            };
            assert!(changed.len() > 50, "{centre} {radius_km} {shift}: {}", changed.len());
            for &pixel in &changed {
                let off = nearest(pixel, &expected);
                assert!(off < 4.0, "{centre} {radius_km} {shift}: a stroke {off} off at {pixel:?}");
            }
            for &point in expected.iter().step_by(20) {
                assert!(nearest(point, &changed) < 2.5, "{centre} {radius_km} {shift}: {point:?}");
            }
        }
    }
}

#[test]
fn colours_mean_the_same_in_the_inset() {
    // The pixels of the globe miss the peak; the inset and its map still have one top.
    let peak = at(-17.6, 179.9);
    let field = |place: LatLon| -(place.distance_km(peak) / 20.0).powi(2) / 2.0;
    let closeup = || Map::new(Projection::Around { centre: peak, radius_km: 100.0 });
    let globe = || Map::new(Projection::Globe { centre: peak }).field(field).width_px(400);
    let shared = globe().inset(closeup()).draw();
    let own = globe().inset(closeup().field(field).theme(Theme::Dark).top(1000.0)).draw();
    assert_eq!(shared.png(), own.png());
    assert_ne!(shared.png(), globe().inset(closeup().field(|_| 0.0)).draw().png());
    assert_eq!(shared.svg(), globe().inset(closeup()).draw().svg());
    assert!(roxmltree::Document::parse(&shared.svg()).is_ok());
}

#[test]
fn odd_insets_are_drawn_without_harm() {
    let around = |latitude, longitude, radius_km| Projection::Around {
        centre: at(latitude, longitude),
        radius_km,
    };
    let insets = [
        around(90.0, 0.0, 10_000.0),
        around(0.0, 180.0, 0.0),
        around(10.0, 0.0, f64::NAN),
        Projection::EqualEarth,
        Projection::Globe { centre: at(10.0, 10.0) },
    ];
    for projection in [
        Projection::EqualEarth,
        Projection::Equirectangular,
        Projection::Globe { centre: at(0.0, 0.0) },
        around(0.0, 0.0, 500.0),
    ] {
        for inset in insets {
            for width in [1, 17, 239, 240, 300] {
                let map = Map::new(projection).width_px(width).title("Title").caption("Caption");
                let nested = Map::new(inset).inset(Map::new(Projection::EqualEarth)).title("Inset");
                let picture = map.inset(nested).draw();
                assert_eq!(picture.width_px(), width);
                let svg = picture.svg();
                assert!(!svg.contains("NaN") && !svg.contains("inf"));
                assert!(roxmltree::Document::parse(&svg).is_ok());
                assert_eq!(pixels(&picture).len() as u32, width * picture.height_px());
            }
        }
    }
}
