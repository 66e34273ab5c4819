//! A curve that visits every place of the sphere, such that near places are mostly near on it.
//!
//! The sphere is the blown-up cube of `locdiff_sphere::CubeCell`: six faces, each divided into four by equal
//! angles, again and again. A place's key is its face and then two bits for each of 28 divisions, down to
//! cells of 4 cm. So the rows of a cell are one contiguous range of sorted rows.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};
use std::ops::Range;

use locdiff_sphere::{LatLon, UnitVector};

/// The side of a face in km.
pub(crate) const FACE_KM: f64 = 10_007.5;
/// How often a face is divided.
pub(crate) const LEVELS: u32 = 28;
/// Added to a cell's reach, in radians (0.6 m): more than places on its border and angles are rounded by.
const MARGIN: f64 = 1e-7;

/// Where a place is on the curve.
pub(crate) fn key(place: LatLon) -> u64 {
    let vector = UnitVector::from(place).to_array();
    let axis = (0..3).max_by(|a, b| vector[*a].abs().total_cmp(&vector[*b].abs())).unwrap_or(0);
    let face = axis as u64 + if vector[axis] < 0.0 { 3 } else { 0 };
    let [i, j] = [1, 2].map(|turn| {
        let angle = (vector[(axis + turn) % 3] / vector[axis].abs()).atan();
        let steps = (angle + FRAC_PI_4) / FRAC_PI_2 * f64::from(1_u32 << LEVELS);
        (steps.max(0.0) as u64).min((1 << LEVELS) - 1)
    });
    face << (2 * LEVELS) | interleaved(i) | interleaved(j) << 1
}

/// The bits of a number at the even positions of another.
fn interleaved(number: u64) -> u64 {
    let mut x = number;
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

/// The bits at even positions of a number: the inverse.
fn gathered(number: u64) -> u64 {
    let mut x = number & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) & 0x0000_0000_ffff_ffff
}

/// A part of a face: a contiguous part of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    face: u8,
    level: u32,
    /// Steps from the face's edges.
    steps: [u32; 2],
}

impl Cell {
    /// The six cells that cover the whole sphere.
    pub(crate) fn faces() -> [Cell; 6] {
        std::array::from_fn(|face| Cell { face: face as u8, level: 0, steps: [0, 0] })
    }

    /// The cell of a level that holds the places of a key.
    pub(crate) fn of_key(key: u64, level: u32) -> Cell {
        let face = (key >> (2 * LEVELS)) as u8;
        let bits = (key & ((1 << (2 * LEVELS)) - 1)) >> (2 * (LEVELS - level));
        Cell { face, level, steps: [gathered(bits) as u32, gathered(bits >> 1) as u32] }
    }

    pub(crate) fn level(self) -> u32 {
        self.level
    }

    /// In the order of the curve.
    pub(crate) fn children(self) -> [Cell; 4] {
        let [i, j] = self.steps;
        [[0, 0], [1, 0], [0, 1], [1, 1]].map(|[di, dj]| Cell {
            face: self.face,
            level: self.level + 1,
            steps: [2 * i + di, 2 * j + dj],
        })
    }

    /// Keys of the places in the cell.
    pub(crate) fn keys(self) -> Range<u64> {
        let below = 2 * (LEVELS - self.level);
        let [i, j] = self.steps.map(|step| interleaved(u64::from(step)));
        let first = u64::from(self.face) << (2 * LEVELS) | (i | j << 1) << below;
        first..first + (1 << below)
    }

    /// The mean of places of this cell by their keys: its middle in steps.
    pub(crate) fn mean_of(self, keys: &[u64]) -> UnitVector {
        let mut sums = [0_u64; 2];
        for key in keys {
            let steps = Cell::of_key(*key, LEVELS).steps;
            sums = [0, 1].map(|k| sums[k] + u64::from(steps[k]));
        }
        let scale = FRAC_PI_2 / f64::from(1_u32 << LEVELS);
        // Places are half a step beyond the edges of their smallest cells.
        let mean = |sum: u64| sum as f64 / keys.len().max(1) as f64 + 0.5;
        let [u, v] = sums.map(|sum| (mean(sum) * scale - FRAC_PI_4).tan());
        self.direction(u, v)
    }

