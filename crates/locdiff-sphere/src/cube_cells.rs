//! Cells of a cube blown up to the sphere, each divided into four again and again: the hierarchy that
//! S2 uses, with great circles as borders and areas in closed form.
//!
//! Convention: a face looks along ±x, ±y or ±z; (u, v) are the other two coordinates, in cyclic order,
//! over that one. Cells are equal steps of the angles atan u and atan v, so that those of one level
//! differ in area by 1.41 at most on a face's axes and by 2 to its corners. Cells are written as their
//! face and the quarters that lead to them (`30121`), which are our own, not S2's tokens.

use std::collections::HashMap;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};
use std::fmt;
use std::str::FromStr;

use crate::{LatLon, UnitVector};

/// Cells are not divided beyond this level, where they are about 10 km wide.
pub const DEEPEST_CUBE_LEVEL: u32 = 10;

/// Steps of [`CubeCell::corners`] from the middle of a face to its border: those of the deepest cells are two apart.
pub(crate) const CORNER_STEPS: i32 = 1 << DEEPEST_CUBE_LEVEL;

/// One cell.
///
/// ```
/// use locdiff_sphere::{CubeCell, LatLon};
///
/// let cell = CubeCell::at(LatLon::new(48.86, 2.35)?, 4);
/// assert_eq!(CubeCell::at(cell.centre(), 4), cell);
/// // Face 2, around the north pole, then which quarter of it, which quarter of that, and so on.
/// assert_eq!(cell.to_string(), "23111");
/// assert_eq!("23111".parse(), Ok(cell));
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CubeCell {
    face: u8,
    level: u32,
    /// Steps along u and v from the face's edge.
    steps: [u32; 2],
}

/// A text that is not a cell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a cell: write its face from 0 to 5, then for each of up to 10 divisions the quarter \
     from 0 to 3, for example 30121"
)]
pub struct InvalidCell(String);

impl CubeCell {
    /// The six faces, which cover the sphere.
    pub fn faces() -> [CubeCell; 6] {
        std::array::from_fn(|face| CubeCell { face: face as u8, level: 0, steps: [0, 0] })
    }

    /// The cell of a level that holds a place.
    ///
    /// # Panics
    /// If the level is beyond [`DEEPEST_CUBE_LEVEL`].
    pub fn at(place: LatLon, level: u32) -> CubeCell {
        CubeCell::towards(UnitVector::from(place).to_array(), level)
    }

    /// The cell of a level in a direction.
    pub(crate) fn towards(vector: [f64; 3], level: u32) -> CubeCell {
        assert!(level <= DEEPEST_CUBE_LEVEL, "level {level} is beyond {DEEPEST_CUBE_LEVEL}");
        let axis = (0..3).max_by(|a, b| vector[*a].abs().total_cmp(&vector[*b].abs())).unwrap_or(0);
        let count = 1_u32 << level;
        let steps = [1, 2].map(|turn| {
            let angle = (vector[(axis + turn) % 3] / vector[axis].abs()).atan();
            let share = (angle + FRAC_PI_4) / FRAC_PI_2;
            ((share * f64::from(count)).max(0.0) as u32).min(count - 1)
        });
        let face = axis as u8 + if vector[axis] < 0.0 { 3 } else { 0 };
        CubeCell { face, level, steps }
    }

    /// How often a face was divided.
    pub fn level(self) -> u32 {
        self.level
    }

    /// The four cells that it is divided into.
    pub fn children(self) -> [CubeCell; 4] {
        let [i, j] = self.steps;
        [[0, 0], [1, 0], [0, 1], [1, 1]].map(|[di, dj]| CubeCell {
            level: self.level + 1,
            steps: [2 * i + di, 2 * j + dj],
            ..self
        })
    }

    /// The cell that it is a quarter of; none for a face.
    pub fn parent(self) -> Option<CubeCell> {
        let level = self.level.checked_sub(1)?;
        Some(CubeCell { level, steps: self.steps.map(|step| step / 2), ..self })
    }

    /// The face, 0 to 5: along x, y, z, −x, −y, −z.
    pub(crate) fn face(self) -> usize {
        usize::from(self.face)
    }

    /// Which of its parent's quarters holds it, for every level from the face down to its own.
    pub(crate) fn quarters(self) -> impl Iterator<Item = usize> {
        let [i, j] = self.steps;
        (0..self.level).rev().map(move |bit| ((i >> bit & 1) + 2 * (j >> bit & 1)) as usize)
    }

    /// Its number among the cells of its level, from 0. The quarters of a cell follow each other.
    pub fn number(self) -> u64 {
        self.quarters().fold(u64::from(self.face), |number, quarter| 4 * number + quarter as u64)
    }

