//! Which models are asked about a picture.

use std::cell::OnceCell;
use std::collections::HashSet;

use burn::tensor::Device;
use indicatif::{ProgressBar, ProgressStyle};
use locdiff::locate::{
    BUILT_IN, FOR_THE_GROUND, NAMED, NoAnswer, OTHERWISE, Said, ask, ask_in_turn,
};
use locdiff::models::installed_models;
use locdiff::{CannotOpen, Geolocator, ModelHome, OpenOptions, Photo};

use super::Arguments;

pub(super) const GET_GEOCLIP: &str = "\
For photographs from the ground, GeoCLIP (1.7 GB, MIT) can be had with

    locdiff model fetch geoclip

`locdiff doctor` says what is on this machine and what is missing.";

/// Whom to ask.
pub(super) enum Models<'a> {
    /// Each of them about each picture.
    Named(Vec<Geolocator>),
    /// The one inside the program; and about what isn't for it, another one if there is one.
    Automatic { built_in: Geolocator, other: Option<Other<'a>> },
}

/// A model that is opened when it is first needed.
pub(super) struct Other<'a> {
    arguments: &'a Arguments,
    device: &'a Device,
    opened: OnceCell<Result<Geolocator, String>>,
}

impl Other<'_> {
    /// What it says; or why it can't be opened, of each.
    fn locate(&self, photos: &[Photo]) -> Vec<Said> {
        let opened = self.opened.get_or_init(|| {
            open(FOR_THE_GROUND, self.device, self.arguments.ten_crop)
                .map_err(|error| error.to_string())
        });
        match opened {
            Ok(locator) => ask(locator, OTHERWISE, photos),
            Err(reason) => {
                let none = NoAnswer { reason: reason.clone(), no_model: false };
                photos.iter().map(|_| Err(none.clone())).collect()
            }
        }
    }
}

impl<'a> Models<'a> {
    pub(super) fn open(
        arguments: &'a Arguments,
        device: &'a Device,
    ) -> Result<Models<'a>, CannotOpen> {
        if !arguments.model.is_empty() {
            // Once each, in the order given.
            let mut seen = HashSet::new();
            let names = arguments.model.iter().filter(|name| seen.insert(*name));
            let opened = names.map(|name| open(name, device, arguments.ten_crop));
            return Ok(Models::Named(opened.collect::<Result<_, _>>()?));
        }
        let built_in = open(BUILT_IN, device, arguments.ten_crop)?;
        // Without a home there are no others.
        let has_other = ModelHome::from_env()
            .is_ok_and(|home| installed_models(&home).contains(&FOR_THE_GROUND));
        let other = has_other.then(|| Other { arguments, device, opened: OnceCell::new() });
        Ok(Models::Automatic { built_in, other })
    }

    /// What is said of each photograph.
    pub(super) fn locate(&self, photos: &[Photo]) -> Vec<Vec<Said>> {
        match self {
            Models::Named(locators) => {
                let mut all: Vec<Vec<Said>> = photos.iter().map(|_| Vec::new()).collect();
                for locator in locators {
                    for (said, of_one) in ask(locator, NAMED, photos).into_iter().zip(&mut all) {
                        of_one.push(said);
                    }
                }
                all
            }
            Models::Automatic { built_in, other } => {
                let other = other.as_ref().map(|other| |photos: &[Photo]| other.locate(photos));
                let said = ask_in_turn(built_in, photos, other).into_iter();
                said.map(|said| vec![said]).collect()
            }
        }
    }
}

/// A model by name; a bar on stderr shows what is computed once and then kept.
pub(crate) fn open(name: &str, device: &Device, ten_crop: bool) -> Result<Geolocator, CannotOpen> {
    let options = OpenOptions { device: device.clone(), ten_crop, ..OpenOptions::default() };
    let template = "{msg} {wide_bar} {pos}/{len} {eta}";
    let bar = ProgressBar::hidden().with_message(format!("{name}: encoding places, this once"));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let opened = Geolocator::open_with(name, &options, &mut |done, total| {
        if bar.is_hidden() {
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    opened
}
