//! Scores of predictions: agreement with numbers made by `parity/scores/generate.py` with
//! geographiclib, scikit-learn, numpy and scipy, and laws.

use std::f64::consts::PI;

use locdiff_sphere::{
    ACCURACY_RADII_KM, COVERAGE_LEVELS, DensityOutcome, DensityScores, DistanceRule,
    EARTH_RADIUS_KM, GEOSCORE_MAXIMUM, GeoscoreRule, Interval, InvalidScores, LatLon,
    ManifoldScores, PointScores, RECALL_AREAS_KM2, RadiusRule, Resampling, Score, UNIFORM_NLL_NATS,
    geoscore, uniform_place,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use serde_json::Value;

fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/../../parity/scores/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file: Value = serde_json::from_str(&text).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn places(value: &Value) -> Vec<LatLon> {
    let pairs = value.as_array().unwrap().iter().map(numbers);
    pairs.map(|pair| LatLon::new(pair[0], pair[1]).unwrap()).collect()
}

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    rng.sample(StandardNormal)
}

/// Equal up to the rounding of a sum.
fn assert_near(name: &str, ours: f64, expected: f64) {
    let error = (ours - expected).abs();
    assert!(error <= 1e-12 * expected.abs().max(1.0), "{name}: {ours}, expected {expected}");
}

/// Shares are compared by their rounding too: serde_json may read the last digit off by one.
fn assert_all_near(name: &str, ours: &[f64], expected: &Value) {
    let expected = numbers(expected);
    assert_eq!(ours.len(), expected.len(), "{name}");
    for (ours, expected) in ours.iter().zip(expected) {
        assert_near(name, *ours, expected);
    }
}

fn outcome(nll_nats: f64, level: f64, searched_area_km2: f64) -> DensityOutcome {
    DensityOutcome { nll_nats, level, searched_area_km2 }
}

fn scores_of_levels(levels: impl IntoIterator<Item = f64>) -> DensityScores {
    let outcomes: Vec<_> = levels.into_iter().map(|level| outcome(0.0, level, 1.0)).collect();
    DensityScores::of(&outcomes).unwrap()
}

#[test]
fn point_scores_agree_with_geographiclib_and_scikit_learn() {
    for case in cases("points.json") {
        let name = case["name"].as_str().unwrap();
        let distances_km = numbers(&case["distances_km"]);
        let scores = if case["predicted"].is_null() {
            PointScores::of_distances(distances_km.clone()).unwrap()
        } else {
            PointScores::of(&places(&case["predicted"]), &places(&case["truth"])).unwrap()
        };
        assert_eq!(scores.len(), distances_km.len());
        for (ours, expected) in scores.distances_km().iter().zip(&distances_km) {
            // geographiclib is good to some nanometres, 1e-11 km.
            assert!((ours - expected).abs() < 2e-11, "{name}: {ours} km, expected {expected}");
        }
        assert_near(name, scores.median_km().value(), number(&case["median_km"]));
        assert_near(name, scores.mean_km().value(), number(&case["mean_km"]));
        assert_near(name, scores.mean_geoscore().value(), number(&case["mean_geoscore"]));
        let accuracy =
            |scores: &PointScores| ACCURACY_RADII_KM.map(|radius| scores.accuracy(radius).value());
        assert_all_near(name, &accuracy(&scores), &case["accuracy_at_most"]);
        let scores = scores.with_rule(RadiusRule::LessThan);
        assert_all_near(name, &accuracy(&scores), &case["accuracy_less_than"]);
    }
}

