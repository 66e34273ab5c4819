//! `locdiff evaluate`: scores of any model's answers; public test sets; leakage.

mod data;
mod leakage;
mod options;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use locdiff::models::EncoderSource;
use locdiff_evaluate::{
    AnswerProgress, Evaluation, EvaluationOptions, NamedPlaces, Pairs, PlaceTable, Role, Units,
    ask_model, ask_model_embeddings, is_embeddings, manifest_path, pair, read_manifest,
    report_html, report_json, report_markdown, report_text,
};
use locdiff_train::{Dataset, OnBadShard};

use crate::asking::{InferenceArguments, OpeningArguments, open};
use crate::progress::Progress;
use crate::text::{data_stdout, json_stdout, stderr};
use crate::{NONSENSE, memory, refused, whole_file};
use locdiff_sphere::shown;
use options::Options;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    scoring: Scoring,
}

#[derive(Subcommand)]
enum Command {
    /// Public test sets: where to get one, how to make its manifest, how to check it
    Data(data::Arguments),
    /// Find what a test set shares with a training set: places, and pictures that are almost the same
    Leakage(leakage::Arguments),
}

#[derive(Args)]
struct Scoring {
    /// A table of the answers of any model: columns for image, latitude and longitude under any usual
    /// name, or two numbers per line in the order of --truth
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "data"])]
    predictions: Option<PathBuf>,
    /// A table of the true places. Not needed if the table of answers contains them
    #[arg(long, value_name = "FILE", requires = "predictions")]
    truth: Option<PathBuf>,
    /// A model: its name as in `locdiff predict`, or its directory such as runs/first/model
    #[arg(short, long, value_name = "NAME", requires = "data")]
    model: Option<String>,
    /// A manifest (image, latitude, longitude), a folder with a manifest.csv, or a folder of embeddings that `locdiff embed`
    /// wrote with the model's encoder
    #[arg(long, value_name = "PATH", requires = "model")]
    data: Option<PathBuf>,
    /// Score at most this many rows of embeddings
    #[arg(long, value_name = "N", requires = "data", value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,
    /// A table of another model's answers to the same images, for a paired comparison
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Training places, for a breakdown by the distance to the nearest one: a table, a manifest, or
    /// a folder of embeddings
    #[arg(long, value_name = "PATH")]
    training: Option<PathBuf>,
    /// Name of the model in the report [default: its name, or the name of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    options: Options,
    /// One JSON object, numbers unrounded
    #[arg(long, group = "format")]
    json: bool,
    /// Markdown
    #[arg(long, group = "format")]
    markdown: bool,
    /// Also write a report with maps and curves, in one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write the answers, as a table for --predictions and --against
    #[arg(long, value_name = "FILE")]
    write_predictions: Option<PathBuf>,
    #[command(flatten)]
    opening: OpeningArguments,
    #[command(flatten)]
    inference: InferenceArguments,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Some(Command::Data(arguments)) => data::run(&arguments),
        Some(Command::Leakage(arguments)) => leakage::run(&arguments),
        None => score(&arguments.scoring),
    }
}

/// Answers with the truth, and what to call both.
struct Subject {
    model: String,
    data: String,
    truth: PlaceTable,
    pairs: Pairs,
    notes: Vec<String>,
}

