//! How far apart two pictures of one outing may be, given the time between them.
//!
//! Convention: a kernel is a density with respect to the uniform probability measure of the sphere, so a
//! kernel without information is 1 everywhere. Angles are in radians, times in seconds. Both ends of a link
//! are cells, not points: the variance of a place within its cell is added to the kernel's.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use locdiff_sphere::EARTH_RADIUS_KM;

/// How whoever took the pictures moved.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Motion {
    /// A person on foot, in vehicles and in airplanes.
    Travel(Travel),
    /// A spacecraft in a low orbit: a great circle at a known speed over a turning Earth.
    Orbit(Orbit),
}

/// A person: a mixture of ways to travel, so that a flight is improbable but possible.
#[derive(Debug, Clone, PartialEq)]
pub struct Travel {
    /// Shares and speeds (km/h) of the ways to travel. Shares are scaled to sum to one.
    pub ways: Vec<(f64, f64)>,
    /// Standard deviation per axis of two places at the same time: pictures show what is in front of the camera.
    pub slack_km: f64,
    /// Journeys turn back: after so many hours the distance grows slower than the time.
    pub straight_hours: f64,
}

impl Default for Travel {
    /// On foot, in town, on the road, by air: 3, 25, 90 and 700 km/h.
    fn default() -> Travel {
        let ways = vec![(0.5, 3.0), (0.3, 25.0), (0.18, 90.0), (0.02, 700.0)];
        Travel { ways, slack_km: 0.3, straight_hours: 2.0 }
    }
}

/// A spacecraft: it follows a great circle at a known speed, and the Earth turns below it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Orbit {
    /// Speed of the spacecraft in its orbit. Over the ground it is slower: the orbit is a larger circle.
    pub speed_km_s: f64,
    /// Height of the orbit.
    pub altitude_km: f64,
    /// Inclination of the orbit, if it is known: how far north and south it leads, and in which direction from where.
    pub inclination_degrees: Option<f64>,
    /// Standard deviation of the distance between two pictures, as a part of it: orbits are not quite circles, and the Earth is not
    /// quite a sphere.
    pub tolerance: f64,
    /// Standard deviation per axis by which the track bends between two pictures: windows and cameras change.
    pub bend_km: f64,
    /// Standard deviation per axis of a picture's place from the track: hands are not steady.
    pub slack_km: f64,
}

impl Default for Orbit {
    /// The International Space Station: 7.66 km/s, 420 km above the ground, 51.64° inclined.
    fn default() -> Orbit {
        Orbit {
            speed_km_s: 7.66,
            altitude_km: 420.0,
            inclination_degrees: Some(51.64),
            tolerance: 0.01,
            bend_km: 5.0,
            slack_km: 15.0,
        }
    }
}

impl Default for Motion {
    fn default() -> Motion {
        Motion::Travel(Travel::default())
    }
}

/// Directions of an orbit are told apart in so many steps of a full turn.
pub(super) const HEADINGS: usize = 144;

/// Radians per second: one turn in a sidereal day.
const TURN_OF_THE_EARTH: f64 = TAU / 86_164.1;

/// Standard deviation of the apparent inclination, in degrees: a window that looks aside moves the whole track.
const INCLINATION_ERROR: f64 = 0.5;
/// Latitudes at which directions are computed, from the equator to a pole.
const LATITUDES: usize = 360;
/// Directions within a step at which the inclination is compared.
const WITHIN_STEP: usize = 8;

/// exp(−40) is 4e-18: times the narrowest kernel's peak it is a millionth of the least weight that counts.
const NOTHING: f64 = 40.0;

/// Pictures of one pass whose times mean nothing are about so far from their middle, per axis.
const AIMLESS_KM: [f64; 3] = [250.0, 700.0, 2000.0];

/// Densities of directions by latitude; the mean over all places and directions is 1. Directions are over an Earth that stands still,
/// from north by east.
pub(super) struct Directions {
    steps: usize,
    /// Of latitudes from the equator to a pole, or the same for all.
    rows: Vec<f64>,
}

impl Directions {
    /// At a place.
    pub(super) fn at(&self, up: [f64; 3]) -> &[f64] {
        let last = self.rows.len() / self.steps - 1;
        let latitude = up[2].clamp(-1.0, 1.0).asin().abs();
        let row = (latitude / FRAC_PI_2 * last as f64).round() as usize;
        &self.rows[row * self.steps..][..self.steps]
    }
}

