//! Outlines of a level set {f ≥ 0} on the sphere, as polygons of longitude and latitude.
//!
//! Convention: degrees, longitude first, polygons as in RFC 7946 (GeoJSON): within
//! [−180, 180] × [−90, 90], cut at the antimeridian, along latitude ±90 where they contain a
//! pole; exteriors counter-clockwise, holes clockwise, rings closed. Edges are straight in
//! that plane.
//!
//! The plane is tiled by the leaves of a quadtree ([`Mesh`]), each fanned into triangles around
//! its centre, and f is taken as linear along the sides of the triangles. Two triangles at a
//! side see the same two ends, so their pieces of the outline meet exactly, and as crossings
//! lie strictly inside sides, rings neither cross nor touch: what belongs together is found
//! by names of vertices alone, without geometry. Tested for these rules by an independent
//! checker and against circles, whose area is known.

mod mesh;
#[cfg(test)]
mod tests;

use crate::LatLon;
use crate::cells::CellId;
use mesh::{Mesh, VertexId};

/// A closed ring of `[longitude, latitude]`: the last position repeats the first.
pub(crate) type Ring = Vec<[f64; 2]>;
/// An exterior ring, followed by its holes.
pub(crate) type Polygon = Vec<Ring>;

/// Crossings keep this part of a side away from its ends, so that neither edges of length
/// zero nor touching rings come out where f is almost zero at a vertex.
const LEAST_FRACTION: f64 = 0.01;

/// The polygons of {f ≥ 0}: the coordinates of a GeoJSON MultiPolygon.
///
/// `leaves` tile the sphere: at level 0 there are `base` rings of cells, the first at the north
/// pole, by 2·`base` sectors, the first east of longitude −180. Neighbours may differ by any
/// number of levels. `value` gives f at corners and centres of leaves, and is called once for
/// each place; −∞ is a value like others, NaN is not. What f does between those is not seen.
///
/// # Panics
/// If leaves are narrower than 360° / 2³¹; perhaps, if they don't tile the sphere.
pub(crate) fn outline(
    base: usize,
    leaves: &[CellId],
    value: impl FnMut(LatLon) -> f64,
) -> Vec<Polygon> {
    let mesh = Mesh::new(base, leaves, value);
    let mut pieces = Pieces::new(&mesh);
    let mut boundary = Vec::new();
    for (index, &leaf) in leaves.iter().enumerate() {
        let centre = mesh.centre(index);
        mesh.boundary(leaf, &mut boundary);
        let mut from = boundary[boundary.len() - 1];
        for &to in &boundary {
            pieces.add_triangle([centre, from, to]);
            if mesh.on_border(from, to) {
                pieces.add_border(from, to);
            }
            from = to;
        }
    }
    pieces.into_polygons()
}

/// A point of the outline: where it crosses a side of triangles, or a vertex on the border
/// of the plane, which is named by itself twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    inside: VertexId,
    outside: VertexId,
}

/// The outline in directed segments, with the region on their left.
struct Pieces<'a> {
    mesh: &'a Mesh,
    /// Each node starts exactly one segment and ends exactly one.
    segments: Vec<(Node, Node)>,
    components: Components,
}

