//! What it costs to answer from a density, before it is done.
//!
//! The unit is a cell: 64 values of a density, their integral, and their part in modes, regions and outlines. How many cells a density
//! takes is estimated from what it is made of: from degree and size of the coefficients, or from how many cells as wide as the kernel hold
//! points. Compared with measured times in `experiments/speed/survey-cost`.

use std::collections::HashMap;
use std::f64::consts::PI;
use std::fmt;
#[cfg(not(target_family = "wasm"))]
use std::sync::OnceLock;
#[cfg(not(target_family = "wasm"))]
use std::time::{Duration, Instant};

#[cfg(not(target_family = "wasm"))]
use crate::PointMasses;
use crate::density::{CUT_CELL, POINTS_PER_CELL};
use crate::wave_field::{COST_OF_CELL, COST_OF_RING};
use crate::{Area, Coefficients, Density, EARTH_RADIUS_KM, Kernel, LatLon};

/// How much work something is: see [`Density::expected_cost`].
///
/// # Units
/// Cells; on a machine of 2025, some fifty microseconds each.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Cost {
    cells: f64,
    /// Cells of the mesh, which are kept.
    leaves: f64,
}

impl Cost {
    /// The cost of a number of cells.
    pub const fn of_cells(cells: f64) -> Cost {
        Cost { cells, leaves: 0.0 }
    }

    /// The cost as a number of mesh cells.
    pub const fn cells(self) -> f64 {
        self.cells
    }

    /// About how much memory a survey takes with its modes and regions.
    pub fn memory_bytes(self) -> u64 {
        (self.leaves.min(MOST_CELLS) * LEAF_BYTES) as u64
    }

    /// About how long it takes on one core of this machine, whose speed is measured when this is first asked for: some 0.3 s.
    #[cfg(not(target_family = "wasm"))]
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64((self.cells * seconds_per_cell()).clamp(0.0, 1e9))
    }

    /// As much as can be done in a time on one core of this machine, about: see [`Cost::duration`].
    #[cfg(not(target_family = "wasm"))]
    pub fn in_duration(time: Duration) -> Cost {
        Cost::of_cells(time.as_secs_f64() / seconds_per_cell())
    }
}

/// What the density costs that tells how fast a machine is, in the unit in which others were fitted.
#[cfg(not(target_family = "wasm"))]
const CALIBRATION: f64 = 1080.0;

#[cfg(not(target_family = "wasm"))]
fn seconds_per_cell() -> f64 {
    static SECONDS: OnceLock<f64> = OnceLock::new();
    *SECONDS.get_or_init(|| {
        let spots = (0..40).map(|k| {
            LatLon::new(-60.0 + 3.0 * f64::from(k), 40.0 * f64::from(k % 9))
                .unwrap_or(LatLon::NORTH_POLE)
        });
        let (spots, kernel) = (spots.collect::<Vec<LatLon>>(), Kernel::default());
        let once = || {
            let began = Instant::now();
            let density = PointMasses::new(spots.clone(), &[1.0; 40]).ok()?.spread(kernel);
            let survey = density.survey();
            survey.modes();
            survey.region(0.5).outline();
            survey.region(0.9).outline();
            Some(began.elapsed().as_secs_f64() / CALIBRATION)
        };
        // The quickest: others had to wait for something.
        (0..5).filter_map(|_| once()).fold(f64::INFINITY, f64::min).clamp(1e-7, 1e-3)
    })
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} cells", self.cells)
    }
}

impl Density {
    /// What it costs to survey this density, restricted to areas if there are any: modes, regions and outlines included.
    ///
    /// Nothing of it is done: this takes a few percent of the time. Nine times in ten it is right to a factor of two.
    pub fn expected_cost(&self, within: &[&Area]) -> Cost {
        Estimate::of(self, within).restricted_to(within).cost()
    }
}

/// What a density is expected to take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    /// Cells that are evaluated.
    leaves: f64,
    /// What each of them costs beyond what every cell does.
    per_leaf: f64,
    /// What cells at the border of an area cost beyond that.
    per_cut_leaf: f64,
    /// Cost that does not grow with the number of cells.
    once: f64,
    /// The part of the Earth where nearly all of it is.
    spread_km2: f64,
}