/// A motion over a given time, ready to weigh many pairs of places.
pub(super) enum Step {
    Travel {
        /// Shares with variances in radians².
        ways: Vec<(f64, f64)>,
        /// The largest of the variances.
        widest: f64,
    },
    Orbit {
        /// Angle of the ground track between the pictures, 0 to π.
        angle: f64,
        /// Whether the shorter way between the places is the way that was flown.
        ahead: bool,
        /// Variance of that angle, and of each axis of the place that it leads to, in radians².
        along: f64,
        bend: f64,
    },
}

/// Likelihood of a step between two places.
pub(super) struct Weight {
    pub(super) density: f64,
    /// Standard deviation of the direction between the places, in radians; infinite if it does not matter.
    pub(super) blur: f64,
}

impl Motion {
    /// Directions that have to be told apart.
    pub(super) fn headings(&self) -> usize {
        match self {
            Motion::Travel(_) => 1,
            Motion::Orbit(_) => HEADINGS,
        }
    }

    /// The same outing if times meant nothing: places near each other, at several scales. A person may do anything, so nothing
    /// contradicts that.
    pub(super) fn aimless(&self) -> Vec<Motion> {
        match self {
            Motion::Travel(_) => Vec::new(),
            Motion::Orbit(_) => AIMLESS_KM
                .map(|slack_km| {
                    let ways = vec![(1.0, 0.0)];
                    Motion::Travel(Travel { ways, slack_km, straight_hours: 1.0 })
                })
                .into(),
        }
    }

    /// By how many radians the Earth turns below whoever moves. Over an Earth that stands still, an orbit is a great circle.
    pub(super) fn turn(&self, seconds: f64) -> f64 {
        match self {
            Motion::Travel(_) => 0.0,
            Motion::Orbit(_) => TURN_OF_THE_EARTH * seconds,
        }
    }

    /// How far pictures are from the places that move, per axis.
    pub(super) fn slack_km(&self) -> f64 {
        match self {
            Motion::Travel(_) => 0.0,
            Motion::Orbit(orbit) => orbit.slack_km,
        }
    }

    /// Densities of directions without any other knowledge, in `steps` equal steps of a turn.
    pub(super) fn directions(&self, steps: usize) -> Directions {
        let Motion::Orbit(Orbit { inclination_degrees: Some(inclination), .. }) = self else {
            return Directions { steps, rows: vec![1.0; steps] };
        };
        // A plane with the inclination i is as probable as sin i, if nothing is known.
        let known = inclination.to_radians();
        let error = INCLINATION_ERROR.to_radians();
        let within = steps.max(HEADINGS) / steps * WITHIN_STEP;
        let density = |across: f64, part: f64| {
            let east = across * (TAU * part / steps as f64).sin();
            let off = (east.acos() - known) / error;
            (-0.5 * off * off).exp() / (0.5 * TAU.sqrt() * error * known.sin().max(error))
        };
        let mean = |across: f64, step: usize| {
            let parts = (0..within).map(|k| step as f64 + (k as f64 + 0.5) / within as f64 - 0.5);
            parts.map(|part| density(across, part)).sum::<f64>() / within as f64
        };
        let row = |row: usize| {
            let across = (FRAC_PI_2 * row as f64 / LATITUDES as f64).cos();
            (0..steps).map(move |step| mean(across, step))
        };
        Directions { steps, rows: (0..=LATITUDES).flat_map(row).collect() }
    }

