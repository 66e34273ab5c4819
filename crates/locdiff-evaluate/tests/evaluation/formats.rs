//! Answers in the formats of several projects are scored without conversion, as Python scores them.

use locdiff_evaluate::{Evaluation, Missing, Role, Rules, Units, pair};
use serde_json::Value;

use crate::{evaluation, parity, quick, table};

fn expected(rules: &str) -> Value {
    let text = std::fs::read_to_string(parity("evaluation.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let cases = file["cases"].as_array().unwrap().clone();
    cases.into_iter().find(|case| case["rules"] == rules).unwrap()
}

fn assert_agrees(found: &Evaluation, expected: &Value) {
    assert_eq!(found.images() as u64, expected["images"]);
    for line in &found.points {
        let wanted = expected[&line.key].as_f64().unwrap();
        let value = line.score.value();
        // Radians of a text cost a few digits: 1e-8 km is 10 µm.
        assert!((value - wanted).abs() < 1e-8, "{} {}: {value}, {wanted}", found.model, line.key);
    }
    let cloud = found.manifold.unwrap();
    for (name, value) in [
        ("precision", cloud.precision),
        ("recall", cloud.recall),
        ("density", cloud.density),
        ("coverage", cloud.coverage),
    ] {
        let wanted = expected["cloud"][name].as_f64().unwrap();
        assert!((value - wanted).abs() < 1e-12, "{} {name}: {value}, {wanted}", found.model);
    }
}

#[test]
fn every_format_is_scored_as_python_scores_it() {
    let expected = expected("locdiff");
    for (file, units) in [
        ("plain.csv", Units::Degrees),
        ("geoclip.csv", Units::Degrees),
        ("plonk.tsv", Units::Degrees),
        ("plonk_array.csv", Units::Degrees),
        ("plonk_radians.txt", Units::Radians),
        ("geoestimation.csv", Units::Degrees),
    ] {
        assert_agrees(&evaluation(file, units, &quick(Rules::default())), &expected);
    }
}

#[test]
fn the_rules_of_others_give_the_numbers_of_others() {
    for (name, rules) in [("geoclip", Rules::GEOCLIP), ("osv5m", Rules::OSV5M)] {
        let found = evaluation("plain.csv", Units::Degrees, &quick(rules));
        assert_agrees(&found, &expected(name));
    }
}

#[test]
fn a_file_with_answers_and_truth_needs_no_other() {
    let answers = table("geoestimation.csv", Role::Answers, Units::Degrees);
    assert!(answers.has_truth_too());
    let truth = table("geoestimation.csv", Role::Truth, Units::Degrees);
    let answered = pair(&answers, &truth).unwrap().answered(Missing::Refuse).unwrap();
    let found = Evaluation::of("x", "x", answered, &quick(Rules::default())).unwrap();
    assert_agrees(&found, &expected("locdiff"));
}

#[test]
fn radians_that_nobody_declared_are_suspected() {
    let undeclared = table("plonk_radians.txt", Role::Answers, Units::Degrees);
    assert!(undeclared.looks_like_radians);
    assert!(!table("plonk_array.csv", Role::Answers, Units::Degrees).looks_like_radians);
}
