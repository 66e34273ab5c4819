//! A close-up: the square around a place, in the azimuthal equidistant projection.
//!
//! Convention: the plane of the other maps, in Earth radii with (0, 0) at the centre. A place lies in
//! the direction of its bearing, as far from (0, 0) as it is on the Earth from the centre. So a scale
//! bar is exact along every line through the centre, and across them too long by the factor θ / sin θ
//! for the angle θ to the centre: 0.04 % at 300 km and 4 % at 3,000 km (Snyder 1987, chapter 25).
//!
//! The whole sphere but the antipode has a place in the plane, so lines and areas are cut in the plane,
//! where the edge of the map is a square. The even-odd rule fills areas, whichever way round rings run.

use crate::clip::{Area, Line, subdivided};
use crate::projection::{View, dot};
use locdiff_sphere::{EARTH_RADIUS_KM, LatLon, UnitVector};
use std::f64::consts::{PI, SQRT_2};

/// Half the side of a close-up, from the smallest to the largest.
const RADIUS_KM: [f64; 2] = [0.1, 10_000.0];

/// No longer than an arc that [`subdivided`] leaves whole.
const MARGIN: f64 = 0.021;

/// The largest turn around the centre that a chord between two far points may take, in radians.
const LARGEST_TURN: f64 = 0.5;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Closeup {
    view: View,
    /// Half the side of the square, in Earth radii.
    half: f64,
    /// Cosine of an angle to the centre beyond which nothing of the square lies on a short arc.
    cos_far: f64,
}

/// Half the side of a close-up in Earth radii. Not-a-number is taken as the smallest radius.
pub(crate) fn half_side(radius_km: f64) -> f64 {
    let [smallest, largest] = RADIUS_KM;
    radius_km.max(smallest).min(largest) / EARTH_RADIUS_KM
}

impl Closeup {
    pub(crate) fn new(centre: LatLon, radius_km: f64) -> Closeup {
        let half = half_side(radius_km);
        let far = SQRT_2 * half + MARGIN;
        Closeup { view: View::above(centre), half, cos_far: far.cos() }
    }

    /// The point of the plane, inside the square or not. The antipode has none; it is put on the edge
    /// of the disc that the sphere fills.
    pub(crate) fn point(&self, vector: [f64; 3]) -> [f64; 2] {
        let (right, up) = (dot(self.view.right, vector), dot(self.view.up, vector));
        let depth = dot(self.view.towards, vector);
        let sine = right.hypot(up);
        if sine == 0.0 {
            return if depth > 0.0 { [0.0; 2] } else { [PI, 0.0] };
        }
        let stretch = sine.atan2(depth) / sine;
        [right * stretch, up * stretch]
    }

    /// The place at a point of the square.
    pub(crate) fn inverse(&self, point: [f64; 2]) -> Option<LatLon> {
        self.contains(point).then(|| self.place(point)).flatten()
    }

    fn place(&self, [x, y]: [f64; 2]) -> Option<LatLon> {
        let angle = x.hypot(y);
        let (sin, depth) = angle.sin_cos();
        let shrink = if angle > 0.0 { sin / angle } else { 1.0 };
        let View { right, up, towards } = self.view;
        UnitVector::from_direction(std::array::from_fn(|axis| {
            shrink * (x * right[axis] + y * up[axis]) + depth * towards[axis]
        }))
        .map(LatLon::from)
    }

    pub(crate) fn contains(&self, [x, y]: [f64; 2]) -> bool {
        // Rounding may carry a point of the edge over it by a few units in the last place.
        let limit = self.half * (1.0 + 4.0 * f64::EPSILON);
        x.abs() <= limit && y.abs() <= limit
    }

    /// The point of the square that is nearest.
    pub(crate) fn nearest(&self, point: [f64; 2]) -> [f64; 2] {
        point.map(|part| part.clamp(-self.half, self.half))
    }

    /// The corners, anticlockwise from the lower right.
    pub(crate) fn corners(&self) -> [[f64; 2]; 4] {
        [[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]].map(|p| p.map(|part| part * self.half))
    }

    /// The edge of the square as places, anticlockwise from the lower right corner: `per_side` of
    /// them on each side.
    pub(crate) fn edge_places(&self, per_side: usize) -> Vec<LatLon> {
        let corners = self.corners();
        let sides = corners.iter().zip(corners.iter().cycle().skip(1));
        let points = sides.flat_map(|(from, to)| {
            (0..per_side).map(move |step| {
                let share = step as f64 / per_side as f64;
                [0, 1].map(|axis| from[axis] + share * (to[axis] - from[axis]))
            })
        });
        points.filter_map(|point| self.place(point)).collect()
    }

