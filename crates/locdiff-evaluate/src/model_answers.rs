//! The answers of one of our models to the images of a manifest.

use std::path::Path;

use locdiff::{Geolocator, Photo};
use locdiff_sphere::{DensityOutcome, LatLon};
use rayon::prelude::*;

use super::answers::{Matching, Missing, Pairs};
use super::error::EvaluationError;
use super::table::PlaceTable;

/// Images that are read and encoded together.
const TOGETHER: usize = 8;

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

/// Asks a model about every image of a manifest (paths below `folder`). The answer is the top of the highest
/// peak, as `locdiff predict` shows it first; the density is scored against the truth as it is. With
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
    let answers = jobs.into_par_iter().map(|job| {
        let (estimate, truth) = job?;
        let survey = estimate.survey();
        let modes = survey.modes();
        let best = modes.modes.first().ok_or("the density has no peak")?;
        Ok((best.place, Some(survey.outcome(truth))))
    });
    answers.collect()
}
