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
//! That nothing hides is a matter of tests, not of proof: `tests/integral.rs` and
//! `experiments/density-conformance` compare with independent integrals.

use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

use crate::cells::{CellId, POINTS, PointValues, Rule, Tiling};
use crate::simd::{Kernel, vectorised};

/// What lies this far below the highest point is left out and counted as error.
const NEGLIGIBLE_NATS: f64 = 35.0;
/// Refinement stops when the estimated error is below this.
const TOLERANCE_NATS: f64 = 5e-4;
/// As [`TOLERANCE_NATS`], for cells that the border of an area or of a support cuts.
const CUT_TOLERANCE_NATS: f64 = 2e-3;
/// A cell is resolved if no peak of exp g in it is narrower (in standard deviations) than
/// a quarter of its side: then −g″·side² is at most this.
const RESOLVED_CURVATURE: f64 = 16.0;
/// Half of the widest gap between points, squared, over two: how far a parabola of
/// curvature 1 rises between two points. Four times that, for what isn't a parabola.
const RISE_PER_CURVATURE: f64 = 4.0 * 0.5 * 0.0917 * 0.0917;
/// No more cells than this beyond the coarsest ones.
const MOST_SPLIT_CELLS: usize = 100_000;

/// g on a cell.
#[derive(Debug, Clone)]
pub(crate) struct Sheet {
    /// g at the points; −∞ where exp g is zero.
    pub(crate) values: PointValues,
    /// Where exp g counts.
    pub(crate) coverage: Coverage,
    /// How high g could rise between the points; −∞ if the points show all.
    pub(crate) summit: f64,
}

/// How much of a cell counts. Beyond the border of an area exp g is zero at once.
#[derive(Debug, Clone)]
pub(crate) enum Coverage {
    /// All of it.
    Full,
    /// Nothing.
    Nothing,
    /// A border runs through the cell: how much counts of what each point stands for.
    Partial(Box<PointValues>),
    /// Borders run through it whose parts the values have already.
    Mixed,
}

impl Coverage {
    /// What both leave.
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
        Sheet { values, coverage: Coverage::Full, summit: f64::NEG_INFINITY }
    }

    /// All points count; what could hide between them is read off their second differences.
    pub(crate) fn with_summit(values: PointValues) -> Sheet {
        let summit = vectorised(Summit { values: &values });
        Sheet { values, coverage: Coverage::Full, summit }
    }

    /// Nothing is here.
    pub(crate) fn nothing() -> Sheet {
        let values = [[f64::NEG_INFINITY; POINTS]; POINTS];
        Sheet { values, coverage: Coverage::Nothing, summit: f64::NEG_INFINITY }
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

fn highest(values: &PointValues) -> f64 {
    values.as_flattened().iter().copied().fold(f64::NEG_INFINITY, f64::max)
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
}

/// A cell that is not cut further.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) id: CellId,
    /// After [`Mesh::build`]: the logarithm of the normalised density.
    pub(crate) sheet: Sheet,
    /// Whether exp g is zero at some points and not at others.
    kinked: bool,
    /// Its share of the whole.
    pub(crate) mass: f64,
    pub(crate) error: f64,
}

impl Leaf {
    fn new(id: CellId, sheet: Sheet) -> Leaf {
        let zeros = sheet.values.as_flattened().iter().filter(|v| **v == f64::NEG_INFINITY).count();
        let kinked = zeros > 0 && zeros < POINTS * POINTS;
        Leaf { id, sheet, kinked, mass: 0.0, error: 0.0 }
    }
}

