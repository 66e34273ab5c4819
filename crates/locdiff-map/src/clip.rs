//! Lines and areas of the sphere, cut where the map ends.
//!
//! Edges between neighbouring points are short arcs of great circles. Every line is cut where it
//! meets the edge of the map: the antimeridian of a flat map, the horizon of a globe. An area is
//! closed again along that edge. For this all rings of an area have the area on their left: where a
//! piece of the boundary leaves the map, the edge of the map, followed anticlockwise, is the
//! boundary of the area until the next piece enters. That holds for holes, for areas around a pole
//! and for areas that cross the edge many times; it needs no case for any of them. Close-ups are cut in
//! their plane instead (`closeup`).

use crate::projection::Plane;
use locdiff_sphere::{LatLon, UnitVector};

/// Arcs longer than this are subdivided, so that they follow the curve of the projection.
const LONGEST_ARC: f64 = 0.02;

/// A line in the plane.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) points: Vec<[f64; 2]>,
    pub(crate) closed: bool,
}

/// The visible parts of a line through the points, in the plane.
pub(crate) fn line(plane: &Plane, points: &[[f64; 3]], closed: bool) -> Vec<Line> {
    if let Plane::Around(closeup) = plane {
        return closeup.line(points, closed);
    }
    let pieces = cut(plane, points, closed);
    pieces.into_iter().map(|piece| piece.line(plane)).filter(|line| line.points.len() > 1).collect()
}

/// An area on the map, given by rings that have it on their left.
#[derive(Debug, Clone, Default)]
pub(crate) struct Area {
    /// Closed lines around the visible area, along the edge of the map where it was cut.
    pub(crate) fill: Vec<Line>,
    /// The visible boundary, without those parts of the map's edge.
    pub(crate) boundary: Vec<Line>,
}

/// The visible part of an area. An area of which no boundary is visible is taken as invisible, except in
/// a close-up.
pub(crate) fn area(plane: &Plane, rings: &[Vec<[f64; 3]>]) -> Area {
    if let Plane::Around(closeup) = plane {
        return closeup.area(rings);
    }
    let mut area = Area::default();
    let mut open = Vec::new();
    for ring in rings {
        for piece in cut(plane, ring, true) {
            let line = piece.line(plane);
            if piece.closed {
                area.fill.push(line.clone());
            } else {
                open.push(piece);
            }
            area.boundary.push(line);
        }
    }
    area.fill.extend(joined_along_edge(plane, open));
    area
}

/// The parts of a ring that are drawn as the outline of an area.
///
/// GeoJSON cuts polygons at the antimeridian and leads them along it and through the poles
/// (RFC 7946, 3.1.9). Those edges bound the piece, not the area, so they are left out.
pub(crate) fn outline(plane: &Plane, ring: &[LatLon]) -> Vec<Line> {
    let is_cut = |a: LatLon, b: LatLon| {
        (a.longitude() == -180.0 && b.longitude() == -180.0)
            || (a.latitude().abs() == 90.0 && a.latitude() == b.latitude())
    };
    let ring = match ring {
        [first, inner @ .., last] if first == last && !inner.is_empty() => &ring[..ring.len() - 1],
        _ => ring,
    };
    let count = ring.len();
    let vector = |index: usize| UnitVector::from(ring[index % count]).to_array();
    let breaks = |index: usize| is_cut(ring[index % count], ring[(index + 1) % count]);
    let Some(first_break) = (0..count).find(|&index| breaks(index)) else {
        return line(plane, &(0..count).map(vector).collect::<Vec<_>>(), true);
    };
    let mut lines = Vec::new();
    let mut points = Vec::new();
    for index in first_break + 1..=first_break + count {
        points.push(vector(index));
        if breaks(index) {
            lines.extend(line(plane, &points, false));
            points.clear();
        }
    }
    lines
}

/// A part of a line between two cuts, in the chart.
struct Piece {
    points: Vec<[f64; 2]>,
    closed: bool,
}

impl Piece {
    fn line(&self, plane: &Plane) -> Line {
        let mut points: Vec<_> =
            self.points.iter().map(|&point| plane.plane_from_chart(point)).collect();
        points.dedup();
        Line { points, closed: self.closed }
    }
}

