//! Edges that two polygons share, one on each side: what they cover together has no border there.
//!
//! The land of the Earth is given country by country, and most of its edges are of this kind.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::Ring;

#[derive(Debug, Clone)]
pub(super) struct SharedEdges {
    /// By the number of an edge's first point among the points of all rings.
    pub(super) is_shared: Vec<bool>,
    /// For each polygon, the area of all that hang together with it, in square kilometres.
    pub(super) areas_km2: Vec<f64>,
}

/// An edge of a ring, from the point with a number to the next.
struct Directed {
    hash: u64,
    ends: [[f64; 2]; 2],
    /// Longitude of its middle: between two points there are two ways round.
    middle: f64,
    /// Whether it runs from the first of its ends to the second with its polygon to the left.
    is_forward: bool,
    number: u32,
    polygon: u32,
}

impl SharedEdges {
    pub(super) fn of(coordinates: &[Vec<Ring>], areas_km2: &[f64]) -> SharedEdges {
        let points = coordinates.iter().flatten().map(Vec::len).sum();
        let mut is_shared = vec![false; points];
        if coordinates.len() < 2 {
            return SharedEdges { is_shared, areas_km2: areas_km2.to_vec() };
        }
        let mut edges = Vec::with_capacity(points);
        let mut first = 0;
        for (polygon, rings) in coordinates.iter().enumerate() {
            for (ring, points) in rings.iter().enumerate() {
                let is_reversed = (doubled_area(points) < 0.0) != (ring > 0);
                for (k, ends) in points.windows(2).enumerate() {
                    edges.extend(Directed::new(ends, is_reversed, first + k, polygon));
                }
                first += points.len();
            }
        }
        edges.sort_unstable_by_key(|edge| (edge.hash, edge.number));
        let mut groups: Vec<usize> = (0..coordinates.len()).collect();
        // With a third edge in the same place, polygons overlap.
        for same in edges.chunk_by(|a, b| a.hash == b.hash) {
            let [a, b] = same else { continue };
            if a.is_forward != b.is_forward && a.is_same_as(b) {
                is_shared[a.number as usize] = true;
                is_shared[b.number as usize] = true;
                let [a, b] = [a, b].map(|edge| root(&mut groups, edge.polygon as usize));
                groups[a.max(b)] = a.min(b);
            }
        }
        let mut sums = vec![0.0; groups.len()];
        let roots: Vec<usize> = (0..groups.len()).map(|k| root(&mut groups, k)).collect();
        roots.iter().zip(areas_km2).for_each(|(root, area)| sums[*root] += area);
        SharedEdges { is_shared, areas_km2: roots.iter().map(|root| sums[*root]).collect() }
    }
}

impl Directed {
    /// `None` for an edge without length, or all around the Earth.
    fn new(
        line: &[[f64; 2]],
        is_reversed: bool,
        number: usize,
        polygon: usize,
    ) -> Option<Directed> {
        // Longitudes a full turn apart are the same.
        let [a, b] = [line[0], line[1]].map(|[x, y]| [x.rem_euclid(360.0), y + 0.0]);
        let is_forward = match a[1].total_cmp(&b[1]).then(a[0].total_cmp(&b[0])) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => return None,
        };
        let ends = if is_forward { [a, b] } else { [b, a] };
        let bits = ends.map(|point| point.map(f64::to_bits));
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(bits);
        let is_forward = is_forward != is_reversed;
        let middle = 0.5 * (line[0][0] + line[1][0]);
        Some(Directed {
            hash,
            ends,
            middle,
            is_forward,
            number: number as u32,
            polygon: polygon as u32,
        })
    }

    fn is_same_as(&self, other: &Directed) -> bool {
        let turn = (self.middle - other.middle).rem_euclid(360.0);
        self.ends == other.ends && turn.min(360.0 - turn) < 1e-6
    }
}

/// Positive if a ring runs counterclockwise.
fn doubled_area(ring: &[[f64; 2]]) -> f64 {
    let [x0, y0] = ring[0];
    ring.windows(2).map(|e| (e[0][0] - x0) * (e[1][1] - y0) - (e[1][0] - x0) * (e[0][1] - y0)).sum()
}

fn root(groups: &mut [usize], mut group: usize) -> usize {
    while groups[group] != group {
        groups[group] = groups[groups[group]];
        group = groups[group];
    }
    group
}
