//! The edges of polygons, found by their place.
//!
//! The box around all edges is halved again and again, across the axis that fewer edges
//! cross, until few chains of edges pass through each part. A part lists those chains, and a
//! query looks only at the parts it meets.
//!
//! A point is inside a ring if a ray from it to the east crosses the ring an odd number of
//! times. The chains that a part lists are enough to tell odd from even, with one bit that
//! is stored for each ring. For that, an end of a chain that lies beyond the part's eastern
//! side gets a line straight north, which the ray may also cross. Two chains meet in that
//! end, so their lines cancel and the number for the whole ring stays odd or even. But the
//! number of times that the ray crosses a chain and its lines is now odd for all points of
//! the part or for none, if the chain does not pass through the part. The bit is the sum over
//! all such chains of the ring.
//!
//! Nothing of that is rounded: [`EdgeTree::enclose`] returns exactly what a count over all
//! edges would, because chains that pass by very closely are listed too.

use std::ops::Range;

use super::Ring;
use super::chains::{Chain, Chains};
use super::edge_tree_builder::{Builder, Crowd, Crowds};
use crate::area::Rectangle;

#[derive(Debug, Clone)]
pub(super) struct EdgeTree {
    chains: Chains,
    /// Parts of the box; the first is the whole.
    nodes: Vec<Node>,
    /// What leaves list, leaf by leaf; within a leaf by polygon, then ring.
    listed: Vec<Listing>,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// The area of the smallest polygon with a border here, in square kilometres.
    pub(super) smallest_km2: f64,
}

#[derive(Debug, Clone)]
pub(super) enum NodeKind {
    /// Cut at a longitude (axis 0) or latitude (axis 1). The western or southern half is the
    /// next node.
    Halves {
        axis: usize,
        at: f64,
        second: u32,
    },
    Leaf(Leaf),
}

#[derive(Debug, Clone)]
pub(super) struct Leaf {
    /// Longitude of the eastern side.
    pub(super) east: f64,
    /// Where its list starts and ends.
    pub(super) listed: [u32; 2],
    /// Whether a polygon contains all of it; then it lists nothing.
    pub(super) covered: bool,
}

/// The number of a chain. The first one of each ring also has the ring's bit: see above.
///
/// A ring of the same polygon without a chain in the leaf contains the leaf if it is the
/// exterior, and does not if it is a hole; otherwise the leaf lists nothing of the polygon.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Listing(u32);

impl Listing {
    pub(super) fn new(chain: usize, is_odd: bool) -> Listing {
        Listing((chain as u32) << 1 | u32::from(is_odd))
    }

    pub(super) fn chain(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(super) fn is_odd(self) -> bool {
        self.0 & 1 == 1
    }
}

impl EdgeTree {
    /// Of polygons with these areas.
    pub(super) fn new(
        coordinates: &[Vec<Ring>],
        areas_km2: &[f64],
        crowds: Crowds,
    ) -> Result<EdgeTree, Crowd> {
        let chains = Chains::new(coordinates, areas_km2);
        let (nodes, listed) = Builder::new(&chains, crowds).build()?;
        Ok(EdgeTree { chains, nodes, listed })
    }

    /// Whether a polygon encloses the point, at its longitude or full turns from it.
    pub(super) fn enclose(&self, longitude: f64, latitude: f64) -> bool {
        self.enclosed([latitude], [longitude]) != [0]
    }

    /// Which of the points where `latitudes` and `longitudes` meet are enclosed: bit k of
    /// number i is about the latitude i and the longitude k. Both must ascend.
    pub(super) fn enclosed<const ROWS: usize, const COLUMNS: usize>(
        &self,
        latitudes: [f64; ROWS],
        longitudes: [f64; COLUMNS],
    ) -> [u64; ROWS] {
        const { assert!(COLUMNS <= u64::BITS as usize) };
        // No edge is above the north pole, so a ray along it would cross nothing.
        let latitudes = latitudes.map(|latitude| latitude.min(90f64.next_down()));
        let mut enclosed = [0; ROWS];
        let sides = self.chains.sides();
        let rows = between(&latitudes, sides.range(1));
        for turn in TURNS {
            let longitudes = longitudes.map(|longitude| longitude + turn);
            let columns = between(&longitudes, sides.range(0));
            let points = Points {
                first_column: columns.start,
                rows: &latitudes[rows.clone()],
                columns: &longitudes[columns],
            };
            self.mark_enclosed::<ROWS>(0, points, &mut enclosed[rows.clone()]);
        }
        enclosed
    }