#[test]
fn the_rules_of_others_agree_with_geographiclib() {
    for case in cases("rules.json") {
        let name = case["name"].as_str().unwrap();
        let (predicted, truth) = (places(&case["predicted"]), places(&case["truth"]));
        for (rule, expected) in [
            (DistanceRule::Geodesic, "geodesic_km"),
            (DistanceRule::GreatCircle6371, "sphere_6371_km"),
        ] {
            let scores = PointScores::measured(&predicted, &truth, rule).unwrap();
            for (ours, expected) in scores.distances_km().iter().zip(numbers(&case[expected])) {
                // Both are good to some nanometres; an angle in degrees costs a few more.
                assert!((ours - expected).abs() < 1e-10, "{name}: {ours}, expected {expected}");
                assert!(*ours <= rule.longest_km() + 1e-9);
            }
        }
        let scores = PointScores::measured(&predicted, &truth, DistanceRule::Geodesic).unwrap();
        let accuracy = ACCURACY_RADII_KM.map(|radius| scores.accuracy(radius).value());
        assert_all_near(name, &accuracy, &case["accuracy"]);
        let scores = scores.with_geoscore(GeoscoreRule::WholePoints);
        assert_near(name, scores.mean_geoscore().value(), number(&case["mean_whole_points"]));
    }
}

#[test]
fn density_and_coverage_agree_with_prdc() {
    for case in cases("manifold.json") {
        let name = case["name"].as_str().unwrap();
        let (predicted, truth) = (places(&case["predicted"]), places(&case["truth"]));
        let neighbours = number(&case["neighbours"]) as usize;
        let scores = ManifoldScores::of(&predicted, &truth, neighbours).unwrap();
        for (ours, expected) in [
            (scores.precision, "precision"),
            (scores.recall, "recall"),
            (scores.density, "density"),
            (scores.coverage, "coverage"),
        ] {
            assert_near(&format!("{name}, {expected}"), ours, number(&case[expected]));
        }
    }
}

#[test]
fn density_and_coverage_know_no_order_and_no_coordinates() {
    let mut rng = rng(31);
    let truth: Vec<LatLon> = (0..60).map(|_| uniform_place(&mut rng)).collect();
    let predicted: Vec<LatLon> = (0..45).map(|_| uniform_place(&mut rng)).collect();
    let scores = ManifoldScores::of(&predicted, &truth, 3).unwrap();
    let mut reversed = predicted.clone();
    reversed.reverse();
    assert_eq!(ManifoldScores::of(&reversed, &truth, 3).unwrap(), scores);
    // Mirrored and turned by half of the Earth, over the antimeridian.
    let turned = |places: &[LatLon]| -> Vec<LatLon> {
        let turn =
            |place: &LatLon| LatLon::new(-place.latitude(), place.longitude() + 175.0).unwrap();
        places.iter().map(turn).collect()
    };
    assert_eq!(ManifoldScores::of(&turned(&predicted), &turned(&truth), 3).unwrap(), scores);
    let swapped = ManifoldScores::of(&truth, &predicted, 3).unwrap();
    assert_eq!((swapped.precision, swapped.recall), (scores.recall, scores.precision));
    assert_eq!(
        ManifoldScores::of(&predicted[..3], &truth, 3),
        Err(InvalidScores::Neighbours { places: 3, neighbours: 3 })
    );
}

#[test]
fn density_scores_agree_with_numpy() {
    for case in cases("densities.json") {
        let name = case["name"].as_str().unwrap();
        let (nlls, areas) = (numbers(&case["nll_nats"]), numbers(&case["areas_km2"]));
        let levels = numbers(&case["levels"]);
        let outcomes: Vec<_> =
            (0..nlls.len()).map(|i| outcome(nlls[i], levels[i], areas[i])).collect();
        let scores = DensityScores::of(&outcomes).unwrap();
        for (ours, expected) in [
            (scores.mean_nll_nats(), "mean_nll_nats"),
            (scores.median_nll_nats(), "median_nll_nats"),
            (scores.mean_gain_nats(), "mean_gain_nats"),
            (scores.median_searched_area_km2(), "median_area_km2"),
        ] {
            assert_near(name, ours.value(), number(&case[expected]));
        }
        assert_near(name, scores.calibration_error(), number(&case["calibration_error"]));
        let coverage = COVERAGE_LEVELS.map(|level| scores.coverage(level).value());
        assert_all_near(name, &coverage, &case["coverage"]);
        let recall = RECALL_AREAS_KM2.map(|area_km2| scores.recall(area_km2).value());
        assert_all_near(name, &recall, &case["recall"]);
    }
}

