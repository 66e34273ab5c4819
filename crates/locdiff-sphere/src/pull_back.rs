//! The density that a map of the sphere onto itself makes of the uniform one: for flows from noise to places.
//!
//! A flow carries uniform noise to places. Backwards it carries a cell of places to a patch of noise, and the mass of the
//! cell is the area of the patch over 4π. Only the border of the patch is needed: the images of a cell's corners, and of
//! corners of smaller neighbors on its sides, joined by great circles. Every side belongs to two cells, once in each
//! direction, so that signed areas sum to the whole sphere, whatever the map does in between. No derivative is taken.
//!
//! A patch that is turned over has a negative area: there the cells are too coarse for the map, or the map was computed too
//! coarsely. What such cells hold is reported as the error, [`PulledBack::folded`].
//!
//! Tested against densities in closed form below.

use std::collections::HashMap;
use std::f64::consts::{FRAC_PI_4, PI};

use crate::cube_cells::CORNER_STEPS;
use crate::{CubeCell, DEEPEST_CUBE_LEVEL, Density, UnitVector};

/// New corners that dividing a cell takes at most.
const CORNERS_OF_A_CUT: usize = 5;
/// No cell is emptier than this part of the uniform density: a computed area of zero is no proof.
const LEAST_DENSITY: f64 = 1e-6;

/// How finely places are divided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PullBack {
    /// All cells are divided to this level.
    pub base_level: u32,
    /// No cell is divided beyond this level; at most [`DEEPEST_CUBE_LEVEL`].
    pub deepest_level: u32,
    /// Cells with more mass than this are divided.
    pub heavy: f64,
    /// The map is asked about at most so many points.
    pub most_points: usize,
}

impl Default for PullBack {
    /// Cells of about 1,250 km, divided down to 10 km where more than 0.4 % lie.
    fn default() -> PullBack {
        let deepest_level = DEEPEST_CUBE_LEVEL;
        PullBack { base_level: 3, deepest_level, heavy: 0.004, most_points: 2600 }
    }
}

/// A density, and how far to trust it.
#[derive(Debug, Clone)]
pub struct PulledBack {
    /// Constant on each cell.
    pub density: Density,
    /// Mass of the cells whose images are turned over, as a positive number: the error of the density.
    pub folded: f64,
    /// The sum of signed masses: 1, unless the map is none of the sphere onto itself.
    pub total: f64,
    /// How many points the map was asked about.
    pub points: usize,
}

type Corner = [i32; 3];

impl PullBack {
    /// The density of places, if `noise_of` carries places to noise. It is asked a few times, about many places at once.
    ///
    /// # Panics
    /// If `noise_of` doesn't return a point for each place.
    pub fn density(
        &self,
        mut noise_of: impl FnMut(&[UnitVector]) -> Vec<UnitVector>,
    ) -> PulledBack {
        let deepest = self.deepest_level.min(DEEPEST_CUBE_LEVEL);
        let mut cells = CubeCell::faces().to_vec();
        for _ in 0..self.base_level.min(deepest) {
            cells = cells.iter().flat_map(|cell| cell.children()).collect();
        }
        let mut images = HashMap::new();
        loop {
            let mut new: Vec<Corner> = cells.iter().flat_map(|cell| cell.corners()).collect();
            new.sort_unstable();
            new.dedup();
            new.retain(|corner| !images.contains_key(corner));
            let places: Vec<UnitVector> = new.iter().map(|corner| place_of(*corner)).collect();
            let noise = noise_of(&places);
            assert_eq!(noise.len(), places.len(), "a point of noise for each place");
            images.extend(new.into_iter().zip(noise));
            let (masses, total) = masses_of(&cells, &images);
            let asks = |mass: f64, cell: CubeCell| {
                (mass > self.heavy || mass < -0.1 * self.heavy) && cell.level() < deepest
            };
            let mut divided: Vec<usize> =
                (0..cells.len()).filter(|k| asks(masses[*k], cells[*k])).collect();
            divided.sort_by(|a, b| masses[*b].abs().total_cmp(&masses[*a].abs()));
            divided.truncate(self.most_points.saturating_sub(images.len()) / CORNERS_OF_A_CUT);
            if divided.is_empty() {
                return finished(cells, &masses, total, images.len());
            }
            divided.sort_unstable();
            let divide = |(k, cell): (usize, &CubeCell)| match divided.binary_search(&k) {
                Ok(_) => cell.children().to_vec(),
                Err(_) => vec![*cell],
            };
            cells = cells.iter().enumerate().flat_map(divide).collect();
        }
    }
}

