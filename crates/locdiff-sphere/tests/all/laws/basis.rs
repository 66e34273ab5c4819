//! Harmonics at places, their derivatives, distances.

use std::f64::consts::PI;

use locdiff_sphere::{Anchors, Basis, LatLon, UnitVector, reference, uniform_place};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::laws::{any_place, noise};

fn norm_error(max_degree: usize, place: LatLon) -> f64 {
    let harmonics = Basis::new(max_degree).encode(place);
    let square: f64 = harmonics.as_slice().iter().map(|y| y * y).sum();
    (square * 4.0 * PI / ((max_degree + 1) * (max_degree + 1)) as f64 - 1.0).abs()
}

#[test]
fn norm_is_exact_at_degree_2000() {
    let near_pole = 90.0 - 1e-6_f64.to_degrees();
    for (latitude, longitude) in [
        (90.0, 12.0),
        (-90.0, 0.0),
        (near_pole, 77.0),
        (-near_pole, -180.0),
        (89.4, 1.0),
        (0.0, 0.0),
        (21.5, -57.0),
        (-54.0, 179.9),
    ] {
        let error = norm_error(2000, LatLon::new(latitude, longitude).unwrap());
        assert!(error < 1e-12, "({latitude}, {longitude}): {error:e}");
    }
}

#[test]
fn fast_harmonics_agree_with_the_readable_reference() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let basis = Basis::new(30);
    for _ in 0..20 {
        let place = uniform_place(&mut rng);
        let harmonics = basis.encode(place);
        for degree in 0..=30 {
            for order in -(degree as isize)..=degree as isize {
                let expected = reference::harmonic(degree, order, place);
                assert!((harmonics.get(degree, order) - expected).abs() < 1e-13);
            }
        }
    }
}

#[test]
fn the_papers_formula_is_right_for_low_degrees_and_breaks_below_47() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let places: Vec<LatLon> = (0..200).map(|_| uniform_place(&mut rng)).collect();
    let worst = |degree: usize| {
        let orders = -(degree as isize)..=degree as isize;
        let errors = orders.flat_map(|order| {
            places.iter().map(move |&place| {
                let paper = reference::harmonic_by_paper_formula(degree, order, place);
                (paper - reference::harmonic(degree, order, place)).abs()
            })
        });
        errors.fold(0.0, f64::max)
    };
    assert!(worst(5) < 1e-12);
    assert!(worst(15) < 1e-8);
    assert!(worst(39) > 1e-3);
    assert!(worst(47) > 0.1, "{}", worst(47));
}

/// Σ_m |∇Y_lm|² = l(l+1)(2l+1)/4π, and the Hessian's trace is −l(l+1)·Y.
#[test]
fn derivatives_hold_at_degree_2000() {
    let basis = Basis::new(2000);
    for latitude in [90.0, -90.0 + 1e-6_f64.to_degrees(), 31.0, 0.0] {
        let jets = basis.jets(LatLon::new(latitude, 40.0).unwrap());
        for l in [1_usize, 10, 500, 1999, 2000] {
            let row = &jets[l * l..(l + 1) * (l + 1)];
            let squares: f64 = row.iter().map(|jet| jet.east.powi(2) + jet.north.powi(2)).sum();
            let casimir = (l * (l + 1)) as f64;
            let expected = casimir * (2 * l + 1) as f64 / (4.0 * PI);
            assert!((squares / expected - 1.0).abs() < 1e-10, "{latitude}, {l}: {squares}");
            // Σ_m |Hessian|² = l²(l+1)²(2l+1)/4π − l(l+1)(2l+1)/4π, by Bochner's formula.
            let squares: f64 = row
                .iter()
                .map(|jet| {
                    jet.east_east.powi(2) + 2.0 * jet.east_north.powi(2) + jet.north_north.powi(2)
                })
                .sum();
            let expected = expected * (casimir - 1.0);
            assert!((squares / expected - 1.0).abs() < 1e-10, "{latitude}, {l}: {squares}");
        }
    }
}

