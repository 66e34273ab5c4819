//! Polygons in longitude and latitude, as GeoJSON writes them (RFC 7946, section 3.1.7).
//!
//! Edges are straight in the plane of longitude and latitude, not great circles: the edge
//! between two points of equal latitude runs along the parallel. A ring that jumps from
//! longitude 179 to −179 therefore runs the long way round, through 0; to cross the
//! antimeridian, write 179 to 181, or cut the polygon there in two. To enclose a pole, run
//! along latitude ±90, for example 0,60 → 360,60 → 360,90 → 0,90.

mod edges;
mod great_circles;

use edges::EdgeIndex;

use crate::area::{Cover, InvalidArea, Rectangle};
use crate::place::sin_cos_degrees;
use crate::{EARTH_RADIUS_KM, LatLon};

/// A closed line: its last point equals its first. Points are [longitude, latitude].
type Ring = Vec<[f64; 2]>;

/// Coordinates are written with this many decimals: a millionth of a degree, 11 cm.
const DECIMALS: usize = 6;
/// What rounding to that many decimals may do to a width.
const ROUNDING_DEGREES: f64 = 1e-6;

/// One or more polygons with holes: a GeoJSON `MultiPolygon`.
///
/// Unlike everywhere else in this crate, positions are **longitude first**, in degrees, so
/// that GeoJSON coordinates go in and come out as they are.
///
/// Edges are straight in longitude and latitude, as RFC 7946 says: a ring that jumps from
/// longitude 179 to −179 runs the long way round, through 0. To cross the antimeridian,
/// write 179 to 181, or cut the polygon in two; to enclose a pole, run along latitude ±90.
///
/// Rings must not cross themselves or each other, and polygons must not overlap. That is
/// not checked; where they do, [`contains`](Self::contains) still follows the even-odd rule,
/// but the areas are not its.
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
#[derive(Debug, Clone, PartialEq)]
pub struct MultiPolygon {
    coordinates: Vec<Vec<Ring>>,
    edges: EdgeIndex,
    /// The area of each polygon, without its holes.
    areas_km2: Vec<f64>,
    /// Longitudes and latitudes that each polygon lies between.
    boxes: Vec<([f64; 2], [f64; 2])>,
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
        let mut coordinates = coordinates;
        for (polygon, rings) in coordinates.iter_mut().enumerate() {
            for (ring, points) in rings.iter_mut().enumerate() {
                check_ring(polygon, ring, points)?;
                if points.first() != points.last() {
                    points.extend(points.first().copied());
                }
            }
            check_polygon(polygon, rings)?;
        }
        Ok(MultiPolygon::from_valid(coordinates))
    }

    /// From the `coordinates` of a GeoJSON `Polygon`: its exterior, then holes; see
    /// [`new`](Self::new).
    pub fn of_polygon(rings: Vec<Vec<[f64; 2]>>) -> Result<MultiPolygon, InvalidArea> {
        MultiPolygon::new(vec![rings])
    }

    /// From coordinates that would pass the checks of [`new`](Self::new), with closed rings.
    pub(crate) fn from_valid(coordinates: Vec<Vec<Vec<[f64; 2]>>>) -> MultiPolygon {
        let edges = EdgeIndex::new(&coordinates);
        let areas_km2 = coordinates.iter().map(|rings| polygon_area_km2(rings)).collect();
        let boxes = coordinates.iter().map(|rings| extent(&rings[0])).collect();
        MultiPolygon { coordinates, edges, areas_km2, boxes }
    }

    /// Whether the place is inside the exterior of a polygon and not in its holes.
    ///
    /// A place on an edge may count as in or out; of two polygons that share the edge, one
    /// contains it.
    pub fn contains(&self, place: LatLon) -> bool {
        self.edges.enclose(place.longitude(), place.latitude())
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

    /// The area of the smallest polygon whose box meets a rectangle, in square kilometres.
    pub(crate) fn smallest_polygon_km2(&self, rectangle: &Rectangle) -> f64 {
        let meets = |boxes: &([f64; 2], [f64; 2])| {
            let ([west, east], [south, north]) = *boxes;
            let turned = |turn: f64| rectangle.west + turn < east && rectangle.east + turn > west;
            rectangle.south < north
                && rectangle.north > south
                && [-360.0, 0.0, 360.0].into_iter().any(turned)
        };
        let polygons = self.areas_km2.iter().zip(&self.boxes).filter(|(_, boxes)| meets(boxes));
        polygons.fold(f64::INFINITY, |smallest, (area, _)| smallest.min(*area))
    }

    /// How the polygons cover the interior of a rectangle. A rectangle that lies on both
    /// sides of an edge shared by two polygons counts as cut.
    pub(crate) fn cover(&self, rectangle: &Rectangle) -> Cover {
        if self.edges.meet(rectangle) {
            return Cover::Cut;
        }
        let longitude = (rectangle.west + rectangle.east) / 2.0;
        let latitude = (rectangle.south + rectangle.north) / 2.0;
        if self.edges.enclose(longitude, latitude) { Cover::Inside } else { Cover::Outside }
    }
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

fn check_polygon(polygon: usize, rings: &[Ring]) -> Result<(), InvalidArea> {
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
    Ok(())
}

/// Smallest and greatest longitude, smallest and greatest latitude.
fn extent(points: &[[f64; 2]]) -> ([f64; 2], [f64; 2]) {
    let along = |axis: usize| {
        let values = points.iter().map(move |point| point[axis]);
        [values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max)]
    };
    (along(0), along(1))
}

fn polygon_area_km2(rings: &[Ring]) -> f64 {
    let areas = rings.iter().map(|ring| edge_integrals(ring).sum::<f64>().abs());
    let steradians = areas.reduce(|exterior, hole| exterior - hole).unwrap_or(0.0);
    steradians.max(0.0) * EARTH_RADIUS_KM.powi(2)
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
    fn polygon_rings_are_closed() {
        let mut open = rectangle(0.0, 0.0, 1.0, 1.0);
        open.pop();
        let polygon = MultiPolygon::of_polygon(vec![open]).unwrap();
        assert_eq!(polygon.coordinates(), [vec![rectangle(0.0, 0.0, 1.0, 1.0)]]);
        assert_eq!(polygon, MultiPolygon::from_valid(polygon.coordinates().to_vec()));
    }
}
