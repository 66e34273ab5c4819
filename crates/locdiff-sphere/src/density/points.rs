//! Point masses, and what they are once a kernel has spread them.
//!
//! Points have no density, so no regions, modes or likelihood. All of that exists after an
//! explicit choice: [`PointMasses::spread`] with a von Mises-Fisher kernel, whose width
//! every result states. One part in a million is spread over the whole Earth, so that a
//! place far from every point is improbable (16 nats), not impossible, and not absurdly so.

use std::collections::HashMap;
use std::f64::consts::{PI, TAU};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, OnceLock};

use super::kernel_sums::KernelSums;
use super::{Density, InvalidDensity, log_shares};
use crate::area::{Cover, Rectangle};
use crate::cells::{CellId, POINTS, Tiling};
use crate::mesh::{Mesh, Sheet, Sheets};
use crate::{Area, EARTH_RADIUS_KM, LatLon, PlaceIndex, UNIFORM_NLL_NATS, UnitVector};

/// The part that is spread over the whole Earth.
const BACKGROUND: f64 = 1e-6;
/// Beyond so many widths the kernel is exp(−40) of its middle, far below the background.
const REACH_WIDTHS: f64 = 9.0;
/// Around a point cells are fine to so many widths: beyond it lies a ten-thousandth.
const FINE_WIDTHS: f64 = 4.3;
/// Cells that may miss no more than this part of the points' mass are fine.
const FINE_PART: f64 = 3e-4;
/// Cells of so many widths are that fine, even if they are a little wider than high.
const CELL_WIDTHS: f64 = 5.0;
/// Where there is more probability than this around a cell, it is to be drawn too, and as wide as so many widths at most.
const DRAWN_MASS: f64 = 1e-3;
const DRAWN_WIDTHS: f64 = 4.0;
/// Kernels that are wider than this, in radians, are not flat over a cell.
const FLAT_WIDTH: f64 = 0.08;
/// Points farther from a cell than so many widths are looked at only if they could matter there.
const NEAR_WIDTHS: f64 = 5.0;
/// Points in boxes of so many widths are summed as one, if there are more than a few.
const MERGED_WIDTHS: f64 = 0.1;
const FEW_POINTS: usize = 500;
/// What a point that is summed at a cell's places costs, in cells.
pub(crate) const POINTS_PER_CELL: f64 = 2.5e-3;
/// What they may add to the density without mattering, as a part of it.
const NEGLIGIBLE_PART: f64 = 2e-5;

/// A von Mises-Fisher kernel: the normal distribution of the sphere.
///
/// # Units
/// The width is the standard deviation along each axis, in km.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kernel {
    width_km: f64,
}

impl Default for Kernel {
    /// 25 km: the "city level" of the benchmarks.
    fn default() -> Kernel {
        Kernel { width_km: 25.0 }
    }
}

impl Kernel {
    /// A von Mises-Fisher kernel with this standard deviation along each axis.
    pub fn new(width_km: f64) -> Result<Kernel, InvalidDensity> {
        if (0.01..=5000.0).contains(&width_km) {
            Ok(Kernel { width_km })
        } else {
            Err(InvalidDensity::Kernel(width_km))
        }
    }

    /// Standard deviation along each axis, in km.
    pub fn width_km(self) -> f64 {
        self.width_km
    }

    fn width(self) -> f64 {
        self.width_km / EARTH_RADIUS_KM
    }

    fn concentration(self) -> f64 {
        self.width().powi(-2)
    }

    /// log of the kernel per steradian at its middle: κ / 2π(1 − exp(−2κ)).
    fn log_peak(self) -> f64 {
        let k = self.concentration();
        (k / (TAU * -(-2.0 * k).exp_m1())).ln()
    }
}

/// Places with weights that sum to one, for example a gallery scored by a model.
///
/// Such masses carry the gallery's prior: where it has no places, nothing can be found.
#[derive(Debug, Clone, PartialEq)]
pub struct PointMasses {
    places: Vec<LatLon>,
    log_weights: Vec<f64>,
}

impl PointMasses {
    /// Places with weights, which are scaled to sum to one.
    pub fn new(places: Vec<LatLon>, weights: &[f64]) -> Result<PointMasses, InvalidDensity> {
        if places.is_empty() {
            return Err(InvalidDensity::Empty("points"));
        }
        if places.len() != weights.len() {
            let (count, weights) = (places.len(), weights.len());
            return Err(InvalidDensity::Lengths { what: "places", count, weights });
        }
        Ok(PointMasses { places, log_weights: log_shares("weight", weights)? })
    }