#[test]
fn anchors_are_even() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for anchors in [Anchors::fibonacci(20_000), Anchors::uniform(200_000, &mut rng)] {
        let mut mean = [0.0; 9];
        let basis = Basis::new(2);
        for place in anchors.places() {
            for (sum, y) in mean.iter_mut().zip(basis.encode(*place).as_slice()) {
                *sum += y / anchors.len() as f64;
            }
        }
        // The mean of every harmonic but the constant vanishes over the sphere.
        assert!(mean[1..].iter().all(|mean| mean.abs() < 0.005), "{mean:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn norm_is_the_same_everywhere(place in any_place()) {
        prop_assert!(norm_error(47, place) < 1e-13);
        prop_assert!(norm_error(128, place) < 1e-12);
    }

    /// Y(p)·Y(q) depends on the angle between p and q only: it is Σ (2l+1)/4π·P_l(cos).
    #[test]
    fn encodings_are_equivariant_under_rotation(a in any_place(), b in any_place()) {
        let basis = Basis::new(47);
        let (x, y) = (basis.encode(a), basis.encode(b));
        let product: f64 = x.as_slice().iter().zip(y.as_slice()).map(|(x, y)| x * y).sum();
        // The same angle, measured from the pole.
        let turned = LatLon::new(90.0 - a.angle_to(b).to_degrees(), 0.0).unwrap();
        let (pole, turned) = (basis.encode(LatLon::NORTH_POLE), basis.encode(turned));
        let expected: f64 = pole.as_slice().iter().zip(turned.as_slice()).map(|(x, y)| x * y).sum();
        prop_assert!((product - expected).abs() < 1e-10, "{product} != {expected}");
    }

    /// Jets of a function are the sums of the harmonics' jets, whose gradients satisfy
    /// Σ_m |∇Y_lm|² = l(l+1)(2l+1)/4π at every place.
    #[test]
    fn jets_add_up(place in any_place(), seed in 0_u64..1000) {
        let basis = Basis::new(20);
        let jets = basis.jets(place);
        let coefficients = noise(20, seed);
        let sum = coefficients.jet_at(&basis, place);
        let total = |part: fn(&locdiff_sphere::Jet) -> f64| -> f64 {
            coefficients.as_slice().iter().zip(&jets).map(|(c, jet)| c * part(jet)).sum()
        };
        prop_assert!((total(|jet| jet.value) - sum.value).abs() < 1e-10);
        prop_assert!((total(|jet| jet.east) - sum.east).abs() < 1e-9);
        prop_assert!((total(|jet| jet.north) - sum.north).abs() < 1e-9);
        prop_assert!((total(|jet| jet.east_east) - sum.east_east).abs() < 1e-7);
        prop_assert!((total(|jet| jet.east_north) - sum.east_north).abs() < 1e-7);
        prop_assert!((total(|jet| jet.north_north) - sum.north_north).abs() < 1e-7);
        for l in 0_usize..=20 {
            let row = &jets[l * l..(l + 1) * (l + 1)];
            let squares: f64 = row.iter().map(|jet| jet.east * jet.east + jet.north * jet.north).sum();
            let expected = (l * (l + 1) * (2 * l + 1)) as f64 / (4.0 * PI);
            prop_assert!((squares - expected).abs() < 1e-11 * expected.max(1.0));
        }
    }

    #[test]
    fn great_circles_close(a in any_place(), b in any_place()) {
        let distance_km = a.distance_km(b);
        prop_assert!((distance_km - b.distance_km(a)).abs() < 1e-9);
        prop_assert!(a.destination(a.bearing_to(b), distance_km).distance_km(b) < 1e-6);
        let vectors = UnitVector::from(a).angle_to(UnitVector::from(b));
        prop_assert!((vectors - a.angle_to(b)).abs() < 1e-15 * 10.0);
        prop_assert!(LatLon::from(UnitVector::from(a)).distance_km(a) < 1e-11);
    }
}
