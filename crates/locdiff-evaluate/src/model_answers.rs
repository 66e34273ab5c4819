//! The answers of a model to the images of a manifest, or to embeddings that were made beforehand.

use std::path::Path;

use locdiff::{Estimate, Geolocator, Photo};
use locdiff_sphere::{Density, DensityOutcome, LatLon};
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
    /// Number of images to answer.
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
        // Surveys are work for one thread each.
        let answers: Vec<Result<Answer, String>> = ask(model, batch, folder)
            .into_par_iter()
            .map(|answer| answer.map(|(estimate, truth)| scored(&estimate, truth)))
            .collect();
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

/// The answers to some images with their true places, or why there is none.
fn ask(
    model: &Geolocator,
    batch: &[(&str, LatLon)],
    folder: &Path,
) -> Vec<Result<(Estimate, LatLon), String>> {
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
    let mut answers = Vec::new();
    for ((_, truth), failure) in batch.iter().zip(failures) {
        answers.push(match failure {
            Some(reason) => Err(reason),
            None => {
                let estimate = estimates.next().expect("an answer for each photograph");
                estimate.map(|estimate| (estimate, *truth)).map_err(|reason| reason.to_string())
            }
        });
    }
    answers
}

/// The answer's place, and the scores of its density at the truth.
fn scored(estimate: &Estimate, truth: LatLon) -> Answer {
    let survey = estimate.survey();
    (estimate.inference().decode.place(&survey), Some(survey.outcome(truth)))
}

/// The densities of a model for the images of a manifest, with the true places; images without an answer are left out.
pub(crate) fn image_densities(
    model: &Geolocator,
    manifest: &PlaceTable,
    folder: &Path,
    at_most: usize,
    progress: &mut dyn FnMut(&AnswerProgress),
) -> Vec<(Density, LatLon)> {
    let rows = manifest.rows.iter().filter_map(|row| Some((row.image.as_deref()?, row.place?)));
    let rows: Vec<(&str, LatLon)> = rows.take(at_most).collect();
    let (mut found, mut done) = (Vec::new(), 0);
    for batch in rows.chunks(TOGETHER) {
        for ((image, _), answer) in batch.iter().zip(ask(model, batch, folder)) {
            done += 1;
            let without_answer = match answer {
                Ok((estimate, truth)) => {
                    found.push((estimate.density().clone(), truth));
                    None
                }
                Err(reason) => Some(((*image).to_owned(), reason)),
            };
            progress(&AnswerProgress { done, total: rows.len(), without_answer });
        }
    }
    found
}

/// Asks a model about embeddings: all rows of a data set, or the first so many of them in a random order that is always
/// the same. Refused if another encoder made them.
pub fn ask_model_embeddings(
    model: &Geolocator,
    data: &Dataset,
    at_most: Option<usize>,
    progress: &mut dyn FnMut(&AnswerProgress),
) -> Result<Pairs, EvaluationError> {
    let mut pairs = Pairs {
        images: Vec::new(),
        truth: Vec::new(),
        answers: Vec::new(),
        matching: Matching::Name,
        unknown: 0,
    };
    each_estimate(model, data, at_most, progress, |estimates, places, ids| {
        let jobs = estimates.par_iter().zip(places);
        let answers: Vec<Answer> = jobs.map(|(estimate, truth)| scored(estimate, *truth)).collect();
        pairs.answers.extend(answers.into_iter().map(Some));
        pairs.images.extend(ids);
        pairs.truth.extend(places);
    })?;
    Ok(pairs)
}

/// The densities of a model for embeddings, with the true places.
pub(crate) fn embedding_densities(
    model: &Geolocator,
    data: &Dataset,
    at_most: usize,
    progress: &mut dyn FnMut(&AnswerProgress),
) -> Result<Vec<(Density, LatLon)>, EvaluationError> {
    let mut found = Vec::new();
    each_estimate(model, data, Some(at_most), progress, |estimates, places, _| {
        let densities = estimates.iter().map(|estimate| estimate.density().clone());
        found.extend(densities.zip(places.iter().copied()));
    })?;
    Ok(found)
}

/// Hears estimates, true places and names of rows, some at a time.
fn each_estimate(
    model: &Geolocator,
    data: &Dataset,
    at_most: Option<usize>,
    progress: &mut dyn FnMut(&AnswerProgress),
    mut hear: impl FnMut(&[Estimate], &[LatLon], Vec<String>),
) -> Result<(), EvaluationError> {
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
    let mut done = 0;
    for batch in data.stream(options)? {
        let mut batch = batch?;
        let rows = batch.places.len().min(total - done);
        let embeddings = &batch.embeddings[..rows * layout.views * width];
        let estimates = model.locate_embeddings(embeddings, layout.views).unwrap_or_default();
        batch.ids.truncate(rows);
        hear(&estimates, &batch.places[..rows], batch.ids);
        for _ in 0..rows {
            done += 1;
            progress(&AnswerProgress { done, total, without_answer: None });
        }
        if done == total {
            break;
        }
    }
    Ok(())
}
