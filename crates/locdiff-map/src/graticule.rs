//! Lines of equal latitude and longitude.

use crate::clip::{self, Line};
use crate::layout::Frame;
use crate::projection::{Plane, Projection};
use locdiff_sphere::{LatLon, UnitVector};
use std::f64::consts::SQRT_2;

/// The lines of equal latitude and longitude.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub enum Graticule {
    /// No lines.
    Hidden,
    /// One line for every so many degrees: at least 1, or a fiftieth of the side of a close-up.
    Every {
        /// The distance between neighbouring lines.
        degrees: f64,
    },
    /// One line for every 30 degrees, and several lines across a close-up: one for every 5 degrees of
    /// latitude at a radius of 1,000 km, one for every 0.05 degrees at 10 km.
    #[default]
    Adaptive,
}

/// Distances between lines, in degrees.
const STEPS: [f64; 14] =
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];

/// At least so many intervals lie across a close-up.
const INTERVALS: f64 = 3.0;

/// The lines in pixels.
pub(crate) fn lines(frame: &Frame, graticule: Graticule) -> Vec<Line> {
    let step = match graticule {
        Graticule::Every { degrees } if degrees.is_finite() => degrees,
        Graticule::Adaptive => 30.0,
        _ => return Vec::new(),
    };
    let lines = match (frame.plane, frame.projection) {
        (Plane::Around(_), Projection::Around { centre, .. }) => {
            around(frame, centre, (graticule != Graticule::Adaptive).then_some(step))
        }
        (Plane::Globe(_), _) => globe(frame, step.clamp(1.0, 180.0)),
        _ => flat(frame, step.clamp(1.0, 180.0)),
    };
    frame.pixels(&lines)
}

/// Multiples of a step within ± a limit, which is no line itself.
fn multiples(limit: f64, step: f64) -> impl Iterator<Item = f64> {
    let count = (limit / step - 1e-9).floor() as i32;
    (-count..=count).map(move |index| f64::from(index) * step)
}

fn add(
    lines: &mut Vec<Line>,
    frame: &Frame,
    places: impl Iterator<Item = (f64, f64)>,
    closed: bool,
) {
    let places = places.filter_map(|(latitude, longitude)| LatLon::new(latitude, longitude).ok());
    let points: Vec<_> = places.map(|place| UnitVector::from(place).to_array()).collect();
    lines.extend(clip::line(&frame.plane, &points, closed));
}

fn globe(frame: &Frame, step: f64) -> Vec<Line> {
    let mut lines = Vec::new();
    // Meridians end one step before the poles, where they would run together in a knot.
    let last = (90.0 - step).max(0.0);
    for longitude in multiples(180.0, step).chain(Some(180.0)) {
        add(&mut lines, frame, (-1..=1).map(|end| (f64::from(end) * last, longitude)), false);
    }
    for latitude in multiples(90.0, step) {
        add(&mut lines, frame, (0..180).map(|index| (latitude, f64::from(index) * 2.0)), true);
    }
    lines
}

fn flat(frame: &Frame, step: f64) -> Vec<Line> {
    // Straight in the chart; through unit vectors a pole would lose its longitude.
    let mut lines = Vec::new();
    let mut add = |points: &mut dyn Iterator<Item = [f64; 2]>| {
        let points = points.map(|point| frame.plane.plane_from_chart(point)).collect();
        lines.push(Line { points, closed: false });
    };
    for longitude in multiples(180.0, step) {
        add(&mut (-45..=45).map(|index| [longitude, f64::from(index) * 2.0]));
    }
    for latitude in multiples(90.0, step) {
        add(&mut [-180.0, 180.0].map(|longitude| [longitude, latitude]).into_iter());
    }
    lines
}

