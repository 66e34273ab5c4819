//! A function g on one cell, and what asks for it.

use crate::cells::{CellId, POINTS, PointValues, Rule, Tiling};
use crate::simd::{Kernel, vectorised};

/// A cell is resolved if no peak of exp g in it is narrower (in standard deviations) than
/// a quarter of its side: then −g″·side² is at most this.
const RESOLVED_CURVATURE: f64 = 16.0;
/// Half of the widest gap between points, squared, over two: how far a parabola of
/// curvature 1 rises between two points. Four times that, for what isn't a parabola.
const RISE_PER_CURVATURE: f64 = 4.0 * 0.5 * 0.0917 * 0.0917;

/// g on a cell.
#[derive(Debug, Clone)]
pub(crate) struct Sheet {
    /// g at the points; −∞ where exp g is zero.
    pub(crate) values: PointValues,
    /// The part of the cell over which exp g is integrated.
    pub(crate) coverage: Coverage,
    /// How high g could rise between the points; −∞ if the points show all.
    pub(crate) summit: f64,
    /// Whether g jumps somewhere between the points: each is right, but a polynomial through them is not.
    pub(crate) stepped: bool,
    /// Whether a part of exp g reaches zero with a kink somewhere between the points.
    pub(crate) kinked: bool,
    /// The part of the cell's integral that the points may miss, if that is known beforehand.
    pub(crate) missed: Option<f64>,
}

/// How much of a cell counts. Beyond the border of an area exp g is zero at once.
#[derive(Debug, Clone)]
pub(crate) enum Coverage {
    /// The area contains the whole cell.
    Full,
    /// The area contains nothing of the cell.
    Nothing,
    /// A border runs through the cell: how much counts of what each point stands for.
    Partial(Box<PointValues>),
    /// Borders run through it whose parts the values have already.
    Mixed,
}

impl Coverage {
    /// The part of the cell that is in both coverages.
    pub(crate) fn and(&self, other: &Coverage) -> Coverage {
        match (self, other) {
            (Coverage::Nothing, _) | (_, Coverage::Nothing) => Coverage::Nothing,
            (Coverage::Full, some) | (some, Coverage::Full) => some.clone(),
            (Coverage::Mixed, some) | (some, Coverage::Mixed) => some.clone(),
            (Coverage::Partial(a), Coverage::Partial(b)) => {
                let both = |i: usize, j: usize| a[i][j] * b[i][j];
                Coverage::Partial(Box::new(std::array::from_fn(|i| {
                    std::array::from_fn(|j| both(i, j))
                })))
            }
        }
    }
}

impl Sheet {
    /// All points count and show all that there is.
    pub(crate) fn open(values: PointValues) -> Sheet {
        Sheet {
            values,
            coverage: Coverage::Full,
            summit: f64::NEG_INFINITY,
            stepped: false,
            kinked: false,
            missed: None,
        }
    }

    /// Whether exp g is zero at some points and not at others, or a part of it is.
    pub(crate) fn reaches_zero(&self) -> bool {
        self.kinked
            || lowest(&self.values) == f64::NEG_INFINITY
                && highest(&self.values) > f64::NEG_INFINITY
    }

    /// Whether all points count and are equally high.
    pub(crate) fn is_even(&self) -> bool {
        let first = self.values[0][0];
        matches!(self.coverage, Coverage::Full)
            && self.values.as_flattened().iter().all(|value| *value == first)
    }

    /// All points count and show all that there is, but g is constant around each of them.
    pub(crate) fn of_steps(values: PointValues) -> Sheet {
        let stepped = is_stepped(&values);
        Sheet { stepped, ..Sheet::open(values) }
    }

    /// All points count; what could hide between them is read off their second differences.
    pub(crate) fn with_summit(values: PointValues) -> Sheet {
        let summit = vectorised(Summit { values: &values });
        Sheet { summit, ..Sheet::open(values) }
    }

    /// A cell of which nothing is integrated.
    pub(crate) fn nothing() -> Sheet {
        let values = [[f64::NEG_INFINITY; POINTS]; POINTS];
        Sheet { coverage: Coverage::Nothing, ..Sheet::open(values) }
    }