/// Whatever the density: borders of regions and circles are followed through large cells, too.
const LEAST: f64 = 120.0;
/// As much more if the density is flat, since its cells are large.
const FLAT: f64 = 80.0;
/// What each of very many cells costs in modes, regions and outlines, which are mostly borders.
const OF_LEAF: f64 = 0.35;
/// Largest number of cells of a survey.
const MOST_CELLS: f64 = 1e5;
/// What each of them takes in memory: its values, and the lists of them that modes and regions are made from.
const LEAF_BYTES: f64 = 4e3;
/// Kernels reach so many widths, for cells that must be fine.
const CELL_WIDTHS: f64 = 5.0;
/// So many corners of a ring tell how long it is.
const CORNERS: usize = 48;
/// What outlines cost that follow a border with many more.
const ROUGH: f64 = 900.0;
/// How many cells a border takes, for one that is as long as the side of its area.
const BORDER: f64 = 3.2;
/// Of more points in a cell, many are summed as one.
const MOST_SUMMED: f64 = 1500.0;
/// So many cells see a point.
const SEEN_BY: f64 = 20.0;
/// Places hold nearly all of the mass without the lightest ones, of so much together.
const NEGLIGIBLE: f64 = 2e-4;

impl Estimate {
    fn of(density: &Density, within: &[&Area]) -> Estimate {
        let of_coefficients = |coefficients: &Coefficients| {
            Estimate::of_function(coefficients.max_degree(), |k| coefficients.as_slice()[k])
        };
        match density {
            Density::Exponential(density) => of_coefficients(density.coefficients()),
            Density::Linear(density) => Estimate::of_linear(density.coefficients().max_degree()),
            Density::PointMasses(density) => {
                let points = density.points();
                let places = points.places().iter().copied().zip(points.weights());
                Estimate::of_points(density.kernel(), points.len(), places, within)
            }
            Density::Cells(density) => Estimate::of_cells(density.cells().len()),
            Density::Mixture(density) => {
                Estimate::of_parts(density.parts().map(|(_, part)| Estimate::of(part, within)))
            }
            Density::Product(density) => {
                Estimate::of_parts(density.factors().map(|(_, part)| Estimate::of(part, within)))
            }
            Density::Restriction(density) => {
                let all: Vec<&Area> = within.iter().copied().chain([density.area()]).collect();
                Estimate::of(density.whole(), &all).restricted_to(&[density.area()])
            }
        }
    }

    /// Of F where it is positive: borders of regions are hard to follow along its kinks.
    pub(crate) fn of_linear(max_degree: usize) -> Estimate {
        let base = max_degree.div_ceil(2).max(2) as f64;
        let times = if base < 20.0 { 3.0 } else { 2.0 };
        let degree = max_degree as f64;
        Estimate {
            leaves: times * (2.0 * base * base + 60.0 * base) + FLAT,
            per_leaf: COST_OF_CELL * degree,
            per_cut_leaf: 0.0,
            spread_km2: Area::WHOLE_KM2,
            once: COST_OF_RING * degree * degree * base,
        }
    }

    /// Of exp F or of F, from its coefficients.
    pub(crate) fn of_function(max_degree: usize, coefficients: impl Fn(usize) -> f64) -> Estimate {
        let base = max_degree.div_ceil(2).max(2) as f64;
        // How curved F may be: as for coefficients that add up at one place, and as for such as don't.
        let (mut coherent, mut squares, mut peak, mut deviation) = (0.0, 0.0, 0.0, 0.0);
        for l in 1..=max_degree {
            let power: f64 = (l * l..(l + 1) * (l + 1)).map(|k| coefficients(k).powi(2)).sum();
            let wave_number = (l * (l + 1)) as f64;
            let height = ((2 * l + 1) as f64 * power / (4.0 * PI)).sqrt();
            peak += height;
            coherent += wave_number * height;
            deviation += power / (4.0 * PI);
            squares += wave_number * wave_number * power / (4.0 * PI);
        }
        let curvature = (0.5 * coherent * squares.sqrt()).sqrt();
        let side = PI / base;
        let levels = (0.5 * (curvature * side * side / 16.0).max(1.0).log2()).min(12.0);
        let refined = 16.0 * levels + 0.5 * base * base * levels;
        // Cells far below the top cost little: how many matter, by how high the top may be.
        let top = (peak * 4.0 * deviation.sqrt()).sqrt();
        let flat = 1.0 / (1.0 + (top / 8.0).powi(2));
        let degree = max_degree as f64;
        Estimate {
            leaves: (0.15 + flat) * (2.0 * base * base + refined) + 3.0 * FLAT * flat,
            per_leaf: COST_OF_CELL * degree,
            per_cut_leaf: 0.0,
            spread_km2: Area::WHOLE_KM2,
            once: COST_OF_RING * degree * degree * (0.5 * base + 4.0 * levels),
        }
    }