/// exp g, normalised, on cells that resolve it.
#[derive(Debug, Clone)]
pub(crate) struct Mesh {
    pub(crate) tiling: Tiling,
    pub(crate) leaves: Vec<Leaf>,
    /// The leaves by cell, made when a leaf is looked for.
    numbers: OnceLock<HashMap<CellId, usize, CellHasher>>,
    /// log ∫ exp g.
    pub(crate) log_integral: f64,
    /// Estimated error of `log_integral` in nats.
    pub(crate) error: f64,
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
        &self.leaves[self.number_at(theta, phi, 0)]
    }

    /// The number of the leaf that holds a point, which is looked for first at a level.
    pub(crate) fn number_at(&self, theta: f64, phi: f64, level: u32) -> usize {
        let numbers = self
            .numbers
            .get_or_init(|| self.leaves.iter().enumerate().map(|(k, leaf)| (leaf.id, k)).collect());
        let deepest = self.tiling.deepest();
        let levels = (0..=deepest).flat_map(|k| [level.checked_sub(k), level.checked_add(k)]);
        levels
            .flatten()
            .filter(|level| *level <= deepest)
            .find_map(|level| numbers.get(&self.tiling.cell_at(level, theta, phi)).copied())
            .expect("leaves cover the sphere")
    }
}

/// Cells need no protection against an attacker who chooses them.
type CellHasher = BuildHasherDefault<CellHash>;

#[derive(Default)]
struct CellHash(u64);

impl Hasher for CellHash {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }
}

struct Builder<'a> {
    tiling: Tiling,
    sheets: Box<dyn Sheets + 'a>,
    leaves: Vec<Leaf>,
    most_leaves: usize,
    /// The highest point that was seen before integrating: masses are in units of exp of it.
    highest: f64,
    /// What might still hide, in units of exp(highest).
    hidden: f64,
    /// Probability in cells that are too wide, but could not be cut for their number.
    at_stake: f64,
}

/// A cell to be cut before it is looked at, the weightiest first.
struct Heavy {
    weight: f64,
    id: CellId,
}

/// A leaf to be cut, the most urgent first.
struct Urgent {
    urgency: f64,
    leaf: usize,
}

