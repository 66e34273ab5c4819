//! Builds an [`EdgeTree`](super::edge_tree::EdgeTree), in about n log n steps for n edges.
//!
//! How often chains are listed is bounded. Where edges cross each other again and again, or
//! run side by side like the teeth of a comb, that bound leaves many of them in each leaf.

use super::chains::{Chain, Chains};
use super::edge_tree::{Leaf, Listing, Node, NodeKind};
use crate::area::Rectangle;

/// A part with at most so many chains is not halved.
const FEW_CHAINS: usize = 8;
/// Leaves list each chain so many times on average at most (coastlines: once or twice),
const LISTINGS_PER_CHAIN: f64 = 16.0;
/// and so many chains more.
const MORE_LISTINGS: f64 = 1e6;
/// The leaves of a chain may list so many chains, on average over all (coastlines: ten),
const NEIGHBORS_PER_CHAIN: f64 = 256.0;
/// and so many more for all chains together.
const MORE_NEIGHBORS: f64 = 1.3e7;
/// Where a part is halved: not quite in the middle, where polygons often have vertices.
const MIDDLE: f64 = 0.4871;
/// No part is longer than so many times its other side, so that a query doesn't meet too many.
const LONGEST_PART: f64 = 16.0;
/// So many chains are looked at to decide across which axis a part is halved.
const SAMPLES: usize = 64;
/// A chain that is so near to a part counts as passing through it. Tests of where an edge is
/// are rounded by less.
const NEARBY_DEGREES: f64 = 1e-10;

/// What to do if too many edges pass through the same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crowds {
    /// Crowded places are accepted: questions there are answered slowly.
    Accepted,
    /// Crowded places are an error: [`Crowd`].
    Rejected,
}

/// Edges that cannot be told apart by their place: there are too many everywhere.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Crowd {
    /// Middle of one of these places.
    pub(super) middle: [f64; 2],
    /// The polygon that most of the edges there belong to.
    pub(super) polygon: usize,
    /// More edges than this are near each edge, on average.
    pub(super) neighbors: usize,
}

pub(super) struct Builder<'a> {
    chains: &'a Chains,
    nodes: Vec<Node>,
    listed: Vec<Listing>,
    /// How many chains the leaves of each chain list, summed over all chains.
    neighbors: f64,
    most_neighbors: f64,
}

/// A part of the box around all chains.
struct Part {
    sides: Rectangle,
    listed: Vec<Listing>,
    covered: bool,
}

/// How a part is halved.
struct Cut {
    axis: usize,
    at: f64,
    /// A point of both halves.
    middle: [f64; 2],
    /// The halves and what counts as passing through them.
    nearby: [Rectangle; 2],
}

