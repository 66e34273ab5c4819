//! Laws of densities, and comparisons with plain sums over fine grids.

mod restrictions;

use std::f64::consts::PI;

use locdiff_sphere::{
    Anchors, Area, Coefficients, CubeCell, Density, EARTH_RADIUS_KM, Grid, Integrator,
    InvalidDensity, Kernel, LatLon, PointMasses, UNIFORM_NLL_NATS, uniform_place,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn place(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).unwrap()
}

/// Σ t_i·Y(p_i).
fn peaks(max_degree: usize, parts: &[(f64, LatLon)]) -> Coefficients {
    let mut sum = Coefficients::zeros(max_degree);
    for (t, place) in parts {
        let y = Coefficients::of(*place, max_degree);
        for (sum, y) in sum.as_mut_slice().iter_mut().zip(y.as_slice()) {
            *sum += t * y;
        }
    }
    sum
}

/// A function with structure of every size, as a network gives out.
fn noise(max_degree: usize, amplitude: f64, rng: &mut ChaCha8Rng) -> Coefficients {
    let mut e = Coefficients::zeros(max_degree);
    for (index, e) in e.as_mut_slice().iter_mut().enumerate() {
        *e = amplitude * rng.random_range(-1.0..1.0) * 8.0 / (index.isqrt() + 1) as f64;
    }
    e
}

/// The sum of `of(place, log-density)` over a grid, the density itself asked at every node.
fn grid_mean(density: &Density, rings: usize, of: impl Fn(LatLon, f64) -> f64) -> f64 {
    let grid = Grid::new(rings, 2 * rings);
    let logs = density.log_density_on(&grid);
    let values: Vec<f64> = logs
        .iter()
        .enumerate()
        .map(|(k, log)| {
            let there = grid.place(k / grid.longitudes(), k % grid.longitudes());
            if log.exp() > 0.0 { log.exp() * of(there, *log) } else { 0.0 }
        })
        .collect();
    grid.integrate(&values)
}

/// The probability of an area by a sum over points that no border runs along.
fn probability_by_points(density: &Density, area: &Area) -> f64 {
    let points = Anchors::fibonacci(400_000);
    let inside = points.places().iter().filter(|there| area.contains(**there));
    inside.map(|there| density.log_density(*there).exp()).sum::<f64>() * 4.0 * PI / 400_000.0
}

fn some_densities() -> Vec<(&'static str, Density)> {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let exponential = Density::exponential(&noise(12, 0.6, &mut rng));
    let two =
        Density::exponential(&peaks(15, &[(0.5, place(10.0, 179.0)), (0.45, place(-60.0, -20.0))]));
    let linear =
        Density::linear(&peaks(8, &[(0.5, place(40.0, 10.0)), (0.5, place(-30.0, 100.0))]));
    let points = PointMasses::new(
        vec![place(89.0, 0.0), place(0.0, 180.0), place(3.0, -179.0)],
        &[1.0, 2.0, 3.0],
    )
    .unwrap()
    .spread(Kernel::new(300.0).unwrap());
    let mixture =
        Density::mixture(vec![(1.0, exponential.clone()), (3.0, linear.clone())]).unwrap();
    let product =
        Density::product(vec![(1.0, exponential.clone()), (0.5, points.clone())]).unwrap();
    let thirds = |cell: &CubeCell| cell.children().into_iter().flat_map(CubeCell::children);
    let cells: Vec<CubeCell> = CubeCell::faces().iter().flat_map(thirds).collect();
    let masses: Vec<f64> = cells.iter().map(|_| rng.random_range(0.0..1.0)).collect();
    let cells = Density::cells(cells, &masses).unwrap();
    let box_area = Area::bounding_box(-40.0, 150.0, 30.0, -100.0).unwrap();
    let restriction = two.restricted_to(box_area).unwrap();
    vec![
        ("exponential", exponential.clone()),
        ("two peaks", two),
        ("linear", linear),
        ("points", points),
        ("cells", cells.clone()),
        (
            "cells times exponential",
            Density::product(vec![(1.0, cells), (0.5, exponential)]).unwrap(),
        ),
        ("mixture", mixture),
        ("product", product),
        ("restriction", restriction),
    ]
}