fn cut(plane: &Plane, points: &[[f64; 3]], closed: bool) -> Vec<Piece> {
    let Some(&first) = points.first() else { return Vec::new() };
    let mut pieces = Vec::new();
    let mut current = Vec::from_iter(plane.chart(first));
    let mut previous = first;
    let ends = if closed { &points[..1] } else { &[] };
    for &next in points[1..].iter().chain(ends) {
        for vector in subdivided(previous, next) {
            if let Some(crossing) = plane.crossing(previous, vector) {
                current.extend(crossing.exit);
                if crossing.exit.is_some() {
                    pieces.push(Piece { points: std::mem::take(&mut current), closed: false });
                }
                current.extend(crossing.entry);
            }
            current.extend(plane.chart(vector));
            previous = vector;
        }
    }
    match pieces.first_mut() {
        // Uncut: the ring came back to its first point, which is not repeated.
        None if closed => {
            current.pop();
            pieces.push(Piece { points: current, closed: true });
        }
        // The ring started in the middle of its first piece.
        Some(start) if closed && plane.chart(first).is_some() => {
            current.pop();
            current.append(&mut start.points);
            start.points = current;
        }
        _ => pieces.push(Piece { points: current, closed: false }),
    }
    pieces.retain(|piece| !piece.points.is_empty());
    pieces
}

/// Points on the short arc to `to`, without its start.
pub(crate) fn subdivided(from: [f64; 3], to: [f64; 3]) -> impl Iterator<Item = [f64; 3]> {
    let chord = (0..3).map(|axis| (to[axis] - from[axis]).powi(2)).sum::<f64>().sqrt();
    let parts = (chord / LONGEST_ARC).ceil().max(1.0);
    (1..=parts as usize).map(move |part| {
        if part as f64 == parts {
            return to;
        }
        let share = part as f64 / parts;
        let between = std::array::from_fn(|axis| from[axis] + share * (to[axis] - from[axis]));
        // Only exact antipodes have no point between them; which way round is then arbitrary.
        UnitVector::from_direction(between).map_or(to, UnitVector::to_array)
    })
}

