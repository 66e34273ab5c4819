//! The choices on which published scores differ, each with its default.

use std::sync::LazyLock;

use geographiclib_rs::{Geodesic, InverseGeodesic};

use super::points::{GEOSCORE_MAXIMUM, GEOSCORE_SCALE_KM};
use crate::{EARTH_RADIUS_KM, LatLon};

/// How far two places are apart.
///
/// The Earth is flattened by 1/298: a great circle differs from the shortest path on the ellipsoid by
/// up to 0.56 %. At 25 km that is 140 m, so few images change sides, but some do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DistanceRule {
    /// Along the great circle of a sphere with [`EARTH_RADIUS_KM`]. The default.
    #[default]
    GreatCircle,
    /// The same with a radius of 6371 km exactly, as OSV-5M and plonk have it.
    GreatCircle6371,
    /// The shortest path on WGS84's ellipsoid, as GeoCLIP has it (by geopy).
    Geodesic,
}

/// Whether an answer at exactly the radius is within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RadiusRule {
    /// Distance ≤ radius. The default.
    #[default]
    AtMost,
    /// Distance < radius.
    LessThan,
}

/// Whether a GeoScore has digits after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum GeoscoreRule {
    /// As it is computed. The default.
    #[default]
    Exact,
    /// Each image's score is rounded to whole points, as the game shows it.
    WholePoints,
}

static WGS84: LazyLock<Geodesic> = LazyLock::new(Geodesic::wgs84);

impl DistanceRule {
    /// Name of the rule in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            DistanceRule::GreatCircle => "great-circle",
            DistanceRule::GreatCircle6371 => "great-circle-6371",
            DistanceRule::Geodesic => "geodesic",
        }
    }

    /// Words for a report.
    pub fn described(self) -> &'static str {
        match self {
            DistanceRule::GreatCircle => "distances along great circles, radius 6371.0088 km",
            DistanceRule::GreatCircle6371 => "distances along great circles, radius 6371 km",
            DistanceRule::Geodesic => "distances along geodesics of WGS84",
        }
    }
}

impl RadiusRule {
    /// Name of the rule in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            RadiusRule::AtMost => "at-most",
            RadiusRule::LessThan => "less-than",
        }
    }

    /// Words for a report.
    pub fn described(self) -> &'static str {
        match self {
            RadiusRule::AtMost => "within a radius: ≤",
            RadiusRule::LessThan => "within a radius: <",
        }
    }
}

impl GeoscoreRule {
    /// Name of the rule in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            GeoscoreRule::Exact => "exact",
            GeoscoreRule::WholePoints => "whole-points",
        }
    }

    /// Words for a report.
    pub fn described(self) -> &'static str {
        match self {
            GeoscoreRule::Exact => "GeoScore 5000·exp(−d/1492.7 km), not rounded",
            GeoscoreRule::WholePoints => "GeoScore 5000·exp(−d/1492.7 km), whole points",
        }
    }
}

impl DistanceRule {
    /// The distance in km.
    ///
    /// ```
    /// use locdiff_sphere::{DistanceRule, LatLon};
    ///
    /// let (north, equator) = (LatLon::NORTH_POLE, LatLon::new(0.0, 0.0)?);
    /// let km = |rule: DistanceRule| format!("{:.1}", rule.distance_km(north, equator));
    /// assert_eq!(km(DistanceRule::GreatCircle), "10007.6");
    /// assert_eq!(km(DistanceRule::Geodesic), "10002.0");
    /// # Ok::<(), locdiff_sphere::InvalidPlace>(())
    /// ```
    pub fn distance_km(self, a: LatLon, b: LatLon) -> f64 {
        match self {
            DistanceRule::GreatCircle => a.distance_km(b),
            DistanceRule::GreatCircle6371 => a.angle_to(b) * 6371.0,
            DistanceRule::Geodesic => {
                let metres: f64 =
                    WGS84.inverse(a.latitude(), a.longitude(), b.latitude(), b.longitude());
                metres / 1000.0
            }
        }
    }

    /// No two places are farther apart.
    pub fn longest_km(self) -> f64 {
        match self {
            DistanceRule::GreatCircle => std::f64::consts::PI * EARTH_RADIUS_KM,
            DistanceRule::GreatCircle6371 => std::f64::consts::PI * 6371.0,
            // From pole to pole; between antipodes the path over a pole is the shortest.
            DistanceRule::Geodesic => 20_003.931_458_623_6,
        }
    }
}

impl RadiusRule {
    /// Whether a distance is within a radius.
    pub fn is_within(self, distance_km: f64, radius_km: f64) -> bool {
        match self {
            RadiusRule::AtMost => distance_km <= radius_km,
            RadiusRule::LessThan => distance_km < radius_km,
        }
    }
}

impl GeoscoreRule {
    /// The GeoScore of an answer: 5000·exp(−d / 1492.7 km).
    pub fn score(self, distance_km: f64) -> f64 {
        let score = GEOSCORE_MAXIMUM * (-distance_km / GEOSCORE_SCALE_KM).exp();
        match self {
            GeoscoreRule::Exact => score,
            GeoscoreRule::WholePoints => score.round(),
        }
    }
}
