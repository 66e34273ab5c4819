//! Drawing places from a density.

use rand::{Rng, RngExt};

use super::Survey;
use super::patch::Patch;
use crate::LatLon;
use crate::cells::place_at;

/// How far a cell's density may rise above its highest point, in nats.
const HEADROOM_NATS: f64 = 0.3;

impl Survey<'_> {
    /// `count` places drawn from the density; the same seed gives the same places.
    pub fn sample(&self, count: usize, rng: &mut impl Rng) -> Vec<LatLon> {
        let mut sum = 0.0;
        let heavy: Vec<(f64, Patch, f64)> = self
            .leaves_with_mass()
            .map(|leaf| {
                sum += leaf.mass;
                (sum, Patch::of(leaf, self.mesh.tiling), leaf.sheet.highest() + HEADROOM_NATS)
            })
            .collect();
        let mut draw = || {
            loop {
                let target = rng.random_range(0.0..sum);
                let leaf = heavy.partition_point(|(upto, ..)| *upto <= target);
                let (_, patch, ceiling) = &heavy[leaf.min(heavy.len() - 1)];
                // From the cell by rejection; a cell cut by a border may need many attempts,
                // so after some another cell gets its chance.
                for _ in 0..10_000 {
                    let (down, right) = (rng.random_range(0.0..1.0), rng.random_range(0.0..1.0));
                    let (theta, phi) = self.mesh.tiling.point(patch.id, down, right);
                    let log_density = if patch.stepped || self.steps.is_some() {
                        self.log_density(place_at(theta, phi))
                    } else {
                        patch.log_density_at(theta, phi)
                    };
                    let accepted = rng.random_range(0.0..1.0)
                        < theta.sin() / widest_sine(theta, down, patch, self)
                            * (log_density - ceiling).exp();
                    if accepted {
                        let place = place_at(theta, phi);
                        if !patch.cut || self.density.allows(place) {
                            return place;
                        }
                    }
                }
            }
        };
        (0..count).map(|_| draw()).collect()
    }
}

/// The largest sine of the colatitude in a patch.
fn widest_sine(theta: f64, down: f64, patch: &Patch, survey: &Survey<'_>) -> f64 {
    let height = survey.mesh.tiling.height(patch.id.level);
    let (north, south) = (theta - down * height, theta + (1.0 - down) * height);
    if north < std::f64::consts::FRAC_PI_2 && south > std::f64::consts::FRAC_PI_2 {
        1.0
    } else {
        north.sin().max(south.sin())
    }
}
