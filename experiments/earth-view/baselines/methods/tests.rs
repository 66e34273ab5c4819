use std::cell::Cell;

use locdiff_sphere::{Anchors, Grid, PointScores, UNIFORM_NLL_NATS, UnitVector};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// A budget of so many steps: the clock goes on by one whenever it is asked.
pub(super) fn steps(count: usize, rate: f64) -> FitOptions {
    thread_local!(static TICKS: Cell<f64> = const { Cell::new(0.0) });
    let clock = || {
        TICKS.with(|ticks| {
            ticks.set(ticks.get() + 1.0);
            ticks.get()
        })
    };
    // Asked once before the first step and once before each.
    FitOptions { seconds: count as f64 + 1.0, rate, seed: 1, clock }
}

/// Places all over the Earth, and embeddings that tell them with some noise.
fn task(count: usize, seed: u64) -> (Vec<f32>, Vec<LatLon>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let places = Anchors::uniform(count, &mut rng).places().to_vec();
    let embeddings = places.iter().flat_map(|place| {
        let [x, y, z] = UnitVector::from(*place).to_array();
        let numbers = [x, y, z, x * y, y * z, z * x];
        numbers.map(|number| (2.0 * number + rng.random_range(-0.3..0.3)) as f32)
    });
    (embeddings.collect(), places)
}

/// Learns the task better than nothing, and answers with densities that integrate to one.
fn check(method: Method, count: usize, rate: f64) {
    let (embeddings, places) = task(3000, 1);
    let fitted = method.fit(&embeddings, &places, &steps(count, rate));
    assert_eq!(fitted.steps, if method.is_trained() { count } else { 0 });
    let (embeddings, truths) = task(60, 2);
    let answers = fitted.model.answers(&embeddings, 3);
    let calibration = Calibration::fit(&answers, &truths);
    assert!(calibration.nll_nats < UNIFORM_NLL_NATS - 0.5, "{method:?}: {calibration:?}");
    let rule = Rule::fit(&answers, &truths, calibration.shape);
    let place = |answer: &dyn Answer| answer.place(rule, calibration.shape);
    let found: Vec<LatLon> = answers.iter().map(|answer| place(answer.as_ref())).collect();
    let median = PointScores::of(&found, &truths).unwrap().median_km().value();
    assert!(median < 3000.0, "{method:?}: {median} km");

    let grid = Grid::new(80, 160);
    let density = |node: usize| {
        let place = grid.place(node / 160, node % 160);
        calibration.log_density(answers[0].as_ref(), place).exp()
    };
    let values: Vec<f64> = (0..grid.len()).map(density).collect();
    let whole = grid.integrate(&values);
    assert!((whole - 1.0).abs() < 0.05, "{method:?}: {whole}");

    // The level of a place is the mass of what is as probable.
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let truth = truths[0];
    let level = answers[0].level(truth, &calibration, &mut rng);
    let at_truth = calibration.log_density(answers[0].as_ref(), truth).exp();
    let above = |value: &f64| if *value >= at_truth { *value } else { 0.0 };
    let expected = grid.integrate(&values.iter().map(above).collect::<Vec<f64>>());
    assert!((level - expected).abs() < 0.15, "{method:?}: {level}, {expected}");
}

#[test]
fn baseline_harmonics() {
    check(Method::Harmonics, 25, 3e-3);
}

#[test]
fn baseline_classification() {
    check(Method::Classification, 40, 3e-3);
}

#[test]
fn baseline_regression() {
    check(Method::Regression, 40, 3e-3);
}

#[test]
fn baseline_von_mises_fisher() {
    check(Method::VonMisesFisher, 40, 3e-3);
    check(Method::VonMisesFisherMixture, 40, 3e-3);
}

#[test]
fn baseline_diffusion_in_space() {
    check(Method::EuclideanDiffusion, 60, 3e-3);
}

#[test]
fn baseline_flow_in_space() {
    check(Method::EuclideanFlow, 60, 3e-3);
}

#[test]
fn baseline_retrieval() {
    check(Method::Retrieval, 0, 0.0);
}

/// It learns slowly; that it runs is all that a fast test can show.
#[test]
fn baseline_reverse_kl() {
    let (embeddings, places) = task(300, 1);
    let fitted = Method::ReverseKl.fit(&embeddings, &places, &steps(2, 1e-3));
    assert_eq!(fitted.steps, 2);
    assert_eq!(fitted.model.answers(&embeddings[..18], 3).len(), 3);
}

/// Two answers a hair apart across the antimeridian, and one elsewhere.
#[test]
fn baseline_rules_know_no_antimeridian() {
    let at = |latitude, longitude| {
        UnitVector::from(LatLon::new(latitude, longitude).unwrap()).to_array()
    };
    let points = [at(0.0, 179.9), at(0.0, -179.9), at(-40.0, 20.0)];
    let answer = bumps::Bumps::samples(points.into_iter());
    let shape = Shape::Kernel { width_km: 100.0, tail: 2.0, weight_power: 1.0 };
    let mode = answer.place(Rule::Mode { spread_km: 200.0 }, shape);
    assert!(mode.distance_km(LatLon::new(0.0, 180.0).unwrap()) < 1.0, "{mode}");
    // One sample alone.
    let first = answer.place(Rule::Mode { spread_km: 0.0 }, shape);
    assert!(points.iter().any(|point| {
        let place = LatLon::from(UnitVector::from_direction(*point).unwrap());
        first.distance_km(place) < 1e-6
    }));
}

#[test]
fn baseline_uniform_share_is_that_of_the_lost() {
    // A tenth of truths lie where the density is nothing.
    let logs: Vec<f64> = (0..1000).map(|k| if k % 10 == 0 { -60.0 } else { 3.0 }).collect();
    let (share, nll) = Calibration::uniform_share(&logs);
    assert!((share - 0.1).abs() < 0.02, "{share}");
    let expected = -0.9 * (0.9_f64.ln() + 3.0) - 0.1 * (0.1_f64.ln() - UNIFORM_NLL_NATS);
    assert!((nll - expected).abs() < 0.01, "{nll}, {expected}");
}
