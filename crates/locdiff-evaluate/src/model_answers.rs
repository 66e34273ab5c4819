//! The answers of a model to the images of a manifest, or to embeddings that were made beforehand.

use std::path::Path;

use locdiff::{Estimate, Geolocator, Photo};
use locdiff_sphere::{DensityOutcome, LatLon};
use locdiff_train::{Dataset, Ids, StoredViews, StreamOptions};
use rayon::prelude::*;

use super::answers::{Matching, Missing, Pairs};
use super::error::EvaluationError;
use super::table::PlaceTable;

/// Images that are read and encoded together.
const TOGETHER: usize = 8;

/// Rows of embeddings that are computed together.
const EMBEDDINGS_TOGETHER: usize = 64;

/// What became of images so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerProgress {
    /// Images that are done.
    pub done: usize,
    /// All of them.
    pub total: usize,
    /// An image that has no answer, and why.
    pub without_answer: Option<(String, String)>,
}

/// Asks a model about every image of a manifest (paths below `folder`). The answer is the place that
/// `locdiff predict` shows first; the density is scored against the truth as it is. With
/// [`Missing::Refuse`], the first image without an answer ends it.
pub fn ask_model(
    model: &Geolocator,
    manifest: &PlaceTable,
    folder: &Path,
    missing: Missing,
    progress: &mut dyn FnMut(&AnswerProgress),
) -> Result<Pairs, EvaluationError> {
    let rows: Vec<(&str, LatLon)> =
        manifest.rows.iter().filter_map(|row| Some((row.image.as_deref()?, row.place?))).collect();
    let mut pairs = Pairs {
        images: rows.iter().map(|(image, _)| (*image).to_owned()).collect(),
        truth: rows.iter().map(|(_, place)| *place).collect(),
        answers: Vec::new(),
        matching: Matching::Name,
        unknown: 0,
    };
    for batch in rows.chunks(TOGETHER) {
        let answers = ask(model, batch, folder);
        for ((image, _), answer) in batch.iter().zip(answers) {
            let without_answer = match &answer {
                Ok(_) => None,
                Err(reason) if missing == Missing::Refuse => {
                    let (image, reason) = ((*image).to_owned(), reason.clone());
                    return Err(EvaluationError::Unanswered { image, reason });
                }
                Err(reason) => Some(((*image).to_owned(), reason.clone())),
            };
            pairs.answers.push(answer.ok());
            let done = pairs.answers.len();
            progress(&AnswerProgress { done, total: rows.len(), without_answer });
        }
    }
    Ok(pairs)
}

type Answer = (LatLon, Option<DensityOutcome>);

fn ask(model: &Geolocator, batch: &[(&str, LatLon)], folder: &Path) -> Vec<Result<Answer, String>> {
    let read: Vec<_> = batch.par_iter().map(|(image, _)| Photo::open(folder.join(image))).collect();
    let (mut photos, mut failures) = (Vec::new(), Vec::new());
    for read in read {
        failures.push(match read {
            Ok(photo) => {
                photos.push(photo);
                None
            }
            Err(error) => Some(error.to_string()),
        });
    }
    let mut estimates = model.locate_all(&photos).into_iter();
    let mut jobs = Vec::new();
    for ((_, truth), failure) in batch.iter().zip(failures) {
        jobs.push(match failure {
            Some(reason) => Err(reason),
            None => {
                let estimate = estimates.next().expect("an answer for each photograph");
                estimate.map(|estimate| (estimate, *truth)).map_err(|reason| reason.to_string())
            }
        });
    }
    // Surveys are work for one thread each.
    let answers =
        jobs.into_par_iter().map(|job| job.map(|(estimate, truth)| scored(&estimate, truth)));
    answers.collect()
}

/// The answer's place, and what the density says of the truth.
fn scored(estimate: &Estimate, truth: LatLon) -> Answer {
    let survey = estimate.survey();
    (estimate.inference().decode.place(&survey), Some(survey.outcome(truth)))
}

/// Asks a model about embeddings: all rows of a data set, or the first so many of them in a random order that is always
/// the same. Refused if another encoder made them.
pub fn ask_model_embeddings(
    model: &Geolocator,
    data: &Dataset,
    at_most: Option<usize>,
    progress: &mut dyn FnMut(&AnswerProgress),
) -> Result<Pairs, EvaluationError> {
    let layout = data.layout();
    let name = || model.identity().name.clone();
    let (encoder, width) = model
        .takes_embeddings_of()
        .ok_or_else(|| EvaluationError::PhotographsOnly { model: name() })?;
    encoder
        .check(&layout.encoder)
        .map_err(|error| EvaluationError::OtherEncoder { model: name(), error })?;
    if width != layout.width {
        let found = layout.width;
        return Err(EvaluationError::Width { model: name(), expected: width, found });
    }
    let options = StreamOptions {
        batch: EMBEDDINGS_TOGETHER,
        ids: Ids::Include,
        views: StoredViews::All,
        epochs: Some(1),
        ..StreamOptions::default()
    };
    let total = at_most.unwrap_or(usize::MAX).min(data.rows() as usize);
    let mut pairs = Pairs {
        images: Vec::new(),
        truth: Vec::new(),
        answers: Vec::new(),
        matching: Matching::Name,
        unknown: 0,
    };
    for batch in data.stream(options)? {
        let batch = batch?;
        let rows = batch.places.len().min(total - pairs.images.len());
        let embeddings = &batch.embeddings[..rows * layout.views * width];
        let estimates = model.locate_embeddings(embeddings, layout.views).unwrap_or_default();
        let jobs = estimates.par_iter().zip(&batch.places);
        let answers: Vec<Answer> = jobs.map(|(estimate, truth)| scored(estimate, *truth)).collect();
        pairs.answers.extend(answers.into_iter().map(Some));
        pairs.images.extend(batch.ids.into_iter().take(rows));
        pairs.truth.extend(batch.places.into_iter().take(rows));
        for done in pairs.images.len() - rows..pairs.images.len() {
            progress(&AnswerProgress { done: done + 1, total, without_answer: None });
        }
        if pairs.images.len() == total {
            break;
        }
    }
    Ok(pairs)
}