#[test]
fn intervals_and_p_values_agree_with_scipy_within_their_monte_carlo_error() {
    // low_between and high_between are made for 20000 resamples.
    let options = Resampling { resamples: 20_000, permutations: 40_000, confidence: 0.95 };
    let check = |name: &str, ours: Interval, expected: &Value| {
        assert_near(name, ours.estimate, number(&expected["estimate"]));
        for (end, between) in [(ours.low, "low_between"), (ours.high, "high_between")] {
            let range = numbers(&expected[between]);
            assert!(range[0] - 1e-9 <= end && end <= range[1] + 1e-9, "{name}: {end}, {range:?}");
        }
    };
    for (seed, case) in cases("resampling.json").iter().enumerate() {
        let name = case["name"].as_str().unwrap();
        let score = |values| match case["statistic"].as_str().unwrap() {
            "mean" => Score::mean(values).unwrap(),
            _ => Score::median(values).unwrap(),
        };
        let (first, second) = (score(numbers(&case["first"])), score(numbers(&case["second"])));
        let mut rng = rng(seed as u64);
        check(name, first.interval(&options, &mut rng), &case["interval"]);
        let comparison = first.compared_with(&second, &options, &mut rng).unwrap();
        check(name, comparison.difference, &case["difference"]);
        let p = number(&case["p_value"]);
        let ours = (p * (1.0 - p) / options.permutations as f64).sqrt();
        let tolerance = 5.0 * ours.hypot(number(&case["p_value_error"]));
        let error = (comparison.p_value - p).abs();
        assert!(error < tolerance, "{name}: p = {}, expected {p}", comparison.p_value);
    }
}

#[test]
fn perfect_predictions_score_best_and_antipodes_worst() {
    let mut rng = rng(1);
    let mut truth: Vec<LatLon> = (0..50).map(|_| uniform_place(&mut rng)).collect();
    truth.extend([LatLon::NORTH_POLE, LatLon::SOUTH_POLE, LatLon::new(12.0, -180.0).unwrap()]);
    let perfect = PointScores::of(&truth, &truth).unwrap();
    assert_eq!(perfect.mean_km().value(), 0.0);
    assert_eq!(perfect.median_km().value(), 0.0);
    assert_eq!(perfect.mean_geoscore().value(), GEOSCORE_MAXIMUM);
    assert_eq!(perfect.accuracy(0.0).value(), 1.0);
    assert_eq!(perfect.with_rule(RadiusRule::LessThan).accuracy(0.0).value(), 0.0);

    let opposite = |place: &LatLon| LatLon::new(-place.latitude(), place.longitude() + 180.0);
    let antipodes: Vec<LatLon> = truth.iter().map(|place| opposite(place).unwrap()).collect();
    let worst = PointScores::of(&antipodes, &truth).unwrap();
    let half_turn_km = PI * EARTH_RADIUS_KM;
    assert!((worst.mean_km().value() - half_turn_km).abs() < 1e-6);
    assert!((worst.median_km().value() - half_turn_km).abs() < 1e-6);
    assert!((worst.mean_geoscore().value() - geoscore(half_turn_km)).abs() < 1e-6);
    assert_eq!(ACCURACY_RADII_KM.map(|radius| worst.accuracy(radius).value()), [0.0; 5]);
}

#[test]
fn the_uniform_density_gains_nothing() {
    let earth_km2 = 4.0 * PI * EARTH_RADIUS_KM * EARTH_RADIUS_KM;
    assert!((UNIFORM_NLL_NATS - (4.0 * PI).ln()).abs() < 1e-15);
    let scores = DensityScores::of(&[outcome((4.0 * PI).ln(), 1.0, earth_km2); 3]).unwrap();
    assert!(scores.mean_gain_nats().value().abs() < 1e-15);
    assert_eq!(scores.recall(1e8).value(), 0.0);
    assert_eq!(scores.recall(earth_km2).value(), 1.0);
    assert_eq!(scores.median_searched_area_km2().value(), earth_km2);
    assert!(
        format!("{}", DensityScores::of(&[outcome(0.0, 0.0, 1e9)]).unwrap_err())
            .contains(&format!("{earth_km2:.0}"))
    );
}

