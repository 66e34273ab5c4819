//! What is done with images: the task, with its model opened.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use locdiff::checksum::sha256;
use locdiff::encoders::Embedder;
use locdiff::locate::{AnswerOptions, Answered, NoAnswer, ReadPicture, answer_all};
use locdiff::models::{EncoderSource, open_encoder};
use locdiff::photo::{Crops, ReadOptions};
use locdiff::{Answer, Constraint, Geolocator, ModelHome, OpenOptions};
use locdiff_sphere::LatLon;
use locdiff_train::images::{Pixels, Preparation};
use rayon::prelude::*;

use crate::error::BatchError;
use crate::job::Task;
use crate::rows::Fetched;

/// Images that are asked about together. It does not depend on the machine, because answers depend on it in their last
/// digits.
const LOCATED_TOGETHER: usize = 8;
const PICTURES_TOGETHER: usize = 32;
const CHECKED_TOGETHER: usize = 64;

/// A task whose model is open.
pub(crate) enum Worker {
    Locate { model: Box<Geolocator>, options: AnswerOptions },
    Embed { embedder: Arc<dyn Embedder>, preparation: Preparation },
    Check,
}

/// What was made of an image.
#[derive(Debug)]
pub(crate) enum Made {
    Answer(Box<Answer>),
    Embedding { numbers: Vec<f32>, place: Option<LatLon> },
    Checked { width: u32, height: u32, bytes: usize, sha256: String, place: Option<LatLon> },
}

/// The task with the version of its model or encoder, which is opened to see whether it can be asked in this way.
pub(crate) fn checked(task: &Task) -> Result<Task, BatchError> {
    let mut task = task.clone();
    let worker = Worker::open(&task, "cpu")?;
    match (&mut task, &worker) {
        (Task::Locate { version, .. }, Worker::Locate { model, .. }) => {
            *version = Some(model.identity().version.clone());
        }
        (Task::Embed { identity, .. }, Worker::Embed { embedder, .. }) => {
            *identity = Some(embedder.record().identity.clone());
        }
        _ => {}
    }
    Ok(task)
}

impl Worker {
    /// Opens what the task needs, and fails if it has another version than was planned.
    pub(crate) fn open(task: &Task, device: &str) -> Result<Worker, BatchError> {
        match task {
            Task::Locate { model: name, version, encoder, inference, within, top } => {
                let encoder = encoder.clone().map(Into::into);
                let opening = OpenOptions {
                    device: device.to_owned(),
                    encoder: encoder.map_or(EncoderSource::Installed, EncoderSource::Path),
                    ..OpenOptions::default()
                };
                let areas = within.iter().map(|text| text.parse::<Constraint>());
                let areas: Result<Vec<Constraint>, _> = areas.collect();
                let areas = areas.map_err(|error| BatchError::wrong("within", error))?;
                let model = Geolocator::open_with(name, &opening, &mut |_, _| {})?;
                let model = model.with(inference)?.within(&areas);
                expect(name, version.as_deref(), &model.identity().version)?;
                let options = AnswerOptions { top: *top, ..AnswerOptions::default() };
                Ok(Worker::Locate { model: Box::new(model), options })
            }
            Task::Embed { encoder: name, identity, views } => {
                let home = ModelHome::from_env().map_err(|error| BatchError::wrong(name, error))?;
                let device = locdiff::tensors::device_by_name(device)
                    .map_err(|error| BatchError::wrong("device", error))?;
                let found = open_encoder(name, &home, &device)
                    .map_err(|source| BatchError::Encoder { name: name.clone(), source })?;
                let embedder = found.ok_or_else(|| BatchError::NoEncoder(name.clone()))?;
                expect(name, identity.as_deref(), &embedder.record().identity)?;
                let preparation = Preparation {
                    read: ReadOptions::default(),
                    views: *views,
                    preprocessing: embedder.preprocessing().clone(),
                };
                Ok(Worker::Embed { embedder, preparation })
            }
            Task::Check => Ok(Worker::Check),
        }
    }

    /// How many images are best given to [`Worker::work`] at a time.
    pub(crate) fn together(&self) -> usize {
        match self {
            Worker::Locate { .. } => LOCATED_TOGETHER,
            Worker::Embed { preparation, .. } => {
                (PICTURES_TOGETHER / preparation.views.count()).max(1)
            }
            Worker::Check => CHECKED_TOGETHER,
        }
    }

