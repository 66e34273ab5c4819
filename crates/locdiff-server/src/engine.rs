//! The models, and what they say of a batch of images: the server without HTTP.

use std::collections::BTreeMap;

use bytes::Bytes;
use locdiff::checksum::sha256;
use locdiff::locate::{FOR_THE_GROUND, NAMED, NoAnswer, OTHERWISE, Said, ask, ask_in_turn};
use locdiff::models::installed_models;
use locdiff::photo::{ReadOptions, gps_of};
use locdiff::{
    CannotOpen, Constraint, Estimate, Geolocator, ModelHome, OpenOptions, Photo, Summary,
};
use locdiff_sphere::LatLon;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::problem::{BAD_OPTION, NO_ANSWER, Problem};
use crate::settings::Settings;
use crate::wire::{
    DensityWire, Embedded, ExifPlace, Frame, ImageFacts, Located, ModelFacts, Outcome, rounded,
};

/// An image as it was sent.
#[derive(Debug, Clone)]
pub struct SentImage {
    /// As the client named it.
    pub name: Option<String>,
    /// The file.
    pub bytes: Bytes,
}

/// What is asked about an image.
#[derive(Debug, Clone, PartialEq)]
pub struct LocateOptions {
    /// Which model. `None`: the one that takes the picture for its kind.
    pub model: Option<String>,
    /// Candidates at most.
    pub top: usize,
    /// Where it can only have been.
    pub within: Vec<Constraint>,
    /// Places to draw from the density.
    pub samples: usize,
    /// For what is drawn.
    pub seed: u64,
    /// Whether the density is wanted too.
    pub density: bool,
    /// Steps of the denoising that are wanted.
    pub frames: usize,
}

impl Default for LocateOptions {
    fn default() -> LocateOptions {
        LocateOptions {
            model: None,
            top: 5,
            within: Vec::new(),
            samples: 0,
            seed: 0,
            density: false,
            frames: 0,
        }
    }
}

/// What is wanted of an image.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wanted {
    Place(LocateOptions),
    Embedding { model: Option<String> },
}

/// What came of it.
pub(crate) enum Made {
    Place(Outcome<Located>),
    Embedding(Outcome<Embedded>),
}

