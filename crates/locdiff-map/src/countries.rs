//! Outlines of countries: land, coasts, and the borders between neighbours.
//!
//! Neighbours have the points of their common border in common, in the opposite order. So an edge of two
//! rings is a border, and an edge of one ring is a coast. Both are drawn once.

use crate::clip::{self, Line};
use crate::closeup::Cap;
use crate::layout::Frame;
use crate::projection::Plane;
use locdiff_sphere::{LatLon, UnitVector};
use std::collections::HashMap;

/// What of the countries is seen, in pixels.
#[derive(Debug, Default)]
pub(crate) struct Countries {
    /// To be filled by the even-odd rule; only of close-ups.
    pub(crate) land: Vec<Line>,
    /// Coastlines; drawn in close-ups only.
    pub(crate) coasts: Vec<Line>,
    pub(crate) borders: Vec<Line>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    Coast,
    Border,
    /// A cut that bounds a polygon but no country, or a border that was drawn already.
    Hidden,
}

impl Countries {
    /// Close-ups show all of the countries, other maps show the borders.
    pub(crate) fn seen(rings: &[Vec<LatLon>], frame: &Frame) -> Countries {
        let mut near = Vec::new();
        let mut vectors: Vec<Vec<[f64; 3]>> = Vec::new();
        for ring in rings {
            let ring = match ring.as_slice() {
                [first, inner @ .., last] if first == last && !inner.is_empty() => {
                    &ring[..ring.len() - 1]
                }
                ring => ring,
            };
            let vector = |&place: &LatLon| UnitVector::from(place).to_array();
            let points: Vec<[f64; 3]> = ring.iter().map(vector).collect();
            let apart = match &frame.plane {
                Plane::Around(closeup) => {
                    Cap::around(&points).is_some_and(|cap| closeup.is_apart(&cap))
                }
                _ => false,
            };
            if points.len() > 2 && !apart {
                near.push(ring);
                vectors.push(points);
            }
        }
        let mut seen = Countries::default();
        let mut edges = Edges::of(&near);
        for (ring, points) in near.iter().zip(&vectors) {
            let kinds = edges.kinds(ring);
            let wanted = |kind| kind == Edge::Border || matches!(frame.plane, Plane::Around(_));
            for (kind, points, closed) in runs(points, &kinds) {
                let lines = match kind {
                    Edge::Coast => &mut seen.coasts,
                    _ => &mut seen.borders,
                };
                if wanted(kind) {
                    lines.extend(frame.snapped(&clip::line(&frame.plane, &points, closed)));
                }
            }
        }
        if let Plane::Around(closeup) = &frame.plane {
            seen.land = frame.snapped(&closeup.fill(&vectors));
        }
        seen
    }
}

/// How often each edge occurs in all rings.
struct Edges {
    counts: HashMap<[u64; 4], u32>,
}

impl Edges {
    fn of(rings: &[&[LatLon]]) -> Edges {
        let mut counts = HashMap::new();
        for ring in rings {
            for (a, b) in pairs(ring) {
                *counts.entry(key(a, b)).or_insert(0) += 1;
            }
        }
        Edges { counts }
    }

    /// The kind of the edge after each point. A border counts as hidden from the second time on.
    fn kinds(&mut self, ring: &[LatLon]) -> Vec<Edge> {
        pairs(ring)
            .map(|(a, b)| {
                let count = self.counts.entry(key(a, b)).or_insert(0);
                if *count == 0 || is_cut(a, b) {
                    return Edge::Hidden;
                }
                let kind = if *count == 1 { Edge::Coast } else { Edge::Border };
                *count = if kind == Edge::Border { 0 } else { 1 };
                kind
            })
            .collect()
    }
}

fn pairs(ring: &[LatLon]) -> impl Iterator<Item = (LatLon, LatLon)> {
    ring.iter().copied().zip(ring.iter().copied().cycle().skip(1))
}

