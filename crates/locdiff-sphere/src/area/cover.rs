//! How circles and boxes cover the cells of a quadtree in latitude and longitude.

use super::{BoundingBox, Circle};
use crate::place::sin_cos_degrees;
use crate::{EARTH_RADIUS_KM, LatLon};

/// A rectangle of latitudes and longitudes in degrees, −180 ≤ west < east ≤ 180. It may
/// touch a pole, and is about its interior: what its sides do is of no account.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rectangle {
    pub(crate) south: f64,
    pub(crate) west: f64,
    pub(crate) north: f64,
    pub(crate) east: f64,
}

/// How an area covers the interior of a rectangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cover {
    /// The area contains all of it.
    Inside,
    /// The area contains nothing of it.
    Outside,
    /// Part of it, or it is too close to tell.
    Cut,
}

impl Cover {
    /// How much is covered, if so much is where it is cut.
    pub(super) fn share(self, of_cut: impl FnOnce() -> f64) -> f64 {
        match self {
            Cover::Inside => 1.0,
            Cover::Outside => 0.0,
            Cover::Cut => of_cut(),
        }
    }
}

impl Rectangle {
    pub(crate) fn middle(&self) -> LatLon {
        let latitude = (0.5 * (self.south + self.north)).clamp(-90.0, 90.0);
        LatLon::new(latitude, 0.5 * (self.west + self.east)).unwrap_or(LatLon::NORTH_POLE)
    }

    /// Its western and eastern longitude (axis 0), or southern and northern latitude (axis 1).
    pub(crate) fn range(&self, axis: usize) -> [f64; 2] {
        if axis == 0 { [self.west, self.east] } else { [self.south, self.north] }
    }

    /// The western and the eastern half if it is cut at a longitude (axis 0), the southern
    /// and the northern half if it is cut at a latitude (axis 1).
    pub(crate) fn halves(&self, axis: usize, at: f64) -> [Rectangle; 2] {
        if axis == 0 {
            [Rectangle { east: at, ..*self }, Rectangle { west: at, ..*self }]
        } else {
            [Rectangle { north: at, ..*self }, Rectangle { south: at, ..*self }]
        }
    }

    /// Whether the other one does not reach beyond it.
    pub(crate) fn contains(&self, other: &Rectangle) -> bool {
        self.south <= other.south
            && self.west <= other.west
            && other.north <= self.north
            && other.east <= self.east
    }
}

/// Distances are good to a nanometre; this is a micrometre.
const MARGIN_KM: f64 = 1e-9;

impl Circle {
    /// About how much of a small rectangle that the edge cuts is inside: the edge counts as
    /// straight there.
    pub(super) fn share(&self, rectangle: &Rectangle) -> f64 {
        let middle = rectangle.middle();
        let inside_km = self.radius_km - self.centre.distance_km(middle);
        // How far the distance varies over the rectangle.
        let (east, north) = sin_cos_degrees(middle.bearing_to(self.centre));
        let parallel = sin_cos_degrees(middle.latitude()).1;
        let height = (rectangle.north - rectangle.south).to_radians();
        let width = (rectangle.east - rectangle.west).to_radians() * parallel;
        let variation_km = EARTH_RADIUS_KM * (height * north.abs() + width * east.abs());
        (0.5 + inside_km / variation_km.max(MARGIN_KM)).clamp(0.0, 1.0)
    }

    pub(super) fn cover(&self, rectangle: &Rectangle) -> Cover {
        if self.is_whole() || self.farthest_km(rectangle) + MARGIN_KM <= self.radius_km {
            Cover::Inside
        } else if self.nearest_km(rectangle) - MARGIN_KM > self.radius_km {
            Cover::Outside
        } else {
            Cover::Cut
        }
    }

    /// Distance from the centre to the rectangle's nearest point.
    ///
    /// Along a parallel the distance grows with the difference of longitudes, so that point
    /// is on the meridian nearest to the centre's.
    fn nearest_km(&self, rectangle: &Rectangle) -> f64 {
        let meridian = self.centre.longitude();
        let offset = if (rectangle.west..=rectangle.east).contains(&meridian) {
            0.0
        } else {
            self.turn_to(rectangle.west).min(self.turn_to(rectangle.east))
        };
        self.distances_km(rectangle, offset, self.closest_latitude(offset))
            .fold(f64::INFINITY, f64::min)
    }

    /// Distance from the centre to the rectangle's farthest point.
    fn farthest_km(&self, rectangle: &Rectangle) -> f64 {
        let meridian = self.centre.longitude();
        let opposite = if meridian < 0.0 { meridian + 180.0 } else { meridian - 180.0 };
        let offset = if (rectangle.west..=rectangle.east).contains(&opposite) {
            180.0
        } else {
            self.turn_to(rectangle.west).max(self.turn_to(rectangle.east))
        };
        // Half a turn on from the closest point of the meridian's great circle.
        let closest = self.closest_latitude(offset);
        let farthest = if closest < 0.0 { closest + 180.0 } else { closest - 180.0 };
        self.distances_km(rectangle, offset, farthest).fold(0.0, f64::max)
    }

