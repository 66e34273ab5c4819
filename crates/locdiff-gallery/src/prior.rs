//! Where a gallery's photographs were taken, as a density.
//!
//! Photographs are counted in cells of the curve, whose rows are contiguous, and their mean places are spread by a
//! kernel at least [`NARROWEST_KM`] wide: this is the prior that a search brings along. A part of it is uniform, so
//! that dividing by it stays harmless where there are no photographs.

use locdiff_sphere::{Density, InvalidDensity, Kernel, LatLon, PointMasses};

use crate::curve::{Cell, FACE_KM};

/// The prior has no finer detail.
const NARROWEST_KM: f64 = 200.0;
/// And is so many times wider than the kernel around references, over which it is taken as constant.
const WIDER: f64 = 2.0;
/// The part that is spread over the whole Earth.
const UNIFORM_PART: f64 = 0.05;
/// Cells are so much narrower than the kernel, at least.
const CELL_PART: f64 = 0.4;

/// The prior of a gallery whose references are spread by `width_km`.
pub(crate) fn prior<'a>(
    keys: impl Iterator<Item = &'a [u64]>,
    width_km: f64,
) -> Result<Density, InvalidDensity> {
    let width_km = (WIDER * width_km).max(NARROWEST_KM);
    let level = (FACE_KM / (CELL_PART * width_km)).log2().ceil().max(0.0) as u32;
    let (mut places, mut weights) = (Vec::new(), Vec::new());
    for keys in keys {
        let mut rest = keys;
        while let Some(first) = rest.first() {
            let cell = Cell::of_key(*first, level);
            let end = cell.keys().end;
            let (inside, beyond) = rest.split_at(rest.partition_point(|key| *key < end));
            places.push(LatLon::from(cell.mean_of(inside)));
            weights.push(inside.len() as f64);
            rest = beyond;
        }
    }
    let spread = PointMasses::new(places, &weights)?.spread(Kernel::new(width_km)?);
    Density::mixture(vec![(1.0 - UNIFORM_PART, spread), (UNIFORM_PART, Density::uniform())])
}

#[cfg(test)]
mod tests {
    use locdiff_sphere::{Anchors, UNIFORM_NLL_NATS};

    use super::*;
    use crate::curve::key;

    fn sorted_keys(places: &[LatLon]) -> Vec<u64> {
        let mut keys: Vec<u64> = places.iter().map(|place| key(*place)).collect();
        keys.sort_unstable();
        keys
    }

    /// Spreading the means of cells is nearly spreading the places.
    #[test]
    fn priors_are_places_spread_by_a_kernel() {
        let paris = LatLon::new(48.86, 2.35).unwrap();
        let mut places: Vec<LatLon> =
            (0..500).map(|k| paris.destination(f64::from(k) * 7.0, f64::from(k))).collect();
        places.extend((0..50).map(|k| LatLon::new(-80.0 + f64::from(k), 179.9).unwrap()));
        let keys = sorted_keys(&places);
        for (width_km, prior_km) in [(10.0, 200.0), (250.0, 500.0)] {
            // In two segments.
            let (a, b) = keys.split_at(100);
            let prior = prior([a, b].into_iter(), width_km).unwrap();
            let spread = PointMasses::new(places.clone(), &[1.0; 550]).unwrap();
            let exact = spread.spread(Kernel::new(prior_km).unwrap());
            let uniform = UNIFORM_PART * (-UNIFORM_NLL_NATS).exp();
            for place in places.iter().step_by(13) {
                let near = place.destination(45.0, 150.0);
                let expected = (1.0 - UNIFORM_PART) * exact.log_density(near).exp() + uniform;
                let ratio = prior.log_density(near).exp() / expected;
                assert!((ratio - 1.0).abs() < 0.03, "{near}: {ratio}");
            }
        }
    }

    #[test]
    fn priors_of_even_galleries_are_even() {
        let anchors = Anchors::fibonacci(100_000);
        let keys = sorted_keys(anchors.places());
        let prior = prior([&keys[..]].into_iter(), 1.0).unwrap();
        for place in anchors.places().iter().step_by(997) {
            let difference = prior.log_density(*place) + UNIFORM_NLL_NATS;
            assert!(difference.abs() < 0.02, "{place}: {difference}");
        }
    }
}
