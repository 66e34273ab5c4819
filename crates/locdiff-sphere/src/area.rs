//! Parts of the Earth: circles, boxes and polygons.
//!
//! What a probability density can be restricted to. Each shape can test whether it contains a
//! place, how large it is, and (for integration over a quadtree of cells) whether a
//! rectangle of latitudes and longitudes lies inside it, outside it, or is cut by its edge.
//! Areas are on the sphere of radius [`EARTH_RADIUS_KM`]. Tested against closed forms and
//! Monte Carlo in `tests/areas.rs`.

mod cover;

use std::f64::consts::PI;

pub(crate) use cover::{Cover, Rectangle};

use crate::cells::PointValues;
use crate::place::sin_cos_degrees;
use crate::{EARTH_RADIUS_KM, LatLon, MultiPolygon};

const HALF_CIRCUMFERENCE_KM: f64 = PI * EARTH_RADIUS_KM;

/// A part of the Earth.
///
/// ```
/// use locdiff_sphere::{Area, LatLon};
///
/// let around_paris = Area::circle(LatLon::new(48.8566, 2.3522)?, 100.0)?;
/// assert!(around_paris.contains(LatLon::new(49.4, 2.1)?)); // Beauvais
/// assert!(!around_paris.contains(LatLon::new(45.76, 4.84)?)); // Lyon
///
/// // South, west, north, east: from west to east across the antimeridian.
/// let fiji = Area::bounding_box(-21.0, 176.5, -12.0, -178.0)?;
/// assert!(fiji.contains(LatLon::new(-16.8, -179.9)?)); // Taveuni
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Area {
    /// All places within a distance of a centre.
    Circle(Circle),
    /// All places between two latitudes and two longitudes.
    Box(BoundingBox),
    /// All places in any of several polygons.
    Polygons(MultiPolygon),
}

/// All places within a distance of a centre, made by [`Area::circle`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Circle {
    centre: LatLon,
    radius_km: f64,
}

/// All places between two latitudes and two longitudes, made by [`Area::bounding_box`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundingBox {
    south: f64,
    west: f64,
    north: f64,
    east: f64,
}