    /// Of points with masses that sum to one.
    pub(crate) fn of_points(
        kernel: Kernel,
        count: usize,
        points: impl Iterator<Item = (LatLon, f64)>,
        within: &[&Area],
    ) -> Estimate {
        let width = kernel.width_km() / EARTH_RADIUS_KM;
        let side = (CELL_WIDTHS * width).min(0.5 * PI);
        // As if all cells were as wide as high, each ring for itself.
        let sectors =
            |ring: i32| ((2.0 * PI * ((f64::from(ring) + 0.5) * side).sin() / side) as i32).max(1);
        let mut held: HashMap<(i32, i32), (f64, f64)> = HashMap::new();
        let mut total = 0.0;
        for (place, mass) in points {
            if !within.iter().all(|area| area.contains(place)) {
                continue;
            }
            total += mass;
            let ring = ((90.0 - place.latitude()).to_radians() / side) as i32;
            let turn = (place.longitude() + 180.0) / 360.0;
            let sector = (turn * f64::from(sectors(ring))) as i32;
            let (sum, points) = held.entry((ring, sector)).or_default();
            (*sum, *points) = (*sum + mass, *points + 1.0);
        }
        let mut held: Vec<((i32, i32), (f64, f64))> = held.into_iter().collect();
        held.sort_unstable_by(|a, b| a.1.0.total_cmp(&b.1.0));
        let mut rest = 0.0;
        let light = held.iter().take_while(|(_, (mass, _))| {
            rest += mass;
            rest < NEGLIGIBLE * total
        });
        let heavy = held.split_off(light.count());
        // Those around them are fine as well.
        let mut fine: Vec<(i32, i32)> = Vec::with_capacity(9 * heavy.len());
        for ((ring, sector), _) in &heavy {
            for near_ring in ring - 1..=ring + 1 {
                let count = sectors(near_ring);
                let turn = (f64::from(*sector) + 0.5) / f64::from(sectors(*ring));
                let near = (turn * f64::from(count)) as i32;
                fine.extend((near - 1..=near + 1).map(|s| (near_ring, s.rem_euclid(count))));
            }
        }
        let mut cells = 0.0;
        let base = (0.5 * PI / side).clamp(1.0, 8.0);
        let mut size = side;
        while size < PI / base {
            fine.sort_unstable();
            fine.dedup();
            cells += fine.len() as f64;
            fine.iter_mut().for_each(|(ring, sector)| (*ring, *sector) = (*ring / 2, *sector / 2));
            size *= 2.0;
        }
        let drawn = heavy.iter().filter(|(_, (mass, _))| *mass > 1e-3 * total).count() as f64;
        let leaves = (2.0 * base * base + 1.3 * cells + 9.0 * drawn).min(MOST_CELLS);
        // Of a wide kernel.
        let flat = (width / 0.1).min(1.0);
        // Each point is seen by the cells around it, unless there are so many that they are summed as one.
        let summed: f64 = heavy.iter().map(|(_, (_, points))| points.min(MOST_SUMMED)).sum();
        let once = POINTS_PER_CELL * (count as f64 + summed * leaves.min(SEEN_BY)) + FLAT * flat;
        // Points of the Earth that every cell includes, however small it is.
        let near = count as f64 * (4.0 * width).powi(2).min(1.0);
        // Without a point there, the area holds a part of far ones, or of what is everywhere.
        let spread_km2 = match heavy.len() {
            0 => Area::WHOLE_KM2,
            count => count as f64 * (side * EARTH_RADIUS_KM).powi(2),
        };
        Estimate { leaves, per_leaf: 0.0, per_cut_leaf: POINTS_PER_CELL * near, once, spread_km2 }
    }

