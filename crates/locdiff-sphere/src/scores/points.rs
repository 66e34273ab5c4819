//! Scores of one predicted place per image.

use std::f64::consts::PI;

use super::{
    DistanceRule, GeoscoreRule, InvalidScores, RadiusRule, Score, Statistic, check, share,
};
use crate::LatLon;

/// GeoScore of a perfect answer: the points of one round of GeoGuessr.
pub const GEOSCORE_MAXIMUM: f64 = 5000.0;

/// Distance in km at which a GeoScore has fallen to 1/e, on the map of the world: PIGEON
/// (Haas et al., CVPR 2024), an approximation of the game's own rule; OSV-5M uses it too.
pub const GEOSCORE_SCALE_KM: f64 = 1492.7;

/// The radii in km that the field reports: street, city, region, country and continent
/// (Vo, Jacobs and Hays, ICCV 2017).
pub const ACCURACY_RADII_KM: [f64; 5] = [1.0, 25.0, 200.0, 750.0, 2500.0];

/// No two places are farther apart: half of WGS84's equator, with room for rounding.
/// A larger distance is in another unit.
const LONGEST_DISTANCE_KM: f64 = 6378.137 * PI * (1.0 + 1e-9);

/// The GeoScore of an answer: 5000·exp(−d / 1492.7 km), not rounded to whole points.
///
/// ```
/// use locdiff_sphere::geoscore;
///
/// assert_eq!(geoscore(0.0), 5000.0);
/// assert_eq!(geoscore(200.0).round(), 4373.0);
/// ```
pub fn geoscore(distance_km: f64) -> f64 {
    GeoscoreRule::Exact.score(distance_km)
}

/// How far predicted places are from the true ones.
///
/// ```
/// use locdiff_sphere::{LatLon, PointScores};
///
/// let paris = LatLon::new(48.8566, 2.3522)?;
/// let lyon = LatLon::new(45.7640, 4.8357)?;
/// let scores = PointScores::of(&[paris, lyon], &[paris, paris])?;
/// assert_eq!(scores.accuracy(200.0).value(), 0.5);
/// assert_eq!(scores.mean_km().value().round(), 196.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PointScores {
    distances_km: Vec<f64>,
    rule: RadiusRule,
    geoscore: GeoscoreRule,
}

impl PointScores {
    /// Scores of predictions against the truth, image by image, on the sphere.
    pub fn of(predicted: &[LatLon], truth: &[LatLon]) -> Result<PointScores, InvalidScores> {
        PointScores::measured(predicted, truth, DistanceRule::default())
    }

    /// The same with distances by another rule.
    pub fn measured(
        predicted: &[LatLon],
        truth: &[LatLon],
        distance: DistanceRule,
    ) -> Result<PointScores, InvalidScores> {
        if predicted.len() != truth.len() {
            return Err(InvalidScores::Lengths {
                first: predicted.len(),
                first_name: "predicted places",
                second: truth.len(),
                second_name: "true places",
            });
        }
        let pairs = predicted.iter().zip(truth);
        PointScores::of_distances(pairs.map(|(a, b)| distance.distance_km(*a, *b)).collect())
    }

    /// Scores of distances that were measured elsewhere.
    pub fn of_distances(distances_km: Vec<f64>) -> Result<PointScores, InvalidScores> {
        check(
            ["the distance in km", "distances"],
            &distances_km,
            "from 0 to 20037.6, half of the equator",
            |distance_km| (0.0..=LONGEST_DISTANCE_KM).contains(&distance_km),
        )?;
        Ok(PointScores {
            distances_km,
            rule: RadiusRule::default(),
            geoscore: GeoscoreRule::default(),
        })
    }

    /// The same with another rule for answers at exactly a radius.
    pub fn with_rule(self, rule: RadiusRule) -> PointScores {
        PointScores { rule, ..self }
    }

    /// The same with another rule for GeoScores.
    pub fn with_geoscore(self, geoscore: GeoscoreRule) -> PointScores {
        PointScores { geoscore, ..self }
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.distances_km.len()
    }

    /// Never: there is at least one image.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The distance of each image in km.
    pub fn distances_km(&self) -> &[f64] {
        &self.distances_km
    }

    /// Share of images whose answer lies within the radius, by the rule.
    /// [`ACCURACY_RADII_KM`] lists the usual radii.
    pub fn accuracy(&self, radius_km: f64) -> Score {
        share(&self.distances_km, |distance_km| self.rule.is_within(distance_km, radius_km))
    }

    /// Median distance in km.
    pub fn median_km(&self) -> Score {
        Score::of_valid(Statistic::Median, self.distances_km.clone())
    }

    /// Mean distance in km.
    pub fn mean_km(&self) -> Score {
        Score::of_valid(Statistic::Mean, self.distances_km.clone())
    }

    /// Mean GeoScore: the score of each image by the rule, then their mean.
    pub fn mean_geoscore(&self) -> Score {
        let scores = self.distances_km.iter().map(|distance_km| self.geoscore.score(*distance_km));
        Score::of_valid(Statistic::Mean, scores.collect())
    }
}
