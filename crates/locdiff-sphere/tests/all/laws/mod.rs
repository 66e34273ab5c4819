//! Laws that hold whatever the numbers: norms, rotations, round trips.

mod basis;
mod decoding;
mod transforms;

use locdiff_sphere::{Coefficients, LatLon};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// Anywhere, with the poles, the antimeridian and their neighbourhoods over-represented.
fn any_place() -> impl Strategy<Value = LatLon> {
    let latitude = prop_oneof![
        4 => -90.0..=90.0,
        1 => Just(90.0),
        1 => Just(-90.0),
        1 => (0.0..8.0).prop_map(|digits: f64| 90.0 - 10.0_f64.powf(-digits)),
        1 => (0.0..8.0).prop_map(|digits: f64| -90.0 + 10.0_f64.powf(-digits)),
    ];
    let longitude = prop_oneof![
        4 => -180.0..180.0,
        1 => Just(-180.0),
        1 => (0.0..8.0).prop_map(|digits: f64| 180.0 - 10.0_f64.powf(-digits)),
    ];
    (latitude, longitude).prop_map(|(lat, lon)| LatLon::new(lat, lon).unwrap())
}

/// White noise: every coefficient a standard normal number.
fn noise(max_degree: usize, seed: u64) -> Coefficients {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut coefficients = Coefficients::zeros(max_degree);
    for c in coefficients.as_mut_slice() {
        *c = rng.sample(StandardNormal);
    }
    coefficients
}
