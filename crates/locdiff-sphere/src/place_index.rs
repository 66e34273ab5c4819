//! The nearest of many places, and all within a circle.

use std::ops::Range;

use crate::{LatLon, UnitVector};

/// Places in rings of equal latitude, in each by longitude, so that a query looks at few places
/// beyond those that it finds.
///
/// ```
/// use locdiff_sphere::{LatLon, PlaceIndex};
///
/// let suva = LatLon::new(-18.14, 178.44)?;
/// let apia = LatLon::new(-13.83, -171.77)?;
/// let index = PlaceIndex::new(&[suva, apia]);
/// let (nearest, distance_km) = index.nearest(LatLon::new(-17.0, -179.9)?).expect("not empty");
/// assert_eq!((nearest, distance_km.round()), (0, 217.0));
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
#[derive(Debug, Clone)]
pub struct PlaceIndex {
    /// Where each ring's points begin, from south to north, and where the last end.
    starts: Vec<usize>,
    points: Vec<Point>,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    place: LatLon,
    vector: UnitVector,
    number: usize,
}

impl Point {
    /// Squared length of the chord to a vector: grows with the angle between them, and is exactly 0 for
    /// equal places.
    fn squared_chord(&self, from: [f64; 3]) -> f64 {
        let to = self.vector.to_array();
        let [x, y, z] =
            std::array::from_fn(|axis| (from[axis] - to[axis]) * (from[axis] - to[axis]));
        x + y + z
    }
}

/// Wider than any circle.
const EVERYWHERE: f64 = 4.0;

impl PlaceIndex {
    /// An index of places, which are known by their position in the list.
    pub fn new(places: &[LatLon]) -> PlaceIndex {
        let rings = (places.len() as f64).sqrt().ceil().clamp(1.0, 1000.0) as usize;
        let mut points: Vec<(usize, Point)> = places
            .iter()
            .enumerate()
            .map(|(number, &place)| {
                let vector = UnitVector::from(place);
                (ring_of(place.latitude(), rings), Point { place, vector, number })
            })
            .collect();
        let longitude = |point: &Point| point.place.longitude();
        points.sort_by(|(a, p), (b, q)| a.cmp(b).then(longitude(p).total_cmp(&longitude(q))));
        let starts = (0..=rings).map(|ring| points.partition_point(|(of, _)| *of < ring)).collect();
        PlaceIndex { starts, points: points.into_iter().map(|(_, point)| point).collect() }
    }

    /// The nearest place and its distance in km; `None` if there are no places.
    pub fn nearest(&self, place: LatLon) -> Option<(usize, f64)> {
        let from = UnitVector::from(place).to_array();
        let nearest = self
            .widening(place, 1)?
            .into_iter()
            .min_by(|a, b| a.squared_chord(from).total_cmp(&b.squared_chord(from)));
        nearest.map(|point| (point.number, point.place.distance_km(place)))
    }

    /// The squared chord to the `count`-th nearest place, a place at `from` itself included; `None` if
    /// there are fewer places.
    pub(crate) fn squared_chord_to_nth(&self, from: [f64; 3], count: usize) -> Option<f64> {
        let place = LatLon::from(UnitVector::from_direction(from)?);
        let near = self.widening(place, count)?;
        let mut chords: Vec<f64> = near.iter().map(|point| point.squared_chord(from)).collect();
        chords.sort_by(f64::total_cmp);
        chords.get(count.checked_sub(1)?).copied()
    }