    /// Whether a border, or a copy of it full turns away, enters the rectangle's interior: an
    /// edge that no two polygons share. May say so when it passes within 1e-11 degrees; if not, [`enclose`](Self::enclose) is
    /// the same everywhere in the interior.
    pub(super) fn meet(&self, rectangle: &Rectangle) -> bool {
        self.turned(rectangle).any(|rectangle| self.meet_in_plane(0, &rectangle))
    }

    /// The area of the smallest polygon, or polygons that share edges, with a border in a
    /// rectangle; infinite without any. Borders along its sides may count.
    pub(super) fn smallest_km2(&self, rectangle: &Rectangle) -> f64 {
        self.turned(rectangle).fold(f64::INFINITY, |smallest, rectangle| {
            self.smaller_km2(0, self.chains.sides(), &rectangle, smallest)
        })
    }

    /// A rectangle and its copies full turns away, as far as edges may be there.
    fn turned(&self, rectangle: &Rectangle) -> impl Iterator<Item = Rectangle> {
        let Rectangle { west, east, .. } = *rectangle;
        let sides = self.chains.sides();
        TURNS
            .map(|turn| Rectangle { west: west + turn, east: east + turn, ..*rectangle })
            .into_iter()
            .filter(move |turned| sides.west <= turned.east && turned.west <= sides.east)
    }

    /// Marks those of at most `MOST_ROWS` rows of points that polygons enclose.
    fn mark_enclosed<const MOST_ROWS: usize>(
        &self,
        number: usize,
        points: Points,
        marks: &mut [u64],
    ) {
        if points.rows.is_empty() || points.columns.is_empty() {
            return;
        }
        match &self.nodes[number].kind {
            NodeKind::Halves { axis: 0, at, second } => {
                let (west, east) = points.split_columns(*at);
                self.mark_enclosed::<MOST_ROWS>(number + 1, west, marks);
                self.mark_enclosed::<MOST_ROWS>(*second as usize, east, marks);
            }
            NodeKind::Halves { at, second, .. } => {
                let (south, north) = points.split_rows(*at);
                let (of_south, of_north) = marks.split_at_mut(south.rows.len());
                self.mark_enclosed::<MOST_ROWS>(number + 1, south, of_south);
                self.mark_enclosed::<MOST_ROWS>(*second as usize, north, of_north);
            }
            NodeKind::Leaf(leaf) => {
                self.mark_enclosed_in_leaf::<MOST_ROWS>(leaf, &points, marks);
            }
        }
    }

    fn mark_enclosed_in_leaf<const MOST_ROWS: usize>(
        &self,
        leaf: &Leaf,
        points: &Points,
        marks: &mut [u64],
    ) {
        let all = ones(points.columns.len());
        if leaf.covered {
            marks.iter_mut().for_each(|mark| *mark |= all << points.first_column);
            return;
        }
        let chain = |listing: &Listing| self.chains.chain(listing.chain());
        for polygon in self.listed(leaf).chunk_by(|a, b| chain(a).polygon == chain(b).polygon) {
            let mut inside = [all; MOST_ROWS];
            for ring in polygon.chunk_by(|a, b| chain(a).ring == chain(b).ring) {
                // Where the ring leaves a point to the polygon.
                let is_hole = chain(&ring[0]).ring > 0;
                let mut left = [if ring[0].is_odd() != is_hole { all } else { 0 }; MOST_ROWS];
                for listing in ring {
                    self.cross(chain(listing), leaf.east, points, &mut left[..marks.len()]);
                }
                inside.iter_mut().zip(left).for_each(|(inside, left)| *inside &= left);
            }
            for (mark, inside) in marks.iter_mut().zip(inside) {
                *mark |= inside << points.first_column;
            }
        }
    }

    /// Flips the bits of those points from which a ray to the east crosses a chain and its
    /// lines an odd number of times.
    fn cross(&self, chain: &Chain, east: f64, points: &Points, bits: &mut [u64]) {
        let Points { rows, columns, .. } = *points;
        let all = ones(columns.len());
        let are_west = columns[columns.len() - 1] < chain.sides.west;
        for [x, y] in self.chains.ends(chain) {
            // West of the whole chain, its ends tell how often a ray crosses it.
            if (x > east) != are_west {
                let above = rows.partition_point(|row| *row < y);
                bits[above..].iter_mut().for_each(|bits| *bits ^= all);
            }
        }
        if are_west || chain.sides.east <= columns[0] {
            return;
        }
        for edge in self.chains.edges(chain) {
            let [above_lower, above_upper] =
                [edge.lower, edge.upper].map(|end| rows.partition_point(|row| *row < end[1]));
            // The first column that is not west of the edge: from row to row it moves little.
            let mut first = 0;
            for row in above_lower..above_upper {
                let is_west = |column: usize| edge.is_east_of([columns[column], rows[row]]);
                while first < columns.len() && is_west(first) {
                    first += 1;
                }
                while first > 0 && !is_west(first - 1) {
                    first -= 1;
                }
                bits[row] ^= ones(first);
            }
        }
    }

