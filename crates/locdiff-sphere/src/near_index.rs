//! Finds the points within a distance of a place.

use std::ops::Range;

use crate::{LatLon, UnitVector};

/// Points in rings of equal height, in each by longitude, so that a query looks at few points
/// beyond those that it finds.
#[derive(Debug)]
pub(crate) struct NearIndex {
    /// Where each ring's points begin, from south to north, and where the last end.
    starts: Vec<usize>,
    points: Vec<Point>,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    longitude: f64,
    vector: UnitVector,
    number: usize,
}

impl NearIndex {
    pub(crate) fn new(places: &[LatLon]) -> NearIndex {
        let rings = (places.len() as f64).sqrt().ceil().clamp(1.0, 1000.0) as usize;
        let mut points: Vec<(usize, Point)> = places
            .iter()
            .enumerate()
            .map(|(number, &place)| {
                let (longitude, vector) = (place.longitude(), UnitVector::from(place));
                (ring_of(place.latitude(), rings), Point { longitude, vector, number })
            })
            .collect();
        points.sort_by(|(a, p), (b, q)| a.cmp(b).then(p.longitude.total_cmp(&q.longitude)));
        let starts = (0..=rings).map(|ring| points.partition_point(|(of, _)| *of < ring)).collect();
        NearIndex { starts, points: points.into_iter().map(|(_, point)| point).collect() }
    }

    /// The numbers of the points closer to `place` than `angle` (radians, strictly).
    pub(crate) fn within(&self, place: LatLon, angle: f64) -> impl Iterator<Item = usize> {
        let centre = UnitVector::from(place);
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
        // Most points of the ranges are near, and the cosine tells the others cheaply.
        let far = angle.min(std::f64::consts::PI).cos() - 1e-9;
        (ring_of(south, rings)..=ring_of(north, rings))
            .flat_map(move |ring| self.between(ring, place.longitude(), span))
            .flat_map(|range| &self.points[range])
            .filter(move |point| {
                point.vector.dot(centre) > far && point.vector.angle_to(centre) < angle
            })
            .map(|point| point.number)
    }

    /// The points of a ring within a span of a longitude: one range, or two at the antimeridian.
    fn between(&self, ring: usize, longitude: f64, span: f64) -> [Range<usize>; 2] {
        let (first, last) = (self.starts[ring], self.starts[ring + 1]);
        let points = &self.points[first..last];
        let from =
            |longitude: f64| first + points.partition_point(|point| point.longitude < longitude);
        let to =
            |longitude: f64| first + points.partition_point(|point| point.longitude <= longitude);
        let (west, east) = (longitude - span, longitude + span);
        match () {
            () if span >= 180.0 => [first..last, last..last],
            () if west < -180.0 => [first..to(east), from(west + 360.0)..last],
            () if east > 180.0 => [first..to(east - 360.0), from(west)..last],
            () => [from(west)..to(east), last..last],
        }
    }
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

    #[test]
    fn it_finds_what_a_look_at_every_point_finds() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let at = |latitude, longitude| LatLon::new(latitude, longitude).expect("a place");
        let mut places: Vec<LatLon> = (0..2000).map(|_| uniform_place(&mut rng)).collect();
        // Poles, the antimeridian from both sides, and the same place twice.
        places.extend([at(90.0, 0.0), at(-90.0, 77.0), at(0.0, 180.0), at(10.0, -180.0)]);
        places.extend([at(0.0, 179.99), at(0.0, -179.99), at(45.0, 9.0), at(45.0, 9.0)]);
        let index = NearIndex::new(&places);
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
        assert_eq!(NearIndex::new(&[]).within(at(0.0, 0.0), 1.0).count(), 0);
    }
}