/// The lines of a close-up, from the smallest box of degrees around it.
fn around(frame: &Frame, centre: LatLon, every: Option<f64>) -> Vec<Line> {
    /// Points of a parallel, which is no great circle.
    const PARTS: u32 = 96;
    let half = frame.projection.half_size()[0].to_degrees();
    let reach = SQRT_2 * half;
    let (south, north) = (centre.latitude() - reach, centre.latitude() + reach);
    let holds_pole = south <= -90.0 || north >= 90.0;
    let cosine = centre.latitude().to_radians().cos();
    let (south, north) = (south.max(-90.0), north.min(90.0));
    // Half the width of the box: the cap touches its meridians (sin Δλ = sin reach / cos φ).
    let width = if holds_pole {
        180.0
    } else {
        (reach.to_radians().sin() / cosine).clamp(-1.0, 1.0).asin().to_degrees()
    };
    let (step, longitude_step) = match every {
        Some(degrees) => (degrees.clamp(half / 25.0, 180.0), degrees.clamp(width / 25.0, 180.0)),
        None => {
            let apart = 2.0 * half / INTERVALS;
            (largest_step(apart), if holds_pole { 30.0 } else { largest_step(apart / cosine) })
        }
    };

    let mut lines = Vec::new();
    // A whole turn has its first meridian once.
    let (west, east) = (centre.longitude() - width, centre.longitude() + width - 1e-9);
    let last = 90.0 - step;
    let (from, to) = (south.max(-last), north.min(last));
    for longitude in between(west, east, longitude_step) {
        let latitudes = [from, (from + to) / 2.0, to];
        if from < to {
            add(
                &mut lines,
                frame,
                latitudes.into_iter().map(|latitude| (latitude, longitude)),
                false,
            );
        }
    }
    for latitude in between(south, north, step).filter(|latitude| latitude.abs() < 90.0 - 1e-9) {
        let part = |index| west + 2.0 * width * f64::from(index) / f64::from(PARTS);
        let points = (0..=PARTS).map(|index| (latitude, part(index)));
        add(&mut lines, frame, points, false);
    }
    lines
}

/// Multiples of a step between two numbers.
fn between(from: f64, to: f64, step: f64) -> impl Iterator<Item = f64> {
    let [first, last] = [(from / step).ceil(), (to / step).floor()].map(|index| index as i64);
    (first..=last).map(move |index| index as f64 * step)
}

fn largest_step(limit: f64) -> f64 {
    STEPS.into_iter().rfind(|&step| step <= limit).unwrap_or(STEPS[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Contents, Layout};

    #[test]
    fn every_closeup_has_several_lines_both_ways_and_not_too_many() {
        for (latitude, longitude) in
            [(0.0, 0.0), (47.0, 8.5), (-17.6, 179.9), (78.2, 15.6), (90.0, 0.0), (-89.9, 120.0)]
        {
            let centre = LatLon::new(latitude, longitude).unwrap();
            for radius_km in [1.0, 5.0, 10.0, 20.0, 300.0, 1000.0, 3000.0, 10_000.0] {
                let projection = Projection::Around { centre, radius_km };
                let frame = Layout::new(&Contents::bare(projection, 800)).frame;
                for graticule in [Graticule::Adaptive, Graticule::Every { degrees: 1e-9 }] {
                    let count = lines(&frame, graticule).len();
                    let (fewest, most) =
                        if graticule == Graticule::Adaptive { (4, 60) } else { (20, 400) };
                    assert!(
                        (fewest..=most).contains(&count),
                        "{centre} {radius_km} km {graticule:?}: {count}"
                    );
                }
            }
        }
    }

    #[test]
    fn steps_grow_with_the_radius() {
        let step = |radius_km: f64| {
            largest_step(
                2.0 * (radius_km / locdiff_sphere::EARTH_RADIUS_KM).to_degrees() / INTERVALS,
            )
        };
        assert_eq!([10.0, 100.0, 1000.0, 10_000.0].map(step), [0.05, 0.5, 5.0, 30.0]);
    }
}
