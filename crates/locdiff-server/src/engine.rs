//! The models, and their answers for a batch of images: the server without HTTP.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use locdiff::locate::{
    AnswerOptions, ChosenBecause, ImageFacts, LocateResult, ModelFacts, NoAnswer, locate_because,
    locate_in_turn,
};
use locdiff::models::{BUILT_IN, EncoderSource, ground_model, installed_models};
use locdiff::photo::{ReadOptions, gps_of};
use locdiff::{
    Answer, CannotOpen, Constraint, Geolocator, InferenceOptions, ModelHome, OpenOptions, Photo,
};
use locdiff_sphere::{LatLon, shown};
use rayon::prelude::*;

use crate::costs::{Kind, PlaceKind};
use crate::options::MAX_SAMPLES;
use crate::problem::{BAD_OPTION, NO_ANSWER, Problem};
use crate::settings::Settings;
use crate::wire::{Embedded, Failed, Outcome};

/// An image as it was sent.
#[derive(Debug, Clone)]
pub struct SentImage {
    /// As the client named it.
    pub name: Option<String>,
    /// Content of the file.
    pub bytes: Bytes,
}

/// What is asked about an image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LocateOptions {
    /// Name of the model. `None`: the first model that accepts the picture.
    pub model: Option<String>,
    /// Inference options; where unset, the defaults of the model.
    pub inference: InferenceOptions,
    /// What the answer should hold.
    pub answer: AnswerOptions,
    /// Where it can only have been.
    pub within: Vec<Constraint>,
    /// Steps of the denoising that are wanted.
    pub frames: usize,
}

/// What is wanted of an image.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wanted {
    Place(LocateOptions),
    Embedding { model: Option<String> },
}

/// What came of it.
pub(crate) enum Made {
    Place(Outcome<Answer>),
    Embedding(Outcome<Embedded>),
}

impl Made {
    pub(crate) fn is_answered(&self) -> bool {
        match self {
            Made::Place(outcome) => matches!(outcome, Outcome::Answered(_)),
            Made::Embedding(outcome) => matches!(outcome, Outcome::Answered(_)),
        }
    }
}

/// Models that are open, and limits to what they are given.
#[derive(Debug)]
pub struct Engine {
    models: Vec<Geolocator>,
    /// Of the network, for one image.
    max_evaluations: usize,
    read: ReadOptions,
}

/// An image that could be read.
struct Read {
    facts: ImageFacts,
    gps: Option<LatLon>,
}

/// The number of a job, and what was read for it.
type Job = (usize, Read, Photo);

impl Engine {
    /// Opens the models of the settings, or all that are installed.
    pub fn open(settings: &Settings) -> Result<Engine, CannotOpen> {
        let mut names = settings.models.clone();
        if names.is_empty() {
            // Without a home there is only the model inside.
            let installed = ModelHome::from_env().map(|home| installed_models(&home));
            names = installed.unwrap_or_else(|_| vec![BUILT_IN.to_owned()]);
        }
        let encoder = match &settings.encoder {
            Some(path) => EncoderSource::Path(path.clone()),
            None => EncoderSource::Installed,
        };
        let options =
            OpenOptions { device: settings.device.clone(), encoder, ..OpenOptions::default() };
        let open = |name: &String| {
            tracing::info!(model = name, "opening");
            Geolocator::open_with(name, &options, &mut |_, _| {})
        };
        let models: Vec<Geolocator> = names.iter().map(open).collect::<Result<_, CannotOpen>>()?;
        let mut seen = HashSet::new();
        if let Some(model) = models.iter().find(|model| !seen.insert(&model.identity().name)) {
            return Err(CannotOpen::SameName(model.identity().name.clone()));
        }
        let max_evaluations = settings.max_evaluations;
        Ok(Engine { models, max_evaluations, read: read_options(settings) })
    }

    /// The models, the one to ask first at the front.
    pub fn models(&self) -> &[Geolocator] {
        &self.models
    }

