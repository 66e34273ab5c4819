//! A function exp g on the sphere, integrated and tabulated with an estimate of the error.
//!
//! Cells of 8 × 8 Gauss points, quartered where the points don't resolve exp g. Two things
//! make a cell too wide:
//!
//! - Something could hide between its points. The points resolve g (a surface chooses its
//!   coarsest cells so), hence the second differences of g along both axes tell how narrow
//!   a peak of exp g can be and how far it may rise above the highest point. As long as
//!   that is narrower than a quarter of the cell, and not negligible against the highest
//!   point of all, the cell is quartered.
//! - Its estimated error is the largest, and the sum of all is above the tolerance. How
//!   well a cell is resolved is read off the decay of the Legendre coefficients of
//!   exp g·sin θ along both axes.
//!
//! That nothing hides is a matter of tests, not of proof: `tests/all/integral.rs` and
//! `experiments/sphere/density-conformance` compare with independent integrals.

mod builder;
mod cell_integral;
mod sheet;
mod tree;

use std::sync::OnceLock;

use builder::Builder;
pub(crate) use sheet::{Coverage, Sheet, Sheets, Surface, is_stepped};
use tree::Tree;

use crate::cells::{CellId, Tiling};

/// What lies this far below the highest point is left out and counted as error.
const NEGLIGIBLE_NATS: f64 = 35.0;

/// A cell that is not cut further.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) id: CellId,
    /// After [`Mesh::build`]: the logarithm of the normalised density.
    pub(crate) sheet: Sheet,
    /// Whether exp g, or a part of it, is zero at some points and not at others.
    pub(crate) kinked: bool,
    /// The cell's share of the integral.
    pub(crate) mass: f64,
    pub(crate) error: f64,
}

impl Leaf {
    fn new(id: CellId, sheet: Sheet) -> Leaf {
        let kinked = sheet.reaches_zero();
        Leaf { id, sheet, kinked, mass: 0.0, error: 0.0 }
    }
}

/// exp g, normalised, on cells that resolve it.
#[derive(Debug, Clone)]
pub(crate) struct Mesh {
    pub(crate) tiling: Tiling,
    pub(crate) leaves: Vec<Leaf>,
    /// Where the leaves are, made when one is looked for.
    tree: OnceLock<Tree>,
    /// log ∫ exp g.
    pub(crate) log_integral: f64,
    /// Estimated error of `log_integral` in nats.
    pub(crate) error: f64,
    /// Whether the budget did not suffice for smaller ones.
    pub(crate) cut_short: bool,
}

impl Mesh {
    /// Integrates exp g; `None` if it is zero everywhere.
    pub(crate) fn build(surface: &dyn Surface) -> Option<Mesh> {
        let tiling = Tiling { base: surface.base() };
        let mut builder = Builder::start(surface.sheets(tiling), tiling)?;
        builder.uncover_what_hides();
        builder.integrate();
        builder.refine();
        Some(builder.finish())
    }

    /// The leaf that holds a point.
    pub(crate) fn leaf_at(&self, theta: f64, phi: f64) -> &Leaf {
        &self.leaves[self.number_at(theta, phi)]
    }

    /// The number of the leaf that holds a point.
    pub(crate) fn number_at(&self, theta: f64, phi: f64) -> usize {
        self.tree.get_or_init(|| Tree::new(self.tiling, &self.leaves)).number_at(theta, phi)
    }
}
