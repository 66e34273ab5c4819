//! Polygons in longitude and latitude, as GeoJSON writes them (RFC 7946, section 3.1.7).
//!
//! Edges are straight in the plane of longitude and latitude, not great circles: the edge
//! between two points of equal latitude runs along the parallel. A ring that jumps from
//! longitude 179 to −179 therefore runs the long way round, through 0; to cross the
//! antimeridian, write 179 to 181, or cut the polygon there in two. To enclose a pole, run
//! along latitude ±90, for example 0,60 → 360,60 → 360,90 → 0,90.

mod chains;
mod edge_tree;
mod edge_tree_builder;
#[cfg(test)]
mod edge_tree_tests;
mod edges;
mod great_circles;
mod shared_edges;

use std::sync::OnceLock;

use edge_tree::EdgeTree;
use edge_tree_builder::{Crowd, Crowds};

use crate::area::{Cover, InvalidArea, Rectangle};
use crate::cells::{POINTS, PointValues};
use crate::place::sin_cos_degrees;
use crate::{EARTH_RADIUS_KM, LatLon};

/// A closed line: its last point equals its first. Points are [longitude, latitude].
type Ring = Vec<[f64; 2]>;

/// Coordinates are written with this many decimals: a millionth of a degree, 11 cm.
const DECIMALS: usize = 6;
/// More points would take gigabytes.
const MOST_POINTS: usize = 10_000_000;
/// A rectangle is looked at in so many steps of each axis.
const STEPS: usize = 5;
/// What rounding to that many decimals may do to a width.
const ROUNDING_DEGREES: f64 = 1e-6;

/// One or more polygons with holes: a GeoJSON `MultiPolygon`.
///
/// Unlike everywhere else in this crate, positions are **longitude first**, in degrees, so
/// that GeoJSON coordinates go in and come out as they are.
///
/// Edges are straight in longitude and latitude, as RFC 7946 defines: a ring that jumps from
/// longitude 179 to −179 runs the long way round, through 0. To cross the antimeridian,
/// write 179 to 181, or cut the polygon in two; to enclose a pole, run along latitude ±90.
///
/// Rings must not cross themselves or each other, and polygons must not overlap. Where they
/// do, [`contains`](Self::contains) still follows the even-odd rule, but areas and integrals
/// are not its. Polygons are rejected if edges cross or almost touch each other nearly everywhere.
///
/// ```
/// use locdiff_sphere::{LatLon, MultiPolygon};
///
/// let across_antimeridian = vec![[170.0, 0.0], [190.0, 0.0], [190.0, 10.0], [170.0, 10.0]];
/// let polygon = MultiPolygon::of_polygon(vec![across_antimeridian])?;
/// assert!(polygon.contains(LatLon::new(5.0, -175.0)?));
/// assert_eq!(
///     polygon.to_geojson(),
///     r#"{"type":"Polygon","coordinates":[[[170,0],[190,0],[190,10],[170,10],[170,0]]]}"#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct MultiPolygon {
    coordinates: Vec<Vec<Ring>>,
    /// The area of each polygon, without its holes.
    areas_km2: Vec<f64>,
    /// Built when it is first asked for: many outlines are only written.
    edges: OnceLock<EdgeTree>,
}

impl PartialEq for MultiPolygon {
    fn eq(&self, other: &MultiPolygon) -> bool {
        self.coordinates == other.coordinates
    }
}

impl MultiPolygon {
    /// From the `coordinates` of a GeoJSON `MultiPolygon`: polygons of rings (the exterior,
    /// then holes) of points `[longitude, latitude]`, in degrees.
    ///
    /// A ring whose last point is not its first is closed. Longitudes may exceed ±180, up to
    /// ±540, but no ring may be wider than 360 degrees. Either direction of a ring will do.
    pub fn new(coordinates: Vec<Vec<Vec<[f64; 2]>>>) -> Result<MultiPolygon, InvalidArea> {
        if coordinates.is_empty() {
            return Err(InvalidArea::NoPolygons);
        }
        let points = coordinates.iter().flatten().map(Vec::len).sum();
        if points > MOST_POINTS {
            return Err(InvalidArea::ManyPoints { points, most: MOST_POINTS });
        }
        let mut coordinates = coordinates;
        let mut areas_km2 = Vec::with_capacity(coordinates.len());
        for (polygon, rings) in coordinates.iter_mut().enumerate() {
            for (ring, points) in rings.iter_mut().enumerate() {
                check_ring(polygon, ring, points)?;
                if points.first() != points.last() {
                    points.extend(points.first().copied());
                }
            }
            areas_km2.push(check_polygon(polygon, rings)?);
        }
        let edges = EdgeTree::new(&coordinates, &areas_km2, Crowds::Rejected)
            .map_err(|crowd| tangled(&coordinates, &crowd))?;
        Ok(MultiPolygon { coordinates, areas_km2, edges: OnceLock::from(edges) })
    }

