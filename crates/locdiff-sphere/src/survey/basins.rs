//! Modes with masses: every place belongs to the peak that water would not flow to but come
//! from, the one reached by going uphill.
//!
//! The points of all cells are linked to their neighbours. A point with no neighbour above it
//! is the top of a basin, others belong to that of their highest neighbour. Where two basins
//! meet, the lower peak rises by its prominence above the highest pass between them; if that
//! is too little, it is merged into the other.

use std::collections::HashMap;

use super::Survey;
use super::decisions::maximise;
use crate::budget::Meter;
use crate::cells::{POINTS, Rule, place_at};
use crate::{Density, LatLon};

/// A mode: a peak of the density, and the probability of its whole basin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mode {
    /// The top of the peak; for one of less than a thousandth, a point near it.
    pub place: LatLon,
    /// Logarithm of the density per steradian there.
    pub log_density: f64,
    /// Probability of the basin: all places from which the way up leads here.
    pub mass: f64,
}

/// All modes of a density, the heaviest first. Their masses sum to one; modes of less than a
/// millionth are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Modes {
    /// The modes, the heaviest first.
    pub modes: Vec<Mode>,
    /// Peaks that rise less than this above the pass to a higher one count as part of it.
    pub prominence_nats: f64,
    /// Width in km of the kernel that spread point masses, if there were any.
    pub kernel_km: Option<f64>,
}

impl Survey<'_> {
    /// The modes whose prominence is at least half a nat: the density falls by a factor of
    /// 1.6 between them.
    pub fn modes(&self) -> Modes {
        self.modes.get_or_init(|| self.modes_with_prominence(0.5)).clone()
    }

    /// The modes that rise at least `prominence_nats` above the pass to a higher one.
    pub fn modes_with_prominence(&self, prominence_nats: f64) -> Modes {
        let meter = Meter::current();
        let points = Points::new(self);
        let basins = points.flood(prominence_nats);
        let mut modes: Vec<Mode> = basins
            .into_iter()
            .filter(|basin| basin.mass > NEGLIGIBLE_MASS)
            .map(|Basin { top, mass }| {
                let (place, spacing) = points.place(top);
                let place = middle_of_plateau(self.density, place);
                if mass > CLIMBED_MASS && meter.goes_on() {
                    let (place, log_density) = self.climb(place, spacing);
                    Mode { place, log_density, mass }
                } else {
                    Mode { place, log_density: points.heights[top] + self.shift, mass }
                }
            })
            .collect();
        modes.sort_by(|a, b| b.mass.total_cmp(&a.mass));
        Modes { modes, prominence_nats, kernel_km: self.density.kernel_km() }
    }
}

struct Basin {
    top: usize,
    mass: f64,
}

/// The points of the cells that have mass: number 64·cell + 8·row + column.
struct Points<'s, 'a> {
    survey: &'s Survey<'a>,
    /// Numbers of the leaves that have mass, and the reverse.
    leaves: Vec<usize>,
    cell_of_leaf: Vec<usize>,
    heights: Vec<f64>,
    masses: Vec<f64>,
}

/// What the lightest cells may hold together to be left out.
const NEGLIGIBLE_REST: f64 = 5e-4;
/// Tops of modes with less are not climbed to.
const CLIMBED_MASS: f64 = 1e-3;
/// Modes with less are left out.
const NEGLIGIBLE_MASS: f64 = 1e-6;
const NOWHERE: usize = usize::MAX;
const CELL: usize = POINTS * POINTS;

impl<'s, 'a> Points<'s, 'a> {
    fn new(survey: &'s Survey<'a>) -> Points<'s, 'a> {
        let all = &survey.mesh.leaves;
        // The lightest leaves, a two-thousandth together, aren't worth their time.
        let mut leaves: Vec<usize> = (0..all.len()).filter(|k| all[*k].mass > 0.0).collect();
        leaves.sort_by(|a, b| all[*b].mass.total_cmp(&all[*a].mass));
        let mut rest = 1.0;
        leaves.retain(|k| {
            let kept = rest > NEGLIGIBLE_REST;
            rest -= all[*k].mass;
            kept
        });
        let mut cell_of_leaf = vec![NOWHERE; all.len()];
        // There may be millions of points: they are moved nowhere.
        let [mut heights, mut masses] = [(); 2].map(|()| Vec::with_capacity(leaves.len() * CELL));
        for (cell, leaf) in leaves.iter().enumerate() {
            cell_of_leaf[*leaf] = cell;
            let leaf = &all[*leaf];
            let values = (0..CELL).map(|k| {
                let (i, j) = (k / POINTS, k % POINTS);
                if leaf.sheet.share(i, j) > 0.0 {
                    leaf.sheet.values[i][j]
                } else {
                    f64::NEG_INFINITY
                }
            });
            heights.extend(values);
            masses.extend(survey.node_masses(leaf).as_flattened());
        }
        Points { survey, leaves, cell_of_leaf, heights, masses }
    }