    /// Places with logits: weights are their softmax.
    pub fn from_logits(places: Vec<LatLon>, logits: &[f64]) -> Result<PointMasses, InvalidDensity> {
        let highest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logits.iter().map(|logit| (logit - highest).exp()).collect();
        PointMasses::new(places, &weights)
    }

    /// Places, in the order of [`PointMasses::weights`].
    pub fn places(&self) -> &[LatLon] {
        &self.places
    }

    /// The weight of each place.
    pub fn weights(&self) -> impl Iterator<Item = f64> {
        self.log_weights.iter().map(|log| log.exp())
    }

    /// Number of places.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Never: there is at least one.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The density of a point drawn from these and moved by the kernel, with a millionth of
    /// the uniform density mixed in.
    pub fn spread(self, kernel: Kernel) -> Density {
        let sources = Sources::merged(&self, kernel.width());
        Density::PointMasses(SpreadPoints {
            sources: Arc::new(sources),
            each: Arc::default(),
            stakes: None,
            points: Arc::new(self),
            kernel,
            mesh: OnceLock::new(),
        })
    }
}

/// What kernels are around, in the order of an index.
#[derive(Debug)]
struct Sources {
    index: PlaceIndex,
    places: Vec<LatLon>,
    weights: Vec<f64>,
    log_weights: Vec<f64>,
    /// The square of the kernel's width over that of this source's.
    sharpness: Vec<f64>,
    log_heaviest: f64,
}

impl Sources {
    /// Places with weights and sharpnesses.
    fn new(mut sources: Vec<(LatLon, f64, f64)>) -> Sources {
        let places: Vec<LatLon> = sources.iter().map(|(place, ..)| *place).collect();
        let index = PlaceIndex::new(&places);
        sources = index.numbers().map(|number| sources[number]).collect();
        let log_weights: Vec<f64> = sources.iter().map(|(_, weight, _)| weight.ln()).collect();
        Sources {
            index,
            places: sources.iter().map(|(place, ..)| *place).collect(),
            weights: sources.iter().map(|(_, weight, _)| *weight).collect(),
            sharpness: sources.iter().map(|(.., sharpness)| *sharpness).collect(),
            log_heaviest: log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            log_weights,
        }
    }

    /// One source for each point.
    fn each(points: &PointMasses) -> Sources {
        let weights = points.places.iter().zip(points.weights());
        Sources::new(weights.map(|(place, weight)| (*place, weight, 1.0)).collect())
    }

    /// Points within a small part of the width as one, at their middle, whose kernel is wider by as much as they are apart: sums of
    /// kernels are right to second order.
    fn merged(points: &PointMasses, width: f64) -> Sources {
        if points.len() < FEW_POINTS {
            return Sources::each(points);
        }
        // Sums of weights, and of weighted coordinates and their squares, from the middle of a box.
        let mut boxes: HashMap<[i32; 3], [f64; 5], BuildHasherDefault<BoxHash>> =
            HashMap::default();
        let side = MERGED_WIDTHS * width;
        for (place, weight) in points.places.iter().zip(points.weights()) {
            let vector = UnitVector::from(*place).to_array();
            let key = vector.map(|x| (x / side).floor() as i32);
            let sums = boxes.entry(key).or_default();
            let from_middle: [f64; 3] =
                std::array::from_fn(|axis| vector[axis] - (f64::from(key[axis]) + 0.5) * side);
            sums[0] += weight;
            for axis in 0..3 {
                sums[1 + axis] += weight * from_middle[axis];
                sums[4] += weight * from_middle[axis] * from_middle[axis];
            }
        }
        if boxes.len() * 10 > points.len() * 9 {
            return Sources::each(points);
        }
        let mut boxes: Vec<([i32; 3], [f64; 5])> = boxes.into_iter().collect();
        boxes.sort_unstable_by_key(|(key, _)| *key);
        let merged = boxes.into_iter().filter(|(_, sums)| sums[0] > 0.0).map(|(key, sums)| {
            let mean: [f64; 3] = std::array::from_fn(|axis| sums[1 + axis] / sums[0]);
            let squares = sums[4] / sums[0] - mean.iter().map(|x| x * x).sum::<f64>();
            // Along each of two axes, in squares of the width.
            let variance = 0.5 * squares.max(0.0) / (width * width);
            let place =
                std::array::from_fn(|axis| (f64::from(key[axis]) + 0.5) * side + mean[axis]);
            let place = UnitVector::from_direction(place).unwrap_or(UnitVector::NORTH);
            let sharpness = 1.0 / (1.0 + variance);
            (LatLon::from(place), sums[0] * sharpness, sharpness)
        });
        Sources::new(merged.collect())
    }
}

/// Boxes need no protection against an attacker who chooses them: that would take as many points as there may be.
#[derive(Default)]
struct BoxHash(u64);

