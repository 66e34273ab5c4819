//! Models by name: which there are, and how they are opened.

use super::earth_view::EarthView;
use super::geoclip::{GeoClipLocator, GeoClipOptions};
use super::home::ModelHome;
use super::opening::{CannotOpen, OpenOptions};
use crate::locate::Geolocator;

impl Geolocator {
    /// A model on this machine, by name: `earth-view` (built in, for views of the Earth from above),
    /// `geoclip` (over its own gallery of places), or `geoclip-even` (over an even grid).
    pub fn open(name: &str) -> Result<Geolocator, CannotOpen> {
        Geolocator::open_with(name, &OpenOptions::default(), &mut |_, _| {})
    }

    /// A model on this machine, by name, with options. What is computed once and then kept (the embeddings of
    /// GeoCLIP's places) may take a minute: `progress` hears how much of how much is done.
    pub fn open_with(
        name: &str,
        options: &OpenOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Geolocator, CannotOpen> {
        if name == "earth-view" {
            return Ok(Geolocator::from_model(EarthView::built_in(&options.device)));
        }
        let home = match &options.home {
            Some(home) => home.clone(),
            None => ModelHome::from_env()?,
        };
        let even = match name {
            "geoclip" => false,
            "geoclip-even" => true,
            _ => return Err(CannotOpen::Unknown(name.to_owned())),
        };
        let geoclip = GeoClipOptions { even, ten_crop: options.ten_crop };
        let model = GeoClipLocator::open(&home, geoclip, &options.device, progress)?;
        Ok(Geolocator::from_model(model))
    }
}

/// Models that are complete on this machine, the one to ask first at the front.
pub fn installed_models(home: &ModelHome) -> Vec<&'static str> {
    let geoclip = GeoClipLocator::missing(home).is_none();
    if geoclip { vec!["earth-view", "geoclip", "geoclip-even"] } else { vec!["earth-view"] }
}
