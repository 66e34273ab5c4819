//! Outings whose truth is known, with calibrated single densities. The motion is not that of the fusion.

use locdiff_sphere::{Density, Kernel, LatLon, PointMasses, uniform_place};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, StandardNormal};

/// A picture with its true place.
pub(crate) struct Simulated {
    pub(crate) time_s: f64,
    pub(crate) truth: LatLon,
    pub(crate) density: Density,
}

fn normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

fn moved(place: LatLon, deviation_km: f64, rng: &mut impl Rng) -> LatLon {
    let (east, north) = (deviation_km * normal(rng), deviation_km * normal(rng));
    place.destination(east.atan2(north).to_degrees(), east.hypot(north))
}

/// A calibrated density for a picture at `truth`: several modes, of which the true one is drawn by its weight.
pub(crate) fn density_for(truth: LatLon, widths_km: [f64; 2], rng: &mut impl Rng) -> Density {
    let [narrow, wide] = widths_km;
    let width = narrow * (wide / narrow).powf(rng.random_range(0.0..1.0));
    let count = rng.random_range(1..4);
    let weights: Vec<f64> = (0..count).map(|_| rng.random_range(0.1..1.0)).collect();
    let total: f64 = weights.iter().sum();
    let mut target = rng.random_range(0.0..total);
    let mut true_mode = count - 1;
    for (mode, weight) in weights.iter().enumerate() {
        if target < *weight {
            true_mode = mode;
            break;
        }
        target -= weight;
    }
    let place =
        |mode| if mode == true_mode { moved(truth, width, rng) } else { uniform_place(rng) };
    let places: Vec<LatLon> = (0..count).map(place).collect();
    let masses = PointMasses::new(places, &weights).expect("masses");
    masses.spread(Kernel::new(width).expect("a width"))
}

/// A pass of a spacecraft: an inclined circular orbit over a turning Earth, seen from windows that look sideways,
/// by a photographer who takes several pictures and then waits.
pub(crate) fn pass(count: usize, rng: &mut impl Rng) -> Vec<Simulated> {
    let inclination = 51.64_f64.to_radians();
    let period_s = 92.9 * 60.0;
    let node = rng.random_range(0.0..std::f64::consts::TAU);
    let phase = rng.random_range(0.0..std::f64::consts::TAU);
    let mut time_s = 0.0;
    // The window in use, for the whole pass, and the hand.
    let aside_km = 25.0 * normal(rng);
    (0..count)
        .map(|_| {
            let wait: f64 = Exp1.sample(rng);
            time_s += 4.0 + 22.0 * wait;
            let along = phase + std::f64::consts::TAU * time_s / period_s;
            let turned = node - std::f64::consts::TAU * time_s / 86_164.0;
            let (sin, cos) = along.sin_cos();
            let latitude = (inclination.sin() * sin).asin();
            let longitude = (inclination.cos() * sin).atan2(cos) + turned;
            let below =
                LatLon::new(latitude.to_degrees(), longitude.to_degrees()).expect("a place");
            let truth = moved(below.destination(200.0, aside_km), 15.0, rng);
            Simulated { time_s, truth, density: density_for(truth, [40.0, 400.0], rng) }
        })
        .collect()
}

/// A walk: stays, drives at changing speeds and sometimes a flight.
pub(crate) fn journey(count: usize, rng: &mut impl Rng) -> Vec<Simulated> {
    let mut place = uniform_place(rng);
    let (mut time_s, mut bearing) = (0.0, rng.random_range(0.0..360.0));
    (0..count)
        .map(|_| {
            let wait: f64 = Exp1.sample(rng);
            let hours = 0.02 + 0.7 * wait;
            time_s += 3600.0 * hours;
            let speed_km_h = match rng.random_range(0..100) {
                0..50 => 1.5,
                50..75 => 15.0,
                75..98 => 60.0 + 40.0 * rng.random_range(0.0..1.0),
                _ => 800.0,
            };
            bearing += 50.0 * normal(rng);
            place = place.destination(bearing, speed_km_h * hours * rng.random_range(0.3..1.0));
            Simulated { time_s, truth: place, density: density_for(place, [20.0, 300.0], rng) }
        })
        .collect()
}

/// The same pictures with their times shuffled.
pub(crate) fn shuffled(mut pictures: Vec<Simulated>, rng: &mut impl Rng) -> Vec<Simulated> {
    let mut times: Vec<f64> = pictures.iter().map(|picture| picture.time_s).collect();
    times.shuffle(rng);
    pictures.iter_mut().zip(times).for_each(|(picture, time_s)| picture.time_s = time_s);
    pictures
}

/// Errors of the single and the fused answers in km, and how often 90 % regions contain the truth.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) single_km: Vec<f64>,
    pub(crate) fused_km: Vec<f64>,
    pub(crate) single_inside: usize,
    pub(crate) fused_inside: usize,
    pub(crate) strays: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, picture: &Simulated, fused: &locdiff_archive::fusion::Fused) {
        for (density, errors, inside) in [
            (&picture.density, &mut self.single_km, &mut self.single_inside),
            (&fused.density, &mut self.fused_km, &mut self.fused_inside),
        ] {
            let survey = density.survey();
            let best = survey.modes().modes[0].place;
            errors.push(best.distance_km(picture.truth));
            *inside += usize::from(survey.outcome(picture.truth).level <= 0.9);
        }
        self.strays += fused.stray;
    }

    pub(crate) fn median_ratio(&self) -> f64 {
        median(&self.fused_km) / median(&self.single_km)
    }

    pub(crate) fn coverage(&self) -> f64 {
        self.fused_inside as f64 / self.fused_km.len() as f64
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n = self.single_km.len();
        let mean = |errors: &[f64]| errors.iter().sum::<f64>() / n as f64;
        write!(
            f,
            "n {n}: median {:.0} -> {:.0} km, mean {:.0} -> {:.0} km, coverage of 90 % {:.3} -> {:.3}, strays {:.3}",
            median(&self.single_km),
            median(&self.fused_km),
            mean(&self.single_km),
            mean(&self.fused_km),
            self.single_inside as f64 / n as f64,
            self.coverage(),
            self.strays / n as f64,
        )
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