fn finished(cells: Vec<CubeCell>, masses: &[f64], total: f64, points: usize) -> PulledBack {
    let folded = masses.iter().map(|mass| (-mass).max(0.0)).sum();
    let least = |cell: &CubeCell| LEAST_DENSITY * cell.area() / (4.0 * PI);
    let masses: Vec<f64> =
        cells.iter().zip(masses).map(|(cell, mass)| mass.max(least(cell))).collect();
    let density = Density::cells(cells, &masses).expect("cells with positive masses");
    PulledBack { density, folded, total, points }
}

/// The signed mass of each cell, and their sum.
fn masses_of(cells: &[CubeCell], images: &HashMap<Corner, UnitVector>) -> (Vec<f64>, f64) {
    let mut masses: Vec<f64> = cells.iter().map(|cell| mass_of(*cell, images)).collect();
    let sum: f64 = masses.iter().sum();
    // A border has two sides, and areas were taken to be those of the smaller: of one cell that may be wrong.
    let lacks_one = (0.5..1.5).contains(&(1.0 - sum));
    let lowest = (0..masses.len()).min_by(|a, b| masses[*a].total_cmp(&masses[*b]));
    if let Some(lowest) = lowest.filter(|_| lacks_one) {
        masses[lowest] += 1.0;
    }
    let total = masses.iter().sum();
    (masses, total)
}

/// The signed area of a cell's image over 4π, from −1/2 to 1/2.
fn mass_of(cell: CubeCell, images: &HashMap<Corner, UnitVector>) -> f64 {
    let corners = cell.corners();
    let mut border = Vec::new();
    for k in 0..4 {
        push_side(corners[k], corners[(k + 1) % 4], images, &mut border);
    }
    let first = border[0];
    let area: f64 = border.windows(2).map(|side| solid_angle(first, side[0], side[1])).sum();
    let mass = area / (4.0 * PI);
    mass - mass.round()
}

/// The images of a side's points from its first corner to before its last: those of smaller neighbors' corners too.
fn push_side(
    from: Corner,
    to: Corner,
    images: &HashMap<Corner, UnitVector>,
    border: &mut Vec<UnitVector>,
) {
    let sum: Corner = std::array::from_fn(|k| from[k] + to[k]);
    let middle = sum.map(|number| number / 2);
    let is_whole = sum.iter().all(|number| number % 2 == 0);
    if is_whole && images.contains_key(&middle) {
        push_side(from, middle, images, border);
        push_side(middle, to, images, border);
    } else {
        border.push(images[&from]);
    }
}

fn place_of(corner: Corner) -> UnitVector {
    let step = FRAC_PI_4 / f64::from(CORNER_STEPS);
    let vector = corner.map(|number| (f64::from(number) * step).tan());
    UnitVector::from_direction(vector).expect("a corner is not the center")
}

