//! How far from a place one has to go to have seen a given probability.

use super::Survey;
use super::nodes::Disc;
use super::root::root_of_falling;
use crate::{EARTH_RADIUS_KM, LatLon, UnitVector};

/// Circles hold what was asked for to this part of it, or of the rest.
const TOLERANCE: f64 = 0.005;
/// So many cells are small enough for a first guess; of fewer, so many points are.
const MANY_CELLS: usize = 2000;
const ENOUGH_POINTS: usize = 4000;
const HALF_CIRCUMFERENCE_KM: f64 = std::f64::consts::PI * EARTH_RADIUS_KM;

impl Survey<'_> {
    /// The radius in km of the circle around a place that holds a probability, to half a point of
    /// it.
    ///
    /// # Panics
    /// If the probability is not between 0 and 1.
    pub fn radius_km(&self, place: LatLon, probability: f64) -> f64 {
        assert!(
            (0.0..=1.0).contains(&probability),
            "a circle of probability {probability}: 0 to 1"
        );
        let here = UnitVector::from(place).to_array();
        // Squares of chords sort like distances, and need no trigonometry.
        let chord = |there: [f64; 3]| (0..3).map(|axis| (here[axis] - there[axis]).powi(2)).sum();
        let nodes = self.nodes();
        let mut rings: Vec<(f64, f64)> = if nodes.discs.len() > MANY_CELLS {
            let mass = |disc: &Disc| self.mesh.leaves[disc.leaf].mass;
            nodes.discs.iter().map(|disc| (chord(disc.middle), mass(disc))).collect()
        } else {
            // Every so manieth is enough; an odd number, so that they are not all of the same row of their cells.
            let stride = (nodes.points.len() / ENOUGH_POINTS) | 1;
            let points = nodes.points.iter().step_by(stride);
            points.map(|node| (chord(node.direction), node.mass)).collect()
        };
        let total: f64 = rings.iter().map(|(_, mass)| mass).sum();
        // Right to the distance between the cells, or their points: fine where the probability is, but a flat density has large cells.
        let mut quantile = |probability: f64| {
            let chord = weighted_quantile(&mut rings, probability * total);
            2.0 * (0.5 * chord.sqrt()).clamp(0.0, 1.0).asin() * EARTH_RADIUS_KM
        };
        let guess = quantile(probability).max(1e-3);
        let step = 0.2 * probability.min(1.0 - probability).max(0.01);
        let apart = quantile(probability + step) - quantile(probability - step);
        let tolerance = TOLERANCE * probability.min(1.0 - probability).max(0.02);
        let slope = -2.0 * step / apart.max(1e-3 * guess);
        let limits = [0.0, HALF_CIRCUMFERENCE_KM];
        let (radius, _) = root_of_falling(guess, slope, limits, tolerance, |radius| {
            probability - self.probability_within(place, radius)
        });
        radius
    }
}

/// The key up to which the weights sum to `wanted`: the heaviest half is searched again and again, so
/// that nothing is sorted that needn't be.
pub(super) fn weighted_quantile(pairs: &mut [(f64, f64)], mut wanted: f64) -> f64 {
    let mut rest = pairs;
    while rest.len() > 1 {
        let middle = rest.len() / 2;
        rest.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0));
        let (low, high) = rest.split_at_mut(middle);
        let below: f64 = low.iter().map(|(_, weight)| weight).sum();
        if wanted <= below {
            rest = low;
        } else {
            wanted -= below;
            rest = high;
        }
    }
    rest.first().map_or(0.0, |(key, _)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Coefficients, Density, Kernel, PointMasses};

    #[test]
    fn circles_hold_what_was_asked_for() {
        let at = |latitude, longitude| LatLon::new(latitude, longitude).expect("a place");
        let points = vec![at(48.86, 2.35), at(-33.87, 151.21), at(89.5, 0.0)];
        let spread = PointMasses::new(points, &[0.6, 0.3, 0.1]).expect("masses");
        let densities = [
            spread.spread(Kernel::default()),
            Density::exponential(&Coefficients::of(at(-17.0, 179.5), 15)),
            Density::uniform(),
        ];
        for density in &densities {
            let survey = density.survey();
            for centre in [at(48.86, 2.35), at(-17.0, -179.9), at(-90.0, 0.0)] {
                for probability in [0.05, 0.5, 0.9, 0.97] {
                    let radius = survey.radius_km(centre, probability);
                    let [less, more] = [0.97, 1.03].map(|f| {
                        survey.probability_within(centre, f * radius + 3.0 * (f - 1.0).signum())
                    });
                    assert!(
                        less - 0.01 <= probability && probability <= more + 0.01,
                        "{density}: {probability} within {radius} km of {centre}, found {less} to {more}"
                    );
                }
            }
            assert!(survey.radius_km(at(0.0, 0.0), 1.0) <= 20016.0);
        }
        // A plain normal distribution holds half within σ·√(2 ln 2).
        let one = PointMasses::new(vec![at(10.0, 20.0)], &[1.0]).expect("a mass");
        let density = one.spread(Kernel::new(100.0).expect("a width"));
        let radius = density.survey().radius_km(at(10.0, 20.0), 0.5);
        assert!((radius / 117.74 - 1.0).abs() < 0.05, "{radius}");
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_list() {
        let mut pairs: Vec<(f64, f64)> = (0..101).map(|k| (f64::from(k * 37 % 101), 1.0)).collect();
        for wanted in [0.5, 1.0, 50.0, 100.5] {
            assert_eq!(weighted_quantile(&mut pairs, wanted), (wanted - 1e-9_f64).floor());
        }
        assert_eq!(weighted_quantile(&mut [], 1.0), 0.0);
    }
}
