//! Which models are asked about a picture.

use std::collections::HashSet;
use std::sync::OnceLock;

use locdiff::locate::{ChosenBecause, LocateResult, NoAnswer, locate_because, locate_in_turn};
use locdiff::models::{BUILT_IN, ground_model, installed_models};
use locdiff::{Constraint, Geolocator, ModelHome, Photo};

use super::Scene;
use crate::asking::{CannotAsk, InferenceArguments, OpeningArguments, open};

pub(crate) const GET_A_MODEL: &str = "\
For photographs from the ground, get one of these models:

    locdiff model fetch plonk-yfcc     # 1.4 GB, MIT and Apache-2.0
    locdiff model fetch geoclip        # 1.7 GB, MIT

`locdiff doctor` shows what is installed and what is missing.";

/// Which models a command asks, and how.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    /// None: `scene` and the picture decide.
    pub(crate) models: &'a [String],
    pub(crate) scene: Option<Scene>,
    pub(crate) within: &'a [Constraint],
    pub(crate) opening: &'a OpeningArguments,
    pub(crate) inference: &'a InferenceArguments,
}

impl Asking<'_> {
    fn open(&self, name: &str) -> Result<Geolocator, CannotAsk> {
        Ok(open(name, &self.opening.options(), self.inference)?.within(self.within))
    }
}

/// The models that are asked.
pub(crate) enum Models<'a> {
    /// Each of them about each picture.
    Named(Vec<Geolocator>),
    /// The one inside the program; and about what isn't for it, the best one for the ground if there is one.
    Automatic { built_in: Box<Geolocator>, ground: Option<Box<Ground<'a>>> },
    /// The one inside the program, because `--scene` chooses it.
    Orbit(Box<Geolocator>),
    /// The best one for the ground, if there is one, because `--scene` chooses it.
    Ground(Option<Box<Ground<'a>>>),
}

/// The best installed model for photographs from the ground, which is opened when it is first needed.
pub(crate) struct Ground<'a> {
    name: &'static str,
    asking: Asking<'a>,
    opened: OnceLock<Result<Geolocator, String>>,
}

impl<'a> Ground<'a> {
    fn find(asking: Asking<'a>) -> Option<Box<Ground<'a>>> {
        // Without a home there is none.
        let installed = installed_models(&ModelHome::from_env().ok()?);
        let name = ground_model(installed.iter().map(String::as_str))?;
        Some(Box::new(Ground { name, asking, opened: OnceLock::new() }))
    }

    fn opened(&self) -> &Result<Geolocator, String> {
        let open = || self.asking.open(self.name).map_err(|error| error.to_string());
        self.opened.get_or_init(open)
    }

    /// What it makes of each; or why it can't be opened, of each.
    fn locate(&self, because: ChosenBecause, photos: &[Photo]) -> Vec<LocateResult> {
        match self.opened() {
            Ok(model) => locate_because(model, because, photos),
            Err(reason) => none(photos, reason.clone(), false),
        }
    }
}

/// The same reason why there is no answer, for each.
fn none(photos: &[Photo], reason: String, no_model: bool) -> Vec<LocateResult> {
    let none = NoAnswer { reason, no_model };
    photos.iter().map(|_| Err(none.clone())).collect()
}

impl<'a> Models<'a> {
    pub(crate) fn open(asking: Asking<'a>) -> Result<Models<'a>, CannotAsk> {
        if !asking.models.is_empty() {
            // Once each, in the order given.
            let mut seen = HashSet::new();
            let names = asking.models.iter().filter(|name| seen.insert(*name));
            let opened = names.map(|name| asking.open(name));
            return Ok(Models::Named(opened.collect::<Result<_, _>>()?));
        }
        Ok(match asking.scene {
            None => {
                let built_in = Box::new(asking.open(BUILT_IN)?);
                Models::Automatic { built_in, ground: Ground::find(asking) }
            }
            Some(Scene::Orbit) => Models::Orbit(Box::new(asking.open(BUILT_IN)?)),
            Some(Scene::Ground) => Models::Ground(Ground::find(asking)),
        })
    }

    /// The models that are open.
    fn opened(&self) -> Vec<&Geolocator> {
        let (built_in, ground) = match self {
            Models::Named(models) => return models.iter().collect(),
            Models::Automatic { built_in, ground } => (Some(built_in), ground.as_ref()),
            Models::Orbit(built_in) => (Some(built_in), None),
            Models::Ground(ground) => (None, ground.as_ref()),
        };
        let ground = ground.and_then(|ground| ground.opened.get()?.as_ref().ok());
        built_in.map(|built_in| &**built_in).into_iter().chain(ground).collect()
    }

    /// All models that may answer. Opens those that are not open yet.
    pub(crate) fn all(&self) -> Result<Vec<&Geolocator>, String> {
        if let Models::Automatic { ground: Some(model), .. } | Models::Ground(Some(model)) = self {
            model.opened().as_ref().map_err(String::clone)?;
        }
        Ok(self.opened())
    }

    /// What is said of each photograph, and by which model if it could be opened.
    pub(crate) fn locate(&self, photos: &[Photo]) -> Vec<Vec<(LocateResult, Option<&Geolocator>)>> {
        let located = match self {
            Models::Named(models) => {
                let mut all: Vec<Vec<_>> = photos.iter().map(|_| Vec::new()).collect();
                for model in models {
                    let located = locate_because(model, ChosenBecause::Named, photos);
                    for (located, of_one) in located.into_iter().zip(&mut all) {
                        of_one.push((located, Some(model)));
                    }
                }
                return all;
            }
            Models::Automatic { built_in, ground } => {
                let because = ChosenBecause::ForTheGround;
                let ground = ground.as_ref();
                let ground =
                    ground.map(|model| move |photos: &[Photo]| model.locate(because, photos));
                locate_in_turn(built_in, photos, ground)
            }
            Models::Orbit(built_in) => locate_because(built_in, ChosenBecause::StatedScene, photos),
            Models::Ground(Some(model)) => model.locate(ChosenBecause::StatedScene, photos),
            Models::Ground(None) => {
                let reason = "no suitable model: none for photographs from the ground is installed";
                none(photos, reason.to_owned(), true)
            }
        };
        let models = self.opened();
        let by = |located: &LocateResult| {
            let (estimate, _) = located.as_ref().ok()?;
            models.iter().copied().find(|model| model.identity() == estimate.model())
        };
        let with_model = |located: LocateResult| {
            let model = by(&located);
            vec![(located, model)]
        };
        located.into_iter().map(with_model).collect()
    }
}
