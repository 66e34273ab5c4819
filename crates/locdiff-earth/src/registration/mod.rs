//! Registration: where exactly a picture lies, once a search has found about where.
//!
//! A picture and a map are compared by their gradient fields (`fields`), under a warp of position,
//! heading, width, stretch and tilt (`warp`). A scan over all warps within the guess's error comes
//! first (`scan`); its best are refined by simplex searches (`climb`) at growing resolution.

mod climb;
mod fields;
mod scan;
mod warp;

use crate::EARTH_RADIUS_KM;
use crate::camera::destination;
use crate::imagery::Imagery;
use crate::vectorized::vectorized;
use climb::climb;
use fields::{Fields, reduced};
use scan::{Planes, Scored, distinct};
use warp::{Reference, Warp, likeness};

/// Resolutions of the scan and of the two refinements.
const SIDES: [usize; 3] = [32, 48, 64];
/// Width of the map, in guessed widths.
const SPAN: f64 = 1.9;
/// A dark blue like that of the sea in most pictures.
const SEA: [u8; 3] = [15, 35, 70];
/// How many of the scan's warps are refined, and how many of those once more.
const STARTS: usize = 10;
const FINALISTS: usize = 2;

/// Where a picture lies, up to stretch and tilt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guess {
    /// Latitude and longitude of the place in the picture's middle, degrees.
    pub middle: (f64, f64),
    /// Compass bearing of the picture's upward direction.
    pub heading_degrees: f64,
    /// Width on the ground, through the middle.
    pub width_km: f64,
}

/// How much longer the ground under a picture is in one direction than across it: 1 for a view
/// straight down, more for an oblique view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Longest by shortest extent.
    pub factor: f64,
    /// Compass bearing of the longest extent, 0 to 180.
    pub bearing_degrees: f64,
}

/// What registration found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Registration {
    /// The refined guess.
    pub found: Guess,
    /// Stretch of the ground in the picture's middle.
    pub stretch: Stretch,
    /// Latitude and longitude of the corners: upper left, upper right, lower right, lower left.
    pub corners: [(f64, f64); 4],
    /// How alike the picture and the map are there: 1 for the same, about 0.1 for chance after
    /// a search. It ranks places for one picture; it is no probability.
    pub likeness: f64,
}

/// The coarse stage's result: a score for ranking guesses, and the starts of the refinement.
#[derive(Clone, Debug)]
pub struct Coarse {
    guess: Guess,
    starts: Vec<Scored>,
}

impl Coarse {
    /// The likeness of the best warp, at low resolution.
    pub fn likeness(&self) -> f64 {
        self.starts.first().map_or(0.0, |start| f64::from(start.0))
    }
}

/// A picture, prepared to be registered against many guesses.
#[derive(Clone, Debug)]
pub struct Registrar {
    planes: Planes,
    levels: [(Fields, [f32; 2]); 2],
}

impl Registrar {
    /// Prepares a square picture: red, green, blue bytes, rows from the top.
    ///
    /// # Panics
    /// If `colors` does not have `side` × `side` pixels, or none.
    pub fn new(colors: &[u8], side: usize) -> Self {
        assert!(
            side > 0 && colors.len() == 3 * side * side,
            "{} bytes are not a picture of side {side}",
            colors.len()
        );
        let colors = numbers(colors);
        vectorized(
            #[inline(always)]
            || {
                let level =
                    |target: usize| Fields::of(&reduced(&colors, side, target), target, target);
                let scan = level(SIDES[0]);
                let levels = [SIDES[1], SIDES[2]].map(|side| {
                    let fields = level(side);
                    let energies = fields.energies();
                    (fields, energies)
                });
                Self { planes: Planes::of(&scan), levels }
            },
        )
    }

    /// Both stages at once. The guess may be off by 6 % of the width in each direction, 9° in
    /// heading and 15 % in width.
    pub fn register(&self, imagery: &Imagery, guess: &Guess) -> Registration {
        self.refine(imagery, &self.coarse(imagery, guess))
    }

    /// The first stage: a scan at low resolution, several times cheaper than the second. Of many
    /// guesses, refine those whose [`Coarse::likeness`] is highest.
    pub fn coarse(&self, imagery: &Imagery, guess: &Guess) -> Coarse {
        vectorized(
            #[inline(always)]
            || {
                let map = reference(imagery, guess, SIDES[0]);
                let starts = distinct(&self.planes.scan(&map), STARTS);
                Coarse { guess: *guess, starts }
            },
        )
    }

    /// The second stage: refines the best of the first.
    pub fn refine(&self, imagery: &Imagery, coarse: &Coarse) -> Registration {
        const MIDDLE_STEPS: [f32; Warp::COUNT] = [0.02, 0.02, 0.04, 0.04, 0.06, 0.06, 0.0, 0.0];
        const FINE_STEPS: [f32; Warp::COUNT] = [0.01, 0.01, 0.02, 0.02, 0.03, 0.03, 0.06, 0.06];
        let guess = coarse.guess;
        let (value, warp) = vectorized(
            #[inline(always)]
            || {
                let refined = self.climbed(0, imagery, &guess, &coarse.starts, MIDDLE_STEPS, 90);
                let refined = self.climbed(
                    1,
                    imagery,
                    &guess,
                    &refined[..FINALISTS.min(refined.len())],
                    FINE_STEPS,
                    240,
                );
                let warp = refined[0].1;
                let (fields, energies) = &self.levels[1];
                let map = reference(imagery, &guess, SIDES[2]);
                (likeness(fields, *energies, &map, &warp), warp)
            },
        );
        described(&guess, &warp, f64::from(value))
    }