fn score(arguments: &Scoring) -> anyhow::Result<ExitCode> {
    let subject = match (&arguments.predictions, &arguments.model, &arguments.data) {
        (Some(predictions), _, _) => read_answers(predictions, arguments)?,
        (_, Some(model), Some(data)) => match asked_model(model, data, arguments)? {
            Ok(subject) => subject,
            Err(code) => return Ok(code),
        },
        _ => {
            let reason = "give --predictions with --truth, or --model with --data; see --help";
            return Ok(refused(reason, NONSENSE));
        }
    };
    let Subject { model, data, truth, mut pairs, mut notes } = subject;
    let missing = arguments.options.missing();
    if let Some(path) = &arguments.write_predictions {
        whole_file::write_file(path, pairs.to_csv().as_bytes())?;
    }
    let mut other = None;
    if let Some(path) = &arguments.against {
        let table = PlaceTable::read(path, Role::Answers, arguments.options.units())?;
        let mut theirs = pair(&table, &truth).with_context(|| path.display().to_string())?;
        notes.extend(theirs.notes().into_iter().map(|note| format!("{}: {note}", stem(path))));
        if missing == locdiff_evaluate::Missing::Skip {
            pairs.keep_common(&mut theirs);
        }
        other = Some((stem(path), theirs));
    }
    let training = match &arguments.training {
        Some(path) => Some(NamedPlaces::read(path)?.places),
        None => None,
    };
    let options = EvaluationOptions { training, ..arguments.options.evaluation() };
    let model = arguments.name.clone().unwrap_or(model);
    let mut evaluation = Evaluation::of(model, &data, pairs.answered(missing)?, &options)?;
    if let Some((name, theirs)) = other {
        let theirs = theirs.answered(missing).with_context(|| name.clone())?;
        let theirs = Evaluation::of(name, &data, theirs, &options)?;
        evaluation = evaluation.compared_with(&theirs)?;
    }
    evaluation.notes = notes;
    if let Some(path) = &arguments.html {
        whole_file::write_file(path, report_html(&evaluation).as_bytes())?;
    }
    match arguments {
        Scoring { json: true, .. } => writeln!(json_stdout(), "{}", report_json(&evaluation))?,
        Scoring { markdown: true, .. } => {
            data_stdout().write_all(report_markdown(&evaluation).as_bytes())?;
        }
        // A message would be cut.
        _ => data_stdout().write_all(report_text(&evaluation).as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn read_answers(predictions: &Path, arguments: &Scoring) -> anyhow::Result<Subject> {
    let units = arguments.options.units();
    let answers = PlaceTable::read(predictions, Role::Answers, units)?;
    let path = match &arguments.truth {
        Some(truth) => manifest_path(truth),
        None if answers.has_truth_too() => predictions.to_owned(),
        None => anyhow::bail!(
            "{} has no columns of true places (such as gt_lat and gt_lon): give --truth FILE",
            predictions.display()
        ),
    };
    let truth = PlaceTable::read(&path, Role::Truth, Units::Degrees)?;
    let pairs = pair(&answers, &truth)?;
    let mut notes = pairs.notes();
    if answers.looks_like_radians {
        notes.push(
            "all answers are within 1.6 degrees of 0,0: if they are in radians, add --radians"
                .to_owned(),
        );
    }
    Ok(Subject { model: stem(predictions), data: stem(&path), truth, pairs, notes })
}

/// Asks one of our models; or returns the exit code.
fn asked_model(
    name: &str,
    data: &Path,
    arguments: &Scoring,
) -> anyhow::Result<Result<Subject, ExitCode>> {
    memory::keep_for_a_while();
    let embeddings = is_embeddings(data);
    let mut options = arguments.opening.options();
    if embeddings {
        options.encoder = EncoderSource::NotNeeded;
    }
    let model = match open(name, &options, &arguments.inference) {
        Ok(model) => model,
        Err(error) => return Ok(Err(refused(&error.to_string(), error.code()))),
    };
    let mut progress = Progress::new("images", None);
    let mut watch = |event: &AnswerProgress| {
        progress.of(event.total as u64);
        progress.add(1);
        if let Some((image, reason)) = &event.without_answer {
            // Nobody may be listening there.
            let _ = writeln!(stderr(), "locdiff: {}: {reason}", shown(image));
        }
    };
    let (truth, pairs, path) = if embeddings {
        let set = Dataset::open(&data.display().to_string(), OnBadShard::Fail)?;
        let pairs = ask_model_embeddings(
            &model,
            &set,
            arguments.rows.map(|rows| rows as usize),
            &mut watch,
        )?;
        (pairs.truth_table(), pairs, data.to_owned())
    } else {
        let path = manifest_path(data);
        let truth = read_manifest(&path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let missing = arguments.options.missing();
        let pairs = ask_model(&model, &truth, folder, missing, &mut watch)?;
        (truth, pairs, path)
    };
    let identity = model.identity();
    let mut notes = vec![format!("{}, version {}", identity.description, identity.version)];
    if !identity.calibrated {
        notes.push("its densities are scores: the model is not calibrated".to_owned());
    }
    notes.push(format!("inference: {}", serde_json::to_string(model.inference())?));
    notes.extend(model.warnings().iter().map(|warning| format!("warning: {warning}")));
    Ok(Ok(Subject { model: identity.name.clone(), data: stem(&path), truth, pairs, notes }))
}

/// What people call a file: its name without ending; a manifest has its folder's name.
fn stem(path: &Path) -> String {
    let named = match path.file_name() {
        Some(name) if name == "manifest.csv" => {
            // `.` has no name of its own.
            path.parent().and_then(|folder| folder.canonicalize().ok())
        }
        _ => None,
    };
    let named = named.as_deref().unwrap_or(path);
    let stem = if named.is_dir() { named.file_name() } else { named.file_stem() };
    stem.map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}
