//! Densities that are constant on each of some cells: what a classification of places gives.
//!
//! Cells are disjoint ones of the divided cube ([`CubeCell`]); beyond them the density is zero. The density at a
//! place is exact. A survey samples it: mesh cells are as narrow as the cells that matter, their points ask
//! for the cell that they lie in, and what the points' sums err by where the density jumps is estimated and brought
//! below the tolerance by further cuts. Tested against sums over cells in `tests/cells.rs`.

use std::sync::{Arc, OnceLock};

use super::cell_tree::{CellTree, Sums};
use super::{InvalidDensity, log_shares};
use crate::cells::{CellId, POINTS, PointValues, Rule, Tiling};
use crate::mesh::{Mesh, Sheet, Sheets};
use crate::{Area, CubeCell, LatLon};

/// The lightest cells that hold less than this together don't ask for fine mesh cells.
const NEGLIGIBLE_MASS: f64 = 2e-4;
/// Rings of the coarsest mesh cells. All borders of cells that are meridians are then borders of mesh cells.
const BASE: u32 = 4;

/// Cells with masses, the density of each constant.
#[derive(Debug, Clone)]
pub struct Cells {
    cells: Arc<[CubeCell]>,
    log_masses: Arc<[f64]>,
    log_densities: Arc<[f64]>,
    tree: Arc<CellTree>,
    /// Masses of the cells that hold nearly all of it; 0 for others.
    heavy: Arc<Sums>,
    /// Built when it is first asked for.
    pub(super) mesh: OnceLock<Arc<Mesh>>,
}

impl Cells {
    pub(super) fn new(cells: Vec<CubeCell>, masses: &[f64]) -> Result<Cells, InvalidDensity> {
        if cells.is_empty() {
            return Err(InvalidDensity::Empty("cells"));
        }
        if cells.len() != masses.len() {
            let (count, weights) = (cells.len(), masses.len());
            return Err(InvalidDensity::Lengths { what: "cells", count, weights });
        }
        let log_masses = log_shares("mass", masses)?;
        let tree = CellTree::new(&cells)?;
        let log_density = |(cell, log): (&CubeCell, &f64)| log - cell.area().ln();
        let log_densities = cells.iter().zip(&log_masses).map(log_density).collect();
        let heavy = Arc::new(tree.sums(heavy_among(&log_masses, |_| true)));
        Ok(Cells {
            cells: cells.into(),
            log_masses: log_masses.into(),
            log_densities,
            tree: Arc::new(tree),
            heavy,
            mesh: OnceLock::new(),
        })
    }

    /// Disjoint cells; outside of them the density is zero.
    pub fn cells(&self) -> &[CubeCell] {
        &self.cells
    }

    /// The mass of each cell; together one.
    pub fn masses(&self) -> impl Iterator<Item = f64> {
        self.log_masses.iter().map(|log| log.exp())
    }

    /// The cell that holds a place, if one does.
    pub fn cell_at(&self, place: LatLon) -> Option<CubeCell> {
        self.tree.find_place(place).map(|number| self.cells[number])
    }

    pub(crate) fn log_density(&self, place: LatLon) -> f64 {
        self.log_density_of(self.tree.find_place(place))
    }

    fn log_density_of(&self, cell: Option<usize>) -> f64 {
        cell.map_or(f64::NEG_INFINITY, |number| self.log_densities[number])
    }

    /// The log-density at the points of a mesh cell.
    pub(crate) fn values(&self, tiling: Tiling, id: CellId) -> PointValues {
        let points = Rule::get().points;
        let rows = points.map(|point| tiling.point(id, point, 0.0).0.sin_cos());
        let columns = points.map(|point| tiling.point(id, 0.0, point).1.sin_cos());
        let mut values = [[0.0; POINTS]; POINTS];
        for (row, (sin, cos)) in values.iter_mut().zip(rows) {
            for (value, (sin_phi, cos_phi)) in row.iter_mut().zip(columns) {
                let cell = self.tree.find([sin * cos_phi, sin * sin_phi, cos]);
                *value = self.log_density_of(cell);
            }
        }
        values
    }

    /// The same, with fine mesh cells only for cells in an area.
    pub(super) fn focused_on(&self, area: &Area) -> Cells {
        let thirds = [0.0, 0.5, 1.0];
        let near = |number: usize| {
            let places = thirds.into_iter().flat_map(|u| thirds.map(|v| [u, v]));
            let mut places = places.map(|along| LatLon::from(self.cells[number].point(along)));
            places.any(|place| area.contains(place))
        };
        let heavy = Arc::new(self.tree.sums(heavy_among(&self.log_masses, near)));
        Cells { heavy, mesh: OnceLock::new(), ..self.clone() }
    }

    pub(super) fn base(&self) -> u32 {
        BASE
    }

    pub(super) fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        Box::new(CellSheets { cells: self, tiling })
    }
}

/// The masses of those of some cells that hold nearly all of their mass; 0 for others.
fn heavy_among(log_masses: &[f64], wanted: impl Fn(usize) -> bool) -> Vec<f64> {
    let mut numbers: Vec<usize> = (0..log_masses.len()).filter(|number| wanted(*number)).collect();
    numbers.sort_by(|a, b| log_masses[*a].total_cmp(&log_masses[*b]));
    let mut masses = vec![0.0; log_masses.len()];
    let total: f64 = numbers.iter().map(|number| log_masses[*number].exp()).sum();
    let mut light = 0.0;
    for number in numbers {
        let mass = log_masses[number].exp();
        light += mass;
        if light >= NEGLIGIBLE_MASS * total {
            masses[number] = mass;
        }
    }
    masses
}

struct CellSheets<'a> {
    cells: &'a Cells,
    tiling: Tiling,
}

impl Sheets for CellSheets<'_> {
    fn must_split(&mut self, id: CellId) -> Option<f64> {
        let width = self.tiling.size(id) * (1.0 - 1e-9);
        let as_wide = (0..=crate::DEEPEST_CUBE_LEVEL).rev().find(|n| CubeCell::width(*n) >= width);
        let Cells { tree, heavy, .. } = self.cells;
        // Faces are as wide as the widest mesh cells.
        let level = as_wide.unwrap_or(0);
        let (middle, reach) = (self.tiling.middle(id), self.tiling.reach(id));
        let at_stake = tree.sum_of_narrow(heavy, middle, reach, level);
        (at_stake > 0.0).then_some(at_stake)
    }

    fn sheet(&mut self, id: CellId) -> Sheet {
        Sheet::of_steps(self.cells.values(self.tiling, id))
    }
}