#[test]
fn rounding_beyond_a_limit_counts_as_the_limit() {
    let earth_km2 = 4.0 * PI * EARTH_RADIUS_KM * EARTH_RADIUS_KM;
    let beyond = outcome(0.0, 1.0 + 1e-12, earth_km2 * (1.0 + 1e-12));
    let scores = DensityScores::of(&[beyond]).unwrap();
    assert_eq!(scores.coverage(1.0).value(), 1.0);
    assert_eq!(scores.recall(earth_km2).value(), 1.0);
}

#[test]
fn uniform_levels_are_calibrated_and_shifted_ones_are_not() {
    let mut rng = rng(2);
    let scores = scores_of_levels((0..10_000).map(|_| rng.random()));
    assert!(scores.calibration_error() < 0.01);
    for level in COVERAGE_LEVELS {
        assert!((scores.coverage(level).value() - level).abs() < 0.02);
    }
    // Evenly spread levels are as good as n images can be: 1/(4n).
    let even = scores_of_levels((0..100).map(|i| (f64::from(i) + 0.5) / 100.0));
    assert!((even.calibration_error() - 0.0025).abs() < 1e-15);
    // The worst: the truth always, or never, in every region.
    for level in [0.0, 1.0] {
        assert!((scores_of_levels([level; 7]).calibration_error() - 0.5).abs() < 1e-15);
    }
}

#[test]
fn chance_alone_gives_the_documented_calibration_error() {
    let mut rng = rng(3);
    let errors = (0..400)
        .map(|_| scores_of_levels((0..100).map(|_| rng.random::<f64>())).calibration_error());
    let mean = errors.sum::<f64>() / 400.0;
    assert!((mean - 0.31 / 10.0).abs() < 0.003, "{mean}");
}

#[test]
fn a_likelihood_of_zero_is_an_infinite_score() {
    let outcomes =
        [outcome(1.0, 0.5, 1.0), outcome(f64::INFINITY, 1.0, 1e8), outcome(2.0, 0.5, 1.0)];
    let scores = DensityScores::of(&outcomes).unwrap();
    assert_eq!(scores.mean_nll_nats().value(), f64::INFINITY);
    assert_eq!(scores.mean_gain_nats().value(), f64::NEG_INFINITY);
    assert_eq!(scores.median_nll_nats().value(), 2.0);
    for score in [scores.mean_nll_nats(), scores.mean_gain_nats(), scores.median_nll_nats()] {
        let interval = score.interval(&Resampling::default(), &mut rng(4));
        assert!(interval.low <= interval.high, "{interval:?}");
        let compared = score.compared_with(&score, &Resampling::default(), &mut rng(4));
        assert!(matches!(compared, Err(InvalidScores::Value { index: 1, .. })));
    }
}

#[test]
fn a_model_does_not_differ_from_itself() {
    let mut rng = rng(5);
    let values: Vec<f64> = (0..101).map(|_| normal(&mut rng)).collect();
    for score in [Score::mean(values.clone()).unwrap(), Score::median(values).unwrap()] {
        let same = score.compared_with(&score, &Resampling::default(), &mut rng).unwrap();
        assert_eq!(same.p_value, 1.0);
        assert_eq!([same.difference.low, same.difference.estimate, same.difference.high], [0.0; 3]);
    }
}

#[test]
fn a_constant_advantage_is_certain() {
    let mut rng = rng(6);
    let worse: Vec<f64> = (0..40).map(|_| normal(&mut rng)).collect();
    let better = worse.iter().map(|value| value + 1.0).collect();
    let (worse, better) = (Score::mean(worse).unwrap(), Score::mean(better).unwrap());
    let options = Resampling { permutations: 999, ..Resampling::default() };
    let comparison = better.compared_with(&worse, &options, &mut rng).unwrap();
    assert_eq!(comparison.p_value, 0.001);
    assert!((comparison.difference.low - 1.0).abs() < 1e-12);
    assert!((comparison.difference.high - 1.0).abs() < 1e-12);
}