    /// Its middle, and the angle within which all of it lies: its borders are great circles, so that a corner
    /// is farthest.
    pub(crate) fn cap(self) -> (UnitVector, f64) {
        let scale = FRAC_PI_2 / f64::from(1_u32 << self.level);
        let [u, v] = self.steps.map(|step| {
            [0.0, 0.5, 1.0].map(|part| ((f64::from(step) + part) * scale - FRAC_PI_4).tan())
        });
        let middle = self.direction(u[1], v[1]);
        let corners = [[0, 0], [2, 0], [0, 2], [2, 2]];
        let chords = corners.map(|[i, j]| squared_chord(middle, self.direction(u[i], v[j])));
        (middle, angle_of(chords.into_iter().fold(0.0, f64::max)) + MARGIN)
    }

    fn direction(self, u: f64, v: f64) -> UnitVector {
        let axis = usize::from(self.face % 3);
        let mut vector = [0.0; 3];
        vector[axis] = if self.face < 3 { 1.0 } else { -1.0 };
        vector[(axis + 1) % 3] = u;
        vector[(axis + 2) % 3] = v;
        UnitVector::from_direction(vector).unwrap_or(UnitVector::NORTH)
    }
}

/// The angle between two directions, to 1e-8 radians near antipodes and better elsewhere, in a third of the time of
/// [`UnitVector::angle_to`].
pub(crate) fn angle(a: UnitVector, b: UnitVector) -> f64 {
    angle_of(squared_chord(a, b))
}

fn angle_of(squared_chord: f64) -> f64 {
    2.0 * (0.5 * squared_chord.sqrt()).min(1.0).asin()
}

pub(crate) fn squared_chord(a: UnitVector, b: UnitVector) -> f64 {
    let (a, b) = (a.to_array(), b.to_array());
    (0..3).map(|axis| (a[axis] - b[axis]) * (a[axis] - b[axis])).sum()
}

#[cfg(test)]
mod tests {
    use locdiff_sphere::{CubeCell, uniform_place};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn places() -> Vec<LatLon> {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let at = |latitude, longitude| LatLon::new(latitude, longitude).unwrap();
        let mut places: Vec<LatLon> = (0..2000).map(|_| uniform_place(&mut rng)).collect();
        places.extend([at(90.0, 0.0), at(-90.0, 12.0), at(0.0, 180.0), at(0.0, -180.0)]);
        places.extend([at(0.0, 45.0), at(35.264_389_682_754_65, 45.0), at(-45.0, 90.0)]);
        places
    }

    /// Cells that hold a place, from its face down.
    fn path(place: LatLon) -> Vec<Cell> {
        let key = key(place);
        let mut path = Vec::new();
        let mut cells = Cell::faces().to_vec();
        while let Some(cell) = cells.iter().find(|cell| cell.keys().contains(&key)) {
            path.push(*cell);
            cells = if cell.level < LEVELS { cell.children().to_vec() } else { Vec::new() };
        }
        path
    }

    #[test]
    fn cells_hold_the_places_of_their_keys() {
        for place in places() {
            let path = path(place);
            assert_eq!(path.len(), 1 + LEVELS as usize);
            for cell in path {
                assert_eq!(Cell::of_key(key(place), cell.level), cell);
                let (middle, reach) = cell.cap();
                assert!(middle.angle_to(place.into()) <= reach, "{cell:?} and {place}");
            }
        }
    }

    #[test]
    fn means_are_between_places() {
        let [a, b] = [[48.86, 2.35], [48.87, 2.36]].map(|[x, y]| LatLon::new(x, y).unwrap());
        let cell = Cell::of_key(key(a), 5);
        assert!(cell.mean_of(&[key(a)]).angle_to(a.into()) < 1e-8);
        let mean = LatLon::from(cell.mean_of(&[key(a), key(b)]));
        assert!((mean.distance_km(a) - mean.distance_km(b)).abs() < 1e-3);
        assert!(mean.distance_km(a) < 0.51 * a.distance_km(b));
    }

    #[test]
    fn cells_are_those_of_the_cube() {
        for place in places().into_iter().take(2000) {
            let cell = path(place)[7];
            let cube = CubeCell::at(place, 7);
            assert!(cell.cap().0.angle_to(cube.centre().into()) < 1e-12);
        }
    }

    #[test]
    fn children_divide_the_keys_in_order() {
        let mut next = 0;
        for face in Cell::faces() {
            for child in face.children().into_iter().flat_map(Cell::children) {
                assert_eq!(child.keys().start, next);
                next = child.keys().end;
            }
        }
        assert_eq!(next, 6 << (2 * LEVELS));
    }
}