    /// The numbers of the places strictly closer than a squared chord.
    pub(crate) fn closer_than(
        &self,
        from: [f64; 3],
        limit: f64,
    ) -> impl Iterator<Item = usize> + '_ {
        let place = UnitVector::from_direction(from).map_or(LatLon::NORTH_POLE, LatLon::from);
        let angle = 2.0 * (0.5 * limit.sqrt()).min(1.0).asin() + 1e-9;
        self.around(place, if limit >= 4.0 { EVERYWHERE } else { angle })
            .filter(move |point| point.squared_chord(from) < limit)
            .map(|point| point.number)
    }

    /// The number of each place, in the order in which the index holds them.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.points.iter().map(|point| point.number)
    }

    /// Hears position in the index, direction and squared chord of each place closer to a direction than an angle (radians,
    /// strictly).
    pub(crate) fn for_each_near(
        &self,
        from: UnitVector,
        angle: f64,
        mut hear: impl FnMut(usize, [f64; 3], f64),
    ) {
        let (centre, limit) = (from.to_array(), squared_chord_of(angle));
        for range in self.ranges(LatLon::from(from), angle) {
            for (position, point) in range.clone().zip(&self.points[range]) {
                let squared_chord = point.squared_chord(centre);
                if squared_chord < limit {
                    hear(position, point.vector.to_array(), squared_chord);
                }
            }
        }
    }

    /// The numbers of the places closer to `place` than `angle` (radians, strictly).
    pub(crate) fn within(&self, place: LatLon, angle: f64) -> impl Iterator<Item = usize> {
        let centre = UnitVector::from(place).to_array();
        let limit = squared_chord_of(angle);
        self.around(place, angle)
            .filter(move |point| point.squared_chord(centre) < limit)
            .map(|point| point.number)
    }

    /// At least so many places around one, if there are so many: all that are within some circle.
    fn widening(&self, place: LatLon, count: usize) -> Option<Vec<Point>> {
        // The radius of a circle that holds so many if they are spread evenly.
        let mut angle = 2.0 * (count as f64 / self.points.len().max(1) as f64).sqrt();
        loop {
            let found: Vec<Point> = self.around(place, angle).copied().collect();
            // The filter of `around` lets a few through that are just outside; those inside are all there.
            let centre = UnitVector::from(place).to_array();
            let limit = squared_chord_of(angle);
            let inside = found.iter().filter(|point| point.squared_chord(centre) < limit).count();
            if inside >= count {
                return Some(found);
            }
            if angle >= EVERYWHERE {
                return None;
            }
            angle = (2.0 * angle).min(EVERYWHERE);
        }
    }

    /// The places within an angle, and perhaps a few that are just outside.
    fn around(&self, place: LatLon, angle: f64) -> impl Iterator<Item = &Point> {
        let centre = UnitVector::from(place);
        // Most points of the ranges are near, and the cosine tells the others cheaply.
        let far = angle.min(std::f64::consts::PI).cos() - 1e-9;
        self.ranges(place, angle)
            .flat_map(|range| &self.points[range])
            .filter(move |point| point.vector.dot(centre) > far)
    }

    /// Where places within an angle are.
    fn ranges(&self, place: LatLon, angle: f64) -> impl Iterator<Item = Range<usize>> {
        let margin = angle.to_degrees() * (1.0 + 1e-9) + 1e-9;
        let (south, north) = (place.latitude() - margin, place.latitude() + margin);
        // The farthest that a circle reaches to the east and west; all round if it holds a pole.
        let sine = margin.to_radians().sin() / place.latitude().to_radians().cos().max(1e-300);
        let span = if south <= -90.0 || north >= 90.0 || sine >= 1.0 {
            360.0
        } else {
            sine.asin().to_degrees() + 1e-9
        };
        let rings = self.starts.len() - 1;
        (ring_of(south, rings)..=ring_of(north, rings))
            .flat_map(move |ring| self.between(ring, place.longitude(), span))
    }

    /// The points of a ring within a span of a longitude: one range, or two at the antimeridian.
    fn between(&self, ring: usize, longitude: f64, span: f64) -> [Range<usize>; 2] {
        let (first, last) = (self.starts[ring], self.starts[ring + 1]);
        let points = &self.points[first..last];
        let from = |longitude: f64| {
            first + points.partition_point(|point| point.place.longitude() < longitude)
        };
        let to = |longitude: f64| {
            first + points.partition_point(|point| point.place.longitude() <= longitude)
        };
        let (west, east) = (longitude - span, longitude + span);
        match () {
            () if span >= 180.0 => [first..last, last..last],
            () if west < -180.0 => [first..to(east), from(west + 360.0)..last],
            () if east > 180.0 => [first..to(east - 360.0), from(west)..last],
            () => [from(west)..to(east), last..last],
        }
    }
}

/// Squared length of the chord between points that are an angle apart; more than any if that is half a turn.
fn squared_chord_of(angle: f64) -> f64 {
    if angle >= std::f64::consts::PI { EVERYWHERE + 1.0 } else { 4.0 * (0.5 * angle).sin().powi(2) }
}