#[test]
fn the_same_seed_gives_the_same_interval() {
    let mut numbers = rng(7);
    let score = Score::mean((0..200).map(|_| normal(&mut numbers)).collect()).unwrap();
    let options = Resampling::default();
    let interval = |seed| score.interval(&options, &mut rng(seed));
    assert_eq!(interval(8), interval(8));
    assert_ne!(interval(8), interval(9));
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let mut rng = rng(10);
    let options = Resampling { resamples: 400, ..Resampling::default() };
    let (mut means, mut medians) = (0, 0);
    for _ in 0..400 {
        let values: Vec<f64> = (0..100).map(|_| normal(&mut rng)).collect();
        let mean = Score::mean(values.clone()).unwrap().interval(&options, &mut rng);
        let median = Score::median(values).unwrap().interval(&options, &mut rng);
        means += usize::from(mean.low <= 0.0 && 0.0 <= mean.high);
        medians += usize::from(median.low <= 0.0 && 0.0 <= median.high);
    }
    // 380 is expected, with a standard deviation of 4.4.
    assert!((362..=394).contains(&means), "{means}");
    assert!((362..=394).contains(&medians), "{medians}");
}

#[test]
fn the_paired_test_keeps_its_level_for_few_images() {
    let mut rng = rng(11);
    let options = Resampling { resamples: 10, permutations: 399, ..Resampling::default() };
    let mut rejected = 0;
    for _ in 0..1000 {
        let mut draw = || Score::mean((0..8).map(|_| normal(&mut rng)).collect()).unwrap();
        let (first, second) = (draw(), draw());
        let p = first.compared_with(&second, &options, &mut rng).unwrap().p_value;
        rejected += usize::from(p <= 0.05);
    }
    // 50 is expected, with a standard deviation of 6.9.
    assert!((20..=80).contains(&rejected), "{rejected}");
}

#[test]
fn errors_name_both_sides() {
    let place = LatLon::NORTH_POLE;
    let message = |error: InvalidScores| error.to_string();
    assert_eq!(
        message(PointScores::of(&[place; 3], &[place; 2]).unwrap_err()),
        "3 predicted places, but 2 true places"
    );
    assert_eq!(
        message(PointScores::of(&[], &[]).unwrap_err()),
        "0 distances, a score needs at least 1"
    );
    assert_eq!(
        message(DensityScores::of(&[]).unwrap_err()),
        "0 densities, a score needs at least 1"
    );
    assert_eq!(message(Score::mean(vec![]).unwrap_err()), "0 values, a score needs at least 1");
    assert_eq!(
        message(Score::median(vec![0.0, f64::NAN]).unwrap_err()),
        "the value of image 1 is NaN, it must be finite"
    );
    for distance_km in [f64::NAN, -1.0, f64::INFINITY, 9.7e6] {
        assert!(matches!(
            PointScores::of_distances(vec![0.0, distance_km]),
            Err(InvalidScores::Value { index: 1, .. })
        ));
    }
    for wrong in [
        outcome(f64::NAN, 0.5, 1.0),
        outcome(f64::NEG_INFINITY, 0.5, 1.0),
        outcome(0.0, f64::NAN, 1.0),
        outcome(0.0, 1.1, 1.0),
        outcome(0.0, -0.1, 1.0),
        outcome(0.0, 0.5, f64::NAN),
        outcome(0.0, 0.5, -1.0),
        outcome(0.0, 0.5, 5.1e14),
    ] {
        let scores = DensityScores::of(&[outcome(0.0, 0.5, 1.0), wrong]);
        assert!(matches!(scores, Err(InvalidScores::Value { index: 1, .. })), "{wrong:?}");
    }
    let compare = |first: Score, second: Score| {
        message(first.compared_with(&second, &Resampling::default(), &mut rng(12)).unwrap_err())
    };
    let two = || Score::mean(vec![1.0, 2.0]).unwrap();
    assert_eq!(
        compare(two(), Score::mean(vec![1.0]).unwrap()),
        "2 images of the first model, but 1 of the second"
    );
    assert_eq!(
        compare(two(), Score::median(vec![1.0, 2.0]).unwrap()),
        "the first score is a mean, the second a median"
    );
}

