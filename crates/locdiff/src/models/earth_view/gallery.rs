//! The Earth as a gallery: maps of all land at several widths, described part by part.
//!
//! A map of a width is three views of that width across, so a view can lie at 17 × 17 places of it, an eighth of its
//! width apart. Each width has as many maps as it takes for every view of some land to lie in one.

use std::f64::consts::PI;

use bytemuck::cast_slice;
use locdiff_earth::Imagery;
use locdiff_sphere::{EARTH_RADIUS_KM, LatLon};
use rayon::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::aligned_encoder::{AlignedEncoder, NUMBERS, PART};
use super::local_contrast::local_contrast;
use crate::tensors::InvalidWeights;
use crate::tensors::fused::numbers_of;

/// Parts along the side of a map.
pub(super) const MAP_PARTS: usize = 24;
/// Parts along the side of a view.
pub(super) const VIEW_PARTS: usize = 8;
/// Places of a view in a map, in each direction.
pub(super) const WINDOWS: usize = MAP_PARTS - VIEW_PARTS + 1;
/// The sea of maps.
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
/// Maps that are described together.
const TOGETHER: usize = 2;

/// A map of the gallery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GalleryMap {
    /// Its middle.
    pub middle: LatLon,
    /// The width of views that are compared with it: a third of its own.
    pub width_km: f64,
    /// What its whole numbers are multiples of.
    step: f32,
}

/// Maps of the Earth with their descriptors.
#[derive(Debug, Clone, PartialEq)]
pub struct Gallery {
    maps: Vec<GalleryMap>,
    /// Of each map: the leading numbers of all parts, then the other numbers of all parts.
    descriptors: Vec<i8>,
    /// Of each map: whether a view at each place shows enough land.
    places: Vec<u8>,
}

/// The descriptors of one map, as whole numbers.
pub(super) struct MapParts<'a> {
    pub(super) step: f32,
    /// `[parts, LEADING]`.
    pub(super) leading: &'a [i8],
    /// `[parts, NUMBERS − LEADING]`.
    pub(super) others: &'a [i8],
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
        progress: impl Fn(usize, usize) + Sync,
    ) -> Gallery {
        let widths = std::iter::successors(Some(narrowest_km), |width| Some(width * WIDTH_STEP));
        let widths = widths.take_while(|width| *width < widest_km * WIDTH_STEP.sqrt());
        let places: Vec<(LatLon, f64, Vec<u8>)> = widths
            .flat_map(|width| middles(width).into_iter().map(move |middle| (middle, width)))
            .par_bridge()
            .filter_map(|(middle, width)| {
                let has_land = places_with_land(imagery, middle, width);
                has_land.contains(&1).then_some((middle, width, has_land))
            })
            .collect();
        let mut places = places;
        places.sort_by(|(a, width_a, _), (b, width_b, _)| {
            let key = |place: &LatLon, width: f64| (width, -place.latitude(), place.longitude());
            key(a, *width_a).partial_cmp(&key(b, *width_b)).expect("numbers")
        });
        let done = std::sync::atomic::AtomicUsize::new(0);
        let described: Vec<Vec<(f32, Vec<i8>)>> = places
            .par_chunks(TOGETHER)
            .map(|chunk| {
                let side = MAP_PARTS * PART;
                let contrast = chunk.iter().flat_map(|(middle, width, _)| {
                    let place = (middle.latitude(), middle.longitude());
                    local_contrast(&imagery.patch(place, VIEWS_ACROSS * width, side, SEA), side)
                });
                let numbers = numbers_of(&encoder.parts(contrast.collect(), side));
                let before = done.fetch_add(chunk.len(), std::sync::atomic::Ordering::Relaxed);
                progress(before + chunk.len(), places.len());
                numbers.chunks_exact(PARTS * NUMBERS).map(in_steps).collect()
            })
            .collect();
        let mut gallery = Gallery { maps: Vec::new(), descriptors: Vec::new(), places: Vec::new() };
        for ((middle, width_km, has_land), (step, numbers)) in
            places.into_iter().zip(described.into_iter().flatten())
        {
            gallery.maps.push(GalleryMap { middle, width_km, step });
            gallery.descriptors.extend(numbers);
            gallery.places.extend(has_land);
        }
        gallery
    }

    /// Its maps, from narrow to wide.
    pub fn maps(&self) -> &[GalleryMap] {
        &self.maps
    }

    /// The descriptors of a map.
    pub(super) fn parts(&self, map: usize) -> MapParts<'_> {
        let (leading, others) =
            self.descriptors[map * PARTS * NUMBERS..][..PARTS * NUMBERS].split_at(PARTS * LEADING);
        let has_land = &self.places[map * WINDOWS * WINDOWS..][..WINDOWS * WINDOWS];
        MapParts { step: self.maps[map].step, leading, others, has_land }
    }

    /// The middle of a view at a place of a map, and by how many degrees north is turned there against the map's
    /// upward direction.
    pub(super) fn place(&self, map: usize, row: f64, column: f64) -> (LatLon, f64) {
        let GalleryMap { middle, width_km, .. } = self.maps[map];
        let part_km = width_km / VIEW_PARTS as f64;
        let to_middle = VIEW_PARTS as f64 / 2.0 - MAP_PARTS as f64 / 2.0;
        let (right, down) = ((column + to_middle) * part_km, (row + to_middle) * part_km);
        let bearing = right.atan2(-down).to_degrees();
        let place = middle.destination(bearing, right.hypot(down));
        // Along the line from the middle, bearings on the ground change and those on the map don't.
        let onward =
            if right.hypot(down) < 1e-6 { bearing } else { place.bearing_to(middle) + 180.0 };
        (place, onward - bearing)
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let count = self.maps.len();
        let facts: Vec<f32> = self
            .maps
            .iter()
            .flat_map(|map| {
                let place = [map.middle.latitude(), map.middle.longitude(), map.width_km];
                place.map(|number| number as f32).into_iter().chain([map.step])
            })
            .collect();
        let view = |kind, shape, bytes| TensorView::new(kind, shape, bytes).expect("as many bytes");
        let tensors = [
            ("maps", view(Dtype::F32, vec![count, 4], cast_slice(&facts))),
            (
                "descriptors",
                view(Dtype::I8, vec![count, PARTS, NUMBERS], cast_slice(&self.descriptors)),
            ),
            ("places", view(Dtype::U8, vec![count, WINDOWS, WINDOWS], &self.places)),
        ];
        serialize(tensors, None).expect("names and shapes are plain")
    }

    /// A gallery from a file's bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Gallery, InvalidWeights> {
        let wrong = |reason: String| InvalidWeights::Format { path: "gallery".into(), reason };
        let file = SafeTensors::deserialize(bytes).map_err(|error| wrong(error.to_string()))?;
        let tensor = |name: &str, kind: Dtype, shape: &[usize]| {
            let view = file.tensor(name).map_err(|error| wrong(error.to_string()))?;
            let count = view.shape().first().copied().unwrap_or(0);
            if view.dtype() != kind || view.shape().get(1..) != Some(shape) {
                return Err(wrong(format!("{name} is {:?} {:?}", view.dtype(), view.shape())));
            }
            Ok((count, view.data().to_vec()))
        };
        let (count, facts) = tensor("maps", Dtype::F32, &[4])?;
        let (of_descriptors, descriptors) = tensor("descriptors", Dtype::I8, &[PARTS, NUMBERS])?;
        let (of_places, places) = tensor("places", Dtype::U8, &[WINDOWS, WINDOWS])?;
        if [of_descriptors, of_places] != [count, count] {
            return Err(wrong(format!(
                "{count} maps, {of_descriptors} descriptors, {of_places} places"
            )));
        }
        let facts: Vec<f32> = bytemuck::pod_collect_to_vec(&facts);
        let map = |of: &[f32]| {
            let [latitude, longitude, width_km, step] = [of[0], of[1], of[2], of[3]];
            let middle = LatLon::new(latitude.into(), longitude.into())
                .map_err(|error| wrong(error.to_string()))?;
            if !(width_km > 0.0 && step > 0.0) {
                return Err(wrong(format!("a map of width {width_km} and step {step}")));
            }
            Ok(GalleryMap { middle, width_km: width_km.into(), step })
        };
        let maps = facts.chunks_exact(4).map(map).collect::<Result<_, _>>()?;
        let descriptors = bytemuck::cast_vec(descriptors);
        Ok(Gallery { maps, descriptors, places })
    }
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