    /// Whether a border may run through the cell.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self.coverage, Coverage::Partial(_) | Coverage::Mixed)
    }

    /// How much counts of what a point stands for, 0 to 1.
    #[inline(always)]
    pub(crate) fn share(&self, i: usize, j: usize) -> f64 {
        match &self.coverage {
            Coverage::Full | Coverage::Mixed => 1.0,
            Coverage::Nothing => 0.0,
            Coverage::Partial(shares) => shares[i][j],
        }
    }

    /// g at a point with the part that counts: −∞ where nothing does.
    pub(crate) fn value_inside(&self, i: usize, j: usize) -> f64 {
        match &self.coverage {
            Coverage::Full | Coverage::Mixed => self.values[i][j],
            Coverage::Nothing => f64::NEG_INFINITY,
            Coverage::Partial(shares) => self.values[i][j] + shares[i][j].ln(),
        }
    }

    /// The highest point that counts.
    pub(crate) fn highest(&self) -> f64 {
        match &self.coverage {
            Coverage::Full | Coverage::Mixed => highest(&self.values),
            Coverage::Nothing => f64::NEG_INFINITY,
            Coverage::Partial(shares) => {
                let points = self.values.as_flattened().iter().zip(shares.as_flattened());
                let inside = points.filter(|(_, share)| **share > 0.0);
                inside.fold(f64::NEG_INFINITY, |highest, (value, _)| highest.max(*value))
            }
        }
    }
}

/// Whether steps between points are seen: otherwise a step function is a constant one.
pub(crate) fn is_stepped(values: &PointValues) -> bool {
    values.as_flattened().iter().any(|value| *value != values[0][0])
}

/// Column by column, which vectorises; `f64::max` does not.
pub(super) fn highest(values: &PointValues) -> f64 {
    let mut tops = values[0];
    for row in &values[1..] {
        for j in 0..POINTS {
            tops[j] = if row[j] > tops[j] { row[j] } else { tops[j] };
        }
    }
    tops.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

pub(super) fn lowest(values: &PointValues) -> f64 {
    let mut bottoms = values[0];
    for row in &values[1..] {
        for j in 0..POINTS {
            bottoms[j] = if row[j] < bottoms[j] { row[j] } else { bottoms[j] };
        }
    }
    bottoms.into_iter().fold(f64::INFINITY, f64::min)
}

/// A function g that is asked for cell by cell.
pub(crate) trait Surface {
    /// Rings of coarsest cells whose points resolve g.
    fn base(&self) -> u32;
    /// Starts an evaluation on the cells of a tiling.
    fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_>;
}

/// An evaluation of a [`Surface`] in progress; it keeps what neighbouring cells share.
pub(crate) trait Sheets {
    fn sheet(&mut self, id: CellId) -> Sheet;

    /// Whether a cell is too wide for its points to be worth asking, and if so how much
    /// probability is at stake: if there are too many such cells, the weightiest go first.
    fn must_split(&mut self, _id: CellId) -> Option<f64> {
        None
    }

    /// What was done since this was last asked, beyond what every cell costs, in cells.
    fn take_cost(&mut self) -> f64 {
        0.0
    }
}

/// How high g could rise between the points of a cell; −∞ if the points show all.
struct Summit<'a> {
    values: &'a PointValues,
}

impl Kernel for Summit<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let curvatures = &Rule::get().curvatures;
        let (mut down, mut right) = ([0.0_f64; POINTS], [0.0_f64; POINTS]);
        let mut highest = [f64::NEG_INFINITY; POINTS];
        let mut columns = [[0.0; POINTS]; POINTS];
        for i in 0..POINTS {
            for j in 0..POINTS {
                let value = self.values[i][j];
                highest[j] = if value > highest[j] { value } else { highest[j] };
                columns[j][i] = value;
            }
        }
        for (k, [a, b, c]) in curvatures.iter().enumerate() {
            for j in 0..POINTS {
                let along = |v: &PointValues| -(a * v[k][j] + b * v[k + 1][j] + c * v[k + 2][j]);
                let (d, r) = (along(self.values), along(&columns));
                down[j] = if d > down[j] { d } else { down[j] };
                right[j] = if r > right[j] { r } else { right[j] };
            }
        }
        let largest = |sizes: [f64; POINTS]| sizes.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let (down, right) = (largest(down), largest(right));
        if down.max(right) <= RESOLVED_CURVATURE {
            return f64::NEG_INFINITY;
        }
        largest(highest) + RISE_PER_CURVATURE * (down + right)
    }
}
