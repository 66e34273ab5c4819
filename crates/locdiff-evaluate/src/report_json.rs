//! An evaluation for programs: every number unrounded.

use serde_json::{Map, Value, json};

use super::scoring::{Evaluation, ScoreLine};

/// As one JSON object. Shares are parts of 1, distances in km, areas in km², likelihoods in nats per
/// steradian; a number that isn't finite is null.
pub fn report_json(evaluation: &Evaluation) -> Value {
    let [distance, radius, geoscore] = evaluation.rules.names();
    let mut report = json!({
        "model": evaluation.model,
        "data": evaluation.data,
        "images": evaluation.images(),
        "images_in_all": evaluation.answered.images_in_all,
        "left_out": evaluation.left_out(),
        "counted_as_worst": evaluation.unanswered(),
        "rules": { "distance": distance, "radius": radius, "geoscore": geoscore },
        "resampling": evaluation.resampling.map(|resampling| json!({
            "resamples": resampling.resamples,
            "permutations": resampling.permutations,
            "confidence": resampling.confidence,
            "seed": evaluation.seed,
        })),
        "notes": evaluation.notes,
        "scores": lines(&evaluation.points),
    });
    if !evaluation.densities.is_empty() {
        report["density_scores"] = lines(&evaluation.densities);
        report["density_scores"]["calibration_error"] =
            json!({ "value": evaluation.calibration_error });
    }
    if let Some(cloud) = &evaluation.manifold {
        report["cloud"] = json!({
            "neighbours": cloud.neighbours,
            "density": cloud.density,
            "coverage": cloud.coverage,
            "precision": cloud.precision,
            "recall": cloud.recall,
        });
    }
    let mut breakdowns = Map::new();
    for breakdown in &evaluation.breakdowns {
        let groups = breakdown.groups.iter().map(
            |group| json!({ "name": group.name, "images": group.images, "scores": lines(&group.lines) }),
        );
        breakdowns.insert(breakdown.by.replace(' ', "_"), groups.collect());
    }
    report["breakdowns"] = breakdowns.into();
    if let Some(paired) = &evaluation.paired {
        let mut differences = Map::new();
        for line in &paired.differences {
            let mut difference = json!({ "values": line.values });
            if let Some(comparison) = &line.comparison {
                difference["difference"] = json!(comparison.difference.estimate);
                difference["interval"] =
                    json!([comparison.difference.low, comparison.difference.high]);
                difference["p_value"] = json!(comparison.p_value);
            }
            differences.insert(line.key.clone(), difference);
        }
        report["comparison"] = json!({ "other": paired.other, "scores": differences });
    }
    report
}

fn lines(lines: &[ScoreLine]) -> Value {
    let mut map = Map::new();
    for line in lines {
        let mut entry = json!({ "value": line.score.value() });
        if let Some(interval) = line.interval {
            entry["interval"] = json!([interval.low, interval.high]);
        }
        map.insert(line.key.clone(), entry);
    }
    map.into()
}
