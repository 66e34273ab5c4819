//! The Earth as a gallery: maps of all land at several widths, described part by part.
//!
//! A map of a width is five views of that width across, so a view can lie at 33 × 33 places of it, an eighth of its
//! width apart. Each width has as many maps as it takes for every view of some land to lie in one.

use std::f64::consts::PI;
use std::sync::atomic::{AtomicUsize, Ordering};

use locdiff_earth::Imagery;
use locdiff_sphere::{EARTH_RADIUS_KM, LatLon};
use rayon::prelude::*;

use super::aligned_encoder::{AlignedEncoder, NUMBERS, PART};
use super::local_contrast::local_contrast;
use crate::tensors::fused::numbers_of;

/// Parts along the side of a map.
pub(super) const MAP_PARTS: usize = 40;
/// Parts along the side of a view.
pub(super) const VIEW_PARTS: usize = 8;
/// Places of a view in a map, in each direction.
pub(super) const WINDOWS: usize = MAP_PARTS - VIEW_PARTS + 1;
/// Color of the sea in maps.
pub const SEA: [u8; 3] = [12, 28, 62];
/// Numbers of a part that are compared first: those that vary most.
pub(super) const LEADING: usize = 8;

const PARTS: usize = MAP_PARTS * MAP_PARTS;
const VIEWS_ACROSS: f64 = MAP_PARTS as f64 / VIEW_PARTS as f64;
/// From one width to the next.
const WIDTH_STEP: f64 = 1.3;
/// Neighboring maps share a row of places, so that nothing falls between them.
const OVERLAP: f64 = 0.97;
/// A view with less land than this share can't be found.
const LEAST_LAND: f32 = 0.06;
/// Of Antarctica there are few pictures, and the mosaic has no detail.
const SOUTHERNMOST_DEGREES: f64 = -60.0;

/// How exactly a gallery keeps the numbers of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Precision {
    /// How many of them: the first ones vary most.
    pub numbers: usize,
    /// Steps to each side of zero: 7 fit 4 bits, 127 fit 8.
    pub levels: i8,
}

impl Precision {
    /// The numbers that vary most, in 4 bits: what fits into the program.
    pub const SMALL: Precision = Precision { numbers: 14, levels: 7 };
    /// All numbers in 8 bits.
    pub const FULL: Precision = Precision { numbers: NUMBERS, levels: 127 };

    /// The step between numbers of this root mean square.
    fn step(self, root_mean_square: f32) -> f32 {
        // For 15 levels about the best for normal numbers; 255 reach far enough.
        let reach = if self.levels < 16 { 2.4 } else { 6.0 };
        (root_mean_square * reach / f32::from(self.levels)).max(f32::MIN_POSITIVE)
    }
}

/// A square map of land, whose descriptors views are compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GalleryMap {
    /// Place in the middle of the map.
    pub middle: LatLon,
    /// The width of views that are compared with it: a fifth of its own.
    pub width_km: f64,
}

/// Maps of the Earth with their descriptors.
#[derive(Debug, Clone, PartialEq)]
pub struct Gallery {
    pub(super) maps: Vec<GalleryMap>,
    pub(super) precision: Precision,
    /// What the whole numbers of a descriptor are multiples of.
    pub(super) steps: Vec<f32>,
    /// Of each map, the whole numbers of its parts.
    pub(super) descriptors: Vec<i8>,
    /// Of each map, 1 for each place where a view shows enough land.
    pub(super) places: Vec<u8>,
}

/// The descriptors of one map.
pub(super) struct MapParts<'a> {
    /// Whole numbers `[PARTS, numbers]`.
    pub(super) descriptors: &'a [i8],
    /// `[WINDOWS²]`.
    pub(super) has_land: &'a [u8],
}