    /// From the `coordinates` of a GeoJSON `Polygon`: its exterior, then holes; see
    /// [`new`](Self::new).
    pub fn of_polygon(rings: Vec<Vec<[f64; 2]>>) -> Result<MultiPolygon, InvalidArea> {
        MultiPolygon::new(vec![rings])
    }

    /// From coordinates that would pass the checks of [`new`](Self::new), with closed rings.
    pub(crate) fn from_valid(coordinates: Vec<Vec<Vec<[f64; 2]>>>) -> MultiPolygon {
        let area = |rings: &Vec<Ring>| polygon_area_km2(steradians(&rings[0]), &rings[1..]);
        let areas_km2 = coordinates.iter().map(area).collect();
        MultiPolygon { coordinates, areas_km2, edges: OnceLock::new() }
    }

    fn edges(&self) -> &EdgeTree {
        self.edges.get_or_init(|| {
            EdgeTree::new(&self.coordinates, &self.areas_km2, Crowds::Accepted)
                .expect("crowds are accepted")
        })
    }

    /// Whether the place is inside the exterior of a polygon and not in its holes.
    ///
    /// A place on an edge may count as in or out; of two polygons that share the edge, one
    /// contains it.
    pub fn contains(&self, place: LatLon) -> bool {
        self.edges().enclose(place.longitude(), place.latitude())
    }

    /// The area in square kilometres, on the sphere and for edges that are straight in
    /// longitude and latitude.
    pub fn area_km2(&self) -> f64 {
        self.areas_km2.iter().sum()
    }

    /// The `coordinates` of a GeoJSON `MultiPolygon`: polygons of closed rings of points
    /// `[longitude, latitude]`.
    pub fn coordinates(&self) -> &[Vec<Vec<[f64; 2]>>] {
        &self.coordinates
    }