/// Why numbers are not an area. Polygons, rings and points are counted from 0.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidArea {
    /// The radius of a circle is not positive and finite.
    #[error("circle radius {0} km is not a positive, finite number of kilometers")]
    Radius(f64),
    /// A latitude of a box is not a number between −90 and 90.
    #[error("box latitude {0} is not between -90 and 90 degrees")]
    Latitude(f64),
    /// A longitude of a box is not a number between −180 and 180.
    #[error(
        "box longitude {0} is not between -180 and 180 degrees; a box across the antimeridian \
         has its west greater than its east, for example west 170 and east -170"
    )]
    Longitude(f64),
    /// A box has no height: its south is not south of its north.
    #[error("the box's south {south} is not less than its north {north}; are they swapped?")]
    NoHeight {
        /// Latitude of the southern side, in degrees.
        south: f64,
        /// Latitude of the northern side, in degrees.
        north: f64,
    },
    /// A box has no width: its west is its east.
    #[error(
        "the box from west {west} to east {east} has no width; all longitudes are west -180 \
         and east 180"
    )]
    NoWidth {
        /// Longitude of the western side, in degrees.
        west: f64,
        /// Longitude of the eastern side, in degrees.
        east: f64,
    },
    /// There are no polygons.
    #[error("there is no polygon; give at least one")]
    NoPolygons,
    /// A polygon has no rings.
    #[error("polygon {polygon} has no ring; give at least its exterior")]
    NoRings {
        /// Index of the polygon.
        polygon: usize,
    },
    /// A point's latitude is not a number between −90 and 90.
    #[error(
        "polygon {polygon}, ring {ring}, point {point}: latitude {latitude} is not between -90 \
         and 90 degrees; GeoJSON writes [longitude, latitude], are they swapped?"
    )]
    PointLatitude {
        /// Index of the polygon.
        polygon: usize,
        /// Index of the ring in the polygon.
        ring: usize,
        /// Which point of the ring.
        point: usize,
        /// The latitude in degrees.
        latitude: f64,
    },
    /// A point's longitude is not a number between −540 and 540.
    #[error(
        "polygon {polygon}, ring {ring}, point {point}: longitude {longitude} is not between \
         -540 and 540 degrees; add or subtract full turns of 360"
    )]
    PointLongitude {
        /// Index of the polygon.
        polygon: usize,
        /// Index of the ring in the polygon.
        ring: usize,
        /// Which point of the ring.
        point: usize,
        /// The longitude in degrees.
        longitude: f64,
    },
    /// A ring has fewer than three distinct points.
    #[error(
        "polygon {polygon}, ring {ring} has {distinct} distinct points; a ring needs at least 3"
    )]
    FewPoints {
        /// Index of the polygon.
        polygon: usize,
        /// Index of the ring in the polygon.
        ring: usize,
        /// How many distinct points it has.
        distinct: usize,
    },
    /// A ring is more than once round the Earth wide.
    #[error(
        "polygon {polygon}, ring {ring} is {span} degrees of longitude wide, more than 360; \
         cut it into several polygons"
    )]
    Span {
        /// Index of the polygon.
        polygon: usize,
        /// Index of the ring in the polygon.
        ring: usize,
        /// Its width in degrees of longitude.
        span: f64,
    },
    /// The points of a polygon's exterior are on one line.
    #[error(
        "the exterior of polygon {polygon} encloses no area; remove the polygon, or, if it was \
         to enclose a pole, let its ring run along latitude 90 or -90"
    )]
    NoArea {
        /// Index of the polygon.
        polygon: usize,
    },
    /// There are too many points.
    #[error("the polygons have {points} points, at most {most} are accepted; simplify them")]
    ManyPoints {
        /// How many points there are.
        points: usize,
        /// Number of polygons that are allowed.
        most: usize,
    },
    /// Edges pass by each other too closely and too often.
    #[error(
        "the polygons are too tangled: on average, an edge passes closely by more than \
         {neighbors} others, as at latitude {latitude:.4}, longitude {longitude:.4}; most edges \
         there belong to polygon {polygon}, which has {points} points. Do edges cross each \
         other? Simplify the polygon"
    )]
    Tangled {
        /// Index of the polygon that has too many points.
        polygon: usize,
        /// Number of its points.
        points: usize,
        /// More edges than this are near an edge, on average.
        neighbors: usize,
        /// Latitude of a place where many edges pass, in degrees.
        latitude: f64,
        /// Longitude of that place, in degrees.
        longitude: f64,
    },
    /// A hole reaches beyond the latitudes or longitudes of the exterior.
    #[error(
        "polygon {polygon}, ring {ring} is a hole that reaches beyond the exterior's latitudes \
         or longitudes; write it with longitudes between those of the exterior ({west} to {east})"
    )]
    HoleOutside {
        /// Index of the polygon.
        polygon: usize,
        /// Index of the ring in the polygon.
        ring: usize,
        /// The smallest longitude of the exterior, in degrees.
        west: f64,
        /// The greatest longitude of the exterior, in degrees.
        east: f64,
    },
}

impl Area {
    /// Area of the whole Earth.
    pub(crate) const WHOLE_KM2: f64 = 4.0 * PI * EARTH_RADIUS_KM * EARTH_RADIUS_KM;

    /// All places within `radius_km` of `centre`. The radius must be positive and finite;
    /// from half the Earth's circumference (20015 km) on, the circle is the whole sphere.
    pub fn circle(centre: LatLon, radius_km: f64) -> Result<Area, InvalidArea> {
        if !(radius_km > 0.0 && radius_km.is_finite()) {
            return Err(InvalidArea::Radius(radius_km));
        }
        Ok(Area::Circle(Circle { centre, radius_km }))
    }

