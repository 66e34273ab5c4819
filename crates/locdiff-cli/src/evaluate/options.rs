//! By which rules answers are scored.

use clap::{Args, ValueEnum};
use locdiff_evaluate::{EvaluationOptions, Missing, Rules, Units};
use locdiff_sphere::{DistanceRule, GeoscoreRule, RadiusRule, Resampling};

use crate::counts::count;

#[derive(Args)]
pub(super) struct Options {
    /// Rules for scoring. --distance, --radius and --geoscore replace single rules
    #[arg(long, value_enum, default_value_t = Whose::Locdiff, value_name = "WHOSE")]
    rules: Whose,
    /// How far two places are apart [default: great-circle]
    #[arg(long, value_enum, value_name = "RULE")]
    distance: Option<Distance>,
    /// Whether an answer at exactly the radius is within it [default: at-most]
    #[arg(long, value_enum, value_name = "RULE")]
    radius: Option<Radius>,
    /// Whether each image's GeoScore is rounded [default: exact]
    #[arg(long, value_enum, value_name = "RULE")]
    geoscore: Option<Geoscore>,
    /// What to do with images without an answer
    #[arg(long, value_enum, default_value_t = WhatOfMissing::Refuse, value_name = "WHAT")]
    missing: WhatOfMissing,
    /// The answers are in radians
    #[arg(long)]
    radians: bool,
    /// Bootstrap resamples of each interval; 0 for no intervals
    #[arg(long, value_name = "N", default_value_t = Resampling::default().resamples, value_parser = count::<0, 1_000_000>)]
    resamples: usize,
    /// Permutations of each paired test
    #[arg(long, value_name = "N", default_value_t = Resampling::default().permutations, value_parser = count::<0, 10_000_000>)]
    permutations: usize,
    /// Confidence level of intervals
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = parse_share)]
    confidence: f64,
    /// Seed of the resampling: the same seed gives the same intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    resampling_seed: u64,
    /// Number of neighbors for the scores density and coverage
    #[arg(long, value_name = "K", default_value_t = locdiff_sphere::MANIFOLD_NEIGHBOURS, value_parser = count::<1, 10_000>)]
    neighbours: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Whose {
    /// Great circles of 6371.0088 km, ≤, no rounding.
    Locdiff,
    /// GeoCLIP's script: geodesics of WGS84, ≤.
    Geoclip,
    /// OSV-5M's script: great circles of 6371 km, <.
    Osv5m,
    /// plonk's script: as OSV-5M's.
    Plonk,
}

#[derive(Clone, Copy, ValueEnum)]
enum Distance {
    /// On a sphere of 6371.0088 km, the Earth's mean radius.
    GreatCircle,
    /// On a sphere of 6371 km.
    #[value(name = "great-circle-6371")]
    GreatCircle6371,
    /// On WGS84's ellipsoid.
    Geodesic,
}

#[derive(Clone, Copy, ValueEnum)]
enum Radius {
    /// ≤
    AtMost,
    /// <
    LessThan,
}

#[derive(Clone, Copy, ValueEnum)]
enum Geoscore {
    /// As computed.
    Exact,
    /// Whole points, as the game shows them.
    WholePoints,
}

#[derive(Clone, Copy, ValueEnum)]
enum WhatOfMissing {
    /// Fail without scores.
    Refuse,
    /// Leave these images out, and report their number.
    Skip,
    /// Count these images as wrong: answered with the antipode and a uniform density.
    Worst,
}

impl Options {
    pub(super) fn missing(&self) -> Missing {
        match self.missing {
            WhatOfMissing::Refuse => Missing::Refuse,
            WhatOfMissing::Skip => Missing::Skip,
            WhatOfMissing::Worst => Missing::Worst,
        }
    }

    pub(super) fn units(&self) -> Units {
        if self.radians { Units::Radians } else { Units::Degrees }
    }

    pub(super) fn evaluation(&self) -> EvaluationOptions {
        let mut rules = match self.rules {
            Whose::Locdiff => Rules::default(),
            Whose::Geoclip => Rules::GEOCLIP,
            Whose::Osv5m | Whose::Plonk => Rules::OSV5M,
        };
        if let Some(distance) = self.distance {
            rules.distance = match distance {
                Distance::GreatCircle => DistanceRule::GreatCircle,
                Distance::GreatCircle6371 => DistanceRule::GreatCircle6371,
                Distance::Geodesic => DistanceRule::Geodesic,
            };
        }
        if let Some(radius) = self.radius {
            rules.radius = match radius {
                Radius::AtMost => RadiusRule::AtMost,
                Radius::LessThan => RadiusRule::LessThan,
            };
        }
        if let Some(geoscore) = self.geoscore {
            rules.geoscore = match geoscore {
                Geoscore::Exact => GeoscoreRule::Exact,
                Geoscore::WholePoints => GeoscoreRule::WholePoints,
            };
        }
        let resampling = Resampling {
            resamples: self.resamples,
            permutations: self.permutations,
            confidence: self.confidence,
        };
        EvaluationOptions {
            rules,
            resampling: (self.resamples > 0).then_some(resampling),
            seed: self.resampling_seed,
            neighbours: self.neighbours,
            training: None,
        }
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if 0.0 < share && share < 1.0 => Ok(share),
        _ => Err("not a number between 0 and 1".to_owned()),
    }
}