    /// Estimate for a density that is constant on cells.
    pub(crate) fn of_cells(count: usize) -> Estimate {
        let leaves = 500.0 + 4.0 * count as f64;
        Estimate {
            leaves,
            per_leaf: 0.5,
            per_cut_leaf: 0.0,
            once: 0.0,
            spread_km2: Area::WHOLE_KM2,
        }
    }

    /// Estimate for a mixture or product of densities.
    pub(crate) fn of_parts(parts: impl Iterator<Item = Estimate>) -> Estimate {
        let nothing =
            Estimate { leaves: 0.0, per_leaf: 0.0, per_cut_leaf: 0.0, once: 0.0, spread_km2: 0.0 };
        parts.fold(nothing, |sum, part| Estimate {
            leaves: sum.leaves + part.leaves,
            per_leaf: sum.per_leaf + 0.5 + part.per_leaf,
            per_cut_leaf: sum.per_cut_leaf + part.per_cut_leaf,
            once: sum.once + part.once,
            spread_km2: sum.spread_km2 + part.spread_km2,
        })
    }

    /// Estimate for the density restricted to areas.
    pub(crate) fn restricted_to(self, within: &[&Area]) -> Estimate {
        within.iter().fold(self, |whole, area| {
            let (area_km2, border_km) = (area.area_km2(), border_km(area));
            // As fine as the border's errors must be, where there is something.
            let part = (whole.spread_km2 / area_km2).min(1.0);
            let cut = (BORDER * border_km * border_km / area_km2 * part).clamp(20.0, 20_000.0);
            let rough = if is_rough(area) { ROUGH * part.sqrt() } else { 0.0 };
            Estimate {
                leaves: whole.leaves + 2.0 * cut,
                once: whole.once + rough + 0.5 * FLAT + (CUT_CELL + whole.per_cut_leaf) * cut,
                ..whole
            }
        })
    }

    pub(crate) fn cost(self) -> Cost {
        let cells = LEAST + self.leaves * (OF_LEAF + self.per_leaf) + self.once;
        Cost { cells, leaves: self.leaves }
    }
}

/// Whether its border has many more corners than tell its length.
fn is_rough(area: &Area) -> bool {
    let Area::Polygons(polygons) = area else { return false };
    polygons.coordinates().iter().flatten().any(|ring| ring.len() > 8 * CORNERS)
}

/// About how long the border of an area is.
fn border_km(area: &Area) -> f64 {
    let degree_km = PI * EARTH_RADIUS_KM / 180.0;
    match area {
        Area::Circle(circle) => {
            2.0 * PI * EARTH_RADIUS_KM * (circle.radius_km() / EARTH_RADIUS_KM).min(PI).sin().abs()
        }
        Area::Box(sides) => {
            let [south, west, north, east] = sides.sides();
            let width = (east - west).rem_euclid(360.0);
            let parallels = south.to_radians().cos() + north.to_radians().cos();
            degree_km * (2.0 * (north - south) + width * parallels)
        }
        Area::Polygons(polygons) => {
            // As cells see it: the bays of a coast are smaller than they are.
            let length = |[x0, y0]: [f64; 2], [x1, y1]: [f64; 2]| {
                let parallel = (0.5 * (y0 + y1)).to_radians().cos();
                degree_km * ((x1 - x0) * parallel).hypot(y1 - y0)
            };
            let lengths = polygons.coordinates().iter().flatten().map(|ring| {
                let corners = ring.iter().step_by((ring.len() / CORNERS).max(1));
                let ends = corners.clone().skip(1).chain(ring.last());
                corners.zip(ends).map(|(a, b)| length(*a, *b)).sum::<f64>()
            });
            lengths.sum()
        }
    }
    .max(1e-3)
}
