//! The rules by which answers are scored, and those of others.

use locdiff_sphere::{DistanceRule, GeoscoreRule, RadiusRule};

/// The rules by which answers are scored. The default is ours; the others reproduce published numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// How far two places are apart.
    pub distance: DistanceRule,
    /// Whether an answer at exactly the radius is within it.
    pub radius: RadiusRule,
    /// Whether a GeoScore has digits after the point.
    pub geoscore: GeoscoreRule,
}

impl Rules {
    /// As GeoCLIP's own script counts: geodesics of WGS84, ≤.
    pub const GEOCLIP: Rules = Rules {
        distance: DistanceRule::Geodesic,
        radius: RadiusRule::AtMost,
        geoscore: GeoscoreRule::Exact,
    };

    /// As OSV-5M's and plonk's scripts count: great circles of 6371 km, <.
    pub const OSV5M: Rules = Rules {
        distance: DistanceRule::GreatCircle6371,
        radius: RadiusRule::LessThan,
        geoscore: GeoscoreRule::Exact,
    };

    /// Describes the rules in one line of a report.
    pub fn described(self) -> String {
        let [distance, radius, geoscore] =
            [self.distance.described(), self.radius.described(), self.geoscore.described()];
        format!("{distance}; {radius}; {geoscore}")
    }

    /// For programs: the three choices by name.
    pub fn names(self) -> [&'static str; 3] {
        [self.distance.name(), self.radius.name(), self.geoscore.name()]
    }
}