    /// Where the great circle that contains the meridian at `offset` degrees from the
    /// centre's comes closest to the centre; beyond ±90, on the far half of it.
    fn closest_latitude(&self, offset: f64) -> f64 {
        let (sin_latitude, cos_latitude) = sin_cos_degrees(self.centre.latitude());
        let (_, cos_offset) = sin_cos_degrees(offset);
        sin_latitude.atan2(cos_latitude * cos_offset).to_degrees()
    }

    /// The distances among which the extreme ones along a side of the rectangle are found:
    /// to its two ends, and to the stationary point if it is between them.
    fn distances_km(
        &self,
        rectangle: &Rectangle,
        offset: f64,
        stationary: f64,
    ) -> impl Iterator<Item = f64> {
        let latitudes =
            [rectangle.south, rectangle.north, stationary.clamp(rectangle.south, rectangle.north)];
        latitudes.into_iter().map(move |latitude| {
            let place = LatLon::new(latitude, self.centre.longitude() + offset)
                .expect("a rectangle lies between the poles");
            self.centre.distance_km(place)
        })
    }

    /// Degrees in [0, 180] between the centre's meridian and another.
    fn turn_to(&self, longitude: f64) -> f64 {
        let difference = (longitude - self.centre.longitude()).abs();
        difference.min((360.0 - difference).abs())
    }
}

impl BoundingBox {
    /// How much of a rectangle is inside, by degrees.
    pub(super) fn share(&self, rectangle: &Rectangle) -> f64 {
        let overlap = |a: (f64, f64), b: (f64, f64)| (a.1.min(b.1) - a.0.max(b.0)).max(0.0);
        let latitudes = (rectangle.south, rectangle.north);
        let longitudes = (rectangle.west, rectangle.east);
        let [south, west, north, east] = self.sides();
        let down = overlap((south, north), latitudes) / (latitudes.1 - latitudes.0);
        let right = if west <= east {
            overlap((west, east), longitudes)
        } else {
            overlap((west, 180.0), longitudes) + overlap((-180.0, east), longitudes)
        };
        down * right / (longitudes.1 - longitudes.0)
    }