/// The ring of a latitude, which may lie beyond a pole.
fn ring_of(latitude: f64, rings: usize) -> usize {
    (((latitude + 90.0) / 180.0 * rings as f64) as usize).min(rings - 1)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::uniform_place;

    fn places() -> Vec<LatLon> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let at = |latitude, longitude| LatLon::new(latitude, longitude).expect("a place");
        let mut places: Vec<LatLon> = (0..500).map(|_| uniform_place(&mut rng)).collect();
        places.extend([at(90.0, 0.0), at(-90.0, 77.0), at(0.0, 180.0), at(10.0, -179.99)]);
        places.extend([at(0.0, 179.99), at(0.0, -179.99), at(45.0, 9.0), at(45.0, 9.0)]);
        places
    }

    #[test]
    fn it_finds_what_a_look_at_every_place_finds() {
        let places = places();
        let index = PlaceIndex::new(&places);
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let mut centres: Vec<LatLon> = (0..100).map(|_| uniform_place(&mut rng)).collect();
        centres.extend_from_slice(&places[500..]);
        for centre in centres {
            let mut by_distance: Vec<(f64, usize)> = places
                .iter()
                .enumerate()
                .map(|(number, place)| (place.distance_km(centre), number))
                .collect();
            by_distance.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (_, distance_km) = index.nearest(centre).expect("there are places");
            assert!((distance_km - by_distance[0].0).abs() < 1e-9);
            let from = UnitVector::from(centre).to_array();
            for count in [1, 2, 4, 50] {
                let chord = index.squared_chord_to_nth(from, count).expect("enough");
                let angle = 2.0 * (0.5 * chord.sqrt()).asin();
                let expected = by_distance[count - 1].0 / crate::EARTH_RADIUS_KM;
                assert!((angle - expected).abs() < 1e-9, "{angle} {expected}");
            }
            let limit = 0.01;
            let mut found: Vec<usize> = index.closer_than(from, limit).collect();
            found.sort_unstable();
            let plain: Vec<usize> = (0..places.len())
                .filter(|number| {
                    let to = UnitVector::from(places[*number]).to_array();
                    let squares = (0..3).map(|axis| (from[axis] - to[axis]).powi(2));
                    squares.sum::<f64>() < limit
                })
                .collect();
            assert_eq!(found, plain);
        }
        assert_eq!(PlaceIndex::new(&[]).nearest(LatLon::NORTH_POLE), None);
        assert_eq!(index.squared_chord_to_nth([0.0, 0.0, 1.0], places.len() + 1), None);
    }

    #[test]
    fn circles_hold_what_a_look_at_every_place_finds() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let at = |latitude, longitude| LatLon::new(latitude, longitude).expect("a place");
        let mut places: Vec<LatLon> = (0..2000).map(|_| uniform_place(&mut rng)).collect();
        // Poles, the antimeridian from both sides, and the same place twice.
        places.extend([at(90.0, 0.0), at(-90.0, 77.0), at(0.0, 180.0), at(10.0, -180.0)]);
        places.extend([at(0.0, 179.99), at(0.0, -179.99), at(45.0, 9.0), at(45.0, 9.0)]);
        let index = PlaceIndex::new(&places);
        let mut centres: Vec<LatLon> = (0..60).map(|_| uniform_place(&mut rng)).collect();
        centres.extend_from_slice(&places[2000..]);
        for centre in centres {
            for angle in [1e-9, 0.001, 0.05, 0.4, 1.5, 3.0, 4.0] {
                let mut found: Vec<usize> = index.within(centre, angle).collect();
                found.sort_unstable();
                let all = places.iter().enumerate();
                let plain: Vec<usize> = all
                    .filter(|(_, place)| {
                        UnitVector::from(**place).angle_to(UnitVector::from(centre)) < angle
                    })
                    .map(|(number, _)| number)
                    .collect();
                assert_eq!(found, plain, "{angle} around {centre}");
            }
        }
        assert_eq!(PlaceIndex::new(&[]).within(at(0.0, 0.0), 1.0).count(), 0);
    }
}
