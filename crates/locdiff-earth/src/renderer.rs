//! Views, one after another or many at once.

use std::cell::RefCell;

use rayon::prelude::*;

use crate::camera::{Camera, dot, local_axes, place_of};
use crate::canvas::Canvas;
use crate::framing::{Framing, Shows};
use crate::imagery::Imagery;
use crate::land_mask::LandMask;
use crate::places::Places;
use crate::random::Random;
use crate::scene::Scene;
use crate::sensor::Sensor;
use crate::style::Style;
use crate::vectorized::vectorized;
use crate::{night, shading};

/// A source serves only views at least this many of its texels wide.
const FEWEST_TEXELS: f64 = 64.0;
/// After this many frames without what the framing asks for, the last is taken.
const MOST_TRIES: usize = 400;

/// What is known of a view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Label {
    /// Latitude of the place in the middle of the picture, degrees.
    pub latitude: f64,
    /// Its longitude, degrees.
    pub longitude: f64,
    /// Latitude of the point below the camera.
    pub below_latitude: f64,
    /// Longitude of the point below the camera.
    pub below_longitude: f64,
    /// Width that the picture takes in at the distance of its middle.
    pub width_km: f64,
    /// Angle between straight down and the middle of the picture, at the camera.
    pub tilt_degrees: f64,
    /// Height of the camera.
    pub altitude_km: f64,
    /// Share of the picture that is land.
    pub land_fraction: f64,
    /// Whether the view shows the Earth by night.
    pub night: bool,
    /// Which imagery it was made from, in the order given to the renderer (day or night).
    pub source: usize,
}

/// A picture with its label.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Red, green, blue of each pixel, rows from the top.
    pub pixels: Vec<u8>,
    /// Width and height.
    pub size_px: usize,
    /// What the view shows, with its place.
    pub label: Label,
}

/// Makes views of the Earth.
#[derive(Debug)]
pub struct Renderer {
    mask: LandMask,
    places: Places,
    day: Vec<Imagery>,
    night: Vec<Imagery>,
    /// How much pictures are changed.
    pub style: Style,
    /// What is shown.
    pub framing: Framing,
}

thread_local! {
    static CANVAS: RefCell<Canvas> = RefCell::default();
}

impl Renderer {
    /// A renderer over pictures by day and by night. Night views need both: the moon shines on
    /// what the day shows.
    ///
    /// # Panics
    /// Without any imagery by day.
    pub fn new(mask: LandMask, day: Vec<Imagery>, night: Vec<Imagery>) -> Self {
        assert!(!day.is_empty(), "there is no imagery by day");
        let places = Places::new(&mask);
        Self { mask, places, day, night, style: Style::training(), framing: Framing::default() }
    }

    /// The pictures by day.
    pub fn day(&self) -> &[Imagery] {
        &self.day
    }

    /// Views 0 to `count` of a seed, in parallel. The same seed gives the same bytes.
    pub fn render_batch(&self, seed: u64, count: usize, size_px: usize) -> Vec<View> {
        self.render_range(seed, 0..count as u64, size_px)
    }

    /// Some of the views of a seed: each depends on seed and number only.
    pub fn render_range(
        &self,
        seed: u64,
        numbers: std::ops::Range<u64>,
        size_px: usize,
    ) -> Vec<View> {
        numbers.into_par_iter().map(|number| self.render(seed, number, size_px)).collect()
    }

    /// View `number` of a seed.
    pub fn render(&self, seed: u64, number: u64, size_px: usize) -> View {
        let mut random = Random::of_view(seed, number);
        let night = !self.night.is_empty() && random.chance(self.style.night_share.into());
        let sources = if night { &self.night } else { &self.day };
        let mut framing = self.framing;
        // By night the sea is black.
        if !night && framing.open_sea_share > 0.0 && random.chance(framing.open_sea_share) {
            framing.shows = Shows::OpenSea;
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let (source, width_km) = self.source_and_width(&mut random, sources);
            let camera = framing.camera(&mut random, &self.places, width_km);
            let last = tries >= MOST_TRIES;
            if !last && !framing.worth_rendering(&camera, &self.mask) {
                continue;
            }
            if !last && night && !night::Night::worth_rendering(&camera, &sources[source]) {
                continue;
            }
            let shows = (!last).then_some(framing.shows);
            let made = self.expose(&camera, night, source, &mut random, size_px, shows);
            if let Some((pixels, land_fraction)) = made {
                let (below_latitude, below_longitude) = place_of(camera.position);
                let label = Label {
                    latitude: camera.pose.latitude,
                    longitude: camera.pose.longitude,
                    below_latitude,
                    below_longitude,
                    width_km,
                    tilt_degrees: camera.pose.tilt_degrees,
                    altitude_km: camera.pose.altitude_km,
                    land_fraction,
                    night,
                    source,
                };
                return View { pixels, size_px, label };
            }
        }
    }