#[test]
fn every_kind_is_normalised() {
    for (name, density) in some_densities() {
        let total = grid_mean(&density, 500, |_, _| 1.0);
        // The plain grid itself is off by its spacing where a border cuts.
        let jumps = name == "restriction" || name.starts_with("cells");
        let tolerance = if jumps { 4e-3 } else { 3e-4 };
        assert!((total - 1.0).abs() < tolerance, "{name}: {total}");
        assert!(density.normaliser_error() < 0.005, "{name}: {}", density.normaliser_error());
    }
}

#[test]
fn linear_densities_are_clipped_and_their_normaliser_keeps_its_error() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let (mut exceeded, cases) = (0, 30);
    for _ in 0..cases {
        let mut e = peaks(10, &[(1.0, uniform_place(&mut rng))]);
        for (e, n) in e.as_mut_slice().iter_mut().zip(noise(10, 0.05, &mut rng).as_slice()) {
            *e += n;
        }
        let density = Density::linear(&e);
        let Density::Linear(linear) = &density else { panic!("not linear") };
        assert_eq!(linear.coefficients().as_slice()[0], 1.0 / (4.0 * PI).sqrt());
        assert!(linear.log_normaliser() >= 0.0, "clipping only adds");
        let error = grid_mean(&density, 800, |_, _| 1.0).ln().abs();
        assert!(error < 0.002, "off by {error}");
        exceeded += usize::from(error > density.normaliser_error() + 2e-5);
    }
    assert!(exceeded == 0, "{exceeded} of {cases} errors exceed their estimate");
    // Where the function is negative there is no density, and so no likelihood.
    let ringing = Density::linear(&Coefficients::of(place(0.0, 0.0), 10));
    let zeros = (0..90).filter(|k| ringing.nll_nats(place(0.0, 2.0 * f64::from(*k))).is_infinite());
    assert!(zeros.count() > 10);
    // A positive kernel takes most of that away.
    let clipped = |density: &Density| match density {
        Density::Linear(linear) => linear.log_normaliser(),
        _ => panic!("not linear"),
    };
    let smooth = Density::linear(&Coefficients::of(place(0.0, 0.0), 10).smoothed(1500.0));
    assert!(clipped(&smooth) < 0.1 * clipped(&ringing), "{}", clipped(&smooth));
}

#[test]
fn the_uniform_density_is_the_zero_of_every_scale() {
    let uniform = Density::uniform();
    assert!((uniform.nll_nats(place(12.0, 34.0)) - UNIFORM_NLL_NATS).abs() < 1e-12);
    assert!(uniform.gain_nats(place(-90.0, 0.0)).abs() < 1e-12);
    assert!((uniform.survey().entropy_nats() - UNIFORM_NLL_NATS).abs() < 1e-12);
}