    /// A point's place, and its distance to its neighbours in radians.
    fn place(&self, number: usize) -> (LatLon, f64) {
        let (tiling, points) = (self.survey.mesh.tiling, Rule::get().points);
        let id = self.survey.mesh.leaves[self.leaves[number / CELL]].id;
        let (theta, phi) =
            tiling.point(id, points[number % CELL / POINTS], points[number % POINTS]);
        (place_at(theta, phi), 0.15 * tiling.height(id.level))
    }

    /// Links between points of different cells, both ways.
    fn links_between_cells(&self) -> Links {
        let (mesh, points) = (&self.survey.mesh, Rule::get().points);
        let mut links = Vec::with_capacity(self.leaves.len() * 4 * POINTS);
        for (cell, leaf) in self.leaves.iter().enumerate() {
            let id = mesh.leaves[*leaf].id;
            // A little beyond the border.
            let (before, after) = (-1e-6, 1.0 + 1e-6);
            for (k, along) in points.iter().enumerate() {
                let last = POINTS - 1;
                let sides = [
                    (k, (before, *along)),
                    (last * POINTS + k, (after, *along)),
                    (k * POINTS, (*along, before)),
                    (k * POINTS + last, (*along, after)),
                ];
                for (number, (down, right)) in sides {
                    let (theta, phi) = mesh.tiling.point(id, down, right);
                    if let Some(other) = self.nearest(theta, phi) {
                        links.push([(cell * CELL + number) as u32, other as u32]);
                    }
                }
            }
        }
        Links::new(self.heights.len(), &links)
    }

    /// The point of a cell with mass that is nearest in its own cell.
    fn nearest(&self, theta: f64, phi: f64) -> Option<usize> {
        use std::f64::consts::{PI, TAU};
        // Over a pole the way goes on along the opposite meridian.
        let (theta, phi) = if theta < 0.0 {
            (-theta, phi + PI)
        } else if theta > PI {
            (TAU - theta, phi + PI)
        } else {
            (theta, phi)
        };
        let phi = (phi + PI).rem_euclid(TAU) - PI;
        let mesh = &self.survey.mesh;
        let leaf = mesh.number_at(theta, phi);
        let cell = self.cell_of_leaf[leaf];
        if cell == NOWHERE {
            return None;
        }
        let id = mesh.leaves[leaf].id;
        let (north, west) = mesh.tiling.corner(id);
        let (height, width) = (mesh.tiling.height(id.level), mesh.tiling.width(id));
        let points = Rule::get().points;
        let nearest = |fraction: f64| {
            let distance = |k: &usize| (points[*k] - fraction).abs();
            (0..POINTS).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
        };
        let (row, column) = (nearest((theta - north) / height), nearest((phi - west) / width));
        Some(cell * CELL + row * POINTS + column)
    }

    /// The points of the same cell next to a point, and the point itself.
    fn around(number: usize) -> impl Iterator<Item = usize> {
        let (row, column) = (number % CELL / POINTS, number % POINTS);
        let (rows, columns) = (
            row.saturating_sub(1)..(row + 2).min(POINTS),
            column.saturating_sub(1)..(column + 2).min(POINTS),
        );
        let first = number / CELL * CELL;
        rows.flat_map(move |i| columns.clone().map(move |j| first + i * POINTS + j))
    }

    /// Whether a point is above another; of equal ones, the first is.
    fn is_above(&self, a: usize, b: usize) -> bool {
        self.heights[a] > self.heights[b] || self.heights[a] == self.heights[b] && a < b
    }