    /// The middle of the cell, by angles.
    pub fn centre(self) -> LatLon {
        LatLon::from(self.point([0.5, 0.5]))
    }

    /// The point at fractions of a cell's sides.
    pub(crate) fn point(self, along: [f64; 2]) -> UnitVector {
        let [u, v] = [0, 1].map(|k| self.coordinate(f64::from(self.steps[k]) + along[k]));
        let axis = usize::from(self.face % 3);
        let mut vector = [0.0; 3];
        vector[axis] = if self.face < 3 { 1.0 } else { -1.0 };
        vector[(axis + 1) % 3] = u;
        vector[(axis + 2) % 3] = v;
        UnitVector::from_direction(vector).unwrap_or(UnitVector::NORTH)
    }

    /// Its corners, counterclockwise from outside, by whole numbers that are the same for all cells that share a corner:
    /// angles along the three axes in steps of 45° over [`CORNER_STEPS`].
    pub(crate) fn corners(self) -> [[i32; 3]; 4] {
        let axis = usize::from(self.face % 3);
        let forwards = self.face < 3;
        let step = (2 * CORNER_STEPS) >> self.level;
        let corner = |[i, j]: [u32; 2]| {
            let mut corner = [0; 3];
            corner[axis] = if forwards { CORNER_STEPS } else { -CORNER_STEPS };
            corner[(axis + 1) % 3] = (self.steps[0] + i) as i32 * step - CORNER_STEPS;
            corner[(axis + 2) % 3] = (self.steps[1] + j) as i32 * step - CORNER_STEPS;
            corner
        };
        let mut corners = [[0, 0], [1, 0], [1, 1], [0, 1]].map(corner);
        if !forwards {
            // Seen from outside, the other two axes change sides.
            corners.reverse();
        }
        corners
    }

    /// A cell's side at a level, at the middle of a face, where it is longest. In radians.
    pub(crate) fn width(level: u32) -> f64 {
        FRAC_PI_2 / f64::from(1_u32 << level)
    }

    /// Its area in steradians: that of a rectangle seen from the cube's middle.
    pub fn area(self) -> f64 {
        let [[u0, u1], [v0, v1]] = self
            .steps
            .map(|step| [self.coordinate(f64::from(step)), self.coordinate(f64::from(step) + 1.0)]);
        let corner = |u: f64, v: f64| (u * v / (1.0 + u * u + v * v).sqrt()).atan();
        corner(u1, v1) - corner(u0, v1) - corner(u1, v0) + corner(u0, v0)
    }

    fn coordinate(self, step: f64) -> f64 {
        let share = step / f64::from(1_u32 << self.level);
        (share * FRAC_PI_2 - FRAC_PI_4).tan()
    }
}

/// The face, then a digit for each division: `30121` is of level 4.
impl fmt::Display for CubeCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.face)?;
        self.quarters().try_for_each(|quarter| write!(f, "{quarter}"))
    }
}

impl FromStr for CubeCell {
    type Err = InvalidCell;

