//! Cuts cells until they resolve exp g.

use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::OnceLock;

use super::cell_integral::{Sines, integrate};
use super::{Leaf, Mesh, NEGLIGIBLE_NATS, Sheets};
use crate::budget::Meter;
use crate::cells::{CellId, Tiling};

/// Refinement stops when the estimated error is below this.
const TOLERANCE_NATS: f64 = 5e-4;
/// As [`TOLERANCE_NATS`], for cells that the border of an area or of a support cuts.
const CUT_TOLERANCE_NATS: f64 = 2e-3;
/// Cells that are too wide may stay if no more probability than this is at stake in all of them.
const AT_STAKE: f64 = 2e-4;
/// No more cells than this beyond the coarsest ones.
const MOST_SPLIT_CELLS: usize = 100_000;

pub(super) struct Builder<'a> {
    tiling: Tiling,
    sheets: Box<dyn Sheets + 'a>,
    meter: Rc<Meter>,
    leaves: Vec<Leaf>,
    most_leaves: usize,
    /// The highest point that was seen before integrating: masses are in units of exp of it.
    highest: f64,
    /// What might still hide, in units of exp(highest).
    hidden: f64,
    /// Probability in cells that are too wide, but could not be cut for their number.
    at_stake: f64,
}

/// Something to be done, the weightiest first; of equal ones, the first.
struct Task<T> {
    weight: f64,
    item: T,
}

