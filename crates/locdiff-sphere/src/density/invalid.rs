//! What a density cannot be made of.

use crate::{CubeCell, InvalidPlace};

/// Why densities do not combine into one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDensity {
    /// There is nothing to combine.
    #[error("a density of no {0}: give at least one")]
    Empty(&'static str),
    /// Lists that belong together have different lengths.
    #[error("{count} {what}, but {weights} weights: give one weight for each")]
    Lengths {
        /// What the weights belong to.
        what: &'static str,
        /// How many of those there are.
        count: usize,
        /// Number of weights.
        weights: usize,
    },
    /// Cells of a piecewise constant density have places in common.
    #[error("cells {first} and {second} overlap: cells of a density must be disjoint")]
    Overlap {
        /// One of the overlapping cells.
        first: CubeCell,
        /// Another, which is the same, a part of it, or holds it.
        second: CubeCell,
    },
    /// A weight is negative, infinite or not a number, or all of them are zero.
    #[error(
        "{what} {index} is {value}: it must be a finite number, not negative, and not all zero"
    )]
    Weight {
        /// Kind of the weight.
        what: &'static str,
        /// Index of the weight.
        index: usize,
        /// The weight that was given.
        value: f64,
    },
    /// The kernel's width is no length.
    #[error("a kernel of {0} km has no width: it must be between 0.01 and 5000 km")]
    Kernel(f64),
    /// The density is zero all over what is left.
    #[error("nothing is left: the density is zero {0}")]
    Nowhere(&'static str),
    /// The density has more detail than the cells that are allowed can show.
    #[error(
        "the density is accurate only to {0:.2} nats: it has too much detail. Use a larger area, \
         simpler polygons or a wider kernel"
    )]
    Unresolved(f64),
    /// A latitude or longitude is not valid.
    #[error(transparent)]
    Place(#[from] InvalidPlace),
}
