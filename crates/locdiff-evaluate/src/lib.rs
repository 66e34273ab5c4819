//! Evaluation: answers in, scores out, for any model and any test set.
//!
//! A [`PlaceTable`] is read from whatever others write; [`pair`] finds the answer to each image;
//! [`Evaluation`] scores them by stated [`Rules`], with intervals, breakdowns and a comparison with
//! another model; `report_*` write the result as text, JSON, Markdown or HTML. [`Benchmark`] describes
//! public test sets, [`calibrate`] makes probabilities of a model's scores, [`place_leakage`] and [`embedding_leakage`] say what a test set shares with training.

mod answers;
mod benchmark_files;
mod benchmarks;
mod breakdown;
mod calibrate;
mod columns;
mod comparison;
mod error;
mod leakage;
mod model_answers;
mod pictures;
mod report_html;
mod report_json;
mod report_tables;
mod report_text;
mod rules;
mod scoring;
mod table;

pub use answers::{Answered, Matching, Missing, Pairs, pair};
pub use benchmark_files::{Completeness, make_manifest, manifest_path, read_manifest};
pub use benchmarks::{BENCHMARKS, Benchmark};
pub use breakdown::{Breakdown, Group};
pub use calibrate::{CalibrationData, calibrate, fit_calibration};
pub use comparison::{Difference, Paired};
pub use error::EvaluationError;
pub use leakage::{
    EmbeddingTwin, LEAKAGE_COSINE, LEAKAGE_KM, NamedPlaces, PlaceTwin, embedding_leakage,
    is_embeddings, place_leakage,
};
pub use model_answers::{AnswerProgress, ask_model, ask_model_embeddings};
pub use report_html::report_html;
pub use report_json::report_json;
pub use report_text::{report_markdown, report_text};
pub use rules::Rules;
pub use scoring::{Evaluation, EvaluationOptions, ScoreLine, Unit};
pub use table::{PlaceRow, PlaceTable, Role, Units};