    /// Whether a cap around a ring lies wholly outside the square.
    pub(crate) fn is_apart(&self, cap: &Cap) -> bool {
        let angle = UnitVector::from_direction(self.view.towards)
            .zip(UnitVector::from_direction(cap.middle))
            .map_or(0.0, |(here, there)| here.angle_to(there));
        angle > cap.radius + SQRT_2 * self.half + MARGIN
    }

    /// The parts of a line that lie in the square.
    pub(crate) fn line(&self, points: &[[f64; 3]], closed: bool) -> Vec<Line> {
        let Some(&first) = points.first() else { return Vec::new() };
        let is_far = |vector| dot(self.view.towards, vector) < self.cos_far;
        let mut lines: Vec<Line> = Vec::new();
        // Whether the line is in the square where it was last looked at.
        let mut inside = false;
        let mut previous = first;
        let ends = if closed { &points[..1] } else { &[] };
        for &next in points[1..].iter().chain(ends) {
            for vector in subdivided(previous, next) {
                let both_far = is_far(previous) && is_far(vector);
                let (from, to) = (previous, vector);
                previous = vector;
                let part = if both_far {
                    None
                } else {
                    self.part_of_segment(self.point(from), self.point(to))
                };
                match part {
                    None => inside = false,
                    Some((start, end, leaves)) => {
                        match lines.last_mut() {
                            Some(line) if inside => line.points.push(end),
                            _ => lines.push(Line { points: vec![start, end], closed: false }),
                        }
                        inside = !leaves;
                    }
                }
            }
        }
        // A ring that starts in the square comes back to its start.
        let starts_inside = self.contains(self.point(first)) && !is_far(first);
        if closed && inside && starts_inside {
            match &mut lines[..] {
                [whole] => {
                    whole.points.pop();
                    whole.closed = true;
                }
                [start, .., end] => {
                    end.points.pop();
                    end.points.append(&mut start.points);
                    lines.remove(0);
                }
                [] => {}
            }
        }
        for line in &mut lines {
            line.points.dedup();
        }
        lines.retain(|line| line.points.len() > 1);
        lines
    }

    /// The part of a segment in the square, and whether the segment leaves it (Liang and Barsky).
    fn part_of_segment(&self, from: [f64; 2], to: [f64; 2]) -> Option<([f64; 2], [f64; 2], bool)> {
        let (mut enter, mut leave) = (0.0f64, 1.0f64);
        for axis in [0, 1] {
            let step = to[axis] - from[axis];
            for (step, room) in [(step, self.half - from[axis]), (-step, self.half + from[axis])] {
                if step == 0.0 && room < 0.0 {
                    return None;
                } else if step > 0.0 {
                    leave = leave.min(room / step);
                } else if step < 0.0 {
                    enter = enter.max(room / step);
                }
            }
        }
        let at = |share: f64| {
            self.nearest([0, 1].map(|axis| from[axis] + share * (to[axis] - from[axis])))
        };
        let start = if enter > 0.0 { at(enter) } else { from };
        let end = if leave < 1.0 { at(leave) } else { to };
        (enter <= leave).then_some((start, end, leave < 1.0))
    }

    /// The part of an area in the square. The inside of a ring is the side without the antipode of its
    /// middle, so no ring may go around half of the Earth; the even-odd rule joins several rings.
    pub(crate) fn area(&self, rings: &[Vec<[f64; 3]>]) -> Area {
        let mut area = Area { fill: self.fill(rings), boundary: Vec::new() };
        for ring in rings {
            if !Cap::around(ring).is_some_and(|cap| self.is_apart(&cap)) {
                area.boundary.extend(self.line(ring, true));
            }
        }
        area
    }

    /// Closed lines of which an odd number is around every visible place of the area.
    pub(crate) fn fill(&self, rings: &[Vec<[f64; 3]>]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut covered = false;
        for ring in rings {
            let cap = Cap::around(ring);
            if cap.is_some_and(|cap| self.is_apart(&cap)) {
                continue;
            }
            let points = self.ring_in_plane(ring);
            // What lies outside of the ring on the sphere may lie inside of it in the plane: then the
            // area is the rest of the plane.
            let outside = cap.map(|cap| self.point(cap.middle.map(|part| -part)));
            covered ^= outside.is_some_and(|outside| is_inside(&points, outside));
            let points = self.polygon_in_square(points);
            if points.len() > 2 {
                lines.push(Line { points, closed: true });
            }
        }
        if covered {
            lines.push(Line { points: self.corners().to_vec(), closed: true });
        }
        lines
    }

