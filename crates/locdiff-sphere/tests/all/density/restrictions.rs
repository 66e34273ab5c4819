//! Densities on a part of the Earth.

use std::f64::consts::PI;

use locdiff_sphere::{
    Area, Coefficients, Density, EARTH_RADIUS_KM, Kernel, LatLon, MultiPolygon, PointMasses,
    uniform_place,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{noise, place, probability_by_points, some_densities};

#[test]
fn an_island_does_not_hide_the_mainland() {
    let square = |west: f64, south: f64, side: f64| {
        vec![vec![
            [west, south],
            [west + side, south],
            [west + side, south + side],
            [west, south + side],
            [west, south],
        ]]
    };
    let country = MultiPolygon::new(vec![square(-20.0, -20.0, 40.0), square(100.0, 50.0, 0.01)]);
    let density = Density::exponential(&Coefficients::of(place(1.0, 2.0), 30));
    let restricted = density.restricted_to(Area::polygons(country.unwrap())).unwrap();
    let Density::Restriction(restriction) = &restricted else { panic!("not a restriction") };
    assert!(restriction.log_probability().abs() < 1e-3, "{}", restriction.log_probability());
}

#[test]
fn boxes_and_polar_circles_are_as_exact_as_they_say() {
    let mut rng = ChaCha8Rng::seed_from_u64(34);
    let uniform = Density::uniform();
    let mut exceeded = 0;
    for _ in 0..60 {
        let (south, west) = (rng.random_range(-80.0..70.0), rng.random_range(-180.0..180.0));
        let north = (south + rng.random_range(3.0..40.0_f64)).min(90.0);
        let east: f64 = west + rng.random_range(3.0..100.0);
        let east = if east > 180.0 { east - 360.0 } else { east };
        let area = Area::bounding_box(south, west, north, east).unwrap();
        let density = uniform.restricted_to(area.clone()).unwrap();
        let Density::Restriction(restriction) = &density else { panic!("not restricted") };
        let exact = (area.area_km2() / (4.0 * PI * EARTH_RADIUS_KM * EARTH_RADIUS_KM)).ln();
        let error = (restriction.log_probability() - exact).abs();
        exceeded += usize::from(error > density.normaliser_error());
        assert!(error < 3e-3, "{area:?}: {error}");
    }
    assert!(exceeded <= 1, "{exceeded} of 60 errors exceed their estimate");
    let points = PointMasses::new(vec![LatLon::NORTH_POLE], &[1.0]).unwrap();
    let density = points.spread(Kernel::new(100.0).unwrap());
    let survey = density.survey();
    for radius_km in [40.0, 95.0, 130.0, 210.0] {
        let k = (EARTH_RADIUS_KM / 100.0_f64).powi(2);
        let exact = -(-2.0 * k * (0.5 * radius_km / EARTH_RADIUS_KM).sin().powi(2)).exp_m1();
        let found = survey.probability_within(LatLon::NORTH_POLE, radius_km);
        assert!((found - exact).abs() < 2e-3, "{radius_km} km: {found}, not {exact}");
    }
}

#[test]
fn restriction_to_the_whole_sphere_is_the_identity() {
    for (name, density) in some_densities() {
        let restricted = density.restricted_to(Area::whole()).unwrap();
        let Density::Restriction(inner) = &restricted else { panic!("not a restriction") };
        assert!(inner.log_probability().abs() < 3e-3, "{name}: {}", inner.log_probability());
        let there = place(10.0, 178.0);
        let (a, b) = (restricted.log_density(there), density.log_density(there));
        assert!(a == b || (a - b).abs() < 3e-3, "{name}");
    }
}

#[test]
fn restrictions_keep_what_is_inside_and_renormalise() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let triangle = MultiPolygon::of_polygon(vec![vec![
        [170.0, -40.0],
        [200.0, -35.0],
        [185.0, 10.0],
        [170.0, -40.0],
    ]])
    .unwrap();
    let areas = [
        ("circle", Area::circle(place(80.0, 30.0), 3000.0).unwrap()),
        ("box", Area::bounding_box(-20.0, 170.0, 35.0, -150.0).unwrap()),
        ("aligned box", Area::bounding_box(-30.0, -60.0, 30.0, 60.0).unwrap()),
        ("triangle", Area::polygons(triangle)),
    ];
    for (name, area) in areas {
        for _ in 0..3 {
            let whole = Density::exponential(&noise(11, 0.4, &mut rng));
            let density = whole.restricted_to(area.clone()).unwrap();
            let Density::Restriction(restriction) = &density else { panic!("not restricted") };
            let expected = probability_by_points(&whole, &area);
            let error = (restriction.log_probability() - expected.ln()).abs();
            assert!(error < 0.004, "{name}: off by {error}");
            assert!(error < density.normaliser_error() + 1e-3, "{name}: {error} was not expected");
            let survey_error = (whole.survey().probability_in(&area) - expected).abs();
            assert!(survey_error < 5e-4, "{name}: off by {survey_error}");
            for there in (0..50).map(|_| uniform_place(&mut rng)) {
                let log = density.log_density(there);
                assert_eq!(log.is_finite(), area.contains(there), "{name}: {there}");
            }
        }
    }
}

#[test]
fn a_restriction_far_from_the_mass_still_works() {
    // All but 1e-60 of the probability lies elsewhere.
    let sharp = Density::exponential(&Coefficients::of(place(0.0, 0.0), 30));
    let area = Area::circle(place(60.0, 120.0), 40.0).unwrap();
    let density = sharp.restricted_to(area.clone()).unwrap();
    let survey = density.survey();
    assert!((survey.probability_in(&area) - 1.0).abs() < 1e-9);
    assert!(survey.region(0.5).contains(survey.modes().modes[0].place));
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    assert!(survey.sample(50, &mut rng).into_iter().all(|there| area.contains(there)));
}

#[test]
fn a_small_area_far_from_everything_still_has_an_answer() {
    let (sydney, perth) = (place(-33.87, 151.21), place(-31.95, 115.86));
    let valletta = place(35.9, 14.5);
    // Nearly nothing around Malta; of that, a light point and the background.
    for (weight, places) in [(0.0, 2), (1e-7, 3)] {
        let points = [sydney, perth, valletta];
        let weights = [0.7, 0.3, weight];
        let masses = PointMasses::new(points[..places].to_vec(), &weights[..places]).unwrap();
        let density = masses.spread(Kernel::default());
        for area in [
            Area::circle(valletta, 5.0).unwrap(),
            Area::bounding_box(35.8, 14.35, 36.0, 14.6).unwrap(),
            Area::Polygons(
                MultiPolygon::of_polygon(vec![vec![[14.3, 35.8], [14.6, 35.8], [14.5, 36.0]]])
                    .unwrap(),
            ),
        ] {
            let restricted = density.restricted_to(area.clone()).unwrap();
            let survey = restricted.survey();
            assert!(survey.probability_in(&area) > 0.97, "{area:?}");
            assert!(survey.probability_within(valletta, 60.0) > 0.97, "{area:?}");
            let modes = survey.modes().modes;
            assert!(modes[0].place.distance_km(valletta) < 30.0, "{:?}", modes[0]);
            // What was discarded: the background, plus the point that the kernel spreads.
            let Density::Restriction(restriction) = &restricted else { panic!("a restriction") };
            let width = 25.0_f64;
            let peak = weight / (2.0 * PI * width * width);
            let expected = area.area_km2() * (1e-6 / 510.064e6 + peak);
            let found = restriction.log_probability().exp();
            assert!((found / expected - 1.0).abs() < 0.1, "{found:e}, expected {expected:e}");
        }
    }
}