/// The signed area of a triangle, by van Oosterom and Strackee (1983).
fn solid_angle(a: UnitVector, b: UnitVector, c: UnitVector) -> f64 {
    let ([ax, ay, az], [bx, by, bz], [cx, cy, cz]) = (a.to_array(), b.to_array(), c.to_array());
    let volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx);
    2.0 * volume.atan2(1.0 + a.dot(b) + b.dot(c) + c.dot(a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anchors, LatLon};

    /// Places at a height along an axis are moved to another height.
    fn moved(
        height: impl Fn(f64) -> f64,
        axis: UnitVector,
    ) -> impl Fn(&[UnitVector]) -> Vec<UnitVector> {
        let moved = move |place: &UnitVector| {
            let z = place.dot(axis);
            let height = height(z);
            let across = ((1.0 - height * height) / (1.0 - z * z).max(1e-300)).sqrt();
            let (place, axis) = (place.to_array(), axis.to_array());
            let moved =
                std::array::from_fn(|k| across * (place[k] - z * axis[k]) + height * axis[k]);
            UnitVector::from_direction(moved).unwrap()
        };
        move |places| places.iter().map(&moved).collect()
    }

    /// By a Möbius transformation. Areas are differences of heights, so that the density of places at a height is its
    /// derivative over 4π.
    fn squeezed(a: f64, axis: UnitVector) -> impl Fn(&[UnitVector]) -> Vec<UnitVector> {
        moved(move |z| (z - a) / (1.0 - a * z), axis)
    }

    fn density_of(a: f64, axis: UnitVector, place: LatLon) -> f64 {
        let z = UnitVector::from(place).dot(axis);
        (1.0 - a * a) / (1.0 - a * z).powi(2) / (4.0 * PI)
    }

    fn masses(density: &Density) -> (Vec<CubeCell>, Vec<f64>) {
        let Density::Cells(cells) = density else { panic!("{density}") };
        (cells.cells().to_vec(), cells.masses().collect())
    }

    #[test]
    fn nothing_moved_is_uniform() {
        let pulled = PullBack::default().density(<[UnitVector]>::to_vec);
        assert!((pulled.total - 1.0).abs() < 1e-12 && pulled.folded == 0.0);
        let (cells, masses) = masses(&pulled.density);
        for (cell, mass) in cells.iter().zip(masses) {
            assert!((mass - cell.area() / (4.0 * PI)).abs() < 1e-12, "{cell}");
        }
    }

    #[test]
    fn masses_are_those_of_the_density_in_closed_form() {
        for (a, axis) in [(0.5, [0.3, -0.5, 0.8]), (0.97, [-1.0, 0.02, 0.01])] {
            let axis = UnitVector::from_direction(axis).unwrap();
            let pulled = PullBack::default().density(squeezed(a, axis));
            assert!((pulled.total - 1.0).abs() < 1e-9, "{}", pulled.total);
            assert!(pulled.folded < 1e-9, "{}", pulled.folded);
            let anchors = Anchors::fibonacci(2000);
            let error = anchors.places().iter().map(|place| {
                let expected = density_of(a, axis, *place);
                (pulled.density.log_density(*place).exp() - expected).abs()
            });
            // Cells are wide where little is: the mean difference is that between a cell and its middle.
            let error = error.sum::<f64>() / 2000.0 * 4.0 * PI;
            assert!(error < 0.1, "{a}: {error}");
        }
    }

    /// Nearly all mass in a cell of 10 km, whose image is larger than half the sphere at every level.
    #[test]
    fn a_peak_inside_one_cell_is_found() {
        let place = CubeCell::at(LatLon::new(48.2, 16.4).unwrap(), DEEPEST_CUBE_LEVEL).centre();
        let axis = UnitVector::from(place);
        let pulled = PullBack::default().density(squeezed(1.0 - 1e-10, axis));
        assert!((pulled.total - 1.0).abs() < 1e-9);
        let (cells, masses) = masses(&pulled.density);
        let heaviest = (0..cells.len()).max_by(|a, b| masses[*a].total_cmp(&masses[*b])).unwrap();
        assert_eq!(cells[heaviest], CubeCell::at(place, DEEPEST_CUBE_LEVEL));
        assert!(masses[heaviest] > 0.9, "{}", masses[heaviest]);
        assert!(pulled.points < 800 && pulled.folded < 0.01, "{}", pulled.folded);
    }

    #[test]
    fn what_is_turned_over_is_reported() {
        // Down again between two heights: there a tenth of the sphere is covered three times.
        let fold = |z: f64| match z {
            z if z < 0.5 => z,
            z if z < 0.7 => 0.5 - (z - 0.5),
            z => 0.3 + (z - 0.7) * 0.7 / 0.3,
        };
        let pulled = PullBack::default().density(moved(fold, UnitVector::NORTH));
        assert!((pulled.total - 1.0).abs() < 1e-9);
        assert!((pulled.folded - 0.1).abs() < 0.03, "{}", pulled.folded);
    }

    #[test]
    fn few_points_are_asked_about() {
        let axis = UnitVector::from_direction([0.1, 0.2, -1.0]).unwrap();
        let few = PullBack { most_points: 500, ..PullBack::default() };
        let mut asked = 0;
        let pulled = few.density(|places| {
            asked += places.len();
            squeezed(0.99, axis)(places)
        });
        assert_eq!(pulled.points, asked);
        assert!(asked <= 500 && asked > 400, "{asked}");
        assert!((pulled.total - 1.0).abs() < 1e-9);
    }
}
