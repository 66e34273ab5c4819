//! Of which parts of the Earth a gallery has references.
//!
//! A search gives no information about places without a reference nearby. Cells about five widths of the kernel wide are covered if
//! a reference is in them.

use std::f64::consts::PI;

use locdiff_sphere::{Area, CubeCell, Density, InvalidDensity, LatLon};

use crate::curve::{Cell, FACE_KM, LEVELS, key};

/// Cells are about so many widths of the kernel wide.
const CELL_WIDTHS: f64 = 5.0;
/// The finest level that is kept: cells of 313 km. Finer ones count as parts of these.
const FINEST: u32 = 5;
/// A cell is covered to whole multiples of this, or if it is less to a power of two: fewer different cells are faster to
/// integrate over.
const STEP: f64 = 0.1;
/// Less than this of the Earth is little.
const FEW: f64 = 0.05;

/// How much of each cell is covered.
#[derive(Debug, Clone)]
pub(crate) struct Coverage {
    level: u32,
    /// By the cell's place on the curve, from 0 to 1.
    covered: Vec<f64>,
    /// The part of the sphere that the gallery does not cover.
    uncovered: Option<Part>,
    /// What is, if it is little.
    few: Option<Part>,
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
        // The finest cells with references; several segments may have the same.
        let mut occupied = Vec::new();
        for keys in keys {
            let kept: Vec<u64> = match removed {
                None => Vec::new(),
                Some(area) => {
                    keys.iter().copied().filter(|key| !area.contains(middle(*key))).collect()
                }
            };
            let mut rest = if removed.is_some() { &kept[..] } else { keys };
            while let Some(first) = rest.first() {
                occupied.push(number(*first, fine));
                let end = Cell::of_key(*first, fine).keys().end;
                rest = &rest[rest.partition_point(|key| *key < end)..];
            }
        }
        occupied.sort_unstable();
        occupied.dedup();
        let part = 0.25_f64.powi((fine - level) as i32);
        let mut covered = vec![0.0; 6 << (2 * level)];
        occupied.iter().for_each(|cell| covered[cell >> (2 * (fine - level))] += part);
        covered.iter_mut().for_each(|covered| *covered = rounded(*covered));
        let open: Vec<f64> = covered.iter().map(|covered| 1.0 - covered).collect();
        let uncovered = Part::new(&open, level);
        let few = Part::new(&covered, level).filter(|part| part.integral < FEW * 4.0 * PI);
        Coverage { level, covered, uncovered, few }
    }

    /// How much of a place's surroundings is covered.
    pub(crate) fn at(&self, place: LatLon) -> f64 {
        self.covered[number(key(place), self.level)]
    }

    /// How much of a density is covered, and the rest, normalized. None if everything is.
    pub(crate) fn split(
        &self,
        density: &Density,
    ) -> Result<(f64, Option<Density>), InvalidDensity> {
        let Some(open) = &self.uncovered else { return Ok((1.0, None)) };
        let Some((mass, beyond)) = open.of(density)? else { return Ok((1.0, None)) };
        // For a small part, the mass of all others is not informative.
        let covered = match &self.few {
            Some(few) => few.of(density)?.map_or(0.0, |(mass, _)| mass),
            None => 1.0 - mass,
        };
        Ok((covered, Some(beyond)))
    }
}

/// A part of the Earth's surface, as cells that count more or less.
#[derive(Debug, Clone)]
struct Part {
    density: Density,
    /// Before it was normalized.
    integral: f64,
}

impl Part {
    /// Of the share of each cell, along the curve. None if all are 0.
    fn new(shares: &[f64], level: u32) -> Option<Part> {
        let (mut cells, mut masses) = (Vec::new(), Vec::new());
        let mut rest = CubeCell::faces().to_vec();
        while let Some(cell) = rest.pop() {
            let first = number(key(cell.centre()), cell.level()) << (2 * (level - cell.level()));
            let inside = &shares[first..first + (1 << (2 * (level - cell.level())))];
            // Cells of open sea are as large as they can be.
            if inside.iter().any(|share| *share != inside[0]) {
                rest.extend(cell.children());
            } else if inside[0] > 0.0 {
                cells.push(cell);
                masses.push(inside[0] * cell.area());
            }
        }
        let integral = masses.iter().sum();
        Some(Part { density: Density::cells(cells, &masses).ok()?, integral })
    }

