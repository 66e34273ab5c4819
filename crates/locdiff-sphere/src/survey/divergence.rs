//! How far one density is from another.

use super::{Survey, node_masses};
use crate::Density;
use crate::cells::{CellId, POINTS, Tiling};
use crate::mesh::{Mesh, Sheet, Sheets, Surface};

impl Survey<'_> {
    /// The Kullback-Leibler divergence of this density from another, KL(this ‖ other), in
    /// nats. Infinite if this one has probability where the other has none; rounding may
    /// take it a hair below zero.
    pub fn divergence_from(&self, other: &Density) -> f64 {
        // On cells that are fine enough for both.
        let joint = Mesh::build(&Joint { density: self.density, other });
        let mesh = joint.as_ref().unwrap_or(&self.mesh);
        let mut sheets = other.sheets(mesh.tiling);
        let mut sum = 0.0;
        for leaf in mesh.leaves.iter().filter(|leaf| leaf.mass > 0.0) {
            let there = sheets.sheet(leaf.id);
            let parts = node_masses(mesh.tiling, leaf);
            for (k, mass) in parts.as_flattened().iter().enumerate().filter(|(_, m)| **m > 0.0) {
                let (i, j) = (k / POINTS, k % POINTS);
                // Half a point's part is no half of its density.
                let theirs =
                    if there.share(i, j) > 0.0 { there.values[i][j] } else { f64::NEG_INFINITY };
                sum += mass * (leaf.sheet.values[i][j] - theirs);
            }
        }
        sum
    }
}

/// A density on cells that another's detail asks for as well.
struct Joint<'a> {
    density: &'a Density,
    other: &'a Density,
}

impl Surface for Joint<'_> {
    fn base(&self) -> u32 {
        self.density.base().max(self.other.base())
    }

    fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        Box::new(JointSheets {
            density: self.density.sheets(tiling),
            other: self.other.sheets(tiling),
        })
    }
}

struct JointSheets<'a> {
    density: Box<dyn Sheets + 'a>,
    other: Box<dyn Sheets + 'a>,
}

impl Sheets for JointSheets<'_> {
    fn must_split(&mut self, id: CellId) -> Option<f64> {
        self.density.must_split(id).or_else(|| self.other.must_split(id))
    }

    fn sheet(&mut self, id: CellId) -> Sheet {
        self.density.sheet(id)
    }
}
