//! The views that the model is tested on, none of which it was trained on.

use anyhow::Result;
use locdiff_earth::{Renderer, Shows, View};
use locdiff_sphere::LatLon;

use locdiff_experiments::earth_sources::Folders;

/// Views of some imagery.
pub struct TestSet {
    pub name: &'static str,
    pub source: &'static str,
    /// Lights, for a set by night.
    pub lights: Option<&'static str>,
    /// A source serves only views at least 64 of its pixels wide.
    pub narrowest_km: f64,
    pub shows: Shows,
}

const fn by_day(name: &'static str, source: &'static str, narrowest_km: f64) -> TestSet {
    TestSet { name, source, lights: None, narrowest_km, shows: Shows::Land }
}

pub const SETS: [TestSet; 7] = [
    by_day("flightgear", "flightgear", 320.0),
    by_day("three-globe", "three-globe", 630.0),
    by_day("january", "january", 1250.0),
    by_day("zoom 7", "blue-marble", 100.0),
    TestSet {
        lights: Some("three-globe-night"),
        ..by_day("three-globe, night", "three-globe", 630.0)
    },
    TestSet { lights: Some("black-marble"), ..by_day("zoom 7, night", "blue-marble", 100.0) },
    TestSet { shows: Shows::OpenSea, ..by_day("open sea", "blue-marble", 100.0) },
];

impl TestSet {
    pub fn render(
        &self,
        folders: &Folders,
        seed: u64,
        count: usize,
        side: usize,
    ) -> Result<Vec<View>> {
        let mask = folders.mask()?;
        let day = vec![folders.open(self.source, &mask)?];
        let night: Result<Vec<_>> =
            self.lights.iter().map(|name| folders.open(name, &mask)).collect();
        let mut renderer = Renderer::new(mask, day, night?);
        renderer.framing.width_km[0] = self.narrowest_km;
        renderer.framing.shows = self.shows;
        renderer.style.night_share = 1.0;
        Ok(renderer.render_batch(seed, count, side))
    }
}

pub fn place(view: &View) -> LatLon {
    LatLon::new(view.label.latitude, view.label.longitude).expect("rendered places are on Earth")
}

/// Of all views, one after the other.
pub fn pixels(views: &[View]) -> Vec<u8> {
    views.iter().flat_map(|view| view.pixels.iter().copied()).collect()
}