    fn meet_in_plane(&self, number: usize, rectangle: &Rectangle) -> bool {
        match &self.nodes[number].kind {
            NodeKind::Halves { axis, at, second } => {
                let [from, to] = rectangle.range(*axis);
                from <= *at && self.meet_in_plane(number + 1, rectangle)
                    || *at <= to && self.meet_in_plane(*second as usize, rectangle)
            }
            NodeKind::Leaf(leaf) => {
                let mut chains = self.listed(leaf).iter().map(|listing| listing.chain());
                chains.any(|number| self.chains.borders_enter(self.chains.chain(number), rectangle))
            }
        }
    }

    /// The smaller of a known area and that of the smallest polygon with a border both in the
    /// rectangle and in a node.
    fn smaller_km2(
        &self,
        number: usize,
        sides: Rectangle,
        rectangle: &Rectangle,
        known: f64,
    ) -> f64 {
        let node = &self.nodes[number];
        if known <= node.smallest_km2 {
            return known;
        }
        if rectangle.contains(&sides) {
            return node.smallest_km2;
        }
        match &node.kind {
            NodeKind::Halves { axis, at, second } => {
                let [from, to] = rectangle.range(*axis);
                let [first_half, second_half] = sides.halves(*axis, *at);
                let mut smallest = known;
                if from <= *at {
                    smallest = self.smaller_km2(number + 1, first_half, rectangle, smallest);
                }
                if *at <= to {
                    smallest = self.smaller_km2(*second as usize, second_half, rectangle, smallest);
                }
                smallest
            }
            NodeKind::Leaf(leaf) => self.listed(leaf).iter().fold(known, |smallest, listing| {
                let chain = self.chains.chain(listing.chain());
                let area = self.chains.area_km2(chain);
                let is_smaller = area < smallest && self.chains.borders_enter(chain, rectangle);
                if is_smaller { area } else { smallest }
            }),
        }
    }

    fn listed(&self, leaf: &Leaf) -> &[Listing] {
        &self.listed[leaf.listed[0] as usize..leaf.listed[1] as usize]
    }
}

const TURNS: [f64; 3] = [0.0, -360.0, 360.0];

/// The points where some latitudes and longitudes meet; both ascend.
struct Points<'a> {
    rows: &'a [f64],
    columns: &'a [f64],
    /// How many longitudes are left out to the west.
    first_column: usize,
}

impl<'a> Points<'a> {
    fn split_columns(&self, at: f64) -> (Points<'a>, Points<'a>) {
        let (west, east) = self.columns.split_at(self.columns.partition_point(|x| *x <= at));
        let first_column = self.first_column + west.len();
        (Points { columns: west, ..*self }, Points { columns: east, first_column, ..*self })
    }

    fn split_rows(&self, at: f64) -> (Points<'a>, Points<'a>) {
        let (south, north) = self.rows.split_at(self.rows.partition_point(|y| *y <= at));
        (Points { rows: south, ..*self }, Points { rows: north, ..*self })
    }
}

/// Which of some ascending numbers are at least `low` and at most `high`.
fn between(numbers: &[f64], [low, high]: [f64; 2]) -> Range<usize> {
    let start = numbers.partition_point(|number| *number < low);
    start..numbers.partition_point(|number| *number <= high).max(start)
}

#[cfg(test)]
impl EdgeTree {
    /// How many chains there are, how many all leaves list, and how many nodes there are.
    pub(super) fn sizes(&self) -> [usize; 3] {
        [self.chains.len(), self.listed.len(), self.nodes.len()]
    }

    /// The longitudes (axis 0) and latitudes (axis 1) where parts are cut.
    pub(super) fn cuts(&self) -> impl Iterator<Item = (usize, f64)> {
        self.nodes.iter().filter_map(|node| match node.kind {
            NodeKind::Halves { axis, at, .. } => Some((axis, at)),
            NodeKind::Leaf(_) => None,
        })
    }
}

/// So many bits, from the lowest on.
fn ones(count: usize) -> u64 {
    u64::MAX.checked_shr(u64::BITS - count as u32).unwrap_or(0)
}