#[test]
fn a_single_spread_point_is_a_von_mises_fisher_density() {
    let middle = place(-17.7, 178.1);
    for width_km in [5.0, 25.0, 400.0, 3000.0] {
        let points = PointMasses::new(vec![middle], &[1.0]).unwrap();
        let density = points.spread(Kernel::new(width_km).unwrap());
        assert_eq!(density.kernel_km(), Some(width_km));
        let k = (EARTH_RADIUS_KM / width_km).powi(2);
        let log_constant = (k / (2.0 * PI * (1.0 - (-2.0 * k).exp()))).ln();
        for distance_km in [0.0, 0.3 * width_km, width_km, 4.0 * width_km] {
            let there = middle.destination(77.0, distance_km);
            let cosine = (distance_km / EARTH_RADIUS_KM).cos();
            // With a millionth of the uniform density.
            let kernel = (k * (cosine - 1.0) + log_constant).exp();
            let expected = ((1.0 - 1e-6) * kernel + 1e-6 / (4.0 * PI)).ln();
            let error = (density.log_density(there) - expected).abs();
            assert!(error < 1e-6, "{width_km} km: {error}");
        }
        // Entropy 1 − κ(coth κ − 1) − log constant, and P(angle ≤ a) in closed form.
        let survey = density.survey();
        let coth_minus_one = 2.0 * (-2.0 * k).exp() / (1.0 - (-2.0 * k).exp());
        let entropy = 1.0 - k * coth_minus_one - log_constant;
        let off = (survey.entropy_nats() - entropy).abs();
        assert!(off < 1e-4, "{width_km} km: {off}");
        let radius_km = 1.5 * width_km;
        let cosine_minus_one = -2.0 * (0.5 * radius_km / EARTH_RADIUS_KM).sin().powi(2);
        let within = -(k * cosine_minus_one).exp_m1() / (1.0 - (-2.0 * k).exp());
        let measured = survey.probability_within(middle, radius_km);
        assert!((measured - within).abs() < 5e-4, "{width_km} km: {measured}, not {within}");
    }
}

#[test]
fn far_from_every_point_the_likelihood_is_tiny_but_honest() {
    let points = PointMasses::new(vec![place(0.0, 0.0), place(0.0, 1.0)], &[1.0, 1.0]).unwrap();
    let density = points.spread(Kernel::default());
    assert_eq!(density.kernel_km(), Some(25.0));
    // A millionth of the uniform density is everywhere.
    let far = density.nll_nats(place(0.0, 90.0));
    assert!((far - UNIFORM_NLL_NATS - 1e6_f64.ln()).abs() < 1e-6, "{far}");
}

#[test]
fn galleries_of_thousands_lose_nothing() {
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    for (count, width_km) in [(800, 2.0), (2000, 25.0)] {
        let places: Vec<LatLon> = (0..count).map(|_| uniform_place(&mut rng)).collect();
        let weights: Vec<f64> = (0..count).map(|_| rng.random_range(0.5..1.5)).collect();
        let total: f64 = weights.iter().sum();
        let points = PointMasses::new(places.clone(), &weights).unwrap();
        let density = points.spread(Kernel::new(width_km).unwrap());
        let survey = density.survey();
        assert!(survey.error() < 2e-3, "{count} points: {}", survey.error());
        // Half of the Earth holds what its points weigh.
        let north: f64 = places
            .iter()
            .zip(&weights)
            .filter(|(p, _)| p.latitude() > 0.0)
            .map(|(_, w)| w / total)
            .sum();
        let hemisphere = Area::bounding_box(0.0, -180.0, 90.0, 180.0).unwrap();
        assert!((survey.probability_in(&hemisphere) - north).abs() < 3e-3, "{count}");
        for (centre, _) in places.iter().zip(&weights).take(40) {
            let radius_km = 6.0 * width_km;
            let near = places
                .iter()
                .zip(&weights)
                .filter(|(p, _)| p.distance_km(*centre) < 1e-9 + 1.5 * width_km);
            let least: f64 = near.map(|(_, w)| w / total).sum();
            let found = survey.probability_within(*centre, radius_km);
            assert!(found > 0.98 * least, "{count}: {found} of {least}");
        }
    }
}

#[test]
fn contradicting_points_still_multiply() {
    let spread = |longitude: f64| {
        PointMasses::new(vec![place(0.0, longitude)], &[1.0]).unwrap().spread(Kernel::default())
    };
    for apart in [2.0, 4.0, 6.0, 90.0] {
        let product = Density::product(vec![(1.0, spread(0.0)), (1.0, spread(apart))]).unwrap();
        assert!(product.normaliser_error() < 0.01, "{apart}°: {}", product.normaliser_error());
        assert!((grid_mean(&product, 900, |_, _| 1.0) - 1.0).abs() < 0.05, "{apart}°");
    }
}