    /// All places from `south` to `north` and from `west` eastwards to `east`, in degrees,
    /// as in a GeoJSON `bbox` (whose order, though, is west, south, east, north).
    ///
    /// West greater than east means across the antimeridian; −180 to 180 means all
    /// longitudes.
    pub fn bounding_box(south: f64, west: f64, north: f64, east: f64) -> Result<Area, InvalidArea> {
        for latitude in [south, north] {
            if !(-90.0..=90.0).contains(&latitude) {
                return Err(InvalidArea::Latitude(latitude));
            }
        }
        for longitude in [west, east] {
            if !(-180.0..=180.0).contains(&longitude) {
                return Err(InvalidArea::Longitude(longitude));
            }
        }
        if south >= north {
            return Err(InvalidArea::NoHeight { south, north });
        }
        let rectangle = BoundingBox { south, west, north, east };
        if rectangle.width_degrees() <= 0.0 {
            return Err(InvalidArea::NoWidth { west, east });
        }
        Ok(Area::Box(rectangle))
    }

    /// All places in any of the polygons.
    pub fn polygons(polygons: MultiPolygon) -> Area {
        Area::Polygons(polygons)
    }

    /// The whole Earth.
    pub fn whole() -> Area {
        Area::Box(BoundingBox { south: -90.0, west: -180.0, north: 90.0, east: 180.0 })
    }

    /// Whether the place is in the area. Circles and boxes include their edge; for polygons
    /// see [`MultiPolygon::contains`].
    pub fn contains(&self, place: LatLon) -> bool {
        match self {
            Area::Circle(circle) => circle.contains(place),
            Area::Box(rectangle) => rectangle.contains(place),
            Area::Polygons(polygons) => polygons.contains(place),
        }
    }

    /// Its size in square kilometres.
    pub fn area_km2(&self) -> f64 {
        match self {
            Area::Circle(circle) => circle.area_km2(),
            Area::Box(rectangle) => rectangle.area_km2(),
            Area::Polygons(polygons) => polygons.area_km2(),
        }
    }

    /// A length such that cells of that size see what of the area meets a rectangle: a
    /// circle's diameter, a box's smaller side, the side of a square as large as the
    /// smallest polygon there. Long and thin polygons are narrower than that.
    pub(crate) fn narrowest_km(&self, rectangle: &Rectangle) -> f64 {
        match self {
            Area::Circle(circle) => 2.0 * circle.radius_km.min(HALF_CIRCUMFERENCE_KM / 2.0),
            Area::Box(bounding_box) => bounding_box.smaller_side_km(),
            Area::Polygons(polygons) => polygons.smallest_polygon_km2(rectangle).sqrt(),
        }
    }

    /// About how much of a small rectangle is covered, 0 to 1.
    pub(crate) fn share(&self, rectangle: &Rectangle) -> f64 {
        match self {
            Area::Circle(circle) => circle.cover(rectangle).share(|| circle.share(rectangle)),
            Area::Box(sides) => sides.cover(rectangle).share(|| sides.share(rectangle)),
            Area::Polygons(polygons) => polygons.share(rectangle),
        }
    }

    /// [`share`](Self::share) of the parts of a cell, one for each of its points.
    pub(crate) fn shares(&self, part: impl Fn(usize, usize) -> Rectangle) -> PointValues {
        if let Area::Polygons(polygons) = self {
            return polygons.shares(part);
        }
        std::array::from_fn(|i| std::array::from_fn(|j| self.share(&part(i, j))))
    }

    /// How the area covers the interior of a rectangle. `Inside` and `Outside` are certain;
    /// for polygons, and within a micrometre of a circle's edge, `Cut` may be too careful.
    pub(crate) fn cover(&self, rectangle: &Rectangle) -> Cover {
        match self {
            Area::Circle(circle) => circle.cover(rectangle),
            Area::Box(bounding_box) => bounding_box.cover(rectangle),
            Area::Polygons(polygons) => polygons.cover(rectangle),
        }
    }
}

impl Circle {
    /// Middle of the circle, on the sphere.
    pub fn centre(&self) -> LatLon {
        self.centre
    }