impl<'a> Builder<'a> {
    pub(super) fn start(mut sheets: Box<dyn Sheets + 'a>, tiling: Tiling) -> Option<Builder<'a>> {
        let meter = Meter::current();
        let (mut ids, mut waiting) = (Vec::new(), BinaryHeap::new());
        for id in tiling.base_cells() {
            match sheets.must_split(id) {
                None => ids.push(id),
                Some(weight) => waiting.push(Task { weight, item: id }),
            }
        }
        let most_leaves = ids.len() + waiting.len() + MOST_SPLIT_CELLS;
        let mut at_stake = 0.0;
        // What may be missed if no more cells are cut.
        let mut open: f64 = waiting.iter().map(|task| task.weight).sum();
        while let Some(Task { weight, item: id }) = waiting.pop() {
            // All that there are will be evaluated, and those to come as well.
            let count = ids.len() + waiting.len() + 4;
            let full = count > most_leaves || !meter.allows(count as f64);
            if full || at_stake + open <= AT_STAKE || id.level >= tiling.deepest() {
                at_stake += weight;
                open -= weight;
                ids.push(id);
                continue;
            }
            open -= weight;
            meter.spend(sheets.take_cost());
            for &id in tiling.cut(id).ids() {
                match sheets.must_split(id) {
                    None => ids.push(id),
                    Some(weight) => {
                        open += weight;
                        waiting.push(Task { weight, item: id });
                    }
                }
            }
        }
        let mut leaves: Vec<Leaf> = Vec::with_capacity(ids.len());
        for id in ids {
            leaves.push(Leaf::new(id, sheets.sheet(id)));
            meter.spend(1.0 + sheets.take_cost());
        }
        let highest = leaves.iter().map(|leaf| leaf.sheet.highest());
        let highest = highest.fold(f64::NEG_INFINITY, f64::max);
        (highest > f64::NEG_INFINITY).then_some(Builder {
            tiling,
            sheets,
            meter,
            leaves,
            most_leaves,
            highest,
            hidden: 0.0,
            at_stake,
        })
    }

    /// Whether a cell may be cut.
    fn may_cut(&self, id: CellId) -> bool {
        self.leaves.len() + 3 <= self.most_leaves
            && id.level < self.tiling.deepest()
            && self.meter.allows(4.0)
    }

    /// Cuts a leaf and returns the numbers of its parts.
    fn split(&mut self, number: usize) -> impl Iterator<Item = usize> + use<> {
        let cut = self.tiling.cut(self.leaves[number].id);
        let first_new = self.leaves.len();
        let mut parts = cut.ids().iter().map(|id| {
            let leaf = Leaf::new(*id, self.sheets.sheet(*id));
            self.meter.spend(1.0 + self.sheets.take_cost());
            leaf
        });
        let first = parts.next();
        self.leaves.extend(parts);
        self.leaves[number] = first.expect("a cell has parts");
        std::iter::once(number).chain(first_new..self.leaves.len())
    }

    /// Cuts cells until nothing that matters can lie between their points.
    pub(super) fn uncover_what_hides(&mut self) {
        let mut heap: BinaryHeap<Task<usize>> = (0..self.leaves.len())
            .map(|leaf| Task { weight: self.leaves[leaf].sheet.summit, item: leaf })
            .filter(|task| task.weight >= self.highest - NEGLIGIBLE_NATS)
            .collect();
        while let Some(Task { weight: summit, item: leaf }) = heap.pop() {
            if summit < self.highest - NEGLIGIBLE_NATS {
                break;
            }
            let id = self.leaves[leaf].id;
            if !self.may_cut(id) {
                self.hidden += self.tiling.area(id) * (summit - self.highest).exp();
                continue;
            }
            for leaf in self.split(leaf) {
                let sheet = &self.leaves[leaf].sheet;
                self.highest = self.highest.max(sheet.highest());
                heap.push(Task { weight: sheet.summit, item: leaf });
            }
        }
    }

    pub(super) fn integrate(&mut self) {
        let mut sines = Sines::new(self.tiling);
        for leaf in &mut self.leaves {
            integrate(self.tiling, leaf, self.highest, &mut sines);
        }
    }

    /// Cuts the cells with the largest error until their sum is small enough.
    pub(super) fn refine(&mut self) {
        let (mut total, mut sums) = (0.0, ErrorSums::default());
        for leaf in &self.leaves {
            total += leaf.mass;
            sums.add(leaf);
        }
        if sums.is_small(total) {
            return;
        }
        let mut sines = Sines::new(self.tiling);
        let mut heap: BinaryHeap<Task<usize>> = (0..self.leaves.len())
            .map(|leaf| Task { weight: self.leaves[leaf].error, item: leaf })
            .collect();
        while !sums.is_small(total) {
            let Some(Task { item: leaf, .. }) = heap.pop() else { break };
            if !self.may_cut(self.leaves[leaf].id) {
                continue;
            }
            sums.remove(&self.leaves[leaf]);
            total -= self.leaves[leaf].mass;
            for leaf in self.split(leaf) {
                integrate(self.tiling, &mut self.leaves[leaf], self.highest, &mut sines);
                sums.add(&self.leaves[leaf]);
                total += self.leaves[leaf].mass;
                heap.push(Task { weight: self.leaves[leaf].error, item: leaf });
            }
        }
    }

    pub(super) fn finish(mut self) -> Mesh {
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
        let tree = OnceLock::new();
        let cut_short = self.meter.is_over();
        Mesh { tiling: self.tiling, leaves: self.leaves, tree, log_integral, error, cut_short }
    }
}

/// Errors of smooth cells may add up; those of cells that a border cuts have signs by chance.
#[derive(Default)]
struct ErrorSums {
    smooth: f64,
    /// Of cells in which exp g reaches zero with a kink, or jumps.
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
        } else if leaf.kinked || leaf.sheet.stepped {
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

impl<T: Ord> PartialEq for Task<T> {
    fn eq(&self, other: &Task<T>) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<T: Ord> Eq for Task<T> {}
impl<T: Ord> Ord for Task<T> {
    fn cmp(&self, other: &Task<T>) -> std::cmp::Ordering {
        self.weight.total_cmp(&other.weight).then(other.item.cmp(&self.item))
    }
}
impl<T: Ord> PartialOrd for Task<T> {
    fn partial_cmp(&self, other: &Task<T>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