    pub(crate) fn model(&self, name: &str) -> Result<&Geolocator, Problem> {
        let found = self.models.iter().find(|model| model.identity().name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.models.iter().map(|m| m.identity().name.as_str()).collect();
            let detail = format!(
                "there is no model `{}` on this server: use {}",
                shown(name),
                names.join(", ")
            );
            Problem::new(BAD_OPTION, detail)
        })
    }

    /// What decides about the cost of an image.
    pub(crate) fn kind(&self, wanted: &Wanted) -> Kind {
        let (model, place) = match wanted {
            Wanted::Embedding { model } => (model, None),
            Wanted::Place(options) => {
                let inference = options.inference;
                let plain = LocateOptions {
                    model: options.model.clone(),
                    inference,
                    ..LocateOptions::default()
                };
                let models = self.chosen(&plain).unwrap_or_default();
                let evaluations: usize = models.iter().map(Geolocator::evaluations).sum();
                let place = PlaceKind {
                    evaluations: usize::BITS - evaluations.leading_zeros(),
                    registration: inference.registration,
                    is_within: !options.within.is_empty(),
                    has_frames: options.frames > 0,
                    has_draws: options.answer.draws > 0,
                };
                (&options.model, Some(place))
            }
        };
        Kind { model: model.clone(), place }
    }

    /// Whether models use other processors or threads than those that call them.
    pub(crate) fn works_elsewhere(&self) -> bool {
        self.models.iter().any(|model| model.identity().name != BUILT_IN)
    }

    /// The models that are asked, in the way that the options say. Refused if one can't be asked so.
    pub(crate) fn chosen(&self, options: &LocateOptions) -> Result<Vec<Geolocator>, Problem> {
        let models = match &options.model {
            Some(name) => vec![self.model(name)?],
            None => {
                let best = ground_model(self.models.iter().map(|m| m.identity().name.as_str()));
                let ground = |model: &&Geolocator| Some(model.identity().name.as_str()) == best;
                let first = self.models.first().into_iter();
                // Whoever rejects nothing leaves nothing for others.
                let rejects = self.models.first().is_some_and(Geolocator::rejects_pictures);
                let others = self.models.iter().skip(1).filter(|_| rejects).filter(ground);
                first.chain(others).collect()
            }
        };
        let with = |own: &Geolocator| {
            let wrong = |error: locdiff::locate::InvalidInference| {
                Problem::new(BAD_OPTION, error.to_string())
            };
            let model = own.with(&options.inference).map_err(wrong)?.within(&options.within);
            // What a stranger may make the server compute: no less than the model does by itself.
            let (draws, most) =
                (model.inference().draws(), MAX_SAMPLES.max(own.inference().draws()));
            if draws > most {
                let detail = format!("samples times views is {draws}: use at most {most}");
                return Err(Problem::new(BAD_OPTION, detail));
            }
            let is_watched = options.frames > 0 && model.can_denoise();
            let watched = if is_watched { model.steps_of_denoising() } else { 0 };
            let evaluations = model.evaluations() + watched;
            let most = self.max_evaluations.max(own.evaluations());
            if evaluations > most {
                let less =
                    if is_watched { "no `frames`, or fewer" } else { "fewer samples, views or" };
                let detail = format!(
                    "one image needs {evaluations} evaluations of the network, the limit is {most}: use {less} steps"
                );
                return Err(Problem::new(BAD_OPTION, detail));
            }
            Ok(model)
        };
        models.into_iter().map(with).collect()
    }

    /// Where images were taken, all with the same options.
    pub fn locate(&self, images: &[SentImage], options: &LocateOptions) -> Vec<Outcome<Answer>> {
        let wanted = Wanted::Place(options.clone());
        let jobs: Vec<(&SentImage, &Wanted)> =
            images.iter().map(|image| (image, &wanted)).collect();
        let made = self.make(&jobs).into_iter();
        made.filter_map(|made| match made {
            Made::Place(outcome) => Some(outcome),
            Made::Embedding(_) => None,
        })
        .collect()
    }

    /// What is wanted of each image. Images for the same model are computed together.
    pub(crate) fn make(&self, jobs: &[(&SentImage, &Wanted)]) -> Vec<Made> {
        let read: Vec<(Read, Option<Photo>, Option<Problem>)> =
            jobs.par_iter().map(|(image, _)| self.read(image)).collect();
        let mut made: BTreeMap<usize, Made> = BTreeMap::new();
        // Images with equal options, with what was read of them.
        let mut groups: Vec<(&Wanted, Vec<Job>)> = Vec::new();
        for (index, (read, photo, problem)) in read.into_iter().enumerate() {
            let wanted = jobs[index].1;
            match (photo, problem) {
                (Some(photo), _) => {
                    let job = (index, read, photo);
                    match groups.iter_mut().find(|(other, _)| other.is_asked_like(wanted)) {
                        Some((_, group)) => group.push(job),
                        None => groups.push((wanted, vec![job])),
                    }
                }
                (None, problem) => {
                    let problem = problem.unwrap_or_else(Problem::broken);
                    made.insert(index, failed(wanted, read.facts, problem));
                }
            }
        }
        for (wanted, group) in groups {
            let (indexed, photos): (Vec<(usize, Read)>, Vec<Photo>) =
                group.into_iter().map(|(index, read, photo)| ((index, read), photo)).unzip();
            match wanted {
                Wanted::Place(options) => {
                    self.locate_group(options, indexed, photos, jobs, &mut made);
                }
                Wanted::Embedding { model } => {
                    self.embed_group(model.as_deref(), indexed, &photos, jobs, &mut made);
                }
            }
        }
        made.into_values().collect()
    }

    fn locate_group(
        &self,
        options: &LocateOptions,
        indexed: Vec<(usize, Read)>,
        photos: Vec<Photo>,
        jobs: &[(&SentImage, &Wanted)],
        made: &mut BTreeMap<usize, Made>,
    ) {
        let chosen = self.chosen(options);
        let located: Vec<LocateResult> = match chosen.as_deref() {
            Ok([model]) if options.model.is_some() => {
                locate_because(model, ChosenBecause::Named, &photos)
            }
            Ok([first, others @ ..]) => {
                let other = others.first().map(|other| {
                    |photos: &[Photo]| locate_because(other, ChosenBecause::ForTheGround, photos)
                });
                locate_in_turn(first, &photos, other)
            }
            // Refused before, when the options were read.
            Ok([]) | Err(_) => {
                let reason = "no model supports these options".to_owned();
                let none = NoAnswer { reason, no_model: true };
                photos.iter().map(|_| Err(none.clone())).collect()
            }
        };
        let models = chosen.unwrap_or_default();
        // Surveys are work for one thread each.
        let rows: Vec<_> = indexed.into_iter().zip(located).zip(photos).collect();
        let outcomes: Vec<(usize, Made)> = rows
            .into_par_iter()
            .map(|(((index, read), located), photo)| {
                let Wanted::Place(options) = jobs[index].1 else {
                    return (index, failed(jobs[index].1, read.facts, Problem::broken()));
                };
                let facts = read.facts.clone();
                let made = match answer(located, read, &photo, options, &models) {
                    Ok(answer) => Made::Place(Outcome::Answered(Box::new(answer))),
                    Err(problem) => failed(jobs[index].1, facts, problem),
                };
                (index, made)
            })
            .collect();
        made.extend(outcomes);
    }

    fn embed_group(
        &self,
        model: Option<&str>,
        indexed: Vec<(usize, Read)>,
        photos: &[Photo],
        jobs: &[(&SentImage, &Wanted)],
        made: &mut BTreeMap<usize, Made>,
    ) {
        let model = match model {
            None => Ok(&self.models[0]),
            Some(name) => self.model(name),
        };
        match model {
            Ok(model) => {
                for ((index, read), embedding) in indexed.into_iter().zip(model.embed(photos)) {
                    let model = ModelFacts::new(model.identity(), None);
                    let embedded = Embedded { image: read.facts, model, embedding };
                    made.insert(index, Made::Embedding(Outcome::Answered(Box::new(embedded))));
                }
            }
            Err(problem) => {
                for (index, read) in indexed {
                    made.insert(index, failed(jobs[index].1, read.facts, problem.clone()));
                }
            }
        }
    }

    fn read(&self, image: &SentImage) -> (Read, Option<Photo>, Option<Problem>) {
        let facts = facts_of(image);
        match Photo::decode(&image.bytes, &self.read) {
            Ok(photo) => {
                let facts = facts.with_size(&photo);
                let gps = gps_of(&image.bytes).and_then(|(lat, lon)| LatLon::new(lat, lon).ok());
                (Read { facts, gps }, Some(photo), None)
            }
            Err(error) => (Read { facts, gps: None }, None, Some(Problem::of_photo(&error))),
        }
    }
}