impl Gallery {
    /// Describes all land of the imagery at widths from the narrowest to the widest. `progress` is called with the
    /// number of maps that are done and of all.
    pub fn build(
        encoder: &AlignedEncoder,
        imagery: &Imagery,
        [narrowest_km, widest_km]: [f64; 2],
        precision: Precision,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Gallery {
        let widths = std::iter::successors(Some(narrowest_km), |width| Some(width * WIDTH_STEP));
        let widths = widths.take_while(|width| *width < widest_km * WIDTH_STEP.sqrt());
        let all: Vec<GalleryMap> = widths
            .flat_map(|width_km| {
                middles(width_km).into_iter().map(move |middle| GalleryMap { middle, width_km })
            })
            .collect();
        let places: Vec<(GalleryMap, Vec<u8>)> = all
            .into_par_iter()
            .map(|map| (map, places_with_land(imagery, map)))
            .filter(|(_, has_land)| has_land.contains(&1))
            .collect();
        // Steps come from a sample of maps: they must be known before the others are rounded.
        let sample = places.len().div_ceil(64);
        let sampled: Vec<Vec<f32>> = places
            .par_iter()
            .step_by(sample)
            .map(|(map, _)| describe(encoder, imagery, map))
            .collect();
        let steps: Vec<f32> = (0..precision.numbers)
            .map(|k| {
                let numbers = sampled.iter().flat_map(|map| map.iter().skip(k).step_by(NUMBERS));
                let count = (sampled.len() * PARTS) as f32;
                precision.step((numbers.map(|x| x * x).sum::<f32>() / count).sqrt())
            })
            .collect();
        let done = AtomicUsize::new(0);
        let rounded = |(map, _): &(GalleryMap, Vec<u8>)| -> Vec<i8> {
            let numbers = describe(encoder, imagery, map);
            progress(1 + done.fetch_add(1, Ordering::Relaxed), places.len());
            let levels = f32::from(precision.levels);
            let parts = numbers.chunks_exact(NUMBERS);
            let steps = &steps;
            let round = move |(number, step): (&f32, &f32)| {
                (number / step).round().clamp(-levels, levels) as i8
            };
            parts.flat_map(|part| part.iter().zip(steps).map(round)).collect()
        };
        let descriptors: Vec<Vec<i8>> = places.par_iter().map(rounded).collect();
        let (maps, places): (Vec<GalleryMap>, Vec<Vec<u8>>) = places.into_iter().unzip();
        let (descriptors, places) = (descriptors.concat(), places.concat());
        Gallery { maps, precision, steps, descriptors, places }
    }

    /// The same with less precision.
    ///
    /// # Panics
    /// If it has less itself.
    pub fn rounded(&self, precision: Precision) -> Gallery {
        let before = self.precision;
        assert!(before.numbers >= precision.numbers && before.levels >= precision.levels);
        let ratio = precision.step(1.0) / before.step(1.0);
        let levels = f32::from(precision.levels);
        let round =
            move |number: &i8| (f32::from(*number) / ratio).round().clamp(-levels, levels) as i8;
        let parts = self.descriptors.chunks_exact(before.numbers);
        Gallery {
            precision,
            steps: self.steps[..precision.numbers].iter().map(|step| step * ratio).collect(),
            descriptors: parts
                .flat_map(|part| part[..precision.numbers].iter().map(round))
                .collect(),
            ..self.clone()
        }
    }

    /// The narrowest and the widest of its maps' widths.
    pub fn widths_km(&self) -> [f64; 2] {
        let widths = || self.maps().iter().map(|map| map.width_km);
        [widths().fold(f64::INFINITY, f64::min), widths().fold(0.0, f64::max)]
    }

    /// Its maps, from narrow to wide.
    pub fn maps(&self) -> &[GalleryMap] {
        &self.maps
    }

    /// The descriptors of a map.
    pub(super) fn parts(&self, map: usize) -> MapParts<'_> {
        let length = PARTS * self.precision.numbers;
        MapParts {
            descriptors: &self.descriptors[map * length..][..length],
            has_land: &self.places[map * WINDOWS * WINDOWS..][..WINDOWS * WINDOWS],
        }
    }

