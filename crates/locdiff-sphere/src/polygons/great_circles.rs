//! Polygons whose edges are great circles, on the plane of longitude and latitude.
//!
//! Edges of a [`MultiPolygon`] are straight in that plane, so a great circle becomes many short ones. What comes out is
//! valid by RFC 7946, as outlines of regions are: cut at the antimeridian, along latitude ±90 where it contains a pole,
//! counterclockwise.

use super::{MultiPolygon, Ring, extent};
use crate::LatLon;
use crate::place::{mean_place, wrap_degrees};

/// An edge is no longer than this, seen from the Earth's centre: then a parallel differs from the great circle by less than 30 m up
/// to latitude 60.
const LONGEST_DEGREES: f64 = 0.25;
/// And its ends differ by no more in longitude, for great circles that pass near a pole.
const WIDEST_DEGREES: f64 = 0.5;
/// A great circle is halved so often at most: those through a pole never become narrow.
const HALVINGS: u32 = 14;

impl MultiPolygon {
    /// The polygon between these corners, with great circles as edges. It must be smaller than half of the Earth and
    /// spherically convex, so that a meridian cuts it into two pieces. Either direction will do.
    ///
    /// `None` if the corners have no area between them.
    ///
    /// ```
    /// use locdiff_sphere::{LatLon, MultiPolygon};
    ///
    /// let corners = [(1.0, 179.0), (1.0, -179.0), (-1.0, -179.0), (-1.0, 179.0)];
    /// let corners = corners.map(|(latitude, longitude)| LatLon::new(latitude, longitude));
    /// let corners = corners.into_iter().collect::<Result<Vec<_>, _>>()?;
    /// let polygon = MultiPolygon::with_great_circles(&corners).expect("an area");
    /// assert!(polygon.contains(LatLon::new(0.5, 180.0)?));
    /// assert_eq!(polygon.coordinates().len(), 2);
    /// # Ok::<(), locdiff_sphere::InvalidPlace>(())
    /// ```
    pub fn with_great_circles(corners: &[LatLon]) -> Option<MultiPolygon> {
        let ring = closed_over_pole(unwrapped(&followed(corners)), mean_place(corners)?);
        let ([west, east], _) = extent(&ring);
        let mut polygons = Vec::new();
        // The turns of the Earth that the ring lies in.
        let (first, last) = (turn_of(west), turn_of(east));
        for turn in first..=last {
            let shift = 360.0 * f64::from(turn);
            let piece = cut(&ring, |[x, _]| x - (shift - 180.0), shift - 180.0);
            let piece = cut(&piece, |[x, _]| shift + 180.0 - x, shift + 180.0);
            let mut piece: Ring = piece.into_iter().map(|[x, y]| [x - shift, y]).collect();
            piece.dedup();
            let area = planar_area(&piece);
            // What only touches the antimeridian.
            if piece.len() < 3 || area.abs() < 1e-12 {
                continue;
            }
            if area < 0.0 {
                piece.reverse();
            }
            piece.extend(piece.first().copied());
            piece.dedup();
            polygons.push(vec![piece]);
        }
        (!polygons.is_empty()).then(|| MultiPolygon::from_valid(polygons))
    }
}

/// Corners and places between them, once around: the last one is the first one.
fn followed(corners: &[LatLon]) -> Vec<LatLon> {
    let mut line: Vec<LatLon> = corners.first().copied().into_iter().collect();
    for (from, to) in corners.iter().zip(corners.iter().cycle().skip(1)) {
        follow(*from, *to, HALVINGS, &mut line);
    }
    line
}

/// Adds places along a great circle, without the first.
fn follow(from: LatLon, to: LatLon, halvings: u32, line: &mut Vec<LatLon>) {
    let turn = wrap_degrees(to.longitude() - from.longitude()).abs();
    let long = from.angle_to(to).to_degrees() > LONGEST_DEGREES || turn > WIDEST_DEGREES;
    match mean_place(&[from, to]).filter(|_| long && halvings > 0) {
        Some(middle) => {
            follow(from, middle, halvings - 1, line);
            follow(middle, to, halvings - 1, line);
        }
        None => line.push(to),
    }
}

