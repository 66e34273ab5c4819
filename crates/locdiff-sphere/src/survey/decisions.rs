//! One place from a density: which one depends on what counts.
//!
//! Each rule is the place that maximises the mean of a function of distance. Far cells
//! count as one point each while searching; the value that is returned is summed over all.

use super::Survey;
use super::patch::Patch;
use crate::cells::{POINTS, Rule, unit_vector};
use crate::{Anchors, EARTH_RADIUS_KM, LatLon, UnitVector, geoscore};

/// The best place by some rule, and how good it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The place that the rule chooses.
    pub place: LatLon,
    /// The probability, expected score or expected distance in km there.
    pub value: f64,
}

/// Places all over the sphere, about 900 km apart, where a search begins.
const STARTS: usize = 600;
/// Searches are followed from the best so many places.
const FOLLOWED: usize = 3;

impl Survey<'_> {
    /// The centre of the circle of this radius that is most probable to hold the truth.
    ///
    /// # Panics
    /// If the radius is not a positive number.
    pub fn most_probable_circle(&self, radius_km: f64) -> Decision {
        let radius = radius_km / EARTH_RADIUS_KM;
        let cells = Cells::new(self);
        let rough = |place: LatLon| cells.mean(place, 0.0, |angle| f64::from(angle <= radius));
        let exact = |place: LatLon| self.probability_within(place, radius_km);
        // Heavy cells and modes: a circle far from all of them holds nothing.
        let mut starts = self.starts();
        let mut heavy: Vec<&CellMass> = cells.0.iter().collect();
        heavy.sort_by(|a, b| b.mass.total_cmp(&a.mass));
        starts.extend(heavy.iter().take(STARTS).map(|cell| LatLon::from(cell.centre)));
        self.best(starts, rough, exact, 0.5 * radius, 0.01 * radius)
    }

    /// The place with the best expected GeoScore, 5000·exp(−d / 1492.7 km).
    pub fn best_expected_geoscore(&self) -> Decision {
        let score = |angle: f64| geoscore(angle * EARTH_RADIUS_KM);
        self.best_by_distance(score)
    }

    /// The place with the least expected distance to the truth, in km.
    pub fn least_expected_distance(&self) -> Decision {
        let Decision { place, value } = self.best_by_distance(|angle| -angle * EARTH_RADIUS_KM);
        Decision { place, value: -value }
    }

    /// The expected GeoScore of answering with a place.
    pub fn expected_geoscore(&self, place: LatLon) -> f64 {
        Cells::new(self).mean(place, f64::INFINITY, |angle| geoscore(angle * EARTH_RADIUS_KM))
    }

    /// The expected distance in km of a place to the truth.
    pub fn expected_distance_km(&self, place: LatLon) -> f64 {
        Cells::new(self).mean(place, f64::INFINITY, |angle| angle * EARTH_RADIUS_KM)
    }

    fn best_by_distance(&self, of_angle: impl Fn(f64) -> f64) -> Decision {
        let cells = Cells::new(self);
        let mut starts = self.starts();
        starts.extend(Anchors::fibonacci(STARTS).places());
        let rough = |place: LatLon| cells.mean(place, 0.0, &of_angle);
        let fine = |place: LatLon| cells.mean(place, 3.0, &of_angle);
        let mut best = self.best(starts, rough, fine, 0.05, 5e-5);
        best.value = cells.mean(best.place, f64::INFINITY, &of_angle);
        best
    }

    fn starts(&self) -> Vec<LatLon> {
        self.modes().modes.iter().take(16).map(|mode| mode.place).collect()
    }

    fn best(
        &self,
        mut starts: Vec<LatLon>,
        rough: impl Fn(LatLon) -> f64,
        exact: impl Fn(LatLon) -> f64,
        step: f64,
        precision: f64,
    ) -> Decision {
        let mut ranked: Vec<(f64, LatLon)> =
            starts.drain(..).map(|place| (rough(place), place)).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        // The sharpest modes too: a coarse look may not see them.
        let mut sharpest = self.modes().modes;
        sharpest.sort_by(|a, b| b.log_density.total_cmp(&a.log_density));
        let mut followed: Vec<LatLon> = sharpest.iter().take(1).map(|mode| mode.place).collect();
        for (_, place) in ranked {
            // Starts next to each other end at the same place.
            if followed.iter().all(|other| other.angle_to(place) > step) {
                followed.push(place);
            }
            if followed.len() == FOLLOWED {
                break;
            }
        }
        let ends = followed.into_iter().map(|start| maximise(start, step, precision, &exact));
        let best = ends.max_by(|a, b| a.1.total_cmp(&b.1)).expect("a density has modes");
        Decision { place: best.0, value: best.1 }
    }
}

/// A cell as one point.
struct CellMass {
    mass: f64,
    centre: UnitVector,
    reach: f64,
    points: Vec<([f64; 3], f64)>,
}