#[test]
fn weights_of_zero_and_exponents_of_zero_do_no_harm() {
    let points =
        PointMasses::from_logits(vec![place(0.0, 0.0), place(0.0, 3.0)], &[0.0, -800.0]).unwrap();
    let density = points.spread(Kernel::default());
    assert!(density.nll_nats(place(0.0, 3.0)) < 17.0);
    let exponential = Density::exponential(&peaks(7, &[(0.4, place(0.0, 0.0))]));
    let linear = Density::linear(&Coefficients::of(place(0.0, 90.0), 5));
    let product = Density::product(vec![(1.0, exponential.clone()), (0.0, linear)]).unwrap();
    let there = place(10.0, 20.0);
    assert!((product.log_density(there) - exponential.log_density(there)).abs() < 1e-9);
}

#[test]
fn divergences_see_detail_that_only_the_other_density_has() {
    // KL(uniform ‖ q) = −log 4π − mean log q, and the mean of e·Y over the sphere is zero.
    let uniform = Density::uniform();
    let mut rng = ChaCha8Rng::seed_from_u64(33);
    for _ in 0..10 {
        let sharp = Density::exponential(&Coefficients::of(uniform_place(&mut rng), 31));
        let Density::Exponential(exponential) = &sharp else { panic!("not exponential") };
        let constant = 1.0 / (4.0 * PI);
        let expected = exponential.log_normaliser() - constant - UNIFORM_NLL_NATS;
        let found = uniform.survey().divergence_from(&sharp);
        assert!((found - expected).abs() < 1e-3, "{found}, not {expected}");
    }
}

#[test]
fn light_points_count_in_the_likelihood() {
    let (heavy, light) = (place(0.0, 0.0), place(50.0, 50.0));
    let points = PointMasses::new(vec![heavy, light], &[1.0, 1e-9]).unwrap();
    let density = points.spread(Kernel::default());
    let difference = density.log_density(heavy) - density.log_density(light);
    assert!((difference - 1e9_f64.ln()).abs() < 0.02, "{difference}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_normaliser_of_an_encoding_is_the_same_for_all_places(
        latitude in -90.0..90.0_f64, longitude in -180.0..180.0_f64, t in 0.05..1.5_f64,
    ) {
        let integrator = Integrator::new(23);
        let a = |place| integrator.log_integral_exp(&peaks(23, &[(t, place)])).value;
        let (here, there) = (a(place(latitude, longitude)), a(place(12.0, 77.0)));
        prop_assert!((here - there).abs() < 1e-5, "{here} and {there}");
    }

    #[test]
    fn divergences_are_positive_and_zero_only_at_equality(seed in 0..10_000_u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (a, b) = (noise(9, 0.5, &mut rng), noise(9, 0.5, &mut rng));
        let (p, q) = (Density::exponential(&a), Density::exponential(&b));
        prop_assert!(p.survey().divergence_from(&p).abs() < 1e-6);
        let forward = p.survey().divergence_from(&q);
        prop_assert!(forward > 1e-3, "{forward}");
        // Against the sum over a grid.
        let grid = grid_mean(&p, 200, |there, log| log - q.log_density(there));
        prop_assert!((forward - grid).abs() < 1e-3 * (1.0 + grid), "{forward}, {grid}");
    }

    #[test]
    fn turning_the_sphere_changes_nothing(
        longitude in -180.0..180.0_f64, latitude in -89.0..89.0_f64, bearing in 0.0..360.0_f64,
    ) {
        let two_peaks = |first: LatLon, bearing| {
            let second = first.destination(bearing, 3000.0);
            Density::exponential(&peaks(15, &[(0.6, first), (0.5, second)]))
        };
        let here = two_peaks(place(latitude, longitude), bearing);
        let there = two_peaks(place(5.0, 5.0), 45.0);
        let (a, b) = (here.survey(), there.survey());
        prop_assert!((a.entropy_nats() - b.entropy_nats()).abs() < 1e-4);
        let (mine, yours) = (a.region(0.8).area_km2(), b.region(0.8).area_km2());
        prop_assert!((mine / yours - 1.0).abs() < 0.005, "{mine} and {yours} km²");
        let (mine, yours) = (a.modes().modes, b.modes().modes);
        prop_assert!((mine[0].mass - yours[0].mass).abs() < 0.005, "{mine:?} {yours:?}");
    }
}

