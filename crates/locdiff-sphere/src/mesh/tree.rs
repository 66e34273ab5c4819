//! Finds the leaf that holds a point.

use std::collections::HashMap;

use super::Leaf;
use crate::cells::{CellId, Cut, Tiling};

/// The cells that were cut to get to the leaves of a mesh.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    tiling: Tiling,
    /// The coarsest cells first, ring by ring.
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
enum Node {
    /// The number of a leaf.
    Leaf(u32),
    /// The node of the first of two parts, one above the other; the other follows.
    Halves(u32),
    /// The node of the first of four parts; the others follow.
    Quarters(u32),
}

impl Tree {
    pub(super) fn new(tiling: Tiling, leaves: &[Leaf]) -> Tree {
        let numbers: HashMap<CellId, u32> = leaves.iter().map(|leaf| leaf.id).zip(0..).collect();
        let mut cells: Vec<CellId> = tiling.base_cells().collect();
        let mut nodes: Vec<Node> = Vec::with_capacity(2 * leaves.len());
        // Parts are added behind all cells that came before them.
        while let Some(id) = cells.get(nodes.len()).copied() {
            let node = numbers.get(&id).map(|number| Node::Leaf(*number)).unwrap_or_else(|| {
                let (cut, first) = (tiling.cut(id), cells.len() as u32);
                cells.extend(cut.ids());
                match cut {
                    Cut::Halves(_) => Node::Halves(first),
                    Cut::Quarters(_) => Node::Quarters(first),
                }
            });
            nodes.push(node);
        }
        Tree { tiling, nodes }
    }

    /// The number of the leaf that holds a point.
    pub(super) fn number_at(&self, theta: f64, phi: f64) -> usize {
        let mut id = self.tiling.cell_at(0, theta, phi);
        let mut node = (2 * self.tiling.base * id.ring + id.sector) as usize;
        loop {
            let (first, is_quartered) = match self.nodes[node] {
                Node::Leaf(number) => return number as usize,
                Node::Halves(first) => (first, false),
                Node::Quarters(first) => (first, true),
            };
            let (down, right) = self.tiling.part_at(&mut id, is_quartered, theta, phi);
            node = (first + if is_quartered { 2 * down + right } else { down }) as usize;
        }
    }
}