    fn from_str(text: &str) -> Result<CubeCell, InvalidCell> {
        // Hostile texts may be long, and errors are shown.
        let invalid = || InvalidCell(text.chars().take(20).collect());
        let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(6)).collect();
        let digits = digits.filter(|digits| digits.len() <= 1 + DEEPEST_CUBE_LEVEL as usize);
        let Some([face, quarters @ ..]) = digits.as_deref() else { return Err(invalid()) };
        let mut cell = CubeCell::faces()[*face as usize];
        for quarter in quarters {
            cell = *cell.children().get(*quarter as usize).ok_or_else(invalid)?;
        }
        Ok(cell)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for CubeCell {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for CubeCell {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<CubeCell, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Cells of different sizes that cover the sphere once.
#[derive(Debug, Clone)]
pub struct CubeCover {
    cells: Vec<CubeCell>,
    numbers: HashMap<CubeCell, usize>,
}

impl CubeCover {
    /// Cells that are divided until none holds more than so many of the places, as PlaNet does (Weyand
    /// et al. 2016). Empty ones stay, so that every place on Earth has its cell.
    pub fn adapted_to(places: &[LatLon], at_most: usize) -> CubeCover {
        let mut cells = Vec::new();
        let everywhere: Vec<usize> = (0..places.len()).collect();
        let mut open: Vec<(CubeCell, Vec<usize>)> = CubeCell::faces()
            .map(|face| {
                let inside = |k: &usize| CubeCell::at(places[*k], 0) == face;
                (face, everywhere.iter().copied().filter(inside).collect())
            })
            .into();
        while let Some((cell, inside)) = open.pop() {
            if inside.len() <= at_most || cell.level == DEEPEST_CUBE_LEVEL {
                cells.push(cell);
                continue;
            }
            for child in cell.children() {
                let of_child = |k: &usize| CubeCell::at(places[*k], child.level) == child;
                open.push((child, inside.iter().copied().filter(of_child).collect()));
            }
        }
        let numbers = cells.iter().enumerate().map(|(number, cell)| (*cell, number)).collect();
        CubeCover { cells, numbers }
    }

    /// Disjoint cells that cover the sphere; the index of a cell is its number.
    pub fn cells(&self) -> &[CubeCell] {
        &self.cells
    }

    /// The number of the cell that holds a place.
    pub fn find(&self, place: LatLon) -> usize {
        let mut cell = Some(CubeCell::at(place, DEEPEST_CUBE_LEVEL));
        while let Some(here) = cell {
            if let Some(number) = self.numbers.get(&here) {
                return *number;
            }
            cell = here.parent();
        }
        unreachable!("the cells cover the sphere")
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::{Anchors, uniform_place};

    #[test]
    fn baseline_cells_of_a_level_cover_the_sphere() {
        let mut cells = CubeCell::faces().to_vec();
        for _ in 0..5 {
            let sum: f64 = cells.iter().map(|cell| cell.area()).sum();
            assert!((sum - 4.0 * PI).abs() < 1e-12);
            for cell in &cells {
                assert_eq!(CubeCell::at(cell.centre(), cell.level()), *cell);
            }
            cells = cells.iter().flat_map(|cell| cell.children()).collect();
        }
        let largest = cells.iter().map(|cell| cell.area()).fold(0.0, f64::max);
        let smallest = cells.iter().map(|cell| cell.area()).fold(1.0, f64::min);
        assert!(largest / smallest < 2.0, "{}", largest / smallest);
    }

    #[test]
    fn baseline_areas_are_shares_of_uniform_places() {
        let places = Anchors::fibonacci(200_000);
        let mut counts = HashMap::new();
        for place in places.places() {
            *counts.entry(CubeCell::at(*place, 2)).or_insert(0.0) += 1.0;
        }
        assert_eq!(counts.len(), 96);
        for (cell, count) in counts {
            let share = cell.area() / (4.0 * PI);
            assert!((count / 200_000.0 - share).abs() < 0.01 * share, "{cell:?}");
        }
    }

    #[test]
    fn baseline_cells_follow_the_places() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut places: Vec<LatLon> = (0..500).map(|_| uniform_place(&mut rng)).collect();
        // A town, poles and the antimeridian.
        places.extend((0..500).map(|k| LatLon::new(10.0 + 1e-2 * f64::from(k), 20.0).unwrap()));
        places.extend([LatLon::NORTH_POLE, LatLon::SOUTH_POLE, LatLon::new(0.0, 180.0).unwrap()]);
        let cover = CubeCover::adapted_to(&places, 40);
        let area: f64 = cover.cells().iter().map(|cell| cell.area()).sum();
        assert!((area - 4.0 * PI).abs() < 1e-12);
        let mut counts = vec![0; cover.cells().len()];
        places.iter().for_each(|place| counts[cover.find(*place)] += 1);
        assert!(counts.iter().all(|count| *count <= 40));
        let town = cover.cells()[cover.find(LatLon::new(10.2, 20.0).unwrap())];
        assert!(town.level() > 4, "{town:?}");
    }

    #[test]
    fn cells_are_read_and_written() {
        assert_eq!(CubeCell::faces().map(|face| face.to_string()).concat(), "012345");
        for wrong in ["", "6", "04", "0 1", "012301230123", "-1", "0é", "x"] {
            let error = wrong.parse::<CubeCell>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{wrong}`")), "{error}");
        }
        // The digits are halves along u, and twice those along v: `docs/density-record.md`.
        let cell: CubeCell = "2013".parse().unwrap();
        let [u, v] = [0b011, 0b001]
            .map(|step| ((f64::from(step) + 0.5) / 8.0 * FRAC_PI_2 - FRAC_PI_4).tan());
        let centre = UnitVector::from_direction([u, v, 1.0]).map(LatLon::from).unwrap();
        assert!(cell.centre().distance_km(centre) < 1e-6);
    }

    proptest! {
        #[test]
        fn baseline_every_place_has_its_cell(latitude in -90.0..=90.0_f64, longitude in -180.0..180.0_f64) {
            let place = LatLon::new(latitude, longitude).unwrap();
            let cell = CubeCell::at(place, 7);
            // A cell of level 7 is at most 1.1° wide.
            prop_assert!(cell.centre().angle_to(place).to_degrees() < 0.8);
            prop_assert_eq!(cell.parent(), Some(CubeCell::at(place, 6)));
            prop_assert_eq!(cell.to_string().parse(), Ok(cell));
            let parent = cell.parent().expect("of level 6").to_string();
            prop_assert_eq!(&cell.to_string()[..7], parent);
        }
    }
}