    /// The picture that a camera takes by day, with the light and weather of a seed, from the
    /// imagery of this number; and its share of land.
    pub fn photograph(
        &self,
        camera: &Camera,
        source: usize,
        seed: u64,
        size_px: usize,
    ) -> (Vec<u8>, f64) {
        let mut random = Random::new(seed);
        self.expose(camera, false, source, &mut random, size_px, None).unwrap_or_default()
    }

    /// The width first, so that it does not depend on the sources; then one that is fine enough.
    fn source_and_width(&self, random: &mut Random, sources: &[Imagery]) -> (usize, f64) {
        let narrowest = |source: &Imagery| FEWEST_TEXELS * source.texel_km();
        let finest = sources.iter().map(narrowest).fold(f64::MAX, f64::min);
        let [low, high] = self.framing.width_km;
        // Texels a hair larger than their pixels (spheres differ) don't count as coarser.
        let low = if finest > low { finest.min(high) } else { low };
        let width_km = random.log_between(low, high);
        let fits: Vec<usize> =
            (0..sources.len()).filter(|&at| narrowest(&sources[at]) <= width_km * 1.001).collect();
        let source =
            if fits.is_empty() { 0 } else { fits[(random.bits() % fits.len() as u64) as usize] };
        (source, width_km)
    }

    fn expose(
        &self,
        camera: &Camera,
        night: bool,
        source: usize,
        random: &mut Random,
        size_px: usize,
        // None takes whatever there is.
        shows: Option<Shows>,
    ) -> Option<(Vec<u8>, f64)> {
        let scene = Scene::draw(random, &self.style, camera, size_px, night);
        let sensor = Sensor::draw(random, &self.style, night);
        let moonlit = night.then(|| night::Night::draw(random));
        CANVAS.with_borrow_mut(|canvas| {
            canvas.resize(size_px);
            vectorized(
                #[inline(always)]
                || {
                    canvas.trace(camera, scene.sun);
                    let imagery = if night { &self.night[source] } else { &self.day[source] };
                    shading::fetch(canvas, imagery, scene.level_shift);
                    let land_fraction = canvas.land_fraction();
                    if shows.is_some_and(|shows| !shows.accepts(land_fraction)) {
                        return None;
                    }
                    if let Some(moonlit) = &moonlit {
                        if !moonlit.light_lamps(canvas) && shows.is_some() {
                            return None;
                        }
                        if moonlit.has_moon() {
                            shading::fetch(canvas, &self.day[0], scene.level_shift);
                        }
                    }
                    shading::weather(canvas, &scene);
                    let gain = if let Some(moonlit) = &moonlit {
                        moonlit.shade(canvas, &scene);
                        1.0
                    } else {
                        if let Some(clouds) = &scene.clouds {
                            let shift =
                                shadow_shift_px(camera, scene.sun, clouds.height_km, size_px);
                            shading::cast_shadows(canvas, shift);
                        } else {
                            canvas.shadow.fill(0.0);
                        }
                        shading::shade(canvas, &scene);
                        day_gain(canvas, &scene, camera)
                    };
                    sensor.filter(canvas);
                    Some((sensor.develop(canvas, gain, random), land_fraction))
                },
            )
        })
    }
}

/// Exposure: by the sun's height, and partly by what the picture shows.
#[inline(always)]
fn day_gain(canvas: &Canvas, scene: &Scene, camera: &Camera) -> f32 {
    const USUAL_MEAN: f32 = 0.17;
    let [up, ..] = local_axes(camera.pose.latitude, camera.pose.longitude);
    let sun_cos = dot(up, scene.sun.map(f64::from)) as f32;
    let by_sun = 1.0 / (sun_cos.max(0.06) * (1.0 + scene.ambient) + 0.1 * scene.ambient);
    let total: f32 = canvas.red.iter().sum::<f32>() * 0.3
        + canvas.green.iter().sum::<f32>() * 0.55
        + canvas.blue.iter().sum::<f32>() * 0.15;
    let mean = (total / canvas.red.len() as f32 * by_sun).max(0.01);
    by_sun * scene.exposure * (USUAL_MEAN / mean).powf(scene.metering)
}

/// Where in the picture, from a point of the ground, the cloud stands that shades it.
fn shadow_shift_px(camera: &Camera, sun: [f32; 3], height_km: f64, size_px: usize) -> [f32; 2] {
    let [up, ..] = local_axes(camera.pose.latitude, camera.pose.longitude);
    let sun = sun.map(f64::from);
    let sun_cos = dot(up, sun).max(0.15);
    // Along the ground towards the sun, as long as the cloud's height makes it.
    let along = crate::camera::add(sun, -dot(up, sun), up);
    let length_px = height_km / sun_cos / camera.pose.width_km * size_px as f64;
    let shift = |axis: [f64; 3]| (dot(along, axis) * length_px) as f32;
    [shift(camera.right), -shift(camera.up)]
}