proptest! {
    #[test]
    fn scores_are_monotone_and_free_of_order(
        mut distances_km in prop::collection::vec(0.0..20_000.0, 1..60),
        rotation in 0_usize..60,
        farther_km in 0.0..15.0,
    ) {
        let scores = PointScores::of_distances(distances_km.clone()).unwrap();
        let accuracy = ACCURACY_RADII_KM.map(|radius_km| scores.accuracy(radius_km).value());
        prop_assert!(accuracy.is_sorted() && accuracy.iter().all(|share| (0.0..=1.0).contains(share)));
        let farther = distances_km.iter().map(|distance_km| distance_km + farther_km).collect();
        let farther = PointScores::of_distances(farther).unwrap();
        prop_assert!(farther.median_km().value() >= scores.median_km().value());
        prop_assert!(farther.mean_km().value() >= scores.mean_km().value() - 1e-9);
        prop_assert!(farther.mean_geoscore().value() <= scores.mean_geoscore().value() + 1e-9);
        for radius_km in ACCURACY_RADII_KM {
            prop_assert!(farther.accuracy(radius_km).value() <= scores.accuracy(radius_km).value());
        }
        let count = distances_km.len();
        distances_km.rotate_left(rotation % count);
        let rotated = PointScores::of_distances(distances_km).unwrap();
        prop_assert_eq!(rotated.median_km().value(), scores.median_km().value());
        prop_assert!((rotated.mean_km().value() - scores.mean_km().value()).abs() < 1e-9);
    }

    #[test]
    fn coverage_and_recall_grow(
        numbers in prop::collection::vec((0.0..=1.0, 0.0..5e8), 1..60),
    ) {
        let outcomes: Vec<_> =
            numbers.iter().map(|(level, area_km2)| outcome(0.0, *level, *area_km2)).collect();
        let scores = DensityScores::of(&outcomes).unwrap();
        prop_assert!(COVERAGE_LEVELS.map(|level| scores.coverage(level).value()).is_sorted());
        prop_assert!(RECALL_AREAS_KM2.map(|area| scores.recall(area).value()).is_sorted());
        prop_assert_eq!(scores.coverage(1.0).value(), 1.0);
        prop_assert!((0.0..=0.5 + 1e-12).contains(&scores.calibration_error()));
    }

    #[test]
    fn intervals_hold_the_estimate_and_grow_with_confidence(
        values in prop::collection::vec(-1e3..1e3, 2..80),
        seed: u64,
    ) {
        for score in [Score::mean(values.clone()).unwrap(), Score::median(values).unwrap()] {
            let interval = |confidence| {
                let options = Resampling { resamples: 500, confidence, ..Resampling::default() };
                score.interval(&options, &mut rng(seed))
            };
            let (wide, narrow) = (interval(0.99), interval(0.8));
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
            prop_assert!(wide.low <= wide.estimate && wide.estimate <= wide.high);
            prop_assert_eq!(wide.estimate, score.value());
        }
    }

    #[test]
    fn a_comparison_is_antisymmetric(
        pairs in prop::collection::vec((-1e3..1e3, -1e3..1e3), 1..40),
        seed: u64,
    ) {
        let (first, second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let options = Resampling { resamples: 200, permutations: 200, ..Resampling::default() };
        for make in [Score::mean, Score::median] {
            let (first, second) = (make(first.clone()).unwrap(), make(second.clone()).unwrap());
            let there = first.compared_with(&second, &options, &mut rng(seed)).unwrap();
            let back = second.compared_with(&first, &options, &mut rng(seed)).unwrap();
            prop_assert_eq!(there.difference.estimate, -back.difference.estimate);
            prop_assert!((there.difference.low + back.difference.high).abs() < 1e-9);
            prop_assert!((there.difference.high + back.difference.low).abs() < 1e-9);
            prop_assert_eq!(there.p_value, back.p_value);
            prop_assert!(0.0 < there.p_value && there.p_value <= 1.0);
        }
    }
}
