//! Of which parts of the Earth a gallery has references.
//!
//! About places that no reference is near, a search says nothing. References are counted in cells about as wide as the
//! kernel around them; a cell with n of them is covered to 1 − exp(−n).

use locdiff_sphere::{Area, CubeCell, Density, LatLon};

use crate::curve::{Cell, FACE_KM, LEVELS, key};

/// Cells are about so many widths of the kernel wide.
const CELL_WIDTHS: f64 = 2.5;
/// The finest level that is kept: cells of 313 km. Finer ones count as parts of these.
const FINEST: u32 = 5;
/// A cell is covered to whole multiples of this: fewer different cells are faster to integrate over.
const STEP: f64 = 0.1;
/// Less than this of the Earth uncovered is nothing.
const NEGLIGIBLE: f64 = 1e-4;

/// How much of each cell is covered.
#[derive(Debug, Clone)]
pub(crate) struct Coverage {
    level: u32,
    /// By the cell's place on the curve, from 0 to 1.
    covered: Vec<f64>,
    /// What is not, as a density, and its integral before it was normalized.
    uncovered: Option<(Density, f64)>,
}

impl Coverage {
    /// That of sorted keys, for references spread by `width_km`, without those in an area.
    pub(crate) fn of<'a>(
        keys: impl Iterator<Item = &'a [u64]>,
        width_km: f64,
        removed: Option<&Area>,
    ) -> Coverage {
        let fine =
            (FACE_KM / (CELL_WIDTHS * width_km)).log2().round().clamp(0.0, f64::from(LEVELS));
        let fine = fine as u32;
        let level = fine.min(FINEST);
        // The part of each cell without references.
        let mut open = vec![1.0; 6 << (2 * level)];
        for keys in keys {
            let mut of_segment = vec![0.0; open.len()];
            let kept: Vec<u64> = match removed {
                None => Vec::new(),
                Some(area) => {
                    keys.iter().copied().filter(|key| !area.contains(middle(*key))).collect()
                }
            };
            let mut rest = if removed.is_some() { &kept[..] } else { keys };
            while let Some(first) = rest.first() {
                let end = Cell::of_key(*first, fine).keys().end;
                let count = rest.partition_point(|key| *key < end);
                let part = 0.25_f64.powi((fine - level) as i32);
                of_segment[number(*first, level)] += part * -(-(count as f64)).exp_m1();
                rest = &rest[count..];
            }
            open.iter_mut().zip(of_segment).for_each(|(open, covered)| *open *= 1.0 - covered);
        }
        open.iter_mut().for_each(|open| *open = STEP * (*open / STEP).round());
        let covered = open.iter().map(|open| 1.0 - open).collect();
        let uncovered = uncovered(&open, level);
        Coverage { level, covered, uncovered }
    }

    /// How much of a place's surroundings is covered.
    pub(crate) fn at(&self, place: LatLon) -> f64 {
        self.covered[number(key(place), self.level)]
    }

    /// The part of a density that is not covered: its mass and, normalized, its shape. None if everything is.
    pub(crate) fn beyond(&self, density: &Density) -> Option<(f64, Density)> {
        let (open, integral) = self.uncovered.as_ref()?;
        let beyond = Density::product(vec![(1.0, density.clone()), (1.0, open.clone())]).ok()?;
        // The product's normalizer, from any place where all of them are positive.
        let Density::Cells(cells) = open else { return None };
        let log_mass = cells.cells().iter().find_map(|cell| {
            let place = cell.centre();
            let log =
                density.log_density(place) + open.log_density(place) - beyond.log_density(place);
            log.is_finite().then_some(log)
        })?;
        Some(((log_mass.exp() * integral).min(1.0), beyond))
    }
}

/// Of the cell of a level, along the curve.
fn number(key: u64, level: u32) -> usize {
    (key >> (2 * (LEVELS - level))) as usize
}

fn middle(key: u64) -> LatLon {
    Cell::of_key(key, LEVELS).mean_of(&[key]).into()
}

fn uncovered(open: &[f64], level: u32) -> Option<(Density, f64)> {
    let (mut cells, mut masses) = (Vec::new(), Vec::new());
    let mut rest = CubeCell::faces().to_vec();
    while let Some(cell) = rest.pop() {
        let first = number(key(cell.centre()), cell.level()) << (2 * (level - cell.level()));
        let inside = &open[first..first + (1 << (2 * (level - cell.level())))];
        // Cells of open sea are as large as they can be.
        if inside.iter().all(|open| *open == inside[0]) {
            if inside[0] > NEGLIGIBLE {
                cells.push(cell);
                masses.push(inside[0] * cell.area());
            }
        } else {
            rest.extend(cell.children());
        }
    }
    let integral: f64 = masses.iter().sum();
    if integral < NEGLIGIBLE * 4.0 * std::f64::consts::PI {
        return None;
    }
    Some((Density::cells(cells, &masses).ok()?, integral))
}

#[cfg(test)]
mod tests {
    use locdiff_sphere::{Anchors, Coefficients};

    use super::*;

    fn keys(places: &[LatLon]) -> Vec<u64> {
        let mut keys: Vec<u64> = places.iter().map(|place| key(*place)).collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn a_hole_is_not_covered_and_the_rest_is() {
        let keys = keys(Anchors::fibonacci(50_000).places());
        let hole = LatLon::new(10.0, 20.0).unwrap();
        let area = Area::circle(hole, 1000.0).unwrap();
        let whole = Coverage::of([&keys[..]].into_iter(), 90.0, None);
        assert!(whole.beyond(&Density::uniform()).is_none());
        // In two segments it is the same.
        let (a, b) = keys.split_at(20_000);
        let with_hole = Coverage::of([a, b].into_iter(), 90.0, Some(&area));
        assert_eq!(with_hole.at(hole), 0.0);
        assert!(with_hole.at(hole.destination(80.0, 1300.0)) > 0.99);
        // Of the uniform density, as much as the circle's share of the Earth.
        let (mass, beyond) = with_hole.beyond(&Density::uniform()).unwrap();
        let share = 0.5 * (1.0 - (1000.0_f64 / 6371.0088).cos());
        assert!((mass / share - 1.0).abs() < 0.25, "{mass} {share}");
        assert!(
            (beyond.log_density(hole).exp() * mass * 4.0 * std::f64::consts::PI - 1.0).abs() < 1e-3
        );
        // Of a density that is concentrated there, nearly all.
        let mut e = Coefficients::of(hole, 15);
        e.as_mut_slice().iter_mut().for_each(|e| *e *= 2.0);
        let (mass, _) = with_hole.beyond(&Density::exponential(&e)).unwrap();
        assert!(mass > 0.9, "{mass}");
    }

    /// One photograph covers as much as its kernel, however large the cells are.
    #[test]
    fn single_references_cover_little() {
        let place = LatLon::new(41.15, -8.61).unwrap();
        let wide = Coverage::of([&keys(&[place])[..]].into_iter(), 90.0, None);
        let narrow = Coverage::of([&keys(&[place])[..]].into_iter(), 1.0, None);
        assert!((wide.at(place) - 0.6).abs() < 1e-9, "{}", wide.at(place));
        assert!(narrow.at(place) < 1e-3, "{}", narrow.at(place));
    }
}