    /// A GeoJSON geometry: a `Polygon` if there is one, otherwise a `MultiPolygon`.
    ///
    /// Coordinates are rounded to six decimals (11 cm); what is smaller collapses.
    pub fn to_geojson(&self) -> String {
        // Points that the rounding makes equal are written once, rings that it takes away
        // not at all.
        let ring = |points: &Ring| {
            let mut points: Vec<String> =
                points.iter().map(|[x, y]| format!("[{},{}]", number(*x), number(*y))).collect();
            points.dedup();
            (points.len() >= 4).then(|| format!("[{}]", points.join(",")))
        };
        let polygon = |rings: &Vec<Ring>| {
            let exterior = ring(&rings[0])?;
            let holes = rings[1..].iter().filter_map(ring);
            let rings: Vec<String> = std::iter::once(exterior).chain(holes).collect();
            Some(format!("[{}]", rings.join(",")))
        };
        let polygons: Vec<String> = self.coordinates.iter().filter_map(polygon).collect();
        let (kind, coordinates) = match &polygons[..] {
            [single] => ("Polygon", single.clone()),
            several => ("MultiPolygon", format!("[{}]", several.join(","))),
        };
        format!(r#"{{"type":"{kind}","coordinates":{coordinates}}}"#)
    }

    /// The area of the smallest polygon with a border in a rectangle, in square kilometres; polygons that share edges are one.
    pub(crate) fn smallest_polygon_km2(&self, rectangle: &Rectangle) -> f64 {
        self.edges().smallest_km2(rectangle)
    }

    /// How much of a rectangle is in a polygon, by 5 × 5 points.
    pub(crate) fn share(&self, rectangle: &Rectangle) -> f64 {
        let [longitudes, latitudes] = [0, 1].map(|axis| middles(rectangle.range(axis)));
        let rows = self.edges().enclosed(latitudes, longitudes);
        let inside: u32 = rows.iter().map(|row| row.count_ones()).sum();
        f64::from(inside) / (STEPS * STEPS) as f64
    }

    /// The same for the parts of a cell, one for each of its points.
    pub(crate) fn shares(&self, part: impl Fn(usize, usize) -> Rectangle) -> PointValues {
        const LINES: usize = STEPS * POINTS;
        // Rows of a cell go south, latitudes must ascend.
        let columns: [_; POINTS] = std::array::from_fn(|k| middles(part(0, k).range(0)));
        let rows: [_; POINTS] = std::array::from_fn(|k| middles(part(POINTS - 1 - k, 0).range(1)));
        let line = |lines: [[f64; STEPS]; POINTS]| -> [f64; LINES] {
            std::array::from_fn(|k| lines[k / STEPS][k % STEPS])
        };
        let marks = self.edges().enclosed(line(rows), line(columns));
        std::array::from_fn(|i| {
            let rows = &marks[STEPS * (POINTS - 1 - i)..][..STEPS];
            std::array::from_fn(|j| {
                let bits = ((1 << STEPS) - 1) << (STEPS * j);
                let inside: u32 = rows.iter().map(|row| (row & bits).count_ones()).sum();
                f64::from(inside) / (STEPS * STEPS) as f64
            })
        })
    }

    /// How the polygons cover the interior of a rectangle. An edge that two polygons share, one on
    /// each side, is no border; if they share only a part of an edge, that counts as cut.
    pub(crate) fn cover(&self, rectangle: &Rectangle) -> Cover {
        if self.edges().meet(rectangle) {
            return Cover::Cut;
        }
        let longitude = (rectangle.west + rectangle.east) / 2.0;
        let latitude = (rectangle.south + rectangle.north) / 2.0;
        if self.edges().enclose(longitude, latitude) { Cover::Inside } else { Cover::Outside }
    }
}

fn tangled(coordinates: &[Vec<Ring>], crowd: &Crowd) -> InvalidArea {
    let &Crowd { middle: [longitude, latitude], polygon, neighbors } = crowd;
    let points = coordinates[polygon].iter().map(Vec::len).sum();
    InvalidArea::Tangled { polygon, points, neighbors, latitude, longitude }
}

fn check_ring(polygon: usize, ring: usize, points: &[[f64; 2]]) -> Result<(), InvalidArea> {
    for (point, &[longitude, latitude]) in points.iter().enumerate() {
        if !(-90.0..=90.0).contains(&latitude) {
            return Err(InvalidArea::PointLatitude { polygon, ring, point, latitude });
        }
        // A place is looked for one turn to either side, which reaches to 540.
        if !(-540.0..=540.0).contains(&longitude) {
            return Err(InvalidArea::PointLongitude { polygon, ring, point, longitude });
        }
    }
    let mut distinct: Vec<[f64; 2]> = Vec::new();
    for point in points {
        if distinct.len() < 3 && !distinct.contains(point) {
            distinct.push(*point);
        }
    }
    if distinct.len() < 3 {
        return Err(InvalidArea::FewPoints { polygon, ring, distinct: distinct.len() });
    }
    let ([west, east], _) = extent(points);
    let span = east - west;
    if span > 360.0 + ROUNDING_DEGREES {
        return Err(InvalidArea::Span { polygon, ring, span });
    }
    Ok(())
}

/// The area of a polygon in square kilometres, if its rings fit each other.
fn check_polygon(polygon: usize, rings: &[Ring]) -> Result<f64, InvalidArea> {
    let [exterior, holes @ ..] = rings else { return Err(InvalidArea::NoRings { polygon }) };
    // A ring without area sums to what rounding leaves of terms that cancel.
    let (sum, sum_of_sizes) = edge_integrals(exterior)
        .fold((0.0, 0.0), |(sum, sizes), term: f64| (sum + term, sizes + term.abs()));
    if sum.abs() <= 1e-14 * sum_of_sizes {
        return Err(InvalidArea::NoArea { polygon });
    }
    let ([west, east], [south, north]) = extent(exterior);
    let beyond = |[from, to]: [f64; 2], [low, high]: [f64; 2]| {
        from < low - ROUNDING_DEGREES || to > high + ROUNDING_DEGREES
    };
    for (hole, points) in holes.iter().enumerate() {
        let (longitudes, latitudes) = extent(points);
        // Most likely the hole is written a full turn away, where it would cut nothing out.
        if beyond(longitudes, [west, east]) || beyond(latitudes, [south, north]) {
            return Err(InvalidArea::HoleOutside { polygon, ring: hole + 1, west, east });
        }
    }
    Ok(polygon_area_km2(sum.abs(), holes))
}

/// The middles of equal steps between two numbers.
fn middles([from, to]: [f64; 2]) -> [f64; STEPS] {
    std::array::from_fn(|k| from + (k as f64 + 0.5) / STEPS as f64 * (to - from))
}

/// Smallest and greatest longitude, smallest and greatest latitude.
fn extent(points: &[[f64; 2]]) -> ([f64; 2], [f64; 2]) {
    let along = |axis: usize| {
        let values = points.iter().map(move |point| point[axis]);
        [values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max)]
    };
    (along(0), along(1))
}

