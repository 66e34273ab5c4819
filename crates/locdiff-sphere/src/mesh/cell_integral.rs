//! The integral of exp g over one cell, and how far it may be off.

use super::sheet::highest;
use super::{Coverage, Leaf, NEGLIGIBLE_NATS, Sheet};
use crate::cells::{CellId, POINTS, PointValues, Rule, Tiling};
use crate::simd::{Kernel, vectorised};

/// Where exp g jumps along a line through a cell, the points' sum errs by this part of the jump: the root mean
/// square for lines along an axis; it is a third of that for lines across.
const STEP_ERROR: f64 = 0.04;

/// How much a border leaves of what a point stands for is known to this part of it.
const SHARE_ERROR: f64 = 0.2;
/// And how much of a whole cell, if that is not known point by point.
const CUT_ERROR: f64 = 0.05;

/// Mass and error of a leaf in units of exp(reference).
pub(super) fn integrate(tiling: Tiling, leaf: &mut Leaf, reference: f64, sines: &mut Sines) {
    let area = tiling.square(leaf.id);
    // Beyond the border of a cut cell there may be more than at its points inside.
    let highest =
        if leaf.sheet.is_cut() { highest(&leaf.sheet.values) } else { leaf.sheet.highest() };
    if highest < reference - NEGLIGIBLE_NATS - 5.0 {
        leaf.mass = 0.0;
        leaf.error = area * (highest - reference).exp();
        return;
    }
    let sines = sines.of(leaf.id);
    let summary = vectorised(Integrate { sheet: &leaf.sheet, sines, reference });
    leaf.mass = summary.mean * area;
    leaf.error = if leaf.sheet.is_cut() {
        // A border cuts the cell.
        summary.cut * area
    } else if leaf.sheet.stepped {
        STEP_ERROR * (summary.largest - summary.least) * area
    } else if let Some(missed) = leaf.sheet.missed {
        missed * leaf.mass
    } else {
        // With 8 points a coefficient of degree 16 is the first to be missed. Coefficients
        // fall at least geometrically, so it is about the square of the eighth.
        4.0 * summary.tail * summary.tail * summary.largest * area
    };
}

/// sin θ at the points of a cell, remembered for the next cell of the same ring.
pub(super) struct Sines {
    tiling: Tiling,
    ring: Option<(u32, u32)>,
    values: [f64; POINTS],
}

impl Sines {
    pub(super) fn new(tiling: Tiling) -> Sines {
        Sines { tiling, ring: None, values: [0.0; POINTS] }
    }

    fn of(&mut self, id: CellId) -> [f64; POINTS] {
        if self.ring != Some((id.level, id.ring)) {
            self.ring = Some((id.level, id.ring));
            self.values = Rule::get().points.map(|point| self.tiling.point(id, point, 0.0).0.sin());
        }
        self.values
    }
}

struct Integrate<'a> {
    sheet: &'a Sheet,
    sines: [f64; POINTS],
    reference: f64,
}

struct Summary {
    /// Mean of exp(g − reference)·sin θ over the points inside, per area of the whole cell.
    mean: f64,
    largest: f64,
    least: f64,
    /// What borders may have taken too much or too little of.
    cut: f64,
    /// How much of it sits in the last two coefficients along an axis, 0 to 1.
    tail: f64,
}

impl Kernel for Integrate<'_> {
    type Output = Summary;

    #[inline(always)]
    fn run(self) -> Summary {
        let rule = Rule::get();
        let mut density = [[0.0; POINTS]; POINTS];
        let (mut mean, mut largest, mut least) = (0.0, 0.0_f64, f64::INFINITY);
        for i in 0..POINTS {
            for j in 0..POINTS {
                density[i][j] = self.sines[i] * (self.sheet.values[i][j] - self.reference).exp();
                largest = largest.max(density[i][j]);
                least = least.min(density[i][j]);
                mean += rule.weights[i] * rule.weights[j] * density[i][j];
            }
        }
        let mut cut = CUT_ERROR * largest;
        if let Coverage::Partial(shares) = &self.sheet.coverage {
            let mut squares = 0.0;
            mean = 0.0;
            for i in 0..POINTS {
                for j in 0..POINTS {
                    let whole = rule.weights[i] * rule.weights[j] * density[i][j];
                    mean += shares[i][j] * whole;
                    if shares[i][j] > 0.0 && shares[i][j] < 1.0 {
                        squares += whole * whole;
                    }
                }
            }
            cut = SHARE_ERROR * squares.sqrt();
        }
        if self.sheet.is_cut() || self.sheet.stepped {
            return Summary { mean, largest, least, cut, tail: 1.0 };
        }
        let down = tail(&multiply(&rule.to_coefficients, &density));
        let mut transposed = [[0.0; POINTS]; POINTS];
        for i in 0..POINTS {
            for j in 0..POINTS {
                transposed[j][i] = density[i][j];
            }
        }
        let right = tail(&multiply(&rule.to_coefficients, &transposed));
        Summary { mean, largest, least, cut, tail: down.max(right) }
    }
}

#[inline(always)]
fn multiply(a: &PointValues, b: &PointValues) -> PointValues {
    let mut product = [[0.0; POINTS]; POINTS];
    for i in 0..POINTS {
        for k in 0..POINTS {
            for j in 0..POINTS {
                product[i][j] += a[i][k] * b[k][j];
            }
        }
    }
    product
}

/// The part of the last two rows in the largest coefficient.
#[inline(always)]
fn tail(coefficients: &PointValues) -> f64 {
    let (mut last, mut all) = ([0.0_f64; POINTS], [0.0_f64; POINTS]);
    for (k, row) in coefficients.iter().enumerate() {
        for j in 0..POINTS {
            let size = row[j].abs();
            all[j] = if size > all[j] { size } else { all[j] };
            if k >= POINTS - 2 {
                last[j] = if size > last[j] { size } else { last[j] };
            }
        }
    }
    let largest = |sizes: [f64; POINTS]| sizes.into_iter().fold(0.0, f64::max);
    let (last, all) = (largest(last), largest(all));
    if all > 0.0 { last / all } else { 0.0 }
}