#[test]
fn a_mixture_of_equal_densities_is_that_density() {
    for (name, density) in some_densities() {
        let mixture =
            Density::mixture(vec![(0.3, density.clone()), (5.0, density.clone())]).unwrap();
        for there in [place(10.0, 178.0), place(-55.0, -20.0), place(40.0, 10.0)] {
            let (a, b) = (mixture.log_density(there), density.log_density(there));
            assert!(a == b || (a - b).abs() < 1e-9, "{name}: {a} and {b}");
        }
        let (mixed, alone) = (mixture.survey().entropy_nats(), density.survey().entropy_nats());
        assert!((mixed - alone).abs() < 2e-3, "{name}: entropy {mixed}, not {alone}");
    }
}

#[test]
fn products_of_exponentials_add_coefficients_and_others_agree_with_a_grid() {
    let (a, b) = (peaks(7, &[(0.4, place(0.0, 0.0))]), peaks(12, &[(0.3, place(0.0, 40.0))]));
    let (p, q) = (Density::exponential(&a), Density::exponential(&b));
    let product = Density::product(vec![(1.0, p.clone()), (2.0, q.clone())]).unwrap();
    let Density::Exponential(folded) = &product else { panic!("not folded") };
    assert_eq!(folded.coefficients().max_degree(), 12);
    // A mixture of one hides that a factor is exponential, so that it is integrated anew.
    let hidden = Density::mixture(vec![(1.0, p.clone())]).unwrap();
    let integrated = Density::product(vec![(1.0, hidden), (2.0, q)]).unwrap();
    assert!(matches!(integrated, Density::Product(_)));
    for there in [place(0.0, 10.0), place(60.0, -100.0), place(-90.0, 0.0)] {
        let difference = product.log_density(there) - integrated.log_density(there);
        assert!(difference.abs() < 1e-4, "{difference}");
    }
    // Two point sets far apart agree on nothing but what lies between them.
    let spread =
        |there| PointMasses::new(vec![there], &[1.0]).unwrap().spread(Kernel::new(50.0).unwrap());
    let between =
        Density::product(vec![(1.0, spread(place(0.0, 0.0))), (1.0, spread(place(0.0, 2.0)))]);
    let modes = between.unwrap().survey().modes().modes;
    assert!(modes[0].place.distance_km(place(0.0, 1.0)) < 1.0, "{modes:?}");
}

#[test]
fn impossible_densities_say_why() {
    let density = Density::uniform();
    let error = PointMasses::new(vec![place(0.0, 0.0)], &[1.0, 2.0]).unwrap_err();
    assert_eq!(error.to_string(), "1 places, but 2 weights: give one weight for each");
    assert!(matches!(Density::mixture(vec![]), Err(InvalidDensity::Empty("parts"))));
    let negative = Density::mixture(vec![(1.0, density.clone()), (-2.0, density.clone())]);
    assert!(matches!(negative, Err(InvalidDensity::Weight { index: 1, .. })));
    assert!(Kernel::new(0.0).is_err() && Kernel::new(f64::NAN).is_err());
    // A linear density that is zero where it is restricted to.
    let ringing = Density::linear(&Coefficients::of(place(0.0, 0.0), 2));
    let zero = (0..180).map(f64::from).find(|l| ringing.nll_nats(place(0.0, *l)).is_infinite());
    let area = Area::circle(place(0.0, zero.unwrap() + 5.0), 50.0).unwrap();
    assert!(matches!(ringing.restricted_to(area), Err(InvalidDensity::Nowhere(_))));
}
