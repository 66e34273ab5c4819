//! The nearest of many places.

use crate::{LatLon, UnitVector};

/// Places in the order of their height above the plane of the equator. Places that are near each other
/// are near in height too, so a search walks away from its own height, up and down, and stops where
/// height alone is farther than what it has found. No tree, no cells, and no special case at the poles
/// or the antimeridian.
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
    /// From south to north.
    points: Vec<Point>,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    vector: [f64; 3],
    place: LatLon,
    number: usize,
}

/// Squared length of the chord between two unit vectors: grows with the angle between them, and is
/// exactly 0 for equal places.
fn squared_chord(a: [f64; 3], b: [f64; 3]) -> f64 {
    let [x, y, z] = std::array::from_fn(|axis| (a[axis] - b[axis]) * (a[axis] - b[axis]));
    x + y + z
}

impl PlaceIndex {
    /// An index of places, which are known by their position in the list.
    pub fn new(places: &[LatLon]) -> PlaceIndex {
        let numbered = places.iter().enumerate();
        let mut points: Vec<Point> = numbered
            .map(|(number, place)| Point {
                vector: UnitVector::from(*place).to_array(),
                place: *place,
                number,
            })
            .collect();
        points.sort_by(|a, b| a.vector[2].total_cmp(&b.vector[2]));
        PlaceIndex { points }
    }

    /// The nearest place and its distance in km; `None` if there are no places.
    pub fn nearest(&self, place: LatLon) -> Option<(usize, f64)> {
        let from = UnitVector::from(place).to_array();
        let mut best: Option<(f64, Point)> = None;
        for (point, squared_height) in self.outwards(from) {
            if best.is_some_and(|(chord, _)| squared_height > chord) {
                break;
            }
            let chord = squared_chord(from, point.vector);
            if best.is_none_or(|(least, _)| chord < least) {
                best = Some((chord, point));
            }
        }
        best.map(|(_, point)| (point.number, point.place.distance_km(place)))
    }

    /// The squared chord to the `count`-th nearest place, a place at `from` itself included; `None` if
    /// there are fewer places.
    pub(crate) fn squared_chord_to_nth(&self, from: [f64; 3], count: usize) -> Option<f64> {
        // The smallest so far, in order.
        let mut least: Vec<f64> = Vec::with_capacity(count + 1);
        for (point, squared_height) in self.outwards(from) {
            if least.len() == count && squared_height > least[count - 1] {
                break;
            }
            let chord = squared_chord(from, point.vector);
            let position = least.partition_point(|known| *known <= chord);
            least.insert(position, chord);
            least.truncate(count);
        }
        least.get(count.checked_sub(1)?).copied()
    }

    /// The numbers of the places strictly closer than a squared chord.
    pub(crate) fn closer_than(
        &self,
        from: [f64; 3],
        limit: f64,
    ) -> impl Iterator<Item = usize> + '_ {
        self.outwards(from)
            .take_while(move |(_, squared_height)| *squared_height < limit)
            .filter(move |(point, _)| squared_chord(from, point.vector) < limit)
            .map(|(point, _)| point.number)
    }

    /// All points, with the squares of their differences in height, from the least.
    fn outwards(&self, from: [f64; 3]) -> impl Iterator<Item = (Point, f64)> + '_ {
        let above = self.points.partition_point(|point| point.vector[2] < from[2]);
        let square = move |point: &Point| (point.vector[2] - from[2]) * (point.vector[2] - from[2]);
        let mut down = self.points[..above].iter().rev().peekable();
        let mut up = self.points[above..].iter().peekable();
        std::iter::from_fn(move || {
            let next = match (down.peek(), up.peek()) {
                (Some(lower), Some(higher)) if square(lower) < square(higher) => down.next(),
                (_, Some(_)) => up.next(),
                (_, None) => down.next(),
            };
            next.map(|point| (*point, square(point)))
        })
    }
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
                    let vector = UnitVector::from(places[*number]).to_array();
                    squared_chord(from, vector) < limit
                })
                .collect();
            assert_eq!(found, plain);
        }
        assert_eq!(PlaceIndex::new(&[]).nearest(LatLon::NORTH_POLE), None);
        assert_eq!(index.squared_chord_to_nth([0.0, 0.0, 1.0], places.len() + 1), None);
    }
}