    #[inline(always)]
    fn climbed(
        &self,
        level: usize,
        imagery: &Imagery,
        guess: &Guess,
        starts: &[Scored],
        steps: [f32; Warp::COUNT],
        evaluations: usize,
    ) -> Vec<Scored> {
        let (fields, energies) = &self.levels[level];
        let map = reference(imagery, guess, fields.side);
        let mut refined: Vec<Scored> = starts
            .iter()
            .map(|(_, start)| {
                let (top, value) = climb(start.numbers(), steps, evaluations, |numbers| {
                    let warp = Warp::from_numbers(numbers);
                    // Dispatched here: within a search the compiler does not inline it.
                    vectorized(
                        #[inline(always)]
                        || likeness(fields, *energies, &map, &warp) - doubt(&warp),
                    )
                });
                (value, Warp::from_numbers(&top))
            })
            .collect();
        refined.sort_by(|a, b| b.0.total_cmp(&a.0));
        refined
    }
}

/// What is taken off the likeness for unlikely warps, so that freedom alone does not win.
#[inline(always)]
fn doubt(warp: &Warp) -> f32 {
    let beyond = |value: f32, most: f32| (value.abs() - most).max(0.0).powi(2);
    let [a, b] = warp.stretch;
    let [c, d] = warp.tilt;
    let (stretch, tilt) = ((a * a + b * b).sqrt(), (c * c + d * d).sqrt());
    20.0 * (beyond(warp.east, 0.12) + beyond(warp.north, 0.12))
        + 10.0 * (beyond(warp.turn, 0.25) + beyond(warp.scale, 0.3))
        + 10.0 * (beyond(stretch, 0.3) + beyond(tilt, 0.3))
        + 0.1 * (stretch * stretch + tilt * tilt)
}

fn numbers(colors: &[u8]) -> Vec<[f32; 3]> {
    colors.as_chunks().0.iter().map(|color: &[u8; 3]| color.map(f32::from)).collect()
}

/// The map around a guess, with as many pixels per guessed width as the picture has.
#[inline(always)]
fn reference(imagery: &Imagery, guess: &Guess, across: usize) -> Reference {
    let side = (SPAN * across as f64).round() as usize;
    let span = side as f64 / across as f64;
    let patch = imagery.patch(guess.middle, guess.width_km * span, side, SEA);
    Reference {
        fields: Fields::of(&numbers(&patch), side, across),
        span: span as f32,
        heading: guess.heading_degrees.to_radians() as f32,
    }
}

fn described(guess: &Guess, warp: &Warp, likeness: f64) -> Registration {
    let heading = guess.heading_degrees.to_radians() as f32;
    let place = |x: f32, y: f32| {
        let [east, north] = warp.apply(heading, x, y).map(f64::from);
        let arc = east.hypot(north) * guess.width_km / EARTH_RADIUS_KM;
        destination(guess.middle.0, guess.middle.1, east.atan2(north), arc)
    };
    let [to_east, to_north] = warp.matrix(heading).map(|row| row.map(f64::from));
    let middle = place(0.0, 0.0);
    // North on the map is north in its middle only; elsewhere the meridians lean.
    let lean = lean_degrees(guess.middle, middle);
    let bearing = |east: f64, north: f64| east.atan2(north).to_degrees() + lean;
    let [a, b] = warp.stretch.map(f64::from);
    // Half the doubled angle, counterclockwise from the picture's right.
    let longest =
        90.0 - 0.5 * b.atan2(a).to_degrees() + (heading + warp.turn).to_degrees() as f64 + lean;
    Registration {
        found: Guess {
            middle,
            heading_degrees: bearing(to_east[1], to_north[1]).rem_euclid(360.0),
            width_km: guess.width_km * to_east[0].hypot(to_north[0]),
        },
        stretch: Stretch {
            factor: (2.0 * a.hypot(b)).exp(),
            bearing_degrees: longest.rem_euclid(180.0),
        },
        corners: [(-0.5, 0.5), (0.5, 0.5), (0.5, -0.5), (-0.5, -0.5)].map(|(x, y)| place(x, y)),
        likeness,
    }
}

/// How much a bearing grows along the way from one place to another.
fn lean_degrees(from: (f64, f64), to: (f64, f64)) -> f64 {
    let (from_lat, to_lat) = (from.0.to_radians(), to.0.to_radians());
    let half_turn = 0.5 * (to.1 - from.1).to_radians();
    // The convergence of the meridians between both (Napier's analogies).
    let (sum, difference) = (0.5 * (from_lat + to_lat), 0.5 * (to_lat - from_lat));
    2.0 * (half_turn.sin() * sum.sin()).atan2(half_turn.cos() * difference.cos()).to_degrees()
}
