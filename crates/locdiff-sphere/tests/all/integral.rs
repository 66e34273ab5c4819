//! The log-normaliser against independent integrals.

use std::f64::consts::PI;

use locdiff_sphere::{Basis, Coefficients, Grid, Integrator, LatLon, Transform, uniform_place};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn scaled(coefficients: &Coefficients, factor: f64) -> Coefficients {
    Coefficients::from_vec(coefficients.as_slice().iter().map(|c| c * factor).collect()).unwrap()
}

/// A(t·Y(p)) = log 2π ∫ exp(t·Σ (2l+1)/4π·P_l(x)) dx: one dimension, by Simpson's rule in θ.
fn zonal_reference(max_degree: usize, t: f64) -> f64 {
    let peak = t * ((max_degree + 1) * (max_degree + 1)) as f64 / (4.0 * PI);
    let steps = 400_000;
    let integrand = |theta: f64| {
        let x = theta.cos();
        let (mut last, mut p, mut sum) = (0.0, 1.0, 1.0);
        for l in 1..=max_degree {
            let l = l as f64;
            (last, p) = (p, ((2.0 * l - 1.0) * x * p - (l - 1.0) * last) / l);
            sum += (2.0 * l + 1.0) * p;
        }
        theta.sin() * (t * sum / (4.0 * PI) - peak).exp()
    };
    let h = PI / steps as f64;
    let sum: f64 = (0..=steps)
        .map(|k| {
            let weight = if k == 0 || k == steps {
                1.0
            } else if k % 2 == 1 {
                4.0
            } else {
                2.0
            };
            weight * integrand(k as f64 * h)
        })
        .sum();
    (2.0 * PI * sum * h / 3.0).ln() + peak
}

#[test]
fn encodings_of_every_sharpness_agree_with_the_one_dimensional_integral() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut worst = (0.0_f64, 0);
    let mut cases = 0;
    for max_degree in [15, 47] {
        let (integrator, basis) = (Integrator::new(max_degree), Basis::new(max_degree));
        let mut places: Vec<LatLon> = (0..4).map(|_| uniform_place(&mut rng)).collect();
        places.extend(
            [(90.0, 0.0), (-90.0, 0.0), (89.9, 10.0), (0.0, -180.0), (33.0, 179.99)]
                .map(|(a, b)| LatLon::new(a, b).unwrap()),
        );
        for t in [0.0, 0.01, 0.05, 0.2, 0.5, 1.0, 1.5] {
            let reference = zonal_reference(max_degree, t);
            for place in &places {
                let integral = integrator.log_integral_exp(&scaled(&basis.encode(*place), t));
                let error = (integral.value - reference).abs();
                assert!(error < 0.01, "L = {max_degree}, t = {t}, {place}: off by {error}");
                worst.0 = worst.0.max(error);
                worst.1 += usize::from(error > integral.error.max(1e-9));
                cases += 1;
            }
        }
    }
    assert!(worst.1 * 100 <= cases, "{} of {cases} errors exceed their estimate", worst.1);
}

/// A grid whose spacing is below 1.2 of the narrowest peak's standard deviation.
fn grid_reference(coefficients: &Coefficients, rings: usize) -> f64 {
    let transform = Transform::<f64>::new(Grid::new(rings, 2 * rings), coefficients.max_degree());
    let values = transform.synthesize(coefficients);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shifted: Vec<f64> = values.iter().map(|value| (value - highest).exp()).collect();
    transform.grid().integrate(&shifted).ln() + highest
}

#[test]
fn noise_and_several_peaks_agree_with_a_fine_grid() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let basis = Basis::new(15);
    let integrator = Integrator::new(15);
    let (mut exceeded, mut cases) = (0, 0);
    for trial in 0..40 {
        let mut e = Coefficients::zeros(15);
        for _ in 0..trial % 4 {
            let place = uniform_place(&mut rng);
            let weight = rng.random_range(0.1..1.2);
            for (e, y) in e.as_mut_slice().iter_mut().zip(basis.encode(place).as_slice()) {
                *e += weight * y;
            }
        }
        let amplitude = [0.0, 0.1, 0.5, 2.0][trial % 3 + usize::from(trial > 20)];
        for e in e.as_mut_slice() {
            *e += amplitude * rng.random_range(-1.0..1.0);
        }
        let integral = integrator.log_integral_exp(&e);
        let error = (integral.value - grid_reference(&e, 600)).abs();
        assert!(error < 0.01, "trial {trial}: off by {error}");
        exceeded += usize::from(error > integral.error.max(1e-9));
        cases += 1;
    }
    assert!(exceeded * 50 <= cases, "{exceeded} of {cases} errors exceed their estimate");
}

#[test]
fn a_constant_shifts_the_logarithm() {
    let integrator = Integrator::new(8);
    let mut e = Coefficients::of(LatLon::new(10.0, 20.0).unwrap(), 8);
    let before = integrator.log_integral_exp(&e);
    e.as_mut_slice()[0] += 5.0 * (4.0 * PI).sqrt();
    let after = integrator.log_integral_exp(&e);
    assert!((after.value - before.value - 5.0).abs() < 1e-12);
}

#[test]
fn the_sharpest_encoding_at_47_is_the_known_number() {
    // The known number: A = 173.62 for a clean encoding at L = 47.
    let e = Coefficients::of(LatLon::new(-12.0, 77.0).unwrap(), 47);
    let integral = Integrator::new(47).log_integral_exp(&e);
    assert!((integral.value - 173.62).abs() < 0.005, "{integral:?}");
}
