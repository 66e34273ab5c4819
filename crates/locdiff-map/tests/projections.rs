//! Laws of the projections: round trips, known points, equal areas.

use locdiff_map::Projection;
use locdiff_sphere::LatLon;
use proptest::prelude::*;
use std::f64::consts::{FRAC_PI_2, PI};

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

fn at(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).expect("degrees of a place")
}

proptest! {
    #[test]
    fn flat_maps_show_every_place_once(place in place()) {
        for projection in [Projection::Equirectangular, Projection::EqualEarth] {
            let point = projection.forward(place).expect("flat maps show the whole Earth");
            let half = projection.half_size();
            prop_assert!(point[0].abs() <= half[0] + 1e-12 && point[1].abs() <= half[1] + 1e-12);
            let back = projection.inverse(point).expect("the point is on the map");
            // Equal Earth squeezes the latitudes at a pole: half a metre there is the last bit of y.
            prop_assert!(back.distance_km(place) < 1e-3, "{projection:?} {place} {back}");
        }
    }

    #[test]
    fn globes_show_the_near_half(centre in place(), place in place()) {
        let globe = Projection::Globe { centre };
        let angle = centre.angle_to(place);
        match globe.forward(place) {
            None => prop_assert!(angle > FRAC_PI_2 - 1e-12),
            Some(point) => {
                prop_assert!(angle < FRAC_PI_2 + 1e-12);
                // Orthographic: the distance from the middle is the sine of the angle.
                prop_assert!((point[0].hypot(point[1]) - angle.sin()).abs() < 1e-12);
                // At the horizon the root of a rounded number is all that is left of the depth.
                if let Some(back) = globe.inverse(point) {
                    prop_assert!(back.angle_to(place) < 1e-7, "{place} {back}");
                } else {
                    prop_assert!(angle > FRAC_PI_2 - 1e-7);
                }
            }
        }
    }

    #[test]
    fn equal_earth_keeps_areas(place in place()) {
        // Jacobian of (longitude, sin latitude) → (x, y) by central differences: 1 everywhere.
        prop_assume!(place.latitude().abs() < 89.0 && place.longitude().abs() < 179.0);
        let step = 1e-4f64;
        let forward = |latitude, longitude| {
            Projection::EqualEarth.forward(at(latitude, longitude)).expect("on the map")
        };
        let (latitude, longitude) = (place.latitude(), place.longitude());
        let [east, west] = [step, -step].map(|d| forward(latitude, longitude + d));
        let [north, south] = [step, -step].map(|d| forward(latitude + d, longitude));
        let width = (east[0] - west[0]) / (2.0 * step).to_radians();
        let height = (north[1] - south[1]) / (2.0 * step).to_radians();
        prop_assert!((width * height / latitude.to_radians().cos() - 1.0).abs() < 1e-6);
        // Parallels are straight.
        prop_assert_eq!(east[1], west[1]);
    }

    #[test]
    fn outside_the_map_there_is_no_place(x in -10.0..10.0f64, y in -10.0..10.0f64) {
        for projection in [
            Projection::Equirectangular,
            Projection::EqualEarth,
            Projection::Globe { centre: at(20.0, 30.0) },
        ] {
            let half = projection.half_size();
            if x.abs() > half[0] * 1.001 || y.abs() > half[1] * 1.001 {
                prop_assert_eq!(projection.inverse([x, y]), None);
            }
            if let Some(place) = projection.inverse([x, y]) {
                let back = projection.forward(place).expect("visible");
                prop_assert!((back[0] - x).hypot(back[1] - y) < 1e-9, "{:?} {:?}", projection, place);
            }
        }
    }
}

#[test]
fn equal_earth_has_the_published_size() {
    // Šavrič, Patterson and Jenny (2018): the equator is 2.05458 times as long as the central
    // meridian, the pole line 0.59247 times as long as the equator. The other numbers were computed
    // in Python, from the paper's formula.
    let [half_width, half_height] = Projection::EqualEarth.half_size();
    assert!((half_width - 2.0 * 3f64.sqrt() * PI / (3.0 * 1.340264)).abs() < 1e-14);
    assert!((half_width - 2.7066299836960748).abs() < 1e-12, "{half_width}");
    assert!((half_height - 1.3173627591574133).abs() < 1e-12, "{half_height}");
    assert!((half_width / half_height - 2.05458).abs() < 5e-6);
    let pole = Projection::EqualEarth.forward(at(90.0, -180.0)).expect("on the map");
    assert!((-pole[0] / half_width - 0.59247).abs() < 5e-6, "{pole:?}");
    let [x, y] = Projection::EqualEarth.forward(at(48.8566, 2.3522)).expect("on the map");
    assert!((x - 0.029444331181534597).abs() < 1e-15 && (y - 0.9233610483347625).abs() < 1e-14);
}

#[test]
fn known_points() {
    assert_eq!(Projection::Equirectangular.forward(at(90.0, -180.0)), Some([-PI, FRAC_PI_2]));
    assert_eq!(Projection::EqualEarth.forward(at(0.0, 0.0)), Some([0.0, 0.0]));
    let [x, y] = Projection::Globe { centre: at(0.0, 0.0) }
        .forward(at(30.0, 60.0))
        .expect("on the near side");
    assert!((x - 0.75).abs() < 1e-15 && (y - 0.5).abs() < 1e-15);
    // North is up, and from above the north pole Greenwich points down.
    let [x, y] =
        Projection::Globe { centre: LatLon::NORTH_POLE }.forward(at(45.0, 0.0)).expect("near");
    assert!(x.abs() < 1e-15 && (y + 0.5f64.sqrt()).abs() < 1e-15);
}

#[test]
fn not_a_number_is_nowhere() {
    for projection in [
        Projection::Equirectangular,
        Projection::EqualEarth,
        Projection::Globe { centre: at(0.0, 0.0) },
    ] {
        for point in [[f64::NAN, 0.0], [0.0, f64::NAN], [f64::INFINITY, 0.0]] {
            assert_eq!(projection.inverse(point), None, "{projection:?} {point:?}");
        }
    }
}
