//! The rings of polygons, cut into chains of a few short edges.
//!
//! Where a point or rectangle lies beside all of a chain, one comparison with the chain's
//! box is enough. Long edges are chains of their own, so that boxes are small.

use super::Ring;
use super::edges::Edge;
use super::shared_edges::SharedEdges;
use crate::area::Rectangle;

/// No chain has more edges.
const MOST_EDGES: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct Chains {
    /// The points of all rings, one after the other.
    points: Vec<[f64; 2]>,
    shared: SharedEdges,
    /// Chains of edges, by polygon, then ring.
    chains: Vec<Chain>,
    /// Rectangle around all chains.
    sides: Rectangle,
}

/// Consecutive edges of a ring.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    /// Rectangle around the points of the chain.
    pub(super) sides: Rectangle,
    /// The numbers of its first and last point.
    ends: [u32; 2],
    pub(super) polygon: u32,
    /// 0 for the exterior, from 1 on for holes.
    pub(super) ring: u32,
}

impl Chains {
    /// Of polygons with these areas.
    pub(super) fn new(coordinates: &[Vec<Ring>], areas_km2: &[f64]) -> Chains {
        let points: Vec<[f64; 2]> = coordinates.iter().flatten().flatten().copied().collect();
        let sides = around(&points);
        // Boxes of the largest size, one for each chain, would just fill the box around all.
        let boxes_per_axis = (points.len() as f64 / MOST_EDGES as f64).sqrt();
        let largest = [0, 1].map(|axis| {
            let [from, to] = sides.range(axis);
            (to - from) / boxes_per_axis
        });
        let mut chains = Vec::new();
        let mut first = 0;
        for (polygon, rings) in (0..).zip(coordinates) {
            for (ring, ring_points) in (0..).zip(rings) {
                let last = first + ring_points.len() - 1;
                while first < last {
                    let (sides, count) = short_chain(&points[first..=last], largest);
                    let ends = [first, first + count].map(|number| number as u32);
                    chains.push(Chain { sides, ends, polygon, ring });
                    first += count;
                }
                first = last + 1;
            }
        }
        Chains { points, shared: SharedEdges::of(coordinates, areas_km2), chains, sides }
    }

    pub(super) fn len(&self) -> usize {
        self.chains.len()
    }

    /// Rectangle around all chains.
    pub(super) fn sides(&self) -> Rectangle {
        self.sides
    }

    pub(super) fn chain(&self, number: usize) -> &Chain {
        &self.chains[number]
    }

    pub(super) fn ends(&self, chain: &Chain) -> [[f64; 2]; 2] {
        chain.ends.map(|number| self.points[number as usize])
    }

    pub(super) fn edges(&self, chain: &Chain) -> impl Iterator<Item = Edge> {
        let [first, last] = chain.ends.map(|number| number as usize);
        self.points[first..=last].windows(2).map(|ends| Edge::between(ends[0], ends[1]))
    }

    /// Whether a ray from the point to the east crosses an odd number of edges of a chain.
    pub(super) fn is_odd_east_of(&self, chain: &Chain, [x, y]: [f64; 2]) -> bool {
        let Rectangle { south, west, north, east } = chain.sides;
        if y < south || north <= y || east <= x {
            return false;
        }
        if x < west {
            let [first, last] = self.ends(chain);
            return (first[1] <= y) != (last[1] <= y);
        }
        self.edges(chain).filter(|edge| edge.is_east_of([x, y])).count() % 2 == 1
    }

    /// Whether a ray along a latitude crosses an odd number of the lines that go north from
    /// ends of a chain beyond a longitude: see [`edge_tree`](super::edge_tree).
    pub(super) fn has_odd_lines(&self, chain: &Chain, latitude: f64, longitude: f64) -> bool {
        let [first, last] = self.ends(chain).map(|[x, y]| x > longitude && y <= latitude);
        first != last
    }

    /// Whether an edge of a chain enters the rectangle's interior, or nearly so.
    pub(super) fn enter(&self, chain: &Chain, rectangle: &Rectangle) -> bool {
        chain.overlaps(rectangle) && self.edges(chain).any(|edge| edge.enters(rectangle))
    }

    /// The same for edges that no two polygons share.
    pub(super) fn borders_enter(&self, chain: &Chain, rectangle: &Rectangle) -> bool {
        chain.overlaps(rectangle)
            && self
                .edges(chain)
                .zip(self.are_shared(chain))
                .any(|(edge, is_shared)| !is_shared && edge.enters(rectangle))
    }

    /// The area of all that hangs together with a chain's polygon in square kilometres; infinite if none of the
    /// chain's edges is a border.
    pub(super) fn area_km2(&self, chain: &Chain) -> f64 {
        let is_border = self.are_shared(chain).any(|is_shared| !is_shared);
        if is_border { self.shared.areas_km2[chain.polygon as usize] } else { f64::INFINITY }
    }

    /// For each edge of a chain, whether two polygons share it.
    fn are_shared(&self, chain: &Chain) -> impl Iterator<Item = bool> {
        let [first, last] = chain.ends.map(|number| number as usize);
        self.shared.is_shared[first..last].iter().copied()
    }
}

impl Chain {
    /// Whether its box and a rectangle overlap.
    fn overlaps(&self, rectangle: &Rectangle) -> bool {
        self.sides.west < rectangle.east
            && rectangle.west < self.sides.east
            && self.sides.south < rectangle.north
            && rectangle.south < self.sides.north
    }
}

/// The sides and the number of edges of a chain at the beginning of a line.
fn short_chain(line: &[[f64; 2]], largest: [f64; 2]) -> (Rectangle, usize) {
    let mut sides = around(&line[..2]);
    let mut count = 1;
    while count < MOST_EDGES && count + 1 < line.len() {
        let longer = with_point(sides, line[count + 1]);
        let is_large = |axis: usize| longer.range(axis)[1] - longer.range(axis)[0] > largest[axis];
        if is_large(0) || is_large(1) {
            break;
        }
        (sides, count) = (longer, count + 1);
    }
    (sides, count)
}

fn around(points: &[[f64; 2]]) -> Rectangle {
    let nothing = Rectangle {
        south: f64::INFINITY,
        west: f64::INFINITY,
        north: f64::NEG_INFINITY,
        east: f64::NEG_INFINITY,
    };
    points.iter().fold(nothing, |sides, point| with_point(sides, *point))
}

fn with_point(sides: Rectangle, [x, y]: [f64; 2]) -> Rectangle {
    Rectangle {
        south: sides.south.min(y),
        west: sides.west.min(x),
        north: sides.north.max(y),
        east: sides.east.max(x),
    }
}