    /// What is made of each image, or why nothing. Runs on rayon's threads.
    pub(crate) fn work(&self, images: &[Fetched]) -> Vec<Result<Made, String>> {
        match self {
            Worker::Locate { model, options } => locate(model, options, images),
            Worker::Embed { embedder, preparation } => embed(&**embedder, preparation, images),
            Worker::Check => images.par_iter().map(check).collect(),
        }
    }
}

fn expect(name: &str, planned: Option<&str>, here: &str) -> Result<(), BatchError> {
    match planned {
        Some(planned) if planned != here => Err(BatchError::OtherVersion {
            name: name.to_owned(),
            planned: planned.to_owned(),
            here: here.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Why there is no answer.
struct Reason(String);

impl From<NoAnswer> for Reason {
    fn from(none: NoAnswer) -> Reason {
        Reason(none.reason)
    }
}

fn locate(
    model: &Geolocator,
    options: &AnswerOptions,
    images: &[Fetched],
) -> Vec<Result<Made, String>> {
    let read = |image: &Fetched| {
        let bytes = image.bytes.as_ref().map_err(|reason| Reason(reason.clone()))?;
        ReadPicture::decode(Some(image.path.clone()), bytes).map_err(|error| Reason(error.reason()))
    };
    let ask = |images: &[Fetched]| {
        catch_unwind(AssertUnwindSafe(|| {
            answer_all(model, images.par_iter().map(read).collect(), options)
        }))
    };
    let made = |answer: Result<Answered, Reason>| match answer {
        Ok(answered) => Ok(Made::Answer(Box::new(answered.record))),
        Err(Reason(reason)) => Err(reason),
    };
    match ask(images) {
        Ok(answers) => answers.into_iter().map(made).collect(),
        // One image that a model can't stand must not cost the others.
        Err(_) if images.len() > 1 => {
            let single = |image: &Fetched| locate(model, options, std::slice::from_ref(image));
            images.iter().flat_map(single).collect()
        }
        Err(_) => vec![Err("internal error while locating this image; please report it".into())],
    }
}

fn embed(
    embedder: &dyn Embedder,
    preparation: &Preparation,
    images: &[Fetched],
) -> Vec<Result<Made, String>> {
    let prepare = |image: &Fetched| {
        let bytes = image.bytes.as_ref().map_err(String::clone)?;
        preparation.pixels(&image.place, bytes).map_err(|bad| bad.message)
    };
    let prepared: Vec<Result<Pixels, String>> = images.par_iter().map(prepare).collect();
    let mut pixels = Vec::new();
    for one in prepared.iter().flatten() {
        pixels.extend_from_slice(&one.numbers);
    }
    // In batches, because one image may have more views than that.
    let batch = PICTURES_TOGETHER * preparation.preprocessing.len();
    let numbers: Vec<f32> =
        pixels.chunks(batch).flat_map(|pixels| embedder.embed_pixels(pixels.to_vec())).collect();
    let mut rows = numbers.chunks_exact(preparation.views.count() * embedder.width());
    let made = |pixels: Result<Pixels, String>| {
        let Pixels { place, .. } = pixels?;
        let numbers = rows.next().expect("an embedding for each image").to_vec();
        match numbers.iter().position(|number| !number.is_finite()) {
            None => Ok(Made::Embedding { numbers, place }),
            Some(at) => Err(format!("number {at} of its embedding is {}", numbers[at])),
        }
    };
    prepared.into_iter().map(made).collect()
}

fn check(image: &Fetched) -> Result<Made, String> {
    let bytes = image.bytes.as_ref().map_err(String::clone)?;
    let stated = image.place.checked().map_err(|bad| bad.message)?;
    let read = ReadPicture::decode(None, bytes).map_err(|error| error.reason())?;
    Ok(Made::Checked {
        width: read.photo.width(),
        height: read.photo.height(),
        bytes: bytes.len(),
        sha256: read.facts.sha256.unwrap_or_else(|| sha256(bytes)),
        place: stated.or(read.gps),
    })
}

impl Task {
    /// A task that embeds so many views of each image: one is its center, more are random areas.
    pub fn embed(encoder: impl Into<String>, views: u32, seed: u64) -> Task {
        let views = match views {
            1 => Crops::Single,
            count => Crops::Random { count, seed },
        };
        Task::Embed { encoder: encoder.into(), identity: None, views }
    }
}