/// Each place the short way from the one before, so that longitudes go on beyond ±180.
fn unwrapped(line: &[LatLon]) -> Ring {
    let mut longitude = line.first().map_or(0.0, |place| place.longitude());
    line.iter()
        .map(|place| {
            longitude += wrap_degrees(place.longitude() - longitude);
            [longitude, place.latitude()]
        })
        .collect()
}

/// A ring of the plane, its last point not repeated. One that goes once around the Earth begins at the antimeridian, and
/// comes back along the pole.
fn closed_over_pole(mut ring: Ring, middle: LatLon) -> Ring {
    let (Some(start), Some(end)) = (ring.first().copied(), ring.pop()) else { return ring };
    let around = end[0] - start[0];
    if around.abs() < 180.0 {
        return ring;
    }
    ring.push(end);
    let crosses = |ends: &[[f64; 2]]| turn_of(ends[0][0]) != turn_of(ends[1][0]);
    let Some(crossing) = ring.windows(2).position(crosses) else { return ring };
    let (before, after) = (ring[crossing], ring[crossing + 1]);
    let border = 360.0 * f64::from(turn_of(before[0].max(after[0]))) - 180.0;
    let share = (border - before[0]) / (after[0] - before[0]);
    let latitude = before[1] + share * (after[1] - before[1]);
    let pole = if middle.latitude() < 0.0 { -90.0 } else { 90.0 };
    ring.pop();
    let rest = ring[crossing + 1..].iter().copied();
    let turned = ring[..=crossing].iter().map(|[x, y]| [x + around, *y]);
    let line = [[border, latitude]].into_iter().chain(rest).chain(turned);
    // Rounding must not leave a sliver in another turn.
    let (low, high) = (border.min(border + around), border.max(border + around));
    let line = line.map(|[x, y]| [x.clamp(low, high), y]);
    let back = [[border + around, latitude], [border + around, pole], [border, pole]];
    line.chain(back).collect()
}

/// How many full turns a longitude is away from [−180, 180).
fn turn_of(longitude: f64) -> i32 {
    ((longitude + 180.0) / 360.0).floor() as i32
}

/// The part of a ring where `inside` is not negative; it is linear, and zero at the longitude `border`.
fn cut(ring: &[[f64; 2]], inside: impl Fn([f64; 2]) -> f64, border: f64) -> Ring {
    let mut kept = Vec::with_capacity(ring.len() + 4);
    for (from, to) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        let (a, b) = (inside(*from), inside(*to));
        if a >= 0.0 {
            kept.push(*from);
        }
        if (a < 0.0) != (b < 0.0) {
            kept.push([border, from[1] + a / (a - b) * (to[1] - from[1])]);
        }
    }
    kept
}