impl<'a> Builder<'a> {
    fn start(mut sheets: Box<dyn Sheets + 'a>, tiling: Tiling) -> Option<Builder<'a>> {
        let (mut ids, mut waiting) = (Vec::new(), BinaryHeap::new());
        for id in tiling.base_cells() {
            match sheets.must_split(id) {
                None => ids.push(id),
                Some(weight) => waiting.push(Heavy { weight, id }),
            }
        }
        let most_leaves = ids.len() + waiting.len() + MOST_SPLIT_CELLS;
        let mut at_stake = 0.0;
        while let Some(Heavy { weight, id }) = waiting.pop() {
            if ids.len() + waiting.len() + 4 > most_leaves || id.level >= tiling.deepest() {
                at_stake += weight;
                ids.push(id);
                continue;
            }
            for id in id.children() {
                match sheets.must_split(id) {
                    None => ids.push(id),
                    Some(weight) => waiting.push(Heavy { weight, id }),
                }
            }
        }
        let mut leaves: Vec<Leaf> = Vec::with_capacity(ids.len());
        for id in ids {
            leaves.push(Leaf::new(id, sheets.sheet(id)));
        }
        let highest = leaves.iter().map(|leaf| leaf.sheet.highest());
        let highest = highest.fold(f64::NEG_INFINITY, f64::max);
        (highest > f64::NEG_INFINITY).then_some(Builder {
            tiling,
            sheets,
            leaves,
            most_leaves,
            highest,
            hidden: 0.0,
            at_stake,
        })
    }

    /// Quarters a leaf and returns the numbers of its quarters.
    fn split(&mut self, number: usize) -> [usize; 4] {
        let quarters =
            self.leaves[number].id.children().map(|id| Leaf::new(id, self.sheets.sheet(id)));
        let first_new = self.leaves.len();
        let [first, rest @ ..] = quarters;
        self.leaves[number] = first;
        self.leaves.extend(rest);
        [number, first_new, first_new + 1, first_new + 2]
    }

    /// Cuts cells until nothing that matters can lie between their points.
    fn uncover_what_hides(&mut self) {
        let mut heap: BinaryHeap<Urgent> = (0..self.leaves.len())
            .map(|leaf| Urgent { urgency: self.leaves[leaf].sheet.summit, leaf })
            .filter(|urgent| urgent.urgency >= self.highest - NEGLIGIBLE_NATS)
            .collect();
        while let Some(Urgent { urgency, leaf }) = heap.pop() {
            if urgency < self.highest - NEGLIGIBLE_NATS {
                break;
            }
            let id = self.leaves[leaf].id;
            if self.leaves.len() + 3 > self.most_leaves || id.level >= self.tiling.deepest() {
                self.hidden += self.tiling.area(id) * (urgency - self.highest).exp();
                continue;
            }
            for leaf in self.split(leaf) {
                let sheet = &self.leaves[leaf].sheet;
                self.highest = self.highest.max(sheet.highest());
                heap.push(Urgent { urgency: sheet.summit, leaf });
            }
        }
    }

    fn integrate(&mut self) {
        let mut sines = Sines::new(self.tiling);
        for leaf in &mut self.leaves {
            integrate(self.tiling, leaf, self.highest, &mut sines);
        }
    }

    /// Cuts the cells with the largest error until their sum is small enough.
    fn refine(&mut self) {
        let (mut total, mut sums) = (0.0, ErrorSums::default());
        for leaf in &self.leaves {
            total += leaf.mass;
            sums.add(leaf);
        }
        if sums.is_small(total) {
            return;
        }
        let mut sines = Sines::new(self.tiling);
        let mut heap: BinaryHeap<Urgent> = (0..self.leaves.len())
            .map(|leaf| Urgent { urgency: self.leaves[leaf].error, leaf })
            .collect();
        while !sums.is_small(total) && self.leaves.len() + 3 <= self.most_leaves {
            let Some(Urgent { leaf, .. }) = heap.pop() else { break };
            if self.leaves[leaf].id.level >= self.tiling.deepest() {
                continue;
            }
            sums.remove(&self.leaves[leaf]);
            total -= self.leaves[leaf].mass;
            for leaf in self.split(leaf) {
                integrate(self.tiling, &mut self.leaves[leaf], self.highest, &mut sines);
                sums.add(&self.leaves[leaf]);
                total += self.leaves[leaf].mass;
                heap.push(Urgent { urgency: self.leaves[leaf].error, leaf });
            }
        }
    }

    fn finish(mut self) -> Mesh {
        // Summed anew: running sums carry rounding of what was taken out again.
        let mut sums = ErrorSums::default();
        self.leaves.iter().for_each(|leaf| sums.add(leaf));
        let total: f64 = self.leaves.iter().map(|leaf| leaf.mass).sum();
        let log_integral = total.ln() + self.highest;
        let rounding = 1e-13 * (1.0 + self.highest.abs());
        let error = (sums.total() + self.hidden) / total + self.at_stake + rounding;
        for leaf in &mut self.leaves {
            leaf.mass /= total;
            leaf.error /= total;
            for value in leaf.sheet.values.as_flattened_mut() {
                *value -= log_integral;
            }
        }
        let numbers = OnceLock::new();
        Mesh { tiling: self.tiling, leaves: self.leaves, numbers, log_integral, error }
    }
}

/// Errors of smooth cells may add up; those of cells that a border cuts have signs by chance.
#[derive(Default)]
struct ErrorSums {
    smooth: f64,
    /// Of cells in which exp g reaches zero with a kink.
    kinked_squares: f64,
    cut: f64,
    cut_squares: f64,
}

impl ErrorSums {
    fn add(&mut self, leaf: &Leaf) {
        self.change(leaf, 1.0);
    }

    fn remove(&mut self, leaf: &Leaf) {
        self.change(leaf, -1.0);
    }

    fn change(&mut self, leaf: &Leaf, sign: f64) {
        let square = sign * leaf.error * leaf.error;
        if leaf.sheet.is_cut() {
            self.cut += sign * leaf.error;
            self.cut_squares += square;
        } else if leaf.kinked {
            self.kinked_squares += square;
        } else {
            self.smooth += sign * leaf.error;
        }
    }