/// The area of a polygon without its holes.
fn polygon_area_km2(exterior_steradians: f64, holes: &[Ring]) -> f64 {
    let of_holes: f64 = holes.iter().map(|hole| steradians(hole)).sum();
    (exterior_steradians - of_holes).max(0.0) * EARTH_RADIUS_KM.powi(2)
}

/// Area that a ring encloses.
fn steradians(ring: &[[f64; 2]]) -> f64 {
    edge_integrals(ring).sum::<f64>().abs()
}

/// ∫ sin(latitude) d(longitude) along each edge, in radians. Around a ring their sum is the
/// enclosed area by Stokes' theorem, negative if the ring runs counterclockwise.
///
/// Where latitude is linear in longitude, the integral is the difference of longitudes times
/// the mean sine between the end latitudes φ − h and φ + h, which is sin φ · sin h / h. That
/// form has no cancellation, and its limit h → 0, an edge along a parallel, is plain; edges
/// along a meridian or a pole need no special care.
fn edge_integrals(ring: &[[f64; 2]]) -> impl Iterator<Item = f64> {
    ring.windows(2).map(|ends| {
        let ([x0, y0], [x1, y1]) = (ends[0], ends[1]);
        let (sin_middle, _) = sin_cos_degrees((y0 + y1) / 2.0);
        let half = ((y1 - y0) / 2.0).to_radians();
        let flattening = if half == 0.0 { 1.0 } else { half.sin() / half };
        (x1 - x0).to_radians() * sin_middle * flattening
    })
}

/// A number in JSON without needless zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.DECIMALS$}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rectangle(west: f64, south: f64, east: f64, north: f64) -> Ring {
        vec![[west, south], [east, south], [east, north], [west, north], [west, south]]
    }

    #[test]
    fn polygon_numbers_are_short_json() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (-1e-9, "0"),
            (100.0, "100"),
            (-179.5, "-179.5"),
            (12.3456789, "12.345679"),
            (1e-6, "0.000001"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn polygon_errors_name_the_place_and_the_value() {
        let error = |rings: Vec<Ring>| MultiPolygon::new(vec![rings]).unwrap_err().to_string();
        let hole = rectangle(-179.0, 1.0, -178.0, 2.0);
        assert_eq!(
            error(vec![rectangle(170.0, 0.0, 190.0, 10.0), hole]),
            "polygon 0, ring 1 is a hole that reaches beyond the exterior's latitudes or \
             longitudes; write it with longitudes between those of the exterior (170 to 190)"
        );
        assert_eq!(
            error(vec![rectangle(0.0, 0.0, 1.0, 100.0)]),
            "polygon 0, ring 0, point 2: latitude 100 is not between -90 and 90 degrees; \
             GeoJSON writes [longitude, latitude], are they swapped?"
        );
        assert!(error(vec![rectangle(-200.0, 0.0, 200.0, 1.0)]).contains("is 400 degrees"));
        assert!(error(vec![rectangle(0.0, 0.0, f64::NAN, 1.0)]).contains("longitude NaN"));
        assert!(error(vec![vec![[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]]).contains("has 2 distinct"));
        assert!(error(vec![vec![]]).contains("has 0 distinct"));
        assert!(error(vec![]).contains("has no ring"));
        assert!(MultiPolygon::new(vec![]).unwrap_err().to_string().contains("no polygon"));
        // Around the pole, but in the plane along a line and back.
        let parallel = [-180.0, -60.0, 60.0, 180.0].map(|longitude| [longitude, 60.1]);
        assert!(error(vec![parallel.to_vec()]).contains("encloses no area"));
    }

    #[test]
    fn polygon_share_counts_points_inside() {
        let triangle = vec![[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]];
        let polygon = MultiPolygon::of_polygon(vec![triangle]).unwrap();
        let share = |south, west, size: f64| {
            polygon.share(&Rectangle { south, west, north: south + size, east: west + size })
        };
        assert_eq!(share(1.0, 1.0, 2.0), 1.0);
        assert_eq!(share(6.0, 6.0, 2.0), 0.0);
        assert_eq!(share(-1.1, 2.0, 2.0), 0.4);
        assert_eq!(share(4.05, 4.0, 2.0), 0.4);
    }

    #[test]
    fn polygon_rings_are_closed() {
        let mut open = rectangle(0.0, 0.0, 1.0, 1.0);
        open.pop();
        let polygon = MultiPolygon::of_polygon(vec![open]).unwrap();
        assert_eq!(polygon.coordinates(), [vec![rectangle(0.0, 0.0, 1.0, 1.0)]]);
        assert_eq!(polygon, MultiPolygon::from_valid(polygon.coordinates().to_vec()));
    }
}