    pub(super) fn step(&self, seconds: f64) -> Step {
        match self {
            Motion::Travel(travel) => {
                let hours = seconds.abs() / 3600.0;
                let straight = travel.straight_hours;
                let hours =
                    if hours > straight { straight * (hours / straight).powf(0.6) } else { hours };
                let total: f64 = travel.ways.iter().map(|(share, _)| share).sum();
                let way = |(share, speed): &(f64, f64)| {
                    let km2 = (speed * hours).powi(2) + 2.0 * travel.slack_km.powi(2);
                    (share / total, km2 / EARTH_RADIUS_KM.powi(2))
                };
                let ways: Vec<(f64, f64)> = travel.ways.iter().map(way).collect();
                let widest = ways.iter().map(|(_, variance)| *variance).fold(0.0, f64::max);
                Step::Travel { ways, widest }
            }
            Motion::Orbit(orbit) => {
                let flown =
                    orbit.speed_km_s * seconds.abs() / (EARTH_RADIUS_KM + orbit.altitude_km);
                let turned = flown.rem_euclid(TAU);
                let ahead = turned <= PI;
                Step::Orbit {
                    angle: if ahead { turned } else { TAU - turned },
                    ahead,
                    along: (orbit.tolerance * flown).powi(2),
                    bend: (orbit.bend_km / EARTH_RADIUS_KM).powi(2),
                }
            }
        }
    }
}

impl Step {
    /// Whether a step over such a time constrains the distance so little that it can be left out.
    pub(super) fn is_idle(&self) -> bool {
        match self {
            Step::Travel { .. } => false,
            Step::Orbit { along, .. } => *along > 1.0,
        }
    }

    /// Whether the flight led from the one place to the other by the shorter way.
    pub(super) fn is_ahead(&self) -> bool {
        !matches!(self, Step::Orbit { ahead: false, .. })
    }

    /// The kernel at two places with the cosine of their angle; `spread` is the variance per axis of both
    /// places within their cells.
    pub(super) fn weight(&self, cosine: f64, spread: f64) -> Weight {
        match self {
            Step::Travel { ways, widest } => {
                let fallen = (1.0 - cosine).max(0.0);
                // Almost all pairs of an outing end here.
                if fallen > NOTHING * (widest + spread) {
                    return Weight { density: 0.0, blur: f64::INFINITY };
                }
                let density = ways.iter().map(|(share, variance)| {
                    let concentration = 1.0 / (variance + spread);
                    let exponent = concentration * fallen;
                    if exponent > NOTHING {
                        return 0.0;
                    }
                    share * peak(concentration) * (-exponent).exp()
                });
                Weight { density: density.sum(), blur: f64::INFINITY }
            }
            Step::Orbit { angle, along, bend, .. } => {
                let distance = cosine.clamp(-1.0, 1.0).acos();
                let variance = along + bend + spread;
                let off = (distance - angle).powi(2) / variance;
                if off > 16.0 {
                    return Weight { density: 0.0, blur: f64::INFINITY };
                }
                let density = (-0.5 * off).exp() / ring_measure(*angle, variance.sqrt());
                let arm = distance.sin().max(1e-9);
                Weight { density, blur: (bend + spread).sqrt() / arm }
            }
        }
    }
}

/// The peak of a von Mises-Fisher kernel.
fn peak(concentration: f64) -> f64 {
    let twice = 2.0 * concentration;
    // Beyond, the denominator is 1 to the last bit.
    if twice > NOTHING { twice } else { twice / -(-twice).exp_m1() }
}

/// The measure of a ring with a normal profile: ∫ exp(−(d − angle)²/2σ²) ½ sin d dd, where the sine is taken as
/// linear within the ring.
fn ring_measure(angle: f64, deviation: f64) -> f64 {
    let near = angle.min(PI - angle);
    let ratio = near / deviation;
    let edge = deviation * deviation * (-0.5 * ratio * ratio).exp();
    let flat = if near < FRAC_PI_2 { near.sin() } else { 1.0 };
    let sharp = flat * deviation * TAU.sqrt() * normal_below(ratio);
    // No ring is larger than the sphere.
    (0.5 * (edge + sharp)).min(1.0)
}

