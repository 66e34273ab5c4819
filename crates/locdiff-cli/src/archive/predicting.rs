//! Pictures without a place are shown to models, a few at a time.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use locdiff::Photo;
use locdiff::checksum::Checksum;
use locdiff::locate::{Decode, LocateResult, ReadPicture};
use locdiff::photo::PhotoError;
use locdiff_archive::library::{
    Candidate, ContentHash, Library, Prediction, Unpredicted, UsedModel,
};
use locdiff_sphere::{Density, DensityRecord};
use rayon::prelude::*;

use crate::asking::InferenceArguments;
use crate::predict::Models;
use crate::progress::Progress;

/// Pictures that are read, located and stored together.
const TOGETHER: usize = 8;
/// Candidates that are stored.
const CANDIDATES: usize = 5;

/// What was done.
#[derive(Default)]
pub(super) struct Predicted {
    pub(super) pictures: usize,
    pub(super) answered: usize,
    /// Of the others, those that another model may answer.
    pub(super) without_model: usize,
}

/// The models under one name and version, which changes with the options too.
pub(super) fn identity(
    models: &Models<'_>,
    inference: &InferenceArguments,
) -> anyhow::Result<UsedModel> {
    let all = models.all().map_err(anyhow::Error::msg)?;
    let joined = |part: fn(&locdiff::ModelIdentity) -> &str| {
        all.iter().map(|model| part(model.identity())).collect::<Vec<_>>().join("+")
    };
    let mut version = joined(|identity| &identity.version);
    let options = inference.options();
    if options != locdiff::InferenceOptions::default() {
        let mut sum = Checksum::default();
        sum.update(serde_json::to_string(&options)?);
        version = format!("{version}+{}", sum.finish_short());
    }
    let calibrated = all.iter().all(|model| model.identity().calibrated);
    Ok(UsedModel { name: joined(|identity| &identity.name), version, calibrated })
}

/// Predicts all pictures that the library has no prediction of.
pub(super) fn predict(
    library: &mut Library,
    models: &Models<'_>,
    model: &UsedModel,
    interrupted: &AtomicBool,
) -> anyhow::Result<Predicted> {
    let open = library.unpredicted(&model.name, &model.version, usize::MAX)?;
    let mut progress = Progress::new("predicting pictures", Some(open.len() as u64));
    let mut done = Predicted::default();
    for batch in open.chunks(TOGETHER) {
        if interrupted.load(Ordering::Relaxed) {
            bail!(
                "stopped after {} of {} pictures; the same command predicts the rest",
                done.pictures,
                open.len()
            );
        }
        let mut read: Vec<_> = batch.par_iter().map(read).collect();
        // Pictures are large: they are lent out, not copied.
        let blank = || Photo::from_rgb(1, 1, vec![0; 3]).expect("one pixel");
        let photos: Vec<Photo> = read
            .iter_mut()
            .filter_map(|read| Some(std::mem::replace(&mut read.as_mut().ok()?.photo, blank())))
            .collect();
        let mut located = models.locate(&photos).into_iter().flatten();
        let mut jobs: Vec<(ContentHash, Result<LocateResult, String>)> = Vec::new();
        for (picture, read) in batch.iter().zip(&read) {
            match read {
                Ok(_) => {
                    let (located, _) = located.next().expect("an answer for each photograph");
                    done.without_model +=
                        usize::from(located.as_ref().is_err_and(|none| none.no_model));
                    jobs.push((picture.hash, Ok(located)));
                }
                // Gone or changed since it was read: the next scan will see.
                Err(PhotoError::Unreadable { .. }) => {
                    progress.line(&format!(
                        "{} changed during this scan: scan again to predict its place",
                        picture.path
                    ));
                }
                Err(error) => jobs.push((picture.hash, Err(error.reason()))),
            }
        }
        // Surveys are work for one thread each.
        let predictions: Vec<Prediction> = jobs
            .into_par_iter()
            .map(|(hash, job)| match job {
                Ok(Ok((estimate, _))) => Prediction {
                    calibrated: estimate.model().calibrated,
                    ..of_density(hash, model, estimate.density(), estimate.inference().decode)
                },
                Ok(Err(none)) => without_place(hash, model, none.reason),
                Err(reason) => without_place(hash, model, reason),
            })
            .collect();
        library.predict(&predictions)?;
        done.pictures += predictions.len();
        done.answered += predictions.iter().filter(|prediction| prediction.place.is_some()).count();
        progress.add(batch.len() as u64);
    }
    Ok(done)
}

fn read(picture: &Unpredicted) -> Result<ReadPicture, PhotoError> {
    let path = Path::new(&picture.path);
    let read = ReadPicture::open(path)?;
    if read.facts.sha256.as_deref() == Some(&picture.hash.to_string()) {
        return Ok(read);
    }
    let source = std::io::Error::other("its content changed");
    Err(PhotoError::Unreadable { path: path.to_owned(), source })
}

/// What is stored of a density.
pub(super) fn of_density(
    hash: ContentHash,
    model: &UsedModel,
    density: &Density,
    decode: Decode,
) -> Prediction {
    let survey = density.survey();
    let modes = survey.modes().modes;
    let candidate = |mode: &locdiff_sphere::Mode| Candidate {
        latitude: mode.place.latitude(),
        longitude: mode.place.longitude(),
        mass: mode.mass,
        radius_km: survey.radius_km(mode.place, 0.5 * mode.mass),
    };
    let place = match decode {
        Decode::Mode => modes[0].place,
        other => other.place(&survey),
    };
    Prediction {
        hash,
        model: model.name.clone(),
        version: model.version.clone(),
        fused: false,
        calibrated: model.calibrated,
        place: Some(place),
        confidence: modes[0].mass,
        radius_68_km: survey.radius_km(place, 0.68),
        radius_90_km: survey.radius_km(place, 0.9),
        candidates: modes.iter().take(CANDIDATES).map(candidate).collect(),
        influences: Vec::new(),
        density: Some(DensityRecord::of(density)),
        error: None,
    }
}

fn without_place(hash: ContentHash, model: &UsedModel, reason: String) -> Prediction {
    Prediction {
        hash,
        model: model.name.clone(),
        version: model.version.clone(),
        fused: false,
        calibrated: model.calibrated,
        place: None,
        confidence: 0.0,
        radius_68_km: 0.0,
        radius_90_km: 0.0,
        candidates: Vec::new(),
        influences: Vec::new(),
        density: None,
        error: Some(reason),
    }
}