    /// The radius along the surface, in kilometres.
    pub fn radius_km(&self) -> f64 {
        self.radius_km
    }

    fn contains(&self, place: LatLon) -> bool {
        // The distance of antipodes may be rounded up beyond half the circumference.
        self.is_whole() || self.centre.distance_km(place) <= self.radius_km
    }

    fn is_whole(&self) -> bool {
        self.radius_km >= HALF_CIRCUMFERENCE_KM
    }

    fn area_km2(&self) -> f64 {
        let angle = self.radius_km.min(HALF_CIRCUMFERENCE_KM) / EARTH_RADIUS_KM;
        // 2π (1 − cos) without its loss of digits for small circles.
        4.0 * PI * ((angle / 2.0).sin() * EARTH_RADIUS_KM).powi(2)
    }
}

impl BoundingBox {
    /// South, west, north and east, in degrees; west is greater than east if the box lies
    /// across the antimeridian.
    pub fn sides(&self) -> [f64; 4] {
        [self.south, self.west, self.north, self.east]
    }

    fn contains(&self, place: LatLon) -> bool {
        let (latitude, longitude) = (place.latitude(), place.longitude());
        let between = |longitude: f64| {
            let (after_west, before_east) = (self.west <= longitude, longitude <= self.east);
            if self.west <= self.east {
                after_west && before_east
            } else {
                after_west || before_east
            }
        };
        // A place on the antimeridian is written as −180, a box may end at 180.
        (self.south..=self.north).contains(&latitude)
            && (between(longitude) || longitude == -180.0 && between(180.0))
    }

    fn area_km2(&self) -> f64 {
        // sin north − sin south without its loss of digits for small boxes.
        let (_, cos_middle) = sin_cos_degrees((self.north + self.south) / 2.0);
        let (sin_half, _) = sin_cos_degrees((self.north - self.south) / 2.0);
        let height = 2.0 * cos_middle * sin_half;
        self.width_degrees().to_radians() * height * EARTH_RADIUS_KM.powi(2)
    }

    fn width_degrees(&self) -> f64 {
        let across = if self.west > self.east { 360.0 } else { 0.0 };
        self.east - self.west + across
    }

    /// The smaller of height and width, the width where it is greatest: a box at a pole has
    /// none at the pole.
    fn smaller_side_km(&self) -> f64 {
        let widest_latitude = 0.0_f64.clamp(self.south, self.north);
        let (_, cos_latitude) = sin_cos_degrees(widest_latitude);
        let width = self.width_degrees() * cos_latitude;
        width.min(self.north - self.south).to_radians() * EARTH_RADIUS_KM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_narrowest_lengths() {
        let degree_km = HALF_CIRCUMFERENCE_KM / 180.0;
        let near = |area: Area, expected: f64| {
            let all = Rectangle { south: -90.0, west: -180.0, north: 90.0, east: 180.0 };
            let ratio = area.narrowest_km(&all) / expected;
            assert!((ratio - 1.0).abs() < 1e-3, "{area:?}: {ratio} of the expected {expected}");
        };
        near(Area::circle(LatLon::NORTH_POLE, 50.0).unwrap(), 100.0);
        near(Area::circle(LatLon::NORTH_POLE, 1e9).unwrap(), HALF_CIRCUMFERENCE_KM);
        near(Area::whole(), HALF_CIRCUMFERENCE_KM);
        near(Area::bounding_box(-60.0, 179.0, 60.0, -179.0).unwrap(), 2.0 * degree_km);
        near(Area::bounding_box(60.0, 0.0, 90.0, 1.0).unwrap(), 0.5 * degree_km);
        let side =
            |size: f64| vec![vec![[5.0, 0.0], [5.0 + size, 0.0], [5.0 + size, size], [5.0, size]]];
        let two = MultiPolygon::new(vec![side(1.0), side(0.1)]).unwrap();
        near(Area::polygons(two), 0.1 * degree_km);
    }
}
