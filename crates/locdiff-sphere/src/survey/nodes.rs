//! The points of a survey's cells, listed once for all who sort them.

use super::region::rank_of;
use super::{Patch, Survey};
use crate::cells::{POINTS, Rule};

/// What the lightest cells may hold together to be left out of the points: those are for guesses.
const NEGLIGIBLE_REST: f64 = 3e-3;

/// Points and discs of a survey's cells.
#[derive(Debug)]
pub(super) struct Nodes {
    /// Points of the cells that matter.
    pub(super) points: Vec<Node>,
    /// A disc around every cell that has mass.
    pub(super) discs: Vec<Disc>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) direction: [f64; 3],
    pub(super) mass: f64,
    /// By which regions take places: the densest first.
    pub(super) rank: f64,
}

/// A disc that contains a whole cell.
#[derive(Debug)]
pub(super) struct Disc {
    pub(super) leaf: usize,
    pub(super) middle: [f64; 3],
    /// Radius of the disc in radians.
    pub(super) reach: f64,
}

impl Survey<'_> {
    pub(super) fn nodes(&self) -> &Nodes {
        self.nodes.get_or_init(|| Nodes { points: self.list_points(), discs: self.list_discs() })
    }

    fn list_points(&self) -> Vec<Node> {
        let (tiling, all) = (self.mesh.tiling, &self.mesh.leaves);
        let mut leaves: Vec<usize> = (0..all.len()).filter(|k| all[*k].mass > 0.0).collect();
        leaves.sort_by(|a, b| all[*b].mass.total_cmp(&all[*a].mass));
        let mut rest: f64 = leaves.iter().map(|k| all[*k].mass).sum();
        leaves.retain({
            let mut is_first = true;
            move |k| {
                let kept = rest >= NEGLIGIBLE_REST || is_first;
                (rest, is_first) = (rest - all[*k].mass, false);
                kept
            }
        });
        // There may be millions of points: they are moved nowhere.
        let mut nodes = Vec::with_capacity(leaves.len() * POINTS * POINTS);
        for leaf in leaves {
            let leaf = &all[leaf];
            let points = Rule::get().points;
            let thetas = points.map(|point| tiling.point(leaf.id, point, 0.0).0.sin_cos());
            let phis = points.map(|point| tiling.point(leaf.id, 0.0, point).1.sin_cos());
            let masses = self.node_masses(leaf);
            for point in Patch::of(leaf, tiling).points() {
                let (i, j) = point.index;
                if masses[i][j] > 0.0 {
                    let ((sin, cos), (sin_phi, cos_phi)) = (thetas[i], phis[j]);
                    let direction = [sin * cos_phi, sin * sin_phi, cos];
                    nodes.push(Node { direction, mass: masses[i][j], rank: rank_of(&point) });
                }
            }
        }
        nodes
    }

    fn list_discs(&self) -> Vec<Disc> {
        let tiling = self.mesh.tiling;
        let leaves = self.mesh.leaves.iter().enumerate().filter(|(_, leaf)| leaf.mass > 0.0);
        let disc = |(leaf, cell): (usize, &super::Leaf)| Disc {
            leaf,
            middle: tiling.middle(cell.id).to_array(),
            reach: tiling.reach(cell.id),
        };
        leaves.map(disc).collect()
    }
}