/// For each place of a view in a map, whether it shows land.
fn places_with_land(imagery: &Imagery, middle: LatLon, width_km: f64) -> Vec<u8> {
    let part_km = width_km / VIEW_PARTS as f64;
    let land: Vec<f32> = (0..PARTS)
        .map(|at| {
            let offset = |k: usize| (k as f64 + 0.5 - MAP_PARTS as f64 / 2.0) * part_km;
            let (right, down) = (offset(at % MAP_PARTS), offset(at / MAP_PARTS));
            let bearing = right.atan2(-down).to_degrees();
            let place = middle.destination(bearing, right.hypot(down));
            imagery.colour(place.latitude(), place.longitude(), part_km).1
        })
        .collect();
    let share = |row: usize, column: usize| {
        let rows =
            (row..row + VIEW_PARTS).flat_map(|row| &land[row * MAP_PARTS + column..][..VIEW_PARTS]);
        rows.sum::<f32>() / (VIEW_PARTS * VIEW_PARTS) as f32
    };
    let places = (0..WINDOWS * WINDOWS).map(|at| share(at / WINDOWS, at % WINDOWS) >= LEAST_LAND);
    places.map(u8::from).collect()
}

/// Numbers as multiples of one step; the leading ones of all parts first.
fn in_steps(numbers: &[f32]) -> (f32, Vec<i8>) {
    let largest = numbers.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let step = (largest / 127.0).max(f32::MIN_POSITIVE);
    let of = |columns: std::ops::Range<usize>| {
        let parts = numbers.chunks_exact(NUMBERS);
        parts.flat_map(move |part| {
            part[columns.clone()].iter().map(move |x| (x / step).round() as i8)
        })
    };
    (step, of(0..LEADING).chain(of(LEADING..NUMBERS)).collect())
}