impl<'a> Builder<'a> {
    pub(super) fn new(chains: &'a Chains, crowds: Crowds) -> Builder<'a> {
        let most_neighbors = match crowds {
            Crowds::Accepted => f64::INFINITY,
            Crowds::Rejected => NEIGHBORS_PER_CHAIN * chains.len() as f64 + MORE_NEIGHBORS,
        };
        let (nodes, listed) = (Vec::new(), Vec::new());
        Builder { chains, nodes, listed, neighbors: 0.0, most_neighbors }
    }

    /// The nodes of the tree, and what its leaves list.
    pub(super) fn build(mut self) -> Result<(Vec<Node>, Vec<Listing>), Crowd> {
        let (sides, count) = (self.chains.sides(), self.chains.len());
        // No end is beyond the eastern side of all, so there are no lines and all bits are 0.
        let listed = (0..count).map(|chain| Listing::new(chain, false)).collect();
        let allowance = LISTINGS_PER_CHAIN + MORE_LISTINGS / count as f64;
        self.add(Part { sides, listed, covered: false }, allowance)?;
        Ok((self.nodes, self.listed))
    }

    /// Adds the nodes of a part, in which leaves may list each chain `allowance` times on
    /// average.
    fn add(&mut self, part: Part, allowance: f64) -> Result<(), Crowd> {
        let count = part.listed.len();
        if count <= FEW_CHAINS {
            return self.add_leaf(part);
        }
        let cut = self.best_cut(&part);
        let halves = self.halves(&part, &cut);
        let listings: usize = halves.iter().map(|half| half.listed.len()).sum();
        let allowance = allowance * count as f64 / listings.max(1) as f64;
        if allowance < 1.0 {
            return self.add_leaf(part);
        }
        drop(part);
        let Cut { axis, at, .. } = cut;
        let number = self.nodes.len();
        let kind = NodeKind::Halves { axis, at, second: 0 };
        self.nodes.push(Node { kind, smallest_km2: f64::INFINITY });
        let [first, second] = halves;
        self.add(first, allowance)?;
        let second_number = self.nodes.len();
        self.add(second, allowance)?;
        let [a, b] = [number + 1, second_number].map(|half| self.nodes[half].smallest_km2);
        let kind = NodeKind::Halves { axis, at, second: second_number as u32 };
        self.nodes[number] = Node { kind, smallest_km2: a.min(b) };
        Ok(())
    }

    fn add_leaf(&mut self, part: Part) -> Result<(), Crowd> {
        self.neighbors += (part.listed.len() as f64).powi(2);
        if self.neighbors > self.most_neighbors {
            return Err(self.crowd(&part));
        }
        let chain = |listing: &Listing| self.chains.chain(listing.chain());
        let areas = part.listed.iter().map(|listing| self.chains.area_km2(chain(listing)));
        let smallest_km2 = areas.fold(f64::INFINITY, f64::min);
        let start = self.listed.len() as u32;
        self.listed.extend(part.listed);
        let listed = [start, self.listed.len() as u32];
        let leaf = Leaf { east: part.sides.east, listed, covered: part.covered };
        self.nodes.push(Node { kind: NodeKind::Leaf(leaf), smallest_km2 });
        Ok(())
    }

    /// Across the middle of the axis along which fewer chains run from one half to the other.
    fn best_cut(&self, part: &Part) -> Cut {
        let Rectangle { south, west, north, east } = part.sides;
        let (width, height) = (east - west, north - south);
        let middle = [west + MIDDLE * width, south + MIDDLE * height];
        let mut crossings = [0; 2];
        for listing in part.listed.iter().step_by(part.listed.len().div_ceil(SAMPLES)) {
            let sides = &self.chains.chain(listing.chain()).sides;
            for axis in 0..2 {
                let [from, to] = sides.range(axis);
                crossings[axis] += usize::from(from < middle[axis] && middle[axis] < to);
            }
        }
        let is_long = width.max(height) > LONGEST_PART * width.min(height);
        let axis = if is_long || crossings[0] == crossings[1] {
            usize::from(height > width)
        } else {
            usize::from(crossings[1] < crossings[0])
        };
        let nearby = part.sides.halves(axis, middle[axis]).map(|half| Rectangle {
            south: half.south - NEARBY_DEGREES,
            west: half.west - NEARBY_DEGREES,
            north: half.north + NEARBY_DEGREES,
            east: half.east + NEARBY_DEGREES,
        });
        Cut { axis, at: middle[axis], middle, nearby }
    }

    fn halves(&self, part: &Part, cut: &Cut) -> [Part; 2] {
        let mut halves = part.sides.halves(cut.axis, cut.at).map(|sides| {
            let listed = Vec::with_capacity(part.listed.len() / 2 + FEW_CHAINS);
            Part { sides, listed, covered: false }
        });
        for polygon in part.listed.chunk_by(|a, b| self.polygon(a) == self.polygon(b)) {
            self.divide(polygon, part.sides.east, cut, &mut halves);
        }
        for half in halves.iter_mut().filter(|half| half.covered) {
            half.listed.clear();
        }
        halves
    }

    /// Lists the chains of a polygon in the halves of a part that they pass through.
    fn divide(&self, polygon: &[Listing], east: f64, cut: &Cut, halves: &mut [Part; 2]) {
        let lengths = |halves: &[Part; 2]| halves.each_ref().map(|half| half.listed.len());
        let starts = lengths(halves);
        // Whether all rings without a chain in a half leave the half to the polygon.
        let mut is_left = [true; 2];
        for ring in polygon.chunk_by(|a, b| self.ring(a) == self.ring(b)) {
            let ring_starts = lengths(halves);
            let mut contains_middle = ring[0].is_odd();
            let mut bits = [false; 2];
            for listing in ring {
                let chain = self.chains.chain(listing.chain());
                let is_odd = self.chains.is_odd_east_of(chain, cut.middle);
                let has_odd_lines =
                    |east: f64| self.chains.has_odd_lines(chain, cut.middle[1], east);
                contains_middle ^= is_odd ^ has_odd_lines(east);
                for (k, is_near) in self.nearby_halves(chain, cut).into_iter().enumerate() {
                    if is_near && !halves[k].covered {
                        bits[k] ^= is_odd ^ has_odd_lines(halves[k].sides.east);
                        halves[k].listed.push(Listing::new(listing.chain(), false));
                    }
                }
            }
            for (k, half) in halves.iter_mut().enumerate() {
                match half.listed.get_mut(ring_starts[k]) {
                    Some(first) => *first = Listing::new(first.chain(), contains_middle ^ bits[k]),
                    None => is_left[k] &= contains_middle == (self.ring(&ring[0]) == 0),
                }
            }
        }
        for (k, half) in halves.iter_mut().enumerate() {
            if !is_left[k] {
                half.listed.truncate(starts[k]);
            } else if half.listed.len() == starts[k] {
                half.covered = true;
            }
        }
    }

    /// Whether a chain that passes through a part passes through each half of it.
    fn nearby_halves(&self, chain: &Chain, cut: &Cut) -> [bool; 2] {
        let [from, to] = chain.sides.range(cut.axis);
        if to < cut.at - NEARBY_DEGREES {
            [true, false]
        } else if from > cut.at + NEARBY_DEGREES {
            [false, true]
        } else {
            cut.nearby.each_ref().map(|half| self.chains.enter(chain, half))
        }
    }

    fn crowd(&self, part: &Part) -> Crowd {
        let Rectangle { south, west, north, east } = part.sides;
        let polygons = part.listed.chunk_by(|a, b| self.polygon(a) == self.polygon(b));
        let largest = polygons.max_by_key(|polygon| polygon.len());
        Crowd {
            middle: [0.5 * (west + east), 0.5 * (south + north)],
            polygon: largest.map_or(0, |polygon| self.polygon(&polygon[0])),
            neighbors: (self.most_neighbors / self.chains.len() as f64) as usize,
        }
    }

    fn polygon(&self, listing: &Listing) -> usize {
        self.chains.chain(listing.chain()).polygon as usize
    }

    fn ring(&self, listing: &Listing) -> u32 {
        self.chains.chain(listing.chain()).ring
    }
}
