//! The field of a picture: log-densities at pixels, and their colours.
//!
//! Each pixel asks for the density at the place under its centre, so nothing is interpolated and
//! no edge of the map or pole is special. Rows are shared between the machine's cores.

use crate::layout::Frame;
use crate::scale::Scale;
use crate::scene::Image;
use crate::theme::Palette;
use locdiff_sphere::{LatLon, UnitVector};
use std::f64::consts::{PI, TAU};

/// A log-density per steradian, in nats, at any place.
pub(crate) type Field<'a> = dyn Fn(LatLon) -> f64 + Sync + 'a;

/// How many places of the whole Earth are asked for the top of a globe's scale: one every 160 km.
const PLACES_ON_EARTH: usize = 20_000;

/// How far outside the map a pixel's centre may lie and still be painted, in pixels: the clip along
/// the edge of the map shows a part of such pixels.
const EDGE_PIXELS: f64 = 1.5;

/// Values at the pixels of a frame, `[row, column]`; −∞ where there is no density or no map.
pub(crate) struct Samples {
    values: Vec<f64>,
}

impl Samples {
    pub(crate) fn of(field: &Field<'_>, frame: &Frame) -> Samples {
        let [width, height] = frame.size.map(|pixels| pixels as usize);
        let mut values = vec![f64::NEG_INFINITY; width * height];
        let workers = std::thread::available_parallelism().map_or(1, |count| count.get());
        let rows_each = height.div_ceil(workers).max(1);
        let blocks = values.chunks_mut((rows_each * width).max(1)).enumerate();
        let fill = |(block, values): (usize, &mut [f64])| {
            for (offset, value) in values.iter_mut().enumerate() {
                let (row, column) = (block * rows_each + offset / width, offset % width);
                if let Some(place) = place_of_pixel(frame, column, row) {
                    *value = number(field(place));
                }
            }
        };
        if workers == 1 {
            blocks.for_each(fill);
        } else {
            std::thread::scope(|scope| {
                let fill = &fill;
                blocks.for_each(|block| {
                    scope.spawn(move || fill(block));
                });
            });
        }
        Samples { values }
    }

    /// The largest finite value.
    pub(crate) fn largest(&self) -> Option<f64> {
        largest(self.values.iter().copied())
    }

    /// The picture of the field, transparent where there is nothing to see.
    pub(crate) fn image(&self, frame: &Frame, scale: Scale, top: f64, palette: &Palette) -> Image {
        let mut rgba = Vec::with_capacity(self.values.len() * 4);
        for &value in &self.values {
            let colour = palette.density(scale.position(value, top));
            match (colour.alpha * 255.0).round() as u8 {
                0 => rgba.extend([0; 4]),
                alpha => {
                    rgba.extend(colour.rgb);
                    rgba.push(alpha);
                }
            }
        }
        Image { at: frame.at, size: frame.size, rgba }
    }
}

/// The largest finite value at places all over the Earth (a Fibonacci spiral).
pub(crate) fn largest_on_earth(field: &Field<'_>) -> Option<f64> {
    let golden = (1.0 + 5f64.sqrt()) / 2.0;
    let places = (0..PLACES_ON_EARTH).filter_map(|index| {
        let z = 1.0 - (2 * index + 1) as f64 / PLACES_ON_EARTH as f64;
        let (sin, cos) = (TAU * (index as f64 / golden).fract() - PI).sin_cos();
        let radius = (1.0 - z * z).sqrt();
        UnitVector::from_direction([radius * cos, radius * sin, z]).map(LatLon::from)
    });
    largest(places.map(field))
}

fn largest(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.filter(|value| value.is_finite()).reduce(f64::max)
}

/// What is not a number is no density.
fn number(value: f64) -> f64 {
    if value.is_nan() { f64::NEG_INFINITY } else { value }
}

fn place_of_pixel(frame: &Frame, column: usize, row: usize) -> Option<LatLon> {
    let point = frame.plane_from_pixel([
        f64::from(frame.at[0]) + column as f64 + 0.5,
        f64::from(frame.at[1]) + row as f64 + 0.5,
    ]);
    frame.plane.inverse(point).or_else(|| {
        let nearest = frame.plane.nearest(point);
        let distance = (nearest[0] - point[0]).hypot(nearest[1] - point[1]);
        (distance * frame.pixels_per_radius <= EDGE_PIXELS)
            .then(|| frame.plane.inverse(nearest))
            .flatten()
    })
}
