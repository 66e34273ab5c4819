//! The coastlines of the Earth: Natural Earth 1:50m, simplified to about a kilometre.
//!
//! `assets/coastlines.mjs` makes the file and describes its format; every ring has the land on its
//! left, and none is cut at the antimeridian.

use locdiff_sphere::{LatLon, UnitVector};

static FILE: &[u8] = include_bytes!("../assets/coastlines.bin");
const UNITS_PER_DEGREE: f64 = 100.0;

/// The rings around all land, as unit vectors.
pub(crate) fn land() -> Vec<Vec<[f64; 3]>> {
    let mut numbers = Numbers { bytes: FILE.iter() };
    let (mut latitude, mut longitude) = (0, 0);
    let mut point = |numbers: &mut Numbers<'_>| {
        latitude += numbers.signed();
        longitude += numbers.signed();
        let degrees = |units: i64| units as f64 / UNITS_PER_DEGREE;
        LatLon::new(degrees(latitude), degrees(longitude)).ok()
    };
    let mut ring = |numbers: &mut Numbers<'_>| {
        let points = (0..numbers.unsigned()).filter_map(|_| point(numbers));
        points.map(|place| UnitVector::from(place).to_array()).collect()
    };
    (0..numbers.unsigned()).map(|_| ring(&mut numbers)).collect()
}

struct Numbers<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl Numbers<'_> {
    /// The next LEB128 number; 0 after the end.
    fn unsigned(&mut self) -> u64 {
        let mut value = 0;
        for (position, &byte) in self.bytes.by_ref().enumerate() {
            value |= u64::from(byte & 127) << (7 * position);
            if byte < 128 {
                break;
            }
        }
        value
    }

    fn signed(&mut self) -> i64 {
        let zigzag = self.unsigned() as i64;
        (zigzag >> 1) ^ -(zigzag & 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    /// Area on the left of a ring in steradians, modulo 4π (Cagnoli's theorem, from the south pole).
    fn area_on_the_left(ring: &[[f64; 3]]) -> f64 {
        let angles = |[x, y, z]: [f64; 3]| (z.asin() / 2.0 + PI / 4.0, y.atan2(x));
        let edges = ring.iter().zip(ring.iter().cycle().skip(1));
        let half: f64 = edges
            .map(|(&a, &b)| {
                let ((lat_a, lon_a), (lat_b, lon_b)) = (angles(a), angles(b));
                let k = lat_a.sin() * lat_b.sin();
                let turn = lon_b - lon_a;
                (k * turn.sin()).atan2(lat_a.cos() * lat_b.cos() + k * turn.cos())
            })
            .sum();
        -2.0 * half
    }

    #[test]
    fn land_lies_on_the_left_and_has_the_area_of_the_land() {
        let rings = land();
        assert_eq!(rings.len(), 1342);
        assert!(rings.iter().all(|ring| ring.len() >= 3));
        // Each ring but the Caspian Sea holds less than half of the Earth on its left.
        let areas: Vec<f64> =
            rings.iter().map(|ring| area_on_the_left(ring).rem_euclid(4.0 * PI)).collect();
        assert_eq!(areas.iter().filter(|&&area| area > 2.0 * PI).count(), 1);
        let land: f64 = areas.iter().sum::<f64>().rem_euclid(4.0 * PI);
        let percent = land / (4.0 * PI) * 100.0;
        // 29.2 % by textbooks; Natural Earth's includes the ice shelves of Antarctica.
        assert!((28.5..30.0).contains(&percent), "{percent}");
    }
}
