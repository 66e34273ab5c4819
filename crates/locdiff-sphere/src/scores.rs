//! Scores of predictions: how good places and densities are against the truth.
//!
//! Everything that publishes a number takes it from here. [`PointScores`] judges one place
//! per image, [`DensityScores`] a density per image; what they return is a [`Score`], which
//! keeps the number of each image and so has its value, its bootstrap [`Interval`] and its
//! [`Comparison`] with another model on the same images. [`ManifoldScores`] compares clouds of places.
//!
//! Convention: distances in km on the sphere of radius [`crate::EARTH_RADIUS_KM`] (or by another
//! [`DistanceRule`]), areas in km², densities per steradian, logarithms in nats; shares
//! in [0, 1]; the median of an even number of values is the mean of the middle two. Tested
//! against geographiclib, scikit-learn, prdc, numpy and scipy (`parity/scores/`).

mod densities;
mod manifold;
mod points;
mod rules;
mod score;

pub use densities::{
    COVERAGE_LEVELS, DensityOutcome, DensityScores, RECALL_AREAS_KM2, UNIFORM_NLL_NATS,
};
pub use manifold::{MANIFOLD_NEIGHBOURS, ManifoldScores};
pub use points::{ACCURACY_RADII_KM, GEOSCORE_MAXIMUM, GEOSCORE_SCALE_KM, PointScores, geoscore};
pub use rules::{DistanceRule, GeoscoreRule, RadiusRule};
pub use score::{Comparison, Interval, Resampling, Score, Statistic};

/// Why numbers cannot be scored.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidScores {
    /// There is nothing to score.
    #[error("0 {quantity}, a score needs at least 1")]
    Empty {
        /// Name of the list that is empty.
        quantity: &'static str,
    },
    /// Two lists that belong together have different lengths.
    #[error("{first} {first_name}, but {second} {second_name}")]
    Lengths {
        /// Length of the first list.
        first: usize,
        /// What the first list holds.
        first_name: &'static str,
        /// Length of the second list.
        second: usize,
        /// What the second list holds.
        second_name: &'static str,
    },
    /// A number is NaN or outside of its range.
    #[error("{quantity} of image {index} is {value}, it must be {allowed}")]
    Value {
        /// Name of the number.
        quantity: &'static str,
        /// Which image, counted from 0.
        index: usize,
        /// The number that was given.
        value: f64,
        /// Values that are valid.
        allowed: &'static str,
    },
    /// Each place needs that many neighbours.
    #[error(
        "{places} places, but balls of {neighbours} neighbors need more places than that, and at least 1 neighbor"
    )]
    Neighbours {
        /// How many places there are.
        places: usize,
        /// How many neighbours were asked for.
        neighbours: usize,
    },
    /// A mean is compared with a median.
    #[error("the first score is a {first}, the second a {second}")]
    Statistics {
        /// How the first score sums up its images.
        first: Statistic,
        /// How the second score sums up its images.
        second: Statistic,
    },
}

/// The first value that is not valid, as an error; none at all is an error too.
fn check(
    quantity: [&'static str; 2],
    values: &[f64],
    allowed: &'static str,
    is_valid: impl Fn(f64) -> bool,
) -> Result<(), InvalidScores> {
    let [singular, plural] = quantity;
    if values.is_empty() {
        return Err(InvalidScores::Empty { quantity: plural });
    }
    match values.iter().position(|value| !is_valid(*value)) {
        None => Ok(()),
        Some(index) => {
            Err(InvalidScores::Value { quantity: singular, index, value: values[index], allowed })
        }
    }
}

/// 1 where the condition holds and 0 elsewhere: the mean is a share.
fn share(values: &[f64], holds: impl Fn(f64) -> bool) -> Score {
    let indicators = values.iter().map(|value| if holds(*value) { 1.0 } else { 0.0 });
    Score::of_valid(Statistic::Mean, indicators.collect())
}