    /// The middle of a view at a place of a map, and by how many degrees north is turned there against the map's
    /// upward direction.
    pub(super) fn place(&self, map: usize, row: f64, column: f64) -> (LatLon, f64) {
        let to_middle = VIEW_PARTS as f64 / 2.0;
        self.maps[map].place(row + to_middle, column + to_middle)
    }
}

impl GalleryMap {
    /// The place so many parts from the upper left corner, and by how many degrees north is turned there.
    fn place(&self, row: f64, column: f64) -> (LatLon, f64) {
        let part_km = self.width_km / VIEW_PARTS as f64;
        let to_middle = MAP_PARTS as f64 / 2.0;
        let (right, down) = ((column - to_middle) * part_km, (row - to_middle) * part_km);
        let bearing = right.atan2(-down).to_degrees();
        let place = self.middle.destination(bearing, right.hypot(down));
        // Along the line from the middle, bearings on the ground change and those on the map don't.
        let is_middle = right.hypot(down) < 1e-6;
        let onward = if is_middle { bearing } else { place.bearing_to(self.middle) + 180.0 };
        (place, onward - bearing)
    }
}

/// All numbers of the parts of a map.
fn describe(encoder: &AlignedEncoder, imagery: &Imagery, map: &GalleryMap) -> Vec<f32> {
    let side = MAP_PARTS * PART;
    let middle = (map.middle.latitude(), map.middle.longitude());
    let pixels = imagery.patch(middle, VIEWS_ACROSS * map.width_km, side, SEA);
    numbers_of(&encoder.parts(local_contrast(&pixels, side), side))
}

/// The middles of the maps of a width: on rings of latitude.
fn middles(width_km: f64) -> Vec<LatLon> {
    let spacing_km = OVERLAP * width_km * WINDOWS as f64 / VIEW_PARTS as f64;
    let spacing = spacing_km / EARTH_RADIUS_KM;
    let rings = (PI / spacing).ceil();
    let ring = |k: usize| {
        let latitude = PI / 2.0 - (k as f64 + 0.5) * PI / rings;
        // The circle that is to be covered is longest at the ring's edge towards the equator.
        let edge = (latitude.abs() - 0.5 * PI / rings).max(0.0);
        let count = (2.0 * PI * edge.cos() / spacing).ceil().max(1.0);
        (0..count as usize).filter_map(move |j| {
            let longitude = (j as f64 + 0.5 * (k % 2) as f64) * 360.0 / count - 180.0;
            (latitude.to_degrees() > SOUTHERNMOST_DEGREES - spacing.to_degrees())
                .then(|| LatLon::new(latitude.to_degrees(), longitude).expect("on Earth"))
        })
    };
    (0..rings as usize).flat_map(ring).collect()
}

/// For each place of a view in a map, 1 if it shows land.
fn places_with_land(imagery: &Imagery, map: GalleryMap) -> Vec<u8> {
    let part_km = map.width_km / VIEW_PARTS as f64;
    let land: Vec<f32> = (0..PARTS)
        .map(|at| {
            let (row, column) = (at / MAP_PARTS, at % MAP_PARTS);
            let (place, _) = map.place(row as f64 + 0.5, column as f64 + 0.5);
            if place.latitude() < SOUTHERNMOST_DEGREES {
                return 0.0;
            }
            imagery.colour(place.latitude(), place.longitude(), part_km).1
        })
        .collect();
    let share = |row: usize, column: usize| {
        let rows = row..row + VIEW_PARTS;
        let parts = rows.flat_map(|row| &land[row * MAP_PARTS + column..][..VIEW_PARTS]);
        parts.sum::<f32>() / (VIEW_PARTS * VIEW_PARTS) as f32
    };
    let places = (0..WINDOWS * WINDOWS).map(|at| share(at / WINDOWS, at % WINDOWS) >= LEAST_LAND);
    places.map(u8::from).collect()
}