    pub(super) fn cover(&self, rectangle: &Rectangle) -> Cover {
        let parts = if self.west <= self.east {
            [Some((self.west, self.east)), None]
        } else {
            [Some((self.west, 180.0)), Some((-180.0, self.east))]
        };
        let inside_latitudes = self.south <= rectangle.south && rectangle.north <= self.north;
        let outside_latitudes = self.north <= rectangle.south || rectangle.north <= self.south;
        let mut cover = Cover::Outside;
        for (west, east) in parts.into_iter().flatten() {
            if outside_latitudes || east <= rectangle.west || rectangle.east <= west {
                continue;
            }
            if inside_latitudes && west <= rectangle.west && rectangle.east <= east {
                return Cover::Inside;
            }
            cover = Cover::Cut;
        }
        cover
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{PI, TAU};

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::{Area, MultiPolygon, uniform_place};

    const WORLD: Rectangle = Rectangle { south: -90.0, west: -180.0, north: 90.0, east: 180.0 };

    fn quarters(r: Rectangle) -> [Rectangle; 4] {
        let (latitude, longitude) = ((r.south + r.north) / 2.0, (r.west + r.east) / 2.0);
        [
            Rectangle { north: latitude, east: longitude, ..r },
            Rectangle { north: latitude, west: longitude, ..r },
            Rectangle { south: latitude, east: longitude, ..r },
            Rectangle { south: latitude, west: longitude, ..r },
        ]
    }

    fn area_of(r: Rectangle) -> f64 {
        Area::bounding_box(r.south, r.west, r.north, r.east).unwrap().area_km2()
    }

    /// Areas that are certainly inside, and cut, after `depth` divisions.
    fn inside_and_cut(area: &Area, rectangle: Rectangle, depth: usize) -> (f64, f64) {
        match area.cover(&rectangle) {
            Cover::Inside => (area_of(rectangle), 0.0),
            Cover::Outside => (0.0, 0.0),
            Cover::Cut if depth == 0 => (0.0, area_of(rectangle)),
            Cover::Cut => quarters(rectangle)
                .map(|quarter| inside_and_cut(area, quarter, depth - 1))
                .into_iter()
                .fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1)),
        }
    }

    /// A ring around a point whose radius jumps about, at most `size` degrees of longitude;
    /// at a pole, half of one that runs back along the pole.
    fn star(rng: &mut ChaCha8Rng, [x, y]: [f64; 2], size: f64, points: usize) -> Vec<[f64; 2]> {
        let at_pole = y.abs() == 90.0;
        let turn =
            if at_pole { -PI * y.signum() / (points - 1) as f64 } else { TAU / points as f64 };
        let squeeze = if at_pole { 1.0 } else { (90.0 - y.abs()) / 180.0 };
        let mut ring: Vec<_> = (0..points)
            .map(|point| {
                let radius = size * rng.random_range(0.5..1.0);
                let (sin, cos) = (turn * point as f64).sin_cos();
                [x + radius * cos, (y + squeeze * radius * sin).clamp(-90.0, 90.0)]
            })
            .collect();
        ring.push(ring[0]);
        ring
    }

    /// One of each kind, of all sizes, at the antimeridian and the poles more than elsewhere.
    fn some_area(rng: &mut ChaCha8Rng) -> Area {
        let place = uniform_place(rng);
        let latitude = [place.latitude(), 90.0, -90.0, 0.0][rng.random_range(0..4)];
        let longitude = [place.longitude(), -180.0, 0.0, 179.9][rng.random_range(0..4)];
        match rng.random_range(0..4) {
            0 | 1 => {
                let centre = LatLon::new(latitude, longitude).unwrap();
                Area::circle(centre, 10f64.powf(rng.random_range(0.0..4.4))).unwrap()
            }
            2 => {
                let [a, b] = [latitude, rng.random_range(-89.0..89.0)];
                Area::bounding_box(
                    a.min(b),
                    longitude,
                    a.max(b) + 0.5,
                    rng.random_range(-180.0..180.0),
                )
                .unwrap_or_else(|_| Area::whole())
            }
            _ => {
                let size = 10f64.powf(rng.random_range(-1.0..2.2));
                let points = rng.random_range(3..200);
                let exterior = star(rng, [longitude, latitude], size, points);
                let hole = star(rng, [longitude, latitude], size * 0.2, points);
                Area::polygons(MultiPolygon::of_polygon(vec![exterior, hole]).unwrap())
            }
        }
    }

    #[test]
    fn area_cover_agrees_with_contains_and_area() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut counts = [0; 3];
        for _ in 0..300 {
            let area = some_area(&mut rng);
            for _ in 0..60 {
                // A cell near a place of the area's own, so that all three answers occur.
                let mut cell = WORLD;
                for _ in 0..rng.random_range(0..10) {
                    let parts = quarters(cell);
                    let cut = parts.iter().find(|part| area.cover(part) == Cover::Cut);
                    cell = match cut {
                        Some(&part) if rng.random_bool(0.6) => part,
                        _ => parts[rng.random_range(0..4)],
                    };
                }
                // Not only dyadic sides.
                if rng.random_bool(0.5) {
                    cell.north -= (cell.north - cell.south) * rng.random_range(0.0..0.9);
                    cell.west += (cell.east - cell.west) * rng.random_range(0.0..0.9);
                }
                let cover = area.cover(&cell);
                counts[cover as usize] += 1;
                for _ in 0..40 {
                    let latitude = rng.random_range(cell.south..cell.north);
                    let longitude = rng.random_range(cell.west..cell.east);
                    let contained = area.contains(LatLon::new(latitude, longitude).unwrap());
                    let possible = match cover {
                        Cover::Inside => contained,
                        Cover::Outside => !contained,
                        Cover::Cut => true,
                    };
                    assert!(possible, "{cover:?} {cell:?} {latitude},{longitude} {area:?}");
                }
            }
        }
        assert!(counts.iter().all(|&count| count > 500), "{counts:?}");
    }

    #[test]
    fn area_lies_between_its_inner_and_outer_cells() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for _ in 0..40 {
            let area = some_area(&mut rng);
            let (inside, cut) = inside_and_cut(&area, WORLD, 9);
            let size = area.area_km2();
            let slack = 1e-9 * size;
            assert!(inside <= size + slack && size <= inside + cut + slack, "{area:?}");
            // Cells that are cut lie along the edge, which is short but for a star's.
            let short = !matches!(area, Area::Polygons(_));
            assert!(!short || cut < 0.05 * size + 2e6, "{cut} of {size} cut: {area:?}");
        }
    }

    #[test]
    fn area_sides_along_cells_cut_nothing() {
        let ring = vec![[-90.0, 0.0], [45.0, 0.0], [45.0, 90.0], [-90.0, 90.0]];
        let shifted = ring.iter().map(|&[x, y]| [x + 360.0, y]).collect();
        let polygon = |ring| Area::polygons(MultiPolygon::of_polygon(vec![ring]).unwrap());
        let bounding_box = Area::bounding_box(0.0, -90.0, 90.0, 45.0).unwrap();
        for area in [polygon(ring), polygon(shifted), bounding_box] {
            let (inside, cut) = inside_and_cut(&area, WORLD, 3);
            assert_eq!(cut, 0.0, "{area:?}");
            assert!((inside / area.area_km2() - 1.0).abs() < 1e-12);
        }
        assert_eq!(Area::whole().cover(&WORLD), Cover::Inside);
        assert_eq!(Area::circle(LatLon::SOUTH_POLE, 3e4).unwrap().cover(&WORLD), Cover::Inside);
        let hemisphere = Area::circle(LatLon::SOUTH_POLE, 10_007.6).unwrap();
        let southern = Rectangle { north: 0.0, ..WORLD };
        assert_eq!(hemisphere.cover(&southern), Cover::Inside);
    }
}