    fn total(&self) -> f64 {
        self.smooth + self.of_kinked_cells() + self.of_cut_cells()
    }

    fn of_kinked_cells(&self) -> f64 {
        3.0 * self.kinked_squares.max(0.0).sqrt()
    }

    fn of_cut_cells(&self) -> f64 {
        // Three standard deviations of a random sum, unless the border runs along the cells:
        // then all err alike.
        let random = 3.0 * self.cut_squares.max(0.0).sqrt();
        random.min(self.cut).max(0.3 * self.cut)
    }

    fn is_small(&self, total: f64) -> bool {
        self.smooth <= TOLERANCE_NATS * total
            && self.of_kinked_cells() + self.of_cut_cells() <= CUT_TOLERANCE_NATS * total
    }
}

/// Mass and error of a leaf in units of exp(reference).
fn integrate(tiling: Tiling, leaf: &mut Leaf, reference: f64, sines: &mut Sines) {
    let area = tiling.width(leaf.id.level).powi(2);
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
        // A border cuts the cell: how much of a point's part it leaves is known to a few
        // percent of the cell.
        0.05 * summary.largest * area
    } else {
        // With 8 points a coefficient of degree 16 is the first to be missed. Coefficients
        // fall at least geometrically, so it is about the square of the eighth.
        4.0 * summary.tail * summary.tail * summary.largest * area
    };
}

/// sin θ at the points of a cell, remembered for the next cell of the same ring.
struct Sines {
    tiling: Tiling,
    ring: Option<(u32, u32)>,
    values: [f64; POINTS],
}

impl Sines {
    fn new(tiling: Tiling) -> Sines {
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
    /// How much of it sits in the last two coefficients along an axis, 0 to 1.
    tail: f64,
}

impl Kernel for Integrate<'_> {
    type Output = Summary;

    #[inline(always)]
    fn run(self) -> Summary {
        let rule = Rule::get();
        let mut density = [[0.0; POINTS]; POINTS];
        let (mut mean, mut largest) = (0.0, 0.0_f64);
        for i in 0..POINTS {
            for j in 0..POINTS {
                density[i][j] = self.sines[i] * (self.sheet.values[i][j] - self.reference).exp();
                largest = largest.max(density[i][j]);
                mean += rule.weights[i] * rule.weights[j] * density[i][j];
            }
        }
        if let Coverage::Partial(shares) = &self.sheet.coverage {
            mean = 0.0;
            for i in 0..POINTS {
                for j in 0..POINTS {
                    mean += shares[i][j] * rule.weights[i] * rule.weights[j] * density[i][j];
                }
            }
        }
        if self.sheet.is_cut() {
            return Summary { mean, largest, tail: 1.0 };
        }
        let down = tail(&multiply(&rule.to_coefficients, &density));
        let mut transposed = [[0.0; POINTS]; POINTS];
        for i in 0..POINTS {
            for j in 0..POINTS {
                transposed[j][i] = density[i][j];
            }
        }
        let right = tail(&multiply(&rule.to_coefficients, &transposed));
        Summary { mean, largest, tail: down.max(right) }
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

impl PartialEq for Heavy {
    fn eq(&self, other: &Heavy) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Heavy {}
impl Ord for Heavy {
    fn cmp(&self, other: &Heavy) -> std::cmp::Ordering {
        let place = |id: CellId| (id.level, id.ring, id.sector);
        self.weight.total_cmp(&other.weight).then(place(other.id).cmp(&place(self.id)))
    }
}
impl PartialOrd for Heavy {
    fn partial_cmp(&self, other: &Heavy) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Urgent {
    fn eq(&self, other: &Urgent) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Urgent {}
impl Ord for Urgent {
    fn cmp(&self, other: &Urgent) -> std::cmp::Ordering {
        // Of equal ones the first, so that results don't depend on the heap's whims.
        self.urgency.total_cmp(&other.urgency).then(other.leaf.cmp(&self.leaf))
    }
}
impl PartialOrd for Urgent {
    fn partial_cmp(&self, other: &Urgent) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