impl CellMass {
    fn new(points: impl Iterator<Item = ((f64, f64), f64)>, reach: f64) -> CellMass {
        let points: Vec<([f64; 3], f64)> = points
            .filter(|(_, mass)| *mass > 0.0)
            .map(|((theta, phi), mass)| (unit_vector(theta, phi).to_array(), mass))
            .collect();
        let (mut sum, mut mass) = ([0.0; 3], 0.0);
        for (vector, part) in &points {
            (0..3).for_each(|axis| sum[axis] += part * vector[axis]);
            mass += part;
        }
        let centre = UnitVector::from_direction(sum).unwrap_or(UnitVector::NORTH);
        CellMass { mass, centre, reach, points }
    }
}

/// Cells resolve the density; a score of the distance needs them no wider than 9°.
const WIDEST: f64 = 0.16;

fn add_fine(patch: &Patch, cells: &mut Vec<CellMass>) {
    if patch.tiling.size(patch.id) > WIDEST {
        patch.parts().iter().for_each(|part| add_fine(part, cells));
    } else {
        let points = patch.points().map(|point| ((point.theta, point.phi), point.extent.mass));
        cells.push(CellMass::new(points, patch.tiling.reach(patch.id)));
    }
}

pub(super) struct Cells(Vec<CellMass>);

impl Cells {
    pub(super) fn new(survey: &Survey<'_>) -> Cells {
        let (tiling, points) = (survey.mesh.tiling, Rule::get().points);
        let mut cells = Vec::new();
        for leaf in survey.leaves_with_mass().filter(|leaf| leaf.mass > 1e-9) {
            if leaf.sheet.is_cut() || tiling.size(leaf.id) <= WIDEST {
                let masses = survey.node_masses(leaf);
                let weighted = (0..POINTS * POINTS).map(|k| {
                    let (i, j) = (k / POINTS, k % POINTS);
                    (tiling.point(leaf.id, points[i], points[j]), masses[i][j])
                });
                cells.push(CellMass::new(weighted, tiling.reach(leaf.id)));
            } else {
                add_fine(&Patch::of(leaf, tiling), &mut cells);
            }
        }
        Cells(cells)
    }

    /// All points with their masses, close enough together for harmonics up to about degree 60.
    pub(super) fn points(&self) -> impl Iterator<Item = &([f64; 3], f64)> {
        self.0.iter().flat_map(|cell| &cell.points)
    }

    /// The mean of a function of the angle to a place. Cells farther than `near` times their
    /// size count as one point.
    fn mean(&self, place: LatLon, near: f64, of_angle: impl Fn(f64) -> f64) -> f64 {
        let [x, y, z] = UnitVector::from(place).to_array();
        let angle_to = |[a, b, c]: [f64; 3]| {
            let chord = ((x - a).powi(2) + (y - b).powi(2) + (z - c).powi(2)).sqrt();
            2.0 * (0.5 * chord).min(1.0).asin()
        };
        let (mut sum, mut total) = (0.0, 0.0);
        for cell in &self.0 {
            let angle = angle_to(cell.centre.to_array());
            total += cell.mass;
            sum += if angle > near * cell.reach {
                cell.mass * of_angle(angle)
            } else {
                cell.points.iter().map(|(point, mass)| mass * of_angle(angle_to(*point))).sum()
            };
        }
        sum / total
    }
}

/// The way up from a place: by the parabola through the eight neighbours at a distance, or
/// to the best of them; the distance shrinks when neither is higher.
pub(super) fn maximise(
    start: LatLon,
    mut step: f64,
    precision: f64,
    height: impl Fn(LatLon) -> f64,
) -> (LatLon, f64) {
    let (mut place, mut best) = (start, height(start));
    for turn in 0..200 {
        if step < precision {
            break;
        }
        let at = |east: f64, north: f64| {
            let bearing = east.atan2(north).to_degrees();
            let there = place.destination(bearing, east.hypot(north) * EARTH_RADIUS_KM);
            (there, height(there))
        };
        // Turned each time, so that no border of an area lies along it for ever.
        let (sin, cos) = (0.7 * f64::from(turn)).sin_cos();
        let turned = |x: f64, y: f64| at(cos * x - sin * y, sin * x + cos * y);
        let around = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)]
            .map(|(x, y)| turned(f64::from(x) * step, f64::from(y) * step));
        let [e, w, n, s, ne, sw, se, nw] = around.map(|(_, value)| value);
        let (slope_e, slope_n) = (0.5 * (e - w), 0.5 * (n - s));
        let (ee, nn) = (e + w - 2.0 * best, n + s - 2.0 * best);
        let en = 0.25 * (ne + sw - se - nw);
        let determinant = ee * nn - en * en;
        let mut candidates = around.to_vec();
        if determinant > 0.0 && ee < 0.0 {
            // In steps; no farther than two.
            let east = -(nn * slope_e - en * slope_n) / determinant;
            let north = -(ee * slope_n - en * slope_e) / determinant;
            let length = east.hypot(north).max(1e-300);
            let shrink = step * (2.0 / length).min(1.0);
            candidates.push(turned(east * shrink, north * shrink));
        }
        let (there, value) =
            candidates.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((place, best));
        if value > best {
            let moved = place.angle_to(there);
            (place, best) = (there, value);
            // A short step by the parabola: it is close to the top.
            if moved < 0.5 * step {
                step *= 0.2;
            }
        } else {
            step *= 0.25;
        }
    }
    (place, best)
}