/// The normal distribution function, to 1e-4: a logistic curve in x + 0.044715 x³.
fn normal_below(x: f64) -> f64 {
    let z = 1.595_769 * (x + 0.044_715 * x * x * x);
    1.0 / (1.0 + (-z).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ∫ k dμ over the distance, with dμ = ½ sin d dd.
    fn integral(step: &Step) -> f64 {
        let count = 200_000;
        let width = PI / f64::from(count);
        (0..count)
            .map(|k| {
                let d = (f64::from(k) + 0.5) * width;
                step.weight(d.cos(), 1e-6).density * 0.5 * d.sin() * width
            })
            .sum()
    }

    #[test]
    fn kernels_are_normalized() {
        let travel = Motion::default();
        let orbit = Motion::Orbit(Orbit::default());
        for seconds in [0.0, 10.0, 300.0, 7200.0, 80_000.0] {
            let sum = integral(&travel.step(seconds));
            assert!((sum - 1.0).abs() < 1e-3, "{seconds} s of travel: {sum}");
        }
        for seconds in [0.0, 3.0, 10.0, 30.0, 120.0, 600.0, 1300.0, 2000.0] {
            let sum = integral(&orbit.step(seconds));
            assert!((sum - 1.0).abs() < 0.1, "{seconds} s of orbit: {sum}");
        }
    }

    #[test]
    fn a_flight_is_improbable_but_possible() {
        let step = Motion::default().step(3.0 * 3600.0);
        let at = |km: f64| step.weight((km / EARTH_RADIUS_KM).cos(), 0.0).density;
        assert!(at(5.0) > 1e3, "{}", at(5.0));
        assert!(at(1500.0) > 0.05, "{}", at(1500.0));
        assert!(at(15_000.0) < 1e-6, "{}", at(15_000.0));
    }

    /// What is left out is far below what counts, for cells of all sizes.
    #[test]
    fn short_cuts_change_nothing() {
        for seconds in [0.0, 18.0, 3600.0, 40_000.0] {
            let step = Motion::default().step(seconds);
            let Step::Travel { ways, .. } = &step else { panic!("a person travels") };
            for spread in [0.0, 1e-9, 1e-6, 1e-3, 0.1, 2.0] {
                for km in [0.0, 0.1, 1.0, 7.0, 50.0, 400.0, 3000.0, 20_000.0_f64] {
                    let cosine = (km / EARTH_RADIUS_KM).cos();
                    let whole = ways.iter().map(|(share, variance)| {
                        let c = 1.0 / (variance + spread);
                        share * 2.0 * c / -(-2.0 * c).exp_m1() * (-c * (1.0 - cosine)).exp()
                    });
                    let (whole, found) = (whole.sum::<f64>(), step.weight(cosine, spread).density);
                    assert!((whole - found).abs() < 1e-8, "{km} km: {whole}, {found}");
                }
            }
        }
    }

    /// Knowing the inclination makes some directions more probable and others less: 1 on average over the sphere.
    #[test]
    fn directions_are_normalized() {
        for steps in [1, HEADINGS] {
            let rings = 400;
            let directions = Motion::Orbit(Orbit::default()).directions(steps);
            let mean = |ring: usize| {
                let z = (2.0 * ring as f64 + 1.0) / f64::from(rings as u32) - 1.0;
                let all = directions.at([(1.0 - z * z).sqrt(), 0.0, z]);
                all.iter().sum::<f64>() / steps as f64
            };
            let sum = (0..rings).map(mean).sum::<f64>() / rings as f64;
            assert!((sum - 1.0).abs() < 0.02, "{steps}: {sum}");
        }
        // Over the equator it flies 51.64° north of east, or south of it; it does not come to the pole.
        let directions = Motion::Orbit(Orbit::default()).directions(HEADINGS);
        let equator = directions.at([1.0, 0.0, 0.0]);
        let at = |degrees: f64| equator[(degrees / 360.0 * HEADINGS as f64).round() as usize];
        assert!(at(38.36) > 20.0 && at(141.64) > 20.0, "{equator:?}");
        assert!(at(90.0) < 1e-9 && at(218.36) < 1e-9, "{equator:?}");
        assert!(directions.at([0.0, 0.0, 1.0]).iter().all(|density| *density < 1e-9));
    }

    #[test]
    fn an_orbit_comes_round() {
        let orbit = Motion::Orbit(Orbit { tolerance: 0.0, ..Orbit::default() });
        let whole = EARTH_RADIUS_KM + 420.0;
        let round = TAU * whole / 7.66;
        let [short, long] = [600.0, round - 600.0].map(|seconds| orbit.step(seconds));
        let cosine = (7.66 * 600.0 / whole).cos();
        let ratio = short.weight(cosine, 0.0).density / long.weight(cosine, 0.0).density;
        assert!((ratio - 1.0).abs() < 1e-6, "{ratio}");
        assert!(short.is_ahead() && !long.is_ahead());
    }
}
