//! Random densities of every size, with and without constraints.

use std::f64::consts::TAU;

use locdiff_sphere::{
    Area, Coefficients, Density, Integrator, Kernel, LatLon, MultiPolygon, PointMasses,
    uniform_place,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// A density before anything was computed, and where it is to be restricted to.
pub struct Case {
    pub what: What,
    pub within: Option<Area>,
}

pub enum What {
    Points { places: Vec<LatLon>, weights: Vec<f64>, kernel: Kernel },
    Function { coefficients: Coefficients, linear: bool },
}

impl What {
    /// The density, integrated if it is of a kind that must be.
    pub fn density(&self) -> Density {
        match self {
            What::Points { places, weights, kernel } => {
                PointMasses::new(places.clone(), weights).unwrap().spread(*kernel)
            }
            What::Function { coefficients, linear } => {
                let integrator = Integrator::new(coefficients.max_degree());
                if *linear {
                    integrator.linear(coefficients)
                } else {
                    integrator.exponential(coefficients)
                }
            }
        }
    }

    pub fn name(&self) -> String {
        match self {
            What::Points { places, kernel, .. } => {
                format!("points n={} km={:.1}", places.len(), kernel.width_km())
            }
            What::Function { coefficients, linear } => {
                let kind = if *linear { "linear" } else { "exponential" };
                format!("{kind} L={}", coefficients.max_degree())
            }
        }
    }
}

fn between(rng: &mut ChaCha8Rng, low: f64, high: f64) -> f64 {
    rng.random_range(low.ln()..=high.ln()).exp()
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Points all over the Earth, in clusters, or in clusters of clusters, as photographs are.
fn places(rng: &mut ChaCha8Rng, count: usize) -> Vec<LatLon> {
    let around = |rng: &mut ChaCha8Rng, centre: LatLon, km: f64| {
        centre.destination(rng.random_range(0.0..360.0), km * normal(rng).abs())
    };
    match rng.random_range(0..3) {
        0 => (0..count).map(|_| uniform_place(rng)).collect(),
        1 => {
            let centres: Vec<(LatLon, f64)> = (0..rng.random_range(1..20))
                .map(|_| (uniform_place(rng), between(rng, 5.0, 2000.0)))
                .collect();
            (0..count)
                .map(|_| {
                    let (centre, km) = centres[rng.random_range(0..centres.len())];
                    around(rng, centre, km)
                })
                .collect()
        }
        _ => {
            let mut towns: Vec<LatLon> = vec![uniform_place(rng)];
            (0..count)
                .map(|_| {
                    let town = towns[rng.random_range(0..towns.len())];
                    let far = rng.random_range(0.0..1.0) < 0.05;
                    let km = if far { between(rng, 50.0, 5000.0) } else { between(rng, 1.0, 50.0) };
                    let place = around(rng, town, km);
                    towns.push(place);
                    place
                })
                .collect()
        }
    }
}

fn points(rng: &mut ChaCha8Rng) -> What {
    let count = between(rng, 1.0, 100_000.0).round() as usize;
    // As records are limited.
    let widest = (2e7 / count as f64).min(5000.0);
    let kernel = Kernel::new(between(rng, 1.0, widest)).unwrap();
    let places = places(rng, count);
    let spread = [0.0, 1.5, 4.0][rng.random_range(0..3)];
    let weights = (0..count).map(|_| (spread * normal(rng)).exp()).collect();
    What::Points { places, weights, kernel }
}

/// What a network gives: some places, more or less sharp, and noise.
fn function(rng: &mut ChaCha8Rng) -> What {
    let degree = between(rng, 1.0, 127.0).round() as usize;
    let mut coefficients = Coefficients::zeros(degree);
    let smooth_km = between(rng, 10.0, 3000.0);
    for _ in 0..rng.random_range(1..5) {
        let one = Coefficients::of(uniform_place(rng), degree).smoothed(smooth_km);
        let strength = between(rng, 0.05, 2.0);
        for (sum, e) in coefficients.as_mut_slice().iter_mut().zip(one.as_slice()) {
            *sum += strength * e;
        }
    }
    let noise = between(rng, 0.001, 1.0);
    for (index, e) in coefficients.as_mut_slice().iter_mut().enumerate() {
        *e += noise * normal(rng) / (index.isqrt() + 1) as f64;
    }
    What::Function { coefficients, linear: rng.random_range(0..6) == 0 }
}

/// A circle, a box, or polygons with up to 20,000 corners; somewhere near one of the points if there are any.
fn area(rng: &mut ChaCha8Rng, near: LatLon) -> Area {
    let centre = near.destination(rng.random_range(0.0..360.0), between(rng, 1.0, 2000.0));
    let radius_km = between(rng, 50.0, 8000.0);
    match rng.random_range(0..3) {
        0 => Area::circle(centre, radius_km).unwrap(),
        1 => {
            let (half, latitude) = ((radius_km / 111.0).min(80.0), centre.latitude());
            let (south, north) = ((latitude - half).max(-90.0), (latitude + half).min(90.0));
            let west = centre.longitude();
            let east = if west + 2.0 * half > 180.0 {
                west + 2.0 * half - 360.0
            } else {
                west + 2.0 * half
            };
            Area::bounding_box(south, west, north, east).unwrap()
        }
        _ => {
            let corners = between(rng, 5.0, 20_000.0).round() as usize;
            let degrees = (radius_km / 111.0).min(40.0);
            let latitude = centre.latitude().clamp(-45.0, 45.0);
            let phases: Vec<f64> = (0..12).map(|_| rng.random_range(0.0..TAU)).collect();
            let corner = |k: usize| {
                let turn = TAU * k as f64 / corners as f64;
                let wave = |(n, phase): (usize, &f64)| {
                    let times = f64::from(1_u32 << n.min(11));
                    0.35 / times.sqrt() * (times * turn + phase).sin()
                };
                let radius =
                    degrees * (1.0 + phases.iter().enumerate().map(wave).sum::<f64>()).max(0.1);
                let (sin, cos) = turn.sin_cos();
                [centre.longitude() + radius * cos, (latitude + radius * sin).clamp(-89.0, 89.0)]
            };
            Area::polygons(
                MultiPolygon::of_polygon(vec![(0..corners).map(corner).collect()]).unwrap(),
            )
        }
    }
}

pub fn case(rng: &mut ChaCha8Rng) -> Case {
    let what = if rng.random_range(0..3) == 0 { function(rng) } else { points(rng) };
    let near = match &what {
        What::Points { places, .. } => places[rng.random_range(0..places.len())],
        What::Function { .. } => uniform_place(rng),
    };
    let within = (rng.random_range(0..3) == 0).then(|| area(rng, near));
    Case { what, within }
}

/// What kind of area it is.
pub fn name_of(area: &Area) -> &'static str {
    match area {
        Area::Circle(_) => "circle",
        Area::Box(_) => "box",
        _ => "polygons",
    }
}
