//! Which models are asked about a picture.

use std::collections::HashSet;
use std::sync::OnceLock;

use locdiff::locate::{ChosenBecause, LocateResult, NoAnswer, locate_because, locate_in_turn};
use locdiff::models::{BUILT_IN, FOR_THE_GROUND, installed_models};
use locdiff::{Geolocator, ModelHome, OpenOptions, Photo};

use super::Arguments;
use crate::asking::{CannotAsk, open};

pub(crate) const GET_GEOCLIP: &str = "\
For photographs from the ground, GeoCLIP (1.7 GB, MIT) can be had with

    locdiff model fetch geoclip

`locdiff doctor` says what is on this machine and what is missing.";

/// Whom to ask.
pub(crate) enum Models<'a> {
    /// Each of them about each picture.
    Named(Vec<Geolocator>),
    /// The one inside the program; and about what isn't for it, another one if there is one.
    Automatic { built_in: Box<Geolocator>, other: Option<Box<Other<'a>>> },
}

/// A model that is opened when it is first needed.
pub(crate) struct Other<'a> {
    arguments: &'a Arguments,
    options: OpenOptions,
    opened: OnceLock<Result<Geolocator, String>>,
}

impl Other<'_> {
    fn opened(&self) -> &Result<Geolocator, String> {
        self.opened.get_or_init(|| {
            open(FOR_THE_GROUND, &self.options, &self.arguments.inference)
                .map(|model| model.within(&self.arguments.within))
                .map_err(|error| error.to_string())
        })
    }

    /// What it makes of each; or why it can't be opened, of each.
    fn locate(&self, photos: &[Photo]) -> Vec<LocateResult> {
        match self.opened() {
            Ok(model) => locate_because(model, ChosenBecause::ForTheGround, photos),
            Err(reason) => {
                let none = NoAnswer { reason: reason.clone(), no_model: false };
                photos.iter().map(|_| Err(none.clone())).collect()
            }
        }
    }
}

impl<'a> Models<'a> {
    pub(crate) fn open(arguments: &'a Arguments) -> Result<Models<'a>, CannotAsk> {
        let options = arguments.opening.options();
        if !arguments.model.is_empty() {
            // Once each, in the order given.
            let mut seen = HashSet::new();
            let names = arguments.model.iter().filter(|name| seen.insert(*name));
            let opened = names.map(|name| {
                Ok::<_, CannotAsk>(
                    open(name, &options, &arguments.inference)?.within(&arguments.within),
                )
            });
            return Ok(Models::Named(opened.collect::<Result<_, _>>()?));
        }
        let built_in = open(BUILT_IN, &options, &arguments.inference)?.within(&arguments.within);
        // Without a home there are no others.
        let has_other = ModelHome::from_env()
            .is_ok_and(|home| installed_models(&home).iter().any(|name| name == FOR_THE_GROUND));
        let other =
            has_other.then(|| Box::new(Other { arguments, options, opened: OnceLock::new() }));
        Ok(Models::Automatic { built_in: Box::new(built_in), other })
    }

    /// All models that may answer. Opens those that are not open yet.
    pub(crate) fn all(&self) -> Result<Vec<&Geolocator>, String> {
        match self {
            Models::Named(models) => Ok(models.iter().collect()),
            Models::Automatic { built_in, other } => {
                let mut all = vec![built_in.as_ref()];
                if let Some(other) = other {
                    all.push(other.opened().as_ref().map_err(String::clone)?);
                }
                Ok(all)
            }
        }
    }

    /// What is said of each photograph, and by which model if it could be opened.
    pub(crate) fn locate(&self, photos: &[Photo]) -> Vec<Vec<(LocateResult, Option<&Geolocator>)>> {
        match self {
            Models::Named(models) => {
                let mut all: Vec<Vec<_>> = photos.iter().map(|_| Vec::new()).collect();
                for model in models {
                    let located = locate_because(model, ChosenBecause::Named, photos);
                    for (located, of_one) in located.into_iter().zip(&mut all) {
                        of_one.push((located, Some(model)));
                    }
                }
                all
            }
            Models::Automatic { built_in, other } => {
                let locate = other.as_ref().map(|other| |photos: &[Photo]| other.locate(photos));
                let located = locate_in_turn(built_in, photos, locate).into_iter();
                let by = |because: &ChosenBecause| match because {
                    ChosenBecause::ForTheGround => other.as_ref()?.opened.get()?.as_ref().ok(),
                    _ => Some(built_in.as_ref()),
                };
                located
                    .map(|located| {
                        let model = located.as_ref().ok().and_then(|(_, because)| by(because));
                        vec![(located, model)]
                    })
                    .collect()
            }
        }
    }
}