    fn flood(&self, prominence_nats: f64) -> Vec<Basin> {
        let links = self.links_between_cells();
        let count = self.heights.len();
        let neighbours = |number: usize| {
            Self::around(number).chain(links.of(number).iter().map(|other| *other as usize))
        };
        // From each point to its highest neighbour, and on to the top.
        let mut ways = Ways { parents: (0..count).collect() };
        for number in (0..count).filter(|number| self.heights[*number] > f64::NEG_INFINITY) {
            ways.parents[number] = neighbours(number)
                .fold(number, |best, other| if self.is_above(other, best) { other } else { best });
        }
        let points = (0..count).filter(|number| self.heights[*number] > f64::NEG_INFINITY);
        let mut tops: Vec<usize> =
            points.clone().filter(|number| ways.parents[*number] == *number).collect();
        tops.sort_unstable_by(|a, b| self.heights[*b].total_cmp(&self.heights[*a]).then(a.cmp(b)));
        let mut basin_of = vec![NOWHERE; count];
        for (basin, top) in tops.iter().enumerate() {
            basin_of[*top] = basin;
        }
        points.clone().for_each(|number| basin_of[number] = basin_of[ways.root(number)]);
        // The highest pass between any two basins that touch.
        let mut passes: HashMap<(usize, usize), f64> = HashMap::new();
        for number in points.clone() {
            let (basin, height) = (basin_of[number], self.heights[number]);
            for other in neighbours(number) {
                // Of two neighbours, the lower one is the pass.
                if basin_of[other] != basin && self.is_above(other, number) {
                    let pair = (basin.min(basin_of[other]), basin.max(basin_of[other]));
                    let pass = passes.entry(pair).or_insert(height);
                    *pass = pass.max(height);
                }
            }
        }
        let mut passes: Vec<((usize, usize), f64)> = passes.into_iter().collect();
        passes.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut basins = Ways { parents: (0..tops.len()).collect() };
        for ((a, b), height) in passes {
            // Basins are in the order of their tops' heights.
            let (a, b) = (basins.root(a), basins.root(b));
            let (higher, lower) = (a.min(b), a.max(b));
            if self.heights[tops[lower]] - height < prominence_nats {
                basins.parents[lower] = higher;
            }
        }
        let mut masses = vec![0.0; tops.len()];
        for number in points {
            masses[basins.root(basin_of[number])] += self.masses[number];
        }
        let total: f64 = masses.iter().sum();
        let roots = (0..masses.len()).filter(|k| basins.parents[*k] == *k);
        roots.map(|k| Basin { top: tops[k], mass: masses[k] / total }).collect()
    }
}

/// Which other points each point is linked to.
struct Links {
    /// Where the links of each point begin, and where the last ones end.
    starts: Vec<u32>,
    others: Vec<u32>,
}

impl Links {
    fn new(points: usize, pairs: &[[u32; 2]]) -> Links {
        let mut starts = vec![0; points + 1];
        for end in pairs.as_flattened() {
            starts[*end as usize + 1] += 1;
        }
        for point in 0..points {
            starts[point + 1] += starts[point];
        }
        let (mut next, mut others) = (starts.clone(), vec![0; 2 * pairs.len()]);
        for [a, b] in pairs {
            for (from, to) in [(a, b), (b, a)] {
                others[next[*from as usize] as usize] = *to;
                next[*from as usize] += 1;
            }
        }
        Links { starts, others }
    }

    fn of(&self, point: usize) -> &[u32] {
        &self.others[self.starts[point] as usize..self.starts[point + 1] as usize]
    }
}

/// What leads from each point or basin to a higher one; tops lead to themselves.
struct Ways {
    parents: Vec<usize>,
}

impl Ways {
    fn root(&mut self, mut basin: usize) -> usize {
        while self.parents[basin] != basin {
            self.parents[basin] = self.parents[self.parents[basin]];
            basin = self.parents[basin];
        }
        basin
    }
}

/// Of a density that is constant around a place, the middle of where it is; otherwise the place.
fn middle_of_plateau(density: &Density, place: LatLon) -> LatLon {
    let middles = density.plateaus(place);
    if middles.is_empty() {
        return place;
    }
    let here = density.log_density(place);
    let heights = middles.into_iter().map(|middle| (density.log_density(middle), middle));
    let highest = heights.filter(|(log, _)| *log >= here).max_by(|a, b| a.0.total_cmp(&b.0));
    highest.map_or(place, |(_, middle)| middle)
}

impl Survey<'_> {
    /// The way up from a place, with first steps of this length in radians: by interpolation, which is quick, and the rest of it by
    /// the density itself.
    fn climb(&self, start: LatLon, step: f64) -> (LatLon, f64) {
        let precision = (1e-3 * step).max(1e-7);
        let interpolated = |place: LatLon| self.interpolated_log_density(place);
        let near = maximise(start, step, 0.02 * step, interpolated).0;
        maximise(near, 0.02 * step, precision, |place| self.density.log_density(place))
    }
}
