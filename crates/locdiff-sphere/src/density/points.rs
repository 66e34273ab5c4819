//! Point masses, and what they are once a kernel has spread them.
//!
//! Points have no density, so no regions, modes or likelihood. All of that exists after an
//! explicit choice: [`PointMasses::spread`] with a von Mises-Fisher kernel, whose width
//! every result states. One part in a million is spread over the whole Earth, so that a
//! place far from every point is improbable (16 nats), not impossible, and not absurdly so.

use std::f64::consts::{PI, TAU};
use std::sync::{Arc, OnceLock};

use super::kernel_sums::KernelSums;
use super::{Density, InvalidDensity, log_shares, log_sum_exp};
use crate::cells::{CellId, POINTS, Rule, Tiling, unit_vector};
use crate::mesh::{Mesh, Sheet, Sheets};
use crate::{Area, EARTH_RADIUS_KM, LatLon, PlaceIndex, UNIFORM_NLL_NATS, UnitVector};

/// The part that is spread over the whole Earth.
const BACKGROUND: f64 = 1e-6;
/// Beyond so many widths the kernel is exp(−40) of its middle, far below the background.
const REACH_WIDTHS: f64 = 9.0;
/// Around a point cells are fine to so many widths: beyond it lies a ten-thousandth.
const FINE_WIDTHS: f64 = 4.3;
/// Cells of so many widths resolve the kernel.
const CELL_WIDTHS: f64 = 4.0;
/// Points that hold less than this part of the mass, all together, don't ask for fine cells.
const NEGLIGIBLE_MASS: f64 = 2e-4;
/// Points farther from a cell than so many widths are looked at only if they could matter there.
const NEAR_WIDTHS: f64 = 5.0;
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
    /// A kernel of this width.
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

    /// log of the kernel between two points.
    fn log_value(self, a: [f64; 3], b: [f64; 3]) -> f64 {
        let squared_chord: f64 = (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum();
        self.log_peak() - 0.5 * self.concentration() * squared_chord
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

    /// The places.
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
        let vectors = self.places.iter().map(|place| UnitVector::from(*place).to_array()).collect();
        let (heavy, heavy_weights) = self.heavy_among((0..self.len()).collect());
        Density::PointMasses(SpreadPoints {
            heavy,
            heavy_weights,
            index: Arc::new(PlaceIndex::new(&self.places)),
            vectors,
            points: self,
            kernel,
            mesh: OnceLock::new(),
        })
    }
}

impl PointMasses {
    /// Those of some points that hold nearly all of their mass, and their weights.
    fn heavy_among(&self, mut numbers: Vec<usize>) -> (Arc<PlaceIndex>, Arc<[f64]>) {
        let weight = |number: &usize| self.log_weights[*number].exp();
        let negligible = NEGLIGIBLE_MASS * numbers.iter().map(weight).sum::<f64>();
        // The light ones, by ascending weight, until they amount to something.
        numbers.sort_by(|a, b| self.log_weights[*a].total_cmp(&self.log_weights[*b]));
        let mut sum = 0.0;
        let light = numbers.iter().take_while(|number| {
            sum += weight(number);
            sum < negligible
        });
        let heavy = &numbers[light.count()..];
        let places: Vec<LatLon> = heavy.iter().map(|number| self.places[*number]).collect();
        (Arc::new(PlaceIndex::new(&places)), heavy.iter().map(weight).collect())
    }
}