/// The same in both directions.
fn key(a: LatLon, b: LatLon) -> [u64; 4] {
    // `+ 0.0` turns −0 into 0, which has other bits.
    let bits = |place: LatLon| [place.latitude(), place.longitude()].map(|d| (d + 0.0).to_bits());
    let ([a, b], [c, d]) = if bits(a) <= bits(b) { (bits(a), bits(b)) } else { (bits(b), bits(a)) };
    [a, b, c, d]
}

/// Polygons may be cut at the antimeridian and led to a pole; no border runs there.
fn is_cut(a: LatLon, b: LatLon) -> bool {
    let on_antimeridian = |place: LatLon| place.longitude() == -180.0;
    let at_pole = |place: LatLon| place.latitude().abs() == 90.0;
    (on_antimeridian(a) && on_antimeridian(b)) || at_pole(a) || at_pole(b)
}

/// The ring in lines of one visible kind each, and whether a line is the whole ring.
fn runs(points: &[[f64; 3]], kinds: &[Edge]) -> Vec<(Edge, Vec<[f64; 3]>, bool)> {
    let count = points.len();
    let kind_at = |index: usize| kinds[index % count];
    let Some(first) = (0..count).find(|&index| kind_at(index) != kind_at(index + count - 1)) else {
        let whole =
            (kinds.first() != Some(&Edge::Hidden)).then(|| (kind_at(0), points.to_vec(), true));
        return whole.into_iter().collect();
    };
    let mut runs: Vec<(Edge, Vec<[f64; 3]>, bool)> = Vec::new();
    for index in first..first + count {
        let (kind, end) = (kind_at(index), points[(index + 1) % count]);
        match runs.last_mut() {
            Some((of, line, _)) if *of == kind => line.push(end),
            _ => runs.push((kind, vec![points[index % count], end], false)),
        }
    }
    runs.retain(|(kind, ..)| *kind != Edge::Hidden);
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(latitude: f64, longitude: f64) -> LatLon {
        LatLon::new(latitude, longitude).unwrap()
    }

    #[test]
    fn a_border_is_an_edge_of_two_rings_and_drawn_once() {
        // Two squares with the common side at longitude 1, which one of them has in the other order.
        let west = [at(0.0, 0.0), at(0.0, 1.0), at(1.0, 1.0), at(1.0, 0.0)];
        let east = [at(0.0, 1.0), at(0.0, 2.0), at(1.0, 2.0), at(1.0, 1.0)];
        let island = [at(5.0, 5.0), at(5.0, 6.0), at(6.0, 6.0)];
        let mut edges = Edges::of(&[&west, &east, &island]);
        let found = [&west[..], &east, &island].map(|ring| {
            let vectors: Vec<[f64; 3]> =
                ring.iter().map(|&place| UnitVector::from(place).to_array()).collect();
            let runs = runs(&vectors, &edges.kinds(ring));
            runs.into_iter()
                .map(|(kind, line, closed)| (kind, line.len(), closed))
                .collect::<Vec<_>>()
        });
        assert_eq!(found[0], [(Edge::Border, 2, false), (Edge::Coast, 4, false)]);
        assert_eq!(found[1], [(Edge::Coast, 4, false)]);
        assert_eq!(found[2], [(Edge::Coast, 3, true)]);
    }

    #[test]
    fn cuts_at_the_antimeridian_and_the_pole_are_hidden() {
        let fiji = [at(-16.0, 179.0), at(-16.0, 180.0), at(-17.0, 180.0), at(-17.0, 179.0)];
        let ice = [at(-70.0, 0.0), at(-70.0, 120.0), at(-70.0, -120.0), at(-70.0, 0.0)];
        let pole = [at(-90.0, 0.0), at(-90.0, 0.0)];
        let antarctica = [&ice[..], &pole].concat();
        let mut edges = Edges::of(&[&fiji, &antarctica]);
        assert_eq!(edges.kinds(&fiji)[1], Edge::Hidden);
        assert_eq!(edges.kinds(&antarctica)[3..], [Edge::Hidden; 3]);
    }
}
