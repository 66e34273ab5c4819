//! Evaluation from files to reports, against numbers that Python made of the same files
//! (`parity/scores/generate.py evaluation`). No network, no data from outside.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

mod benchmarks;
mod formats;
mod leakage;
mod reports;

use std::path::{Path, PathBuf};

use locdiff_evaluate::{
    Evaluation, EvaluationOptions, Missing, PlaceTable, Role, Rules, Units, pair,
};
use locdiff_sphere::Resampling;

fn parity(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../parity/scores").join(file)
}

fn table(file: &str, role: Role, units: Units) -> PlaceTable {
    PlaceTable::read(&parity("evaluation").join(file), role, units).unwrap()
}

fn quick(rules: Rules) -> EvaluationOptions {
    let resampling = Resampling { resamples: 50, permutations: 99, confidence: 0.9 };
    EvaluationOptions { rules, resampling: Some(resampling), ..Default::default() }
}

fn evaluation(file: &str, units: Units, options: &EvaluationOptions) -> Evaluation {
    let (answers, truth) =
        (table(file, Role::Answers, units), table("truth.csv", Role::Truth, Units::Degrees));
    let answered = pair(&answers, &truth).unwrap().answered(Missing::Refuse).unwrap();
    Evaluation::of(file, "truth", answered, options).unwrap()
}
