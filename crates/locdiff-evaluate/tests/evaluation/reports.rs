//! Scores of an evaluation, and reports of them.

use locdiff_evaluate::{
    Answered, Evaluation, EvaluationError, EvaluationOptions, Rules, report_html, report_json,
    report_markdown, report_text,
};
use locdiff_sphere::{DensityOutcome, LatLon, Resampling, UNIFORM_NLL_NATS, uniform_place};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::quick;

fn at(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).unwrap()
}

/// Answers about so far to the north, with densities that are calibrated by construction.
fn answered(distance_km: f64, with_densities: bool) -> Answered {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut truth: Vec<LatLon> = (0..60).map(|_| uniform_place(&mut rng)).collect();
    truth.extend([at(48.85, 2.35), at(-33.9, 151.2), at(-17.8, 178.0), at(-90.0, 0.0)]);
    let count = truth.len();
    let level = |i: usize| (i as f64 + 0.5) / count as f64;
    let outcome = |i: usize| DensityOutcome {
        nll_nats: UNIFORM_NLL_NATS - 3.0 + level(i),
        level: level(i),
        searched_area_km2: 10f64.powf(8.0 * level(i)),
    };
    Answered {
        images: (0..count).map(|i| format!("<{i}>.jpg")).collect(),
        predicted: truth.iter().map(|place| place.destination(0.0, distance_km)).collect(),
        truth,
        is_answered: vec![true; count],
        outcomes: with_densities.then(|| (0..count).map(outcome).collect()),
        images_in_all: count,
    }
}

fn value(evaluation: &Evaluation, key: &str) -> f64 {
    evaluation.lines().find(|line| line.key == key).unwrap().score.value()
}

#[test]
fn scores_are_those_of_known_distances() {
    let training = vec![at(48.85, 2.35), at(-33.9, 151.3)];
    let options = EvaluationOptions { training: Some(training), ..quick(Rules::default()) };
    let found = Evaluation::of("north", "sphere", answered(100.0, true), &options).unwrap();
    assert_eq!((value(&found, "accuracy_25_km"), value(&found, "accuracy_200_km")), (0.0, 1.0));
    assert!((value(&found, "median_km") - 100.0).abs() < 1e-9);
    assert!((value(&found, "geoscore") - 5000.0 * (-100.0_f64 / 1492.7).exp()).abs() < 1e-9);
    assert!((value(&found, "gain_nats") - 2.5).abs() < 1e-9);
    assert!((value(&found, "coverage_50") - 0.5).abs() < 1e-9);
    assert!(found.calibration_error.unwrap() < 0.01);
    for breakdown in &found.breakdowns {
        let sum: usize = breakdown.groups.iter().map(|group| group.images).sum();
        assert_eq!(sum, found.images(), "every image is in one group by {}", breakdown.by);
    }
    let named = |by: &str, name: &str| {
        let groups = &found.breakdowns.iter().find(|b| b.by == by).unwrap().groups;
        groups.iter().find(|group| group.name == name).map(|group| group.images)
    };
    assert!(named("continent", "Oceania").unwrap() >= 2);
    assert!(named("continent", "Antarctica").unwrap() >= 1);
    assert!(named("country", "France").unwrap() >= 1);
    assert_eq!(named("distance to training", "up to 1 km"), Some(1));
    assert_eq!(named("distance to training", "1 to 25 km"), Some(1));
}

#[test]
fn a_better_model_is_better_and_the_same_is_the_same() {
    let options = quick(Rules::default());
    let of =
        |name: &str, km| Evaluation::of(name, "sphere", answered(km, false), &options).unwrap();
    let compared = of("near", 100.0).compared_with(&of("far", 400.0)).unwrap();
    let paired = compared.paired.as_ref().unwrap();
    let geoscore = paired.differences.iter().find(|d| d.key == "geoscore").unwrap();
    let comparison = geoscore.comparison.unwrap();
    assert!(comparison.difference.low > 0.0 && comparison.p_value <= 0.02);
    let text = report_text(&compared);
    let line = text.lines().find(|line| line.contains("GeoScore") && line.contains('+')).unwrap();
    assert!(line.ends_with("better"), "{line}");
    let same = of("near", 100.0).compared_with(&of("near again", 100.0)).unwrap();
    assert!(same.paired.unwrap().differences.iter().all(|d| d.comparison.unwrap().p_value == 1.0));
    let mut fewer = answered(1.0, false);
    fewer.images.pop();
    fewer.truth.pop();
    fewer.predicted.pop();
    fewer.is_answered.pop();
    let fewer = Evaluation::of("fewer", "sphere", fewer, &options).unwrap();
    let error = of("near", 100.0).compared_with(&fewer).unwrap_err();
    assert!(matches!(error, EvaluationError::Unpaired { .. }), "{error}");
}

#[test]
fn the_number_of_images_is_in_every_report() {
    let mut answers = answered(30.0, true);
    answers.images_in_all += 5;
    answers.is_answered[3] = false;
    let found = Evaluation::of("m", "d", answers, &quick(Rules::GEOCLIP)).unwrap();
    let said = "64 images, of which 1 without an answer count as an error of 20,004 km; 5 of 69 were left out";
    for report in [report_text(&found), report_markdown(&found), report_html(&found)] {
        assert!(report.contains(said), "{report}");
        assert!(report.contains("istances along geodesics of WGS84; within a radius: ≤"));
    }
    let json = report_json(&found);
    assert_eq!((&json["images"], &json["left_out"]), (&64.into(), &5.into()));
    assert_eq!(json["rules"]["distance"], "geodesic");
    assert_eq!(json["counted_as_worst"], 1);
    assert!(json["density_scores"]["coverage_90"]["interval"].is_array());
}

#[test]
fn the_same_seed_gives_the_same_report_and_no_resamples_no_intervals() {
    let options = quick(Rules::default());
    let report = |options: &EvaluationOptions| {
        report_json(&Evaluation::of("m", "d", answered(700.0, true), options).unwrap())
    };
    assert_eq!(report(&options), report(&options));
    let other = EvaluationOptions {
        seed: 2,
        resampling: Some(Resampling { resamples: 50, ..Default::default() }),
        ..options.clone()
    };
    assert_ne!(report(&options), report(&other));
    let none = EvaluationOptions { resampling: None, ..options };
    assert!(report(&none)["scores"]["median_km"]["interval"].is_null());
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let found = Evaluation::of(
        "<script>alert(1)</script>",
        "d",
        answered(300.0, true),
        &quick(Rules::default()),
    );
    let page = report_html(&found.unwrap());
    assert!(!page.contains("<script"), "a name became markup");
    assert!(!page.contains(" src=\"http") && !page.contains("<link") && !page.contains("@import"));
    // Pictures refer to their own parts, such as outlines to cut at, and to nothing else.
    assert!(page.split("url(").skip(1).all(|rest| rest.starts_with("%23")));
    for picture in page.split("<img src=\"").skip(1).chain(page.split("srcset=\"").skip(1)) {
        assert!(picture.starts_with("data:image/svg+xml"));
    }
    // Two maps and three curves, for readers of both themes.
    assert_eq!(page.matches("<picture>").count(), 5);
    assert_eq!(page.matches("(prefers-color-scheme: dark)").count(), 6);
    assert!(page.matches("alt=\"\"").count() == 0);
    for open in ["section", "picture", "table", "details"] {
        let (opened, closed) = (format!("<{open}>"), format!("</{open}>"));
        assert_eq!(page.matches(&opened).count(), page.matches(&closed).count(), "{open}");
    }
}