/// Point masses spread by a kernel.
#[derive(Debug, Clone)]
pub struct SpreadPoints {
    points: PointMasses,
    vectors: Vec<[f64; 3]>,
    kernel: Kernel,
    index: Arc<PlaceIndex>,
    /// The points that hold nearly all of the mass, and their weights.
    heavy: Arc<PlaceIndex>,
    heavy_weights: Arc<[f64]>,
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
        let near = |place: LatLon| {
            let around = (0..8).flat_map(|k| {
                [0.5, 1.0].map(|part| place.destination(45.0 * f64::from(k), part * reach_km))
            });
            area.contains(place) || around.into_iter().any(|place| area.contains(place))
        };
        let numbers = (0..self.points.len()).filter(|number| near(self.points.places[*number]));
        let (heavy, heavy_weights) = self.points.heavy_among(numbers.collect());
        SpreadPoints { heavy, heavy_weights, mesh: OnceLock::new(), ..self.clone() }
    }

    pub(super) fn log_density(&self, place: LatLon) -> f64 {
        let here = UnitVector::from(place).to_array();
        let near: Vec<usize> =
            self.index.within(place, REACH_WIDTHS * self.kernel.width()).collect();
        self.log_sum(here, &near)
    }

    /// The background and what points nearby add to it.
    fn log_sum(&self, here: [f64; 3], near: &[usize]) -> f64 {
        let background = BACKGROUND.ln() - UNIFORM_NLL_NATS;
        let points = near.iter().map(|number| {
            let share = (1.0 - BACKGROUND).ln() + self.points.log_weights[*number];
            share + self.kernel.log_value(here, self.vectors[*number])
        });
        log_sum_exp(points.chain([background]))
    }

    /// Such that some level of cells is just as fine as the kernel needs.
    pub(super) fn base(&self) -> u32 {
        let mut rings = PI / (CELL_WIDTHS * self.kernel.width());
        while rings > 16.0 {
            rings *= 0.5;
        }
        (rings.ceil() as u32).max(2)
    }

    pub(super) fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        Box::new(PointSheets { points: self, tiling })
    }
}

struct PointSheets<'a> {
    points: &'a SpreadPoints,
    tiling: Tiling,
}

impl Sheets for PointSheets<'_> {
    fn must_split(&mut self, id: CellId) -> Option<f64> {
        let width = self.points.kernel.width();
        if self.tiling.size(id) <= CELL_WIDTHS * width {
            return None;
        }
        let middle = LatLon::from(self.tiling.middle(id));
        let reach = self.tiling.reach(id) + FINE_WIDTHS * width;
        let near = self.points.heavy.within(middle, reach);
        near.map(|number| self.points.heavy_weights[number]).reduce(|sum, weight| sum + weight)
    }

    fn sheet(&mut self, id: CellId) -> Sheet {
        let SpreadPoints { kernel, index, vectors, points, .. } = self.points;
        let (middle, cell_reach) = (self.tiling.middle(id), self.tiling.reach(id));
        let width = kernel.width();
        let places = Rule::get().points;
        let here = |k: usize| {
            let (theta, phi) = self.tiling.point(id, places[k / POINTS], places[k % POINTS]);
            unit_vector(theta, phi).to_array()
        };
        let mut sums =
            KernelSums::new(middle.to_array(), kernel.concentration(), std::array::from_fn(here));
        // Everything in units of the kernel's peak.
        let mut far: Vec<usize> = Vec::new();
        let mut bound = 0.0;
        for number in index.within(LatLon::from(middle), cell_reach + REACH_WIDTHS * width) {
            let squared_chord: f64 =
                (0..3).map(|axis| (vectors[number][axis] - middle.to_array()[axis]).powi(2)).sum();
            let gap_widths = (squared_chord.sqrt() - cell_reach) / width;
            if gap_widths < NEAR_WIDTHS {
                sums.push(vectors[number], points.log_weights[number]);
            } else {
                far.push(number);
                bound += (points.log_weights[number] - 0.5 * gap_widths * gap_widths).exp();
            }
        }
        let background = (BACKGROUND.ln() - UNIFORM_NLL_NATS - kernel.log_peak()).exp();
        let share = 1.0 - BACKGROUND;
        let least = sums.take().iter().copied().fold(f64::INFINITY, f64::min);
        if bound > NEGLIGIBLE_PART * (share * least + background) {
            far.iter().for_each(|number| sums.push(vectors[*number], points.log_weights[*number]));
        }
        let value = |sum: f64| (share * sum + background).ln() + kernel.log_peak();
        let sums = sums.take();
        Sheet::open(std::array::from_fn(|i| std::array::from_fn(|j| value(sums[POINTS * i + j]))))
    }
}