/// Closes pieces that begin and end on the edge of the map into rings, along that edge.
fn joined_along_edge(plane: &Plane, pieces: Vec<Piece>) -> Vec<Line> {
    let start_of = |piece: &Piece| piece.points.first().map_or(0.0, |&p| plane.edge_position(p));
    let end_of = |piece: &Piece| piece.points.last().map_or(0.0, |&p| plane.edge_position(p));
    let mut starts: Vec<(f64, usize)> =
        pieces.iter().enumerate().map(|(index, piece)| (start_of(piece), index)).collect();
    starts.sort_by(|a, b| a.0.total_cmp(&b.0));

    let mut used = vec![false; pieces.len()];
    let mut rings = Vec::new();
    for first in 0..pieces.len() {
        let mut chart_points = Vec::new();
        let mut index = first;
        while !used[index] {
            used[index] = true;
            chart_points.extend_from_slice(&pieces[index].points);
            let end = end_of(&pieces[index]);
            let next = starts.partition_point(|&(position, _)| position < end) % starts.len();
            chart_points.extend(plane.along_edge(end, starts[next].0));
            index = starts[next].1;
        }
        if chart_points.len() > 2 {
            rings.push(Piece { points: chart_points, closed: true }.line(plane));
        }
    }
    rings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Projection, coastlines};

    fn at(latitude: f64, longitude: f64) -> LatLon {
        LatLon::new(latitude, longitude).unwrap()
    }

    fn inside(lines: &[Line], [x, y]: [f64; 2]) -> bool {
        let edges = lines.iter().flat_map(|line| {
            line.points.iter().zip(line.points.iter().cycle().skip(1)).take(line.points.len())
        });
        let crossings = edges.filter(|(a, b)| {
            (a[1] > y) != (b[1] > y) && x < a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0])
        });
        crossings.count() % 2 == 1
    }

    /// Places all over the Earth, evenly.
    fn places() -> impl Iterator<Item = LatLon> {
        (0..3000).map(|index| {
            let z = 1.0 - f64::from(2 * index + 1) / 3000.0;
            at(z.asin().to_degrees(), f64::from(index) * 222.492_235_949_962)
        })
    }

    #[test]
    fn land_is_land_in_every_projection() {
        let rings = coastlines::land();
        let flat = Projection::Equirectangular;
        let flat_land = area(&Plane::new(flat), &rings).fill;
        let is_land = |place| inside(&flat_land, flat.forward(place).unwrap());
        for (latitude, longitude) in [
            (23.0, 5.0),
            (67.0, 179.0),
            (67.0, -179.0),
            (-89.0, 10.0),
            (-75.0, 60.0),
            (60.0, 100.0),
        ] {
            assert!(is_land(at(latitude, longitude)), "{latitude},{longitude}");
        }
        for (latitude, longitude) in [
            (89.0, 0.0),
            (0.0, -150.0),
            (42.0, 51.0),
            (-60.0, 179.9),
            (-60.0, -179.9),
            (30.0, -40.0),
        ] {
            assert!(!is_land(at(latitude, longitude)), "{latitude},{longitude}");
        }
        let share = places().filter(|&place| is_land(place)).count() as f64 / 3000.0;
        assert!((share - 0.29).abs() < 0.01, "{share}");

        let centres = [(0.0, 0.0), (-17.0, 179.0), (90.0, 0.0), (-90.0, 0.0), (50.0, -100.0)];
        let globes = centres.map(|(lat, lon)| Projection::Globe { centre: at(lat, lon) });
        for projection in globes.into_iter().chain([Projection::EqualEarth]) {
            let land = area(&Plane::new(projection), &rings).fill;
            let mut seen = 0;
            let mut different = 0;
            for place in places() {
                if let Some(point) = projection.forward(place) {
                    seen += 1;
                    // The horizon is a polygon of 360 corners.
                    if matches!(projection, Projection::Globe { .. })
                        && point[0].hypot(point[1]) > 0.999
                    {
                        continue;
                    }
                    different += usize::from(inside(&land, point) != is_land(place));
                }
            }
            // Chords of different projections may pass a place at a coast on different sides.
            assert!(seen >= 1490 && different <= 1, "{projection:?}: {different} of {seen}");
        }
    }

    #[test]
    fn a_ring_across_the_antimeridian_is_cut_and_a_ring_around_a_pole_is_opened() {
        let plane = Plane::Equirectangular;
        let ring = |centre: LatLon| -> Vec<LatLon> {
            (0..36).map(|step| centre.destination(f64::from(step) * 10.0, 800.0)).collect()
        };
        let lines = outline(&plane, &ring(at(-17.0, 179.0)));
        assert_eq!(lines.len(), 2);
        let around_pole = outline(&plane, &ring(at(88.0, 30.0)));
        assert_eq!(around_pole.len(), 1);
        for line in lines.iter().chain(&around_pole) {
            assert!(!line.closed);
            for pair in line.points.windows(2) {
                assert!((pair[1][0] - pair[0][0]).abs() < 1.0, "a streak: {pair:?}");
            }
            for end in [line.points[0], line.points[line.points.len() - 1]] {
                assert!((end[0].abs() - std::f64::consts::PI).abs() < 1e-12, "{end:?}");
            }
        }
        let inland = outline(&plane, &ring(at(20.0, 10.0)));
        assert!(inland.len() == 1 && inland[0].closed);
    }

    #[test]
    fn the_cuts_of_geojson_are_not_drawn() {
        // A box across the antimeridian as two boxes, and a cap around a pole as one.
        let west = [at(-10.0, 170.0), at(-10.0, 180.0), at(10.0, 180.0), at(10.0, 170.0)];
        let mut cap: Vec<LatLon> =
            (-18..=18).map(|step| at(80.0, f64::from(step) * 10.0)).collect();
        cap.extend([at(90.0, 180.0), at(90.0, -180.0), at(80.0, -180.0)]);
        let globe = Plane::new(Projection::Globe { centre: at(60.0, 180.0) });
        for (ring, inner) in [(&west[..], [0.0, 180.0]), (&cap[..], [85.0, 180.0])] {
            for plane in [Plane::Equirectangular, Plane::EqualEarth, globe] {
                let lines = outline(&plane, ring);
                assert_eq!(lines.len(), 1, "{plane:?}");
                assert!(!lines[0].closed);
                // Nothing is near the middle of the cut.
                let [x, y] = plane.plane_from_chart(
                    plane.chart(UnitVector::from(at(inner[0], inner[1])).to_array()).unwrap(),
                );
                let apart = lines[0].points.iter().map(|p| (p[0] - x).hypot(p[1] - y));
                assert!(apart.fold(f64::INFINITY, f64::min) > LONGEST_ARC);
            }
        }
    }

    #[test]
    fn rings_leave_and_enter_the_visible_half() {
        let globe = Plane::new(Projection::Globe { centre: at(0.0, 0.0) });
        // Around the whole equator, and one that touches the horizon with a corner.
        let equator: Vec<LatLon> = (0..12).map(|step| at(0.0, f64::from(step) * 30.0)).collect();
        let lines = outline(&globe, &equator);
        assert_eq!(lines.len(), 1);
        assert!((lines[0].points[0][0] + 1.0).abs() < 1e-12);
        assert!((lines[0].points[lines[0].points.len() - 1][0] - 1.0).abs() < 1e-12);
        assert!(outline(&globe, &[at(0.0, 180.0), at(10.0, 170.0), at(0.0, 160.0)]).is_empty());
    }

    #[test]
    fn odd_rings_do_no_harm() {
        let places = [at(5.0, 5.0), at(-5.0, -175.0)]; // antipodes
        for plane in [
            Plane::Equirectangular,
            Plane::EqualEarth,
            Plane::new(Projection::Globe { centre: LatLon::SOUTH_POLE }),
        ] {
            for ring in [&places[..0], &places[..1], &places, &[places[0]; 4]] {
                for line in outline(&plane, ring) {
                    assert!(line.points.iter().flatten().all(|part| part.is_finite()));
                }
            }
            assert!(area(&plane, &[]).fill.is_empty());
            assert!(area(&plane, &[Vec::new()]).boundary.is_empty());
        }
    }
}