impl Hasher for BoxHash {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let number = chunk.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        }
    }
}

/// Point masses spread by a kernel.
#[derive(Debug, Clone)]
pub struct SpreadPoints {
    points: Arc<PointMasses>,
    kernel: Kernel,
    /// What cells are computed from.
    sources: Arc<Sources>,
    /// Every point for itself, made when a single place is asked for.
    each: Arc<OnceLock<Sources>>,
    /// The weights of those sources that ask for fine cells, if not all do.
    stakes: Option<Arc<[f64]>>,
    /// Built when it is first asked for.
    pub(super) mesh: OnceLock<Arc<Mesh>>,
}

impl SpreadPoints {
    /// The points that were spread.
    pub fn points(&self) -> &PointMasses {
        &self.points
    }

    /// The kernel that spread them.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Points that hold less than this together change the log-density nowhere by more than `nats`, even if
    /// they all lie in one place.
    #[cfg(feature = "serde")]
    pub(super) fn negligible_mass(&self, nats: f64) -> f64 {
        let background = BACKGROUND.ln() - UNIFORM_NLL_NATS;
        nats * (background - self.kernel.log_peak()).exp().min(1.0)
    }

    /// The same, with fine cells only for what lies in an area or within reach of it, as far as it matters there.
    pub(super) fn focused_on(&self, area: &Area) -> SpreadPoints {
        let reach_km = FINE_WIDTHS * self.kernel.width_km();
        let near = |place: LatLon| match area.cover(&around(place, reach_km)) {
            Cover::Inside => true,
            Cover::Outside => false,
            Cover::Cut => {
                let around = (0..8).flat_map(|k| {
                    [0.5, 1.0].map(|part| place.destination(45.0 * f64::from(k), part * reach_km))
                });
                area.contains(place) || around.into_iter().any(|place| area.contains(place))
            }
        };
        let stake = |(place, weight): (&LatLon, &f64)| if near(*place) { *weight } else { 0.0 };
        let stakes = self.sources.places.iter().zip(&self.sources.weights).map(stake);
        SpreadPoints { stakes: Some(stakes.collect()), mesh: OnceLock::new(), ..self.clone() }
    }

    pub(super) fn log_density(&self, place: LatLon) -> f64 {
        let each = self.each.get_or_init(|| Sources::each(&self.points));
        let half_concentration = 0.5 * self.kernel.concentration();
        let mut sum = 0.0;
        let reach = REACH_WIDTHS * self.kernel.width();
        each.index.for_each_near(place.into(), reach, |position, _, squared_chord| {
            let log = each.log_weights[position] - each.log_heaviest;
            sum += (log - half_concentration * squared_chord).exp();
        });
        (sum + self.background(each)).ln() + self.log_unit(each)
    }

    /// The logarithm of what the heaviest source alone has at its place: sums of kernels are in units of it.
    fn log_unit(&self, sources: &Sources) -> f64 {
        (1.0 - BACKGROUND).ln() + sources.log_heaviest + self.kernel.log_peak()
    }

    /// What is spread over the whole Earth, in the same units.
    fn background(&self, sources: &Sources) -> f64 {
        (BACKGROUND.ln() - UNIFORM_NLL_NATS - self.log_unit(sources)).exp()
    }

    /// Such that some level of cells is just as fine as the kernel needs.
    pub(super) fn base(&self) -> u32 {
        let mut rings = PI / (CELL_WIDTHS * self.kernel.width());
        // Around many points, cells should be hardly smaller than that; around few, most cells are far from all of them.
        let most = if self.points.len() < FEW_POINTS { 4.0 } else { 16.0 };
        while rings > most {
            rings *= 0.5;
        }
        (rings.ceil() as u32).max(2)
    }

    pub(super) fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        let sums = KernelSums::new(self.kernel.width());
        Box::new(PointSheets { points: self, tiling, sums, far: Vec::new(), seen: 0, summed: 0 })
    }
}

/// A rectangle with all places within a distance; all longitudes if that is not between −180° and 180°.
fn around(place: LatLon, reach_km: f64) -> Rectangle {
    let reach = (reach_km / EARTH_RADIUS_KM).to_degrees();
    let (south, north) = (place.latitude() - reach, place.latitude() + reach);
    let (mut west, mut east) = (-180.0, 180.0);
    if south > -89.0 && north < 89.0 {
        let wide = reach / south.abs().max(north.abs()).to_radians().cos();
        let sides = (place.longitude() - wide, place.longitude() + wide);
        if sides.0 > -180.0 && sides.1 < 180.0 {
            (west, east) = sides;
        }
    }
    Rectangle { south: south.max(-90.0), west, north: north.min(90.0), east }
}