impl Pieces<'_> {
    fn new(mesh: &Mesh) -> Pieces<'_> {
        let components = Components::new(mesh.vertex_count());
        Pieces { mesh, segments: Vec::new(), components }
    }

    /// Adds a triangle with counter-clockwise vertices.
    fn add_triangle(&mut self, [a, b, c]: [VertexId; 3]) {
        let (mut start, mut end) = (None, None);
        for (from, to) in [(a, b), (b, c), (c, a)] {
            match (self.mesh.is_inside(from), self.mesh.is_inside(to)) {
                (true, true) => self.components.join(from, to),
                (true, false) => start = Some(Node { inside: from, outside: to }),
                (false, true) => end = Some(Node { inside: to, outside: from }),
                (false, false) => {}
            }
        }
        self.segments.extend(start.zip(end));
    }

    /// Adds a side of a triangle on the border of the plane, beyond which all is outside.
    fn add_border(&mut self, from: VertexId, to: VertexId) {
        let (inside_from, inside_to) = (self.mesh.is_inside(from), self.mesh.is_inside(to));
        if !inside_from && !inside_to {
            return;
        }
        let (inside, outside) = if inside_from { (from, to) } else { (to, from) };
        let crossing = Node { inside, outside };
        let end = |vertex, inside| {
            if inside { Node { inside: vertex, outside: vertex } } else { crossing }
        };
        self.segments.push((end(from, inside_from), end(to, inside_to)));
    }

    fn into_polygons(mut self) -> Vec<Polygon> {
        self.segments.sort_unstable();
        let mut rings = Vec::new();
        let mut is_used = vec![false; self.segments.len()];
        for first in 0..self.segments.len() {
            if is_used[first] {
                continue;
            }
            let mut ring = Vec::new();
            let mut current = first;
            while !is_used[current] {
                is_used[current] = true;
                let (start, end) = self.segments[current];
                ring.push(self.position(start));
                current = self
                    .segments
                    .binary_search_by_key(&end, |segment| segment.0)
                    .expect("leaves tile the sphere");
            }
            let ring = straightened(&ring);
            let is_hole = doubled_area(&ring) < 0.0;
            let component = self.components.root(self.segments[first].0.inside);
            rings.push((component, is_hole, ring));
        }
        // A connected part of the region has one exterior. Put before its holes, it is also
        // the smallest exterior around them.
        rings.sort_by_key(|&(component, is_hole, _)| (component, is_hole));
        let mut polygons: Vec<Polygon> = Vec::new();
        for (_, is_hole, ring) in rings {
            match polygons.last_mut() {
                Some(polygon) if is_hole => polygon.push(ring),
                _ => polygons.push(vec![ring]),
            }
        }
        polygons
    }

    fn position(&self, Node { inside, outside }: Node) -> [f64; 2] {
        let (from, to) = (self.mesh.position(inside), self.mesh.position(outside));
        if inside == outside {
            return from;
        }
        let (above, below) = (self.mesh.value(inside), self.mesh.value(outside));
        // An infinite value doesn't tell where between the ends f changes its sign.
        let fraction = if above.is_finite() && below.is_finite() {
            (above / (above - below)).clamp(LEAST_FRACTION, 1.0 - LEAST_FRACTION)
        } else {
            0.5
        };
        [0, 1].map(|axis| from[axis] + fraction * (to[axis] - from[axis]))
    }
}

/// The ring, closed, without the points between two others on an exactly straight line.
fn straightened(ring: &[[f64; 2]]) -> Ring {
    let count = ring.len();
    let is_bend = |&index: &usize| {
        let [before, here, after] =
            [ring[(index + count - 1) % count], ring[index], ring[(index + 1) % count]];
        cross(before, here, after) != 0.0
    };
    let mut bends: Ring = (0..count).filter(is_bend).map(|index| ring[index]).collect();
    bends.extend(bends.first().copied());
    bends
}

/// Twice the area to the left of a closed ring in the plane, negative if clockwise.
fn doubled_area(ring: &[[f64; 2]]) -> f64 {
    // Seen from a point of the ring, so that small rings far from the origin keep their sign.
    ring.windows(2).map(|edge| cross(ring[0], edge[0], edge[1])).sum()
}

/// Positive if the way a → b → c turns left.
fn cross(a: [f64; 2], b: [f64; 2], c: [f64; 2]) -> f64 {
    (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])
}

/// Which vertices inside the region are connected by sides inside it: a union-find forest.
struct Components {
    parents: Vec<VertexId>,
}

impl Components {
    fn new(vertex_count: usize) -> Components {
        Components { parents: (0..vertex_count as VertexId).collect() }
    }

    /// The first vertex of the component.
    fn root(&mut self, mut vertex: VertexId) -> VertexId {
        while self.parents[vertex as usize] != vertex {
            let grandparent = self.parents[self.parents[vertex as usize] as usize];
            self.parents[vertex as usize] = grandparent;
            vertex = grandparent;
        }
        vertex
    }

    fn join(&mut self, a: VertexId, b: VertexId) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b) as usize] = a.min(b);
    }
}