    /// The part of a density: its mass and, normalized, its shape. None if the density is 0 there.
    fn of(&self, density: &Density) -> Result<Option<(f64, Density)>, InvalidDensity> {
        let part = vec![(1.0, density.clone()), (1.0, self.density.clone())];
        let part = match Density::product(part) {
            Err(InvalidDensity::Nowhere(_)) => return Ok(None),
            part => part?,
        };
        // The product's normalizer, from any place where all of them are positive.
        let Density::Cells(cells) = &self.density else { return Ok(None) };
        let log_mass = cells.cells().iter().find_map(|cell| {
            let place = cell.centre();
            let log = density.log_density(place) + self.density.log_density(place)
                - part.log_density(place);
            log.is_finite().then_some(log)
        });
        Ok(log_mass.map(|log_mass| ((log_mass.exp() * self.integral).min(1.0), part)))
    }
}

/// Of the cell of a level, along the curve.
fn number(key: u64, level: u32) -> usize {
    (key >> (2 * (LEVELS - level))) as usize
}

fn middle(key: u64) -> LatLon {
    Cell::of_key(key, LEVELS).mean_of(&[key]).into()
}

/// A reference is never rounded away.
fn rounded(covered: f64) -> f64 {
    if covered <= 0.0 || covered >= STEP {
        STEP * (covered / STEP).round()
    } else {
        covered.log2().round().exp2()
    }
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
        let area = Area::circle(hole, 2000.0).unwrap();
        let whole = Coverage::of([&keys[..]].into_iter(), 90.0, None);
        assert!(matches!(whole.split(&Density::uniform()).unwrap(), (1.0, None)));
        // In two segments that overlap it is the same.
        let (a, b) = (&keys[..30_000], &keys[20_000..]);
        let with_hole = Coverage::of([a, b].into_iter(), 90.0, Some(&area));
        assert_eq!(with_hole.at(hole), 0.0);
        assert!(with_hole.at(hole.destination(80.0, 2700.0)) > 0.99);
        // Of the uniform density, the circle's share of the Earth, but for cells that its edge cuts.
        let (covered, beyond) = with_hole.split(&Density::uniform()).unwrap();
        let (mass, beyond) = (1.0 - covered, beyond.unwrap());
        let share = 0.5 * (1.0 - (2000.0_f64 / 6371.0088).cos());
        assert!((0.6..=1.0).contains(&(mass / share)), "{mass} {share}");
        assert!((beyond.log_density(hole).exp() * mass * 4.0 * PI - 1.0).abs() < 1e-3);
        // Of a density that is concentrated there, nearly all.
        let mut e = Coefficients::of(hole, 15);
        e.as_mut_slice().iter_mut().for_each(|e| *e *= 2.0);
        let (covered, _) = with_hole.split(&Density::exponential(&e)).unwrap();
        assert!(covered < 0.1, "{covered}");
    }

    /// One photograph covers a cell about five widths wide, however large the cells are that are kept.
    #[test]
    fn single_references_cover_little() {
        let place = LatLon::new(41.15, -8.61).unwrap();
        let wide = Coverage::of([&keys(&[place])[..]].into_iter(), 90.0, None);
        let narrow = Coverage::of([&keys(&[place])[..]].into_iter(), 1.0, None);
        assert!((wide.at(place) - 1.0).abs() < 1e-9, "{}", wide.at(place));
        // Their part of the Earth has a known area.
        for (coverage, width_km) in [(wide, 90.0), (narrow, 1.0)] {
            let (covered, beyond) = coverage.split(&Density::uniform()).unwrap();
            let cell_km = CELL_WIDTHS * width_km;
            let expected = cell_km * cell_km / (4.0 * PI * 6371.0_f64.powi(2));
            assert!((0.3..3.0).contains(&(covered / expected)), "{covered} {expected}");
            assert!(beyond.is_some());
        }
    }
}