/// The part of a kernel that the points of a cell may miss along one side of so many widths: an upper bound of the error
/// of 8 Gauss points per cell for a normal distribution, wherever its middle is.
fn missed_part(widths: f64) -> f64 {
    (3.2e-5 * (widths / 6.0).powi(13)).min(1.0)
}

struct PointSheets<'a> {
    points: &'a SpreadPoints,
    tiling: Tiling,
    sums: KernelSums,
    /// Points that may not matter.
    far: Vec<(usize, [f64; 3])>,
    /// Points that were looked at, and those that were summed at a cell's places.
    seen: usize,
    summed: usize,
}

impl PointSheets<'_> {
    /// The part of the mass around a cell that its points may miss.
    fn missed(&self, id: CellId) -> f64 {
        let [height, width] = self.tiling.sides(id);
        let of = |side: f64| missed_part(side / self.points.kernel.width());
        (of(height) + of(width)).min(1.0)
    }
}

impl Sheets for PointSheets<'_> {
    fn must_split(&mut self, id: CellId) -> Option<f64> {
        let SpreadPoints { kernel, sources, stakes, .. } = self.points;
        let (width, reach) = (kernel.width(), self.tiling.reach(id));
        if self.tiling.size(id) <= DRAWN_WIDTHS * width {
            return None;
        }
        let stakes: &[f64] = stakes.as_ref().map_or(&sources.weights, |stakes| stakes);
        let (mut at_stake, mut seen) = (0.0, 0);
        sources.index.for_each_near(
            self.tiling.middle(id),
            reach + FINE_WIDTHS * width,
            |position, _, squared_chord| {
                let weight = stakes[position];
                seen += 1;
                // Beyond the cell's reach there is less of it in the cell.
                let gap = (squared_chord.sqrt() - reach).max(0.0) / width;
                at_stake += if gap > 1.0 { weight * (-0.5 * gap * gap).exp() } else { weight };
            },
        );
        self.seen += seen;
        if at_stake > DRAWN_MASS {
            return Some(at_stake);
        }
        let missed = self.missed(id);
        (at_stake > 0.0 && missed > FINE_PART).then_some(at_stake * missed)
    }

    fn take_cost(&mut self) -> f64 {
        let (seen, summed) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.summed));
        POINTS_PER_CELL * (summed as f64 + 0.1 * seen as f64)
    }

    fn sheet(&mut self, id: CellId) -> Sheet {
        let SpreadPoints { kernel, sources, .. } = self.points;
        let Sources { index, weights, log_weights, sharpness, log_heaviest, .. } = &**sources;
        let (middle, cell_reach) = (self.tiling.middle(id), self.tiling.reach(id));
        let width = kernel.width();
        let (sums, far) = (&mut self.sums, &mut self.far);
        far.clear();
        let (mut far_weight, mut started) = (0.0, false);
        let (background, log_unit) =
            (self.points.background(sources), self.points.log_unit(sources));
        let near_chord = (cell_reach + NEAR_WIDTHS * width).powi(2);
        index.for_each_near(
            middle,
            cell_reach + REACH_WIDTHS * width,
            |position, point, squared_chord| {
                if !started {
                    sums.start(middle.to_array(), self.tiling.directions(id));
                    started = true;
                }
                if squared_chord < near_chord {
                    self.summed += 1;
                    sums.push(point, log_weights[position] - log_heaviest, sharpness[position]);
                } else {
                    far.push((position, point));
                    far_weight += weights[position];
                }
            },
        );
        let missed = self.missed(id);
        let missed = (missed <= FINE_PART && width < FLAT_WIDTH).then_some(missed);
        if !started {
            let value = background.ln() + log_unit;
            return Sheet { missed, ..Sheet::open([[value; POINTS]; POINTS]) };
        }
        let (sums, far) = (&mut self.sums, &mut self.far);
        let least = f64::from(sums.take().iter().copied().fold(f32::INFINITY, f32::min));
        let bound = far_weight / log_heaviest.exp() * (-0.5 * NEAR_WIDTHS * NEAR_WIDTHS).exp();
        self.seen += far.len();
        if bound > NEGLIGIBLE_PART * (least + background) {
            self.summed += far.len();
            far.iter().for_each(|(position, point)| {
                sums.push(*point, log_weights[*position] - log_heaviest, sharpness[*position]);
            });
        }
        let sum = sums.take();
        let value = |k: usize| (f64::from(sum[k]) + background).ln() + log_unit;
        let values = std::array::from_fn(|i| std::array::from_fn(|j| value(POINTS * i + j)));
        Sheet { missed, ..Sheet::open(values) }
    }
}