/// Models that are open, and limits to what they are given.
#[derive(Debug)]
pub struct Engine {
    models: Vec<Geolocator>,
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
            names = installed
                .unwrap_or_else(|_| vec![locdiff::locate::BUILT_IN])
                .iter()
                .map(|name| (*name).to_owned())
                .collect();
        }
        let options = OpenOptions::default();
        let open = |name: &String| {
            tracing::info!(model = name, "opening");
            Geolocator::open_with(name, &options, &mut |_, _| {})
        };
        let models = names.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Engine { models, read: read_options(settings) })
    }

    /// The models, the one to ask first at the front.
    pub fn models(&self) -> &[Geolocator] {
        &self.models
    }

    /// A model by its name.
    pub(crate) fn model(&self, name: &str) -> Result<&Geolocator, Problem> {
        let found = self.models.iter().find(|model| model.identity().name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.models.iter().map(|m| m.identity().name.as_str()).collect();
            let detail = format!("model `{name}` is not here: there is {}", names.join(", "));
            Problem::new(BAD_OPTION, detail)
        })
    }

    /// Where images were taken, all with the same options.
    pub fn locate(&self, images: &[SentImage], options: &LocateOptions) -> Vec<Outcome<Located>> {
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
        // By model and kind of wish: which jobs, with what was read of them.
        let mut groups: BTreeMap<(Option<&str>, bool), Vec<Job>> = BTreeMap::new();
        for (index, (read, photo, problem)) in read.into_iter().enumerate() {
            let wanted = jobs[index].1;
            match (photo, problem) {
                (Some(photo), _) => {
                    let key = match wanted {
                        Wanted::Place(options) => (options.model.as_deref(), true),
                        Wanted::Embedding { model } => (model.as_deref(), false),
                    };
                    groups.entry(key).or_default().push((index, read, photo));
                }
                (None, problem) => {
                    let problem = problem.unwrap_or_else(Problem::broken);
                    made.insert(index, failed(wanted, read.facts, problem));
                }
            }
        }
        for ((model, place), group) in groups {
            let (indexed, photos): (Vec<(usize, Read)>, Vec<Photo>) =
                group.into_iter().map(|(index, read, photo)| ((index, read), photo)).unzip();
            if place {
                self.locate_group(model, indexed, photos, jobs, &mut made);
            } else {
                self.embed_group(model, indexed, &photos, jobs, &mut made);
            }
        }
        made.into_values().collect()
    }

    fn locate_group(
        &self,
        model: Option<&str>,
        indexed: Vec<(usize, Read)>,
        photos: Vec<Photo>,
        jobs: &[(&SentImage, &Wanted)],
        made: &mut BTreeMap<usize, Made>,
    ) {
        let said: Vec<Said> = match model.map(|name| self.model(name)) {
            None => self.ask_automatically(&photos),
            Some(Ok(model)) => ask(model, NAMED, &photos),
            // Refused before, when the options were read.
            Some(Err(problem)) => {
                let none = NoAnswer { reason: problem.detail().to_owned(), no_model: true };
                photos.iter().map(|_| Err(none.clone())).collect()
            }
        };
        // Surveys are work for one thread each.
        let rows: Vec<_> = indexed.into_iter().zip(said).zip(photos).collect();
        let outcomes: Vec<(usize, Made)> = rows
            .into_par_iter()
            .map(|(((index, read), said), photo)| {
                let Wanted::Place(options) = jobs[index].1 else {
                    return (index, failed(jobs[index].1, read.facts, Problem::broken()));
                };
                let facts = read.facts.clone();
                let made = match self.answer(said, read, &photo, options) {
                    Ok(located) => Made::Place(Outcome::Answered(Box::new(located))),
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
                    let model = ModelFacts::of(model.identity(), None);
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

    fn ask_automatically(&self, photos: &[Photo]) -> Vec<Said> {
        let ground = self.models.iter().find(|model| model.identity().name == FOR_THE_GROUND);
        let Some(first) = self.models.first() else { return Vec::new() };
        let others = ground.filter(|_| self.models.len() > 1);
        ask_in_turn(
            first,
            photos,
            others.map(|other| |photos: &[Photo]| ask(other, OTHERWISE, photos)),
        )
    }

    fn answer(
        &self,
        said: Said,
        read: Read,
        photo: &Photo,
        options: &LocateOptions,
    ) -> Result<Located, Problem> {
        let none = |NoAnswer { reason, no_model }: NoAnswer| {
            let remedy = if no_model {
                ". For photographs from the ground this server needs GeoCLIP: `locdiff model fetch geoclip`, then start it again"
            } else {
                ""
            };
            Problem::new(NO_ANSWER, format!("{reason}{remedy}"))
        };
        let (whole, because) = said.map_err(none)?;
        let mut estimate: Estimate = whole.clone();
        for constraint in &options.within {
            estimate = estimate.restricted_to(constraint).map_err(|error| {
                Problem::new(NO_ANSWER, format!("within {constraint}: {error}"))
            })?;
        }
        let survey = estimate.survey();
        let summary = Summary::of(&survey, options.top);
        let model = ModelFacts::of(estimate.model(), Some(because));
        let mut located = Located::new(read.facts, model, &summary);
        located.within = estimate.within().to_vec();
        located.exif = read.gps.map(|gps| ExifPlace {
            latitude: gps.latitude(),
            longitude: gps.longitude(),
            distance_km: rounded(gps.distance_km(summary.best().place), 3),
        });
        if options.samples > 0 {
            let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
            let places = survey.sample(options.samples, &mut rng);
            let pair =
                |place: LatLon| [rounded(place.latitude(), 6), rounded(place.longitude(), 6)];
            located.samples = Some(places.into_iter().map(pair).collect());
        }
        if options.density {
            located.density = DensityWire::of(whole.density());
        }
        if options.frames > 0
            && let Ok(model) = self.model(&located.model.name)
            && model.can_denoise()
        {
            let steps = model.denoising(photo, options.frames, options.seed);
            let of = steps.last().map_or(0, |(step, _)| *step);
            let frame = |(step, coefficients)| Frame {
                step,
                of,
                density: DensityWire::of_coefficients(&coefficients),
            };
            located.denoising = Some(steps.into_iter().map(frame).collect());
        }
        Ok(located)
    }

    fn read(&self, image: &SentImage) -> (Read, Option<Photo>, Option<Problem>) {
        let mut facts = facts_of(image);
        match Photo::decode(&image.bytes, &self.read) {
            Ok(photo) => {
                (facts.width, facts.height) = (Some(photo.width()), Some(photo.height()));
                let gps = gps_of(&image.bytes).and_then(|(lat, lon)| LatLon::new(lat, lon).ok());
                (Read { facts, gps }, Some(photo), None)
            }
            Err(error) => (Read { facts, gps: None }, None, Some(Problem::of_photo(&error))),
        }
    }
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
    ImageFacts {
        name: image.name.clone(),
        sha256: sha256(&image.bytes),
        bytes: image.bytes.len(),
        width: None,
        height: None,
    }
}

/// No answer to a wish.
pub(crate) fn failed(wanted: &Wanted, image: ImageFacts, problem: Problem) -> Made {
    let failed = crate::wire::Failed { image, problem };
    match wanted {
        Wanted::Place(_) => Made::Place(Outcome::Failed(failed)),
        Wanted::Embedding { .. } => Made::Embedding(Outcome::Failed(failed)),
    }
}
