//! Probabilities of circles by a quadrature of their own: polar coordinates around the circle's middle, the density asked at every point.

use std::f64::consts::{PI, TAU};

use locdiff_sphere::{Area, Density, EARTH_RADIUS_KM, LatLon};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::random::{self, What};

/// Rings around the middle, in panels of Gauss-Legendre points, and points on each ring.
const PANELS: usize = 12;
const ANGLES: usize = 192;

/// The largest error of the logarithm of the probability of a circle, in nats, and how often it was within the error that the
/// restricted density states, in percent.
pub fn errors(count: u64) -> (f64, f64) {
    let (mut largest, mut held, mut seen) = (0.0_f64, 0, 0);
    for seed in 0.. {
        let mut rng = ChaCha8Rng::seed_from_u64(1_000_000 + seed);
        let case = random::case(&mut rng);
        // Others take the reference too long.
        if matches!(&case.what, What::Points { places, .. } if places.len() > 5_000) {
            continue;
        }
        let density = case.what.density();
        let survey = density.survey();
        let top = survey.modes().modes[0].place;
        let radius_km = survey.radius_km(top, 0.5).max(0.5);
        // Narrow kernels far apart would be missed by the reference, at every fineness.
        let kernel_km = density.kernel_km().unwrap_or(f64::INFINITY);
        if radius_km > 20.0 * kernel_km {
            continue;
        }
        let centre = top.destination(rng.random_range(0.0..360.0), 0.5 * radius_km);
        let Ok(part) = Area::circle(centre, radius_km)
            .map_err(|_| ())
            .and_then(|circle| density.restricted_to(circle).map_err(|_| ()))
        else {
            continue;
        };
        let Density::Restriction(restriction) = &part else { continue };
        let coarse = log_probability(&density, centre, radius_km, 1);
        let expected = log_probability(&density, centre, radius_km, 2);
        // Where the reference itself is inexact.
        if (coarse - expected).abs() > 5e-4 {
            continue;
        }
        let error = (restriction.log_probability() - expected).abs();
        if error > 0.01 || error > part.normaliser_error() {
            let stated = part.normaliser_error();
            eprintln!(
                "{} (seed {seed}), {radius_km:.1} km: {error:.5}, stated {stated:.5}",
                case.what.name()
            );
        }
        largest = largest.max(error);
        held += u64::from(error <= part.normaliser_error() + 1e-9);
        seen += 1;
        if seen == count {
            break;
        }
    }
    (largest, 100.0 * held as f64 / seen as f64)
}

fn log_probability(density: &Density, centre: LatLon, radius_km: f64, fineness: usize) -> f64 {
    // Eight Gauss-Legendre points on [-1, 1].
    const NODES: [(f64, f64); 4] = [
        (0.183_434_642_495_649_8, 0.362_683_783_378_362),
        (0.525_532_409_916_329, 0.313_706_645_877_887_3),
        (0.796_666_477_413_626_7, 0.222_381_034_453_374_5),
        (0.960_289_856_497_536_3, 0.101_228_536_290_376_3),
    ];
    let radius = (radius_km / EARTH_RADIUS_KM).min(PI);
    let (panels, angles) = (PANELS * fineness, ANGLES * fineness);
    let mut sum = 0.0;
    for panel in 0..panels {
        let half = 0.5 * radius / panels as f64;
        let middle = (2 * panel + 1) as f64 * half;
        for (node, weight) in NODES.iter().flat_map(|(x, w)| [(-x, *w), (*x, *w)]) {
            let angle = middle + half * node;
            let ring: f64 = (0..angles)
                .map(|k| {
                    let place = centre
                        .destination(360.0 * k as f64 / angles as f64, angle * EARTH_RADIUS_KM);
                    density.log_density(place).exp()
                })
                .sum();
            sum += weight * half * angle.sin() * ring * TAU / angles as f64;
        }
    }
    sum.ln()
}