    /// A ring as a polygon of the plane that goes around the centre as often as the ring does.
    fn ring_in_plane(&self, ring: &[[f64; 3]]) -> Vec<[f64; 2]> {
        let mut points: Vec<[f64; 2]> = Vec::with_capacity(ring.len());
        let Some(&last) = ring.last() else { return points };
        let mut from = (last, self.point(last));
        for &next in ring {
            for vector in subdivided(from.0, next) {
                let to = self.point(vector);
                // Near the antipode a short arc may go around much of the centre. Its chord must not
                // run through the square.
                let turn = turn(from.1, to);
                let steps = (turn.abs() / LARGEST_TURN).ceil();
                if steps > 1.0 && from.1[0].hypot(from.1[1]) > SQRT_2 * self.half {
                    let (start, end) = (from.1[0].hypot(from.1[1]), to[0].hypot(to[1]));
                    let bearing = from.1[1].atan2(from.1[0]);
                    points.extend((1..steps as usize).map(|step| {
                        let share = step as f64 / steps;
                        let (sin, cos) = (bearing + share * turn).sin_cos();
                        let radius = start + share * (end - start);
                        [radius * cos, radius * sin]
                    }));
                }
                points.push(to);
                from = (vector, to);
            }
        }
        points
    }

    /// A polygon cut at the four sides (Sutherland and Hodgman). Where it was cut it runs along the edge,
    /// perhaps to and fro, which fills the same area.
    fn polygon_in_square(&self, mut points: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
        if points.iter().all(|&point| self.contains(point)) {
            return points;
        }
        for (axis, sign) in [(0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)] {
            let room = |point: [f64; 2]| self.half - sign * point[axis];
            let Some(&last) = points.last() else { break };
            let mut kept = Vec::with_capacity(points.len());
            let mut from = last;
            for &to in &points {
                let (before, after) = (room(from), room(to));
                if (before >= 0.0) != (after >= 0.0) {
                    let share = before / (before - after);
                    let mut crossing = [0, 1].map(|k: usize| from[k] + share * (to[k] - from[k]));
                    crossing[axis] = sign * self.half;
                    kept.push(crossing);
                }
                if after >= 0.0 {
                    kept.push(to);
                }
                from = to;
            }
            points = kept;
        }
        points
    }
}

/// A cap of the sphere that holds a ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cap {
    middle: [f64; 3],
    radius: f64,
}

impl Cap {
    /// `None` for a ring without a middle. A cap of more than half of the Earth is taken as the whole.
    pub(crate) fn around(ring: &[[f64; 3]]) -> Option<Cap> {
        let mut sum = [0.0; 3];
        for vector in ring {
            sum.iter_mut().zip(vector).for_each(|(sum, part)| *sum += part);
        }
        let length = sum.iter().map(|part| part * part).sum::<f64>().sqrt();
        let middle = (length > 1e-9 * ring.len() as f64).then_some(sum)?;
        let middle = UnitVector::from_direction(middle)?.to_array();
        let cosine = ring.iter().map(|&vector| dot(middle, vector)).fold(1.0, f64::min);
        // The arccosine is off by up to 1e-8 for small angles, far less than the margin of its users.
        let radius = if cosine > 0.0 { cosine.acos() } else { PI };
        Some(Cap { middle, radius })
    }
}

/// The angle from one point to the other around (0, 0), the short way.
fn turn(from: [f64; 2], to: [f64; 2]) -> f64 {
    let across = from[0] * to[1] - from[1] * to[0];
    across.atan2(from[0] * to[0] + from[1] * to[1])
}

/// Whether a polygon goes around a point an odd number of times.
fn is_inside(polygon: &[[f64; 2]], [x, y]: [f64; 2]) -> bool {
    let edges = polygon.iter().zip(polygon.iter().cycle().skip(1));
    let crossings = edges.filter(|(a, b)| {
        (a[1] > y) != (b[1] > y) && x < a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0])
    });
    crossings.count() % 2 == 1
}