impl Wanted {
    /// Whether images with these two sets of options can be computed together.
    pub(crate) fn is_asked_like(&self, other: &Wanted) -> bool {
        match (self, other) {
            (Wanted::Place(a), Wanted::Place(b)) => {
                (&a.model, a.inference) == (&b.model, b.inference)
            }
            (Wanted::Embedding { model: a }, Wanted::Embedding { model: b }) => a == b,
            _ => false,
        }
    }
}

/// The record of an answer, with all that was asked for.
fn answer(
    located: LocateResult,
    read: Read,
    photo: &Photo,
    options: &LocateOptions,
    models: &[Geolocator],
) -> Result<Answer, Problem> {
    let none = |NoAnswer { reason, no_model }: NoAnswer| {
        let remedy = if no_model {
            ". For photographs from the ground, install a model on the server with `locdiff model fetch plonk-yfcc` or \
             `locdiff model fetch geoclip`, then restart the server"
        } else {
            ""
        };
        Problem::new(NO_ANSWER, format!("{reason}{remedy}"))
    };
    let (estimate, because) = located.map_err(none)?;
    let mut answer = Answer::new(read.facts, &estimate, because, read.gps, &options.answer);
    let asked = models.iter().find(|model| model.identity() == estimate.model());
    if let Some(model) = asked.filter(|model| options.frames > 0 && model.can_denoise()) {
        answer.frames = Some(model.denoising(photo, options.frames));
    }
    Ok(answer)
}

/// Limits to what is decoded.
pub(crate) fn read_options(settings: &Settings) -> ReadOptions {
    ReadOptions {
        max_bytes: settings.max_image_bytes,
        max_pixels: settings.max_image_pixels,
        ..ReadOptions::default()
    }
}

/// What is known of an image before it is decoded.
pub(crate) fn facts_of(image: &SentImage) -> ImageFacts {
    ImageFacts::of_bytes(image.name.clone(), &image.bytes)
}

/// No answer to a wish.
pub(crate) fn failed(wanted: &Wanted, image: ImageFacts, problem: Problem) -> Made {
    let failed = Failed { image, problem };
    match wanted {
        Wanted::Place(_) => Made::Place(Outcome::Failed(failed)),
        Wanted::Embedding { .. } => Made::Embedding(Outcome::Failed(failed)),
    }
}