/// In square degrees; positive if the ring runs counterclockwise.
fn planar_area(ring: &[[f64; 2]]) -> f64 {
    let Some([x0, y0]) = ring.first().copied() else { return 0.0 };
    let parts = ring.windows(2).map(|ends| {
        let [[x1, y1], [x2, y2]] = [ends[0], ends[1]].map(|[x, y]| [x - x0, y - y0]);
        0.5 * (x1 * y2 - x2 * y1)
    });
    parts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A square on the ground, its upper edge towards a bearing.
    fn square(middle: LatLon, bearing: f64, half_diagonal_km: f64) -> [LatLon; 4] {
        [-45.0, 45.0, 135.0, 225.0]
            .map(|corner| middle.destination(bearing + corner, half_diagonal_km))
    }

    fn place(latitude: f64, longitude: f64) -> LatLon {
        LatLon::new(latitude, longitude).unwrap()
    }

    #[test]
    fn squares_are_the_same_everywhere_on_earth() {
        for half_diagonal_km in [20.0, 400.0, 2500.0] {
            let of_equator = square(place(0.0, 10.0), 0.0, half_diagonal_km);
            let area = MultiPolygon::with_great_circles(&of_equator).unwrap().area_km2();
            for (latitude, longitude) in [
                (0.0, 180.0),
                (12.0, 179.9),
                (-48.0, -179.95),
                (65.0, 100.0),
                (89.0, 20.0),
                (90.0, 0.0),
                (-90.0, 0.0),
                (-87.5, 179.0),
            ] {
                for bearing in [0.0, 37.0, 200.5] {
                    let middle = place(latitude, longitude);
                    let mut corners = square(middle, bearing, half_diagonal_km);
                    let polygon = MultiPolygon::with_great_circles(&corners).unwrap();
                    let ratio = polygon.area_km2() / area;
                    let name = format!("{half_diagonal_km} km at {middle}, {bearing}: {ratio}");
                    assert!((ratio - 1.0).abs() < 2e-3, "{name}");
                    // Not at the middle: on the pole, every longitude is as good.
                    for turn in [10.0, 100.0, 190.0, 280.0] {
                        let inside = middle.destination(turn, 0.6 * half_diagonal_km);
                        let outside = middle.destination(turn, 1.1 * half_diagonal_km);
                        assert!(polygon.contains(inside), "{name}: {inside}");
                        assert!(!polygon.contains(outside), "{name}: {outside}");
                    }
                    for rings in polygon.coordinates() {
                        let [ring] = &rings[..] else { panic!("{name}: a hole") };
                        assert_eq!(ring.first(), ring.last(), "{name}");
                        assert!(planar_area(ring) > 0.0, "{name}: clockwise");
                        let ([west, east], [south, north]) = extent(ring);
                        assert!(west >= -180.0 && east <= 180.0, "{name}: {west} to {east}");
                        assert!(south >= -90.0 && north <= 90.0, "{name}");
                        let repeats = ring.windows(2).any(|ends| ends[0] == ends[1]);
                        assert!(!repeats, "{name}: a point twice");
                    }
                    corners.reverse();
                    let other = MultiPolygon::with_great_circles(&corners).unwrap();
                    assert!((other.area_km2() / polygon.area_km2() - 1.0).abs() < 1e-6, "{name}");
                }
            }
        }
    }

    #[test]
    fn only_what_crosses_the_antimeridian_is_cut() {
        let pieces = |latitude, longitude| {
            let corners = square(place(latitude, longitude), 20.0, 300.0);
            MultiPolygon::with_great_circles(&corners).unwrap().coordinates().len()
        };
        assert_eq!(pieces(10.0, 170.0), 1);
        assert_eq!(pieces(10.0, 179.5), 2);
        assert_eq!(pieces(10.0, -179.5), 2);
        // Around a pole in one piece.
        assert_eq!(pieces(90.0, 0.0), 1);
        assert_eq!(pieces(-89.0, 60.0), 1);
    }

    #[test]
    fn edges_are_great_circles() {
        // The great circle between two places of latitude 60, 60 degrees apart, reaches 63.4 degrees.
        let corners = [place(60.0, 0.0), place(60.0, 60.0), place(40.0, 60.0), place(40.0, 0.0)];
        let polygon = MultiPolygon::with_great_circles(&corners).unwrap();
        assert!(polygon.contains(place(63.4, 30.0)) && !polygon.contains(place(63.5, 30.0)));
    }

    #[test]
    fn corners_without_an_area_are_no_polygon() {
        let here = place(3.0, 4.0);
        assert_eq!(MultiPolygon::with_great_circles(&[]), None);
        assert_eq!(MultiPolygon::with_great_circles(&[here]), None);
        assert_eq!(MultiPolygon::with_great_circles(&[here; 4]), None);
    }
}
