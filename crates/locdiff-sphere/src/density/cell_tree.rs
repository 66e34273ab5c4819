//! Disjoint cells of the divided cube as a tree: which one holds a direction, and which are near one.

use super::InvalidDensity;
use crate::cube_cells::DEEPEST_CUBE_LEVEL;
use crate::{CubeCell, LatLon, UnitVector};

/// What is found under a quarter of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Entry {
    Nothing,
    /// The number of a cell.
    Cell(u32),
    /// The number of a branch.
    Branch(u32),
}

#[derive(Debug)]
pub(super) struct CellTree {
    faces: [Entry; 6],
    /// The quarters of those cells that are divided.
    branches: Vec<[Entry; 4]>,
    branch_discs: Vec<Disc>,
    cell_discs: Vec<Disc>,
}

/// A disc that contains a whole cell.
#[derive(Debug, Clone, Copy)]
struct Disc {
    middle: UnitVector,
    /// Radius of the disc in radians.
    reach: f64,
}

impl Disc {
    fn around(cell: CubeCell) -> Disc {
        let middle = cell.point([0.5, 0.5]);
        let corners = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];
        let reaches = corners.map(|corner| middle.angle_to(cell.point(corner)));
        Disc { middle, reach: reaches.into_iter().fold(0.0, f64::max) }
    }

    fn touches(&self, other: Disc) -> bool {
        let together = self.reach + other.reach;
        together >= std::f64::consts::PI || self.middle.dot(other.middle) >= together.cos()
    }
}

/// Numbers that cells have, and their sums over everything below each branch.
#[derive(Debug, Clone)]
pub(super) struct Sums {
    cells: Vec<f64>,
    branches: Vec<f64>,
}

impl CellTree {
    pub(super) fn new(cells: &[CubeCell]) -> Result<CellTree, InvalidDensity> {
        let mut tree = CellTree {
            faces: [Entry::Nothing; 6],
            branches: Vec::new(),
            branch_discs: Vec::new(),
            cell_discs: cells.iter().map(|cell| Disc::around(*cell)).collect(),
        };
        for (number, cell) in cells.iter().enumerate() {
            if let Err(other) = tree.insert(*cell, number as u32) {
                return Err(InvalidDensity::Overlap { first: cells[other], second: *cell });
            }
        }
        Ok(tree)
    }

    /// Adds a cell; if it overlaps another, that one's number is the error.
    fn insert(&mut self, cell: CubeCell, number: u32) -> Result<(), usize> {
        let mut slot = (None, cell.face());
        let mut here = CubeCell::faces()[cell.face()];
        for quarter in cell.quarters() {
            let branch = match self.entry(slot) {
                Entry::Cell(other) => return Err(other as usize),
                Entry::Branch(branch) => branch,
                Entry::Nothing => {
                    let branch = self.branches.len() as u32;
                    self.branches.push([Entry::Nothing; 4]);
                    self.branch_discs.push(Disc::around(here));
                    *self.entry_mut(slot) = Entry::Branch(branch);
                    branch
                }
            };
            slot = (Some(branch), quarter);
            here = here.children()[quarter];
        }
        match self.entry(slot) {
            Entry::Nothing => {
                *self.entry_mut(slot) = Entry::Cell(number);
                Ok(())
            }
            taken => Err(self.some_cell(taken)),
        }
    }

    fn entry(&self, (branch, at): (Option<u32>, usize)) -> Entry {
        branch.map_or(self.faces[at], |branch| self.branches[branch as usize][at])
    }

    fn entry_mut(&mut self, (branch, at): (Option<u32>, usize)) -> &mut Entry {
        match branch {
            None => &mut self.faces[at],
            Some(branch) => &mut self.branches[branch as usize][at],
        }
    }

    fn some_cell(&self, mut entry: Entry) -> usize {
        loop {
            match entry {
                Entry::Cell(number) => return number as usize,
                Entry::Branch(branch) => {
                    let quarters = self.branches[branch as usize];
                    entry = quarters.into_iter().find(|e| *e != Entry::Nothing).unwrap_or(entry);
                }
                Entry::Nothing => unreachable!("every branch leads to a cell"),
            }
        }
    }

    /// The number of the cell in a direction.
    pub(super) fn find(&self, vector: [f64; 3]) -> Option<usize> {
        let deepest = CubeCell::towards(vector, DEEPEST_CUBE_LEVEL);
        let mut entry = self.faces[deepest.face()];
        let mut quarters = deepest.quarters();
        loop {
            match entry {
                Entry::Nothing => return None,
                Entry::Cell(number) => return Some(number as usize),
                Entry::Branch(branch) => entry = self.branches[branch as usize][quarters.next()?],
            }
        }
    }

    pub(super) fn find_place(&self, place: LatLon) -> Option<usize> {
        self.find(UnitVector::from(place).to_array())
    }

    /// Sums the numbers of cells over branches.
    pub(super) fn sums(&self, cells: Vec<f64>) -> Sums {
        let mut branches = vec![0.0; self.branches.len()];
        // A branch was made after the one that it hangs from.
        for (number, quarters) in self.branches.iter().enumerate().rev() {
            let of = |entry: &Entry| match entry {
                Entry::Nothing => 0.0,
                Entry::Cell(cell) => cells[*cell as usize],
                Entry::Branch(branch) => branches[*branch as usize],
            };
            branches[number] = quarters.iter().map(of).sum();
        }
        Sums { cells, branches }
    }

    /// The sum over cells of a level beyond `level` that may lie within `reach` (radians) of a direction.
    pub(super) fn sum_of_narrow(
        &self,
        sums: &Sums,
        middle: UnitVector,
        reach: f64,
        level: u32,
    ) -> f64 {
        let near = Disc { middle, reach };
        self.faces.iter().map(|face| self.sum_below(sums, *face, 0, near, level)).sum()
    }

    fn sum_below(&self, sums: &Sums, entry: Entry, at: u32, near: Disc, level: u32) -> f64 {
        let counted =
            |sum: f64, disc: Disc| if sum > 0.0 && disc.touches(near) { sum } else { 0.0 };
        match entry {
            Entry::Nothing => 0.0,
            Entry::Cell(_) if at <= level => 0.0,
            Entry::Cell(cell) => counted(sums.cells[cell as usize], self.cell_discs[cell as usize]),
            Entry::Branch(branch) => {
                let number = branch as usize;
                let sum = counted(sums.branches[number], self.branch_discs[number]);
                if sum == 0.0 || at > level {
                    return sum;
                }
                let quarters = &self.branches[number];
                quarters.iter().map(|e| self.sum_below(sums, *e, at + 1, near, level)).sum()
            }
        }
    }
}
