//! Credible regions: the smallest part of the Earth that holds a given probability.
//!
//! It is the set of the most probable places, {u: q(u) ≥ threshold}. Places of equal density
//! are taken from south to north, so that even the uniform density has a region of every
//! level: the order is by log q(u) − ε·sin(latitude).

use std::sync::PoisonError;

use super::patch::{Patch, Point};
use super::radii::weighted_quantile;
use super::root::root_of_falling;
use super::{Border, Extent, REMEMBERED, Range, SMALL, Survey};
use crate::area::Cover;
use crate::budget::Meter;
use crate::cells::{CellId, Rule, Tiling};
use crate::{DensityOutcome, LatLon};

/// Densities that differ by less than this part are equal.
pub(super) const TIE: f64 = 1e-7;
/// A region's probability is right to this.
const MASS_TOLERANCE: f64 = 3e-4;
/// Levels so far apart tell how fast the probability falls with the rank.
const FIRST_STEP: f64 = 1e-2;
/// Where the density jumps, its points tell less of what is between them.
const SMALL_STEPPED: Extent = Extent { mass: 5e-4, area: 1.2e-3 };

/// A credible region: the smallest part of the Earth that holds a given probability.
#[derive(Debug, Clone)]
pub struct Region<'a> {
    pub(super) survey: Survey<'a>,
    level: f64,
    pub(super) threshold: f64,
    pub(super) extent: Extent,
}

impl<'a> Survey<'a> {
    /// The smallest region that holds a probability.
    ///
    /// # Panics
    /// If the level is not between 0 and 1.
    pub fn region(&self, level: f64) -> Region<'a> {
        assert!((0.0..=1.0).contains(&level), "a region of probability {level}: 0 to 1");
        let (threshold, extent) = self.threshold(level);
        Region { survey: self.clone(), level, threshold, extent }
    }

    /// Scores of the density at the true place: its likelihood, and the smallest region
    /// that holds it.
    pub fn outcome(&self, truth: LatLon) -> DensityOutcome {
        let nll_nats = self.density().nll_nats(truth);
        let extent = if nll_nats == f64::INFINITY {
            Extent { mass: 1.0, area: 4.0 * std::f64::consts::PI }
        } else {
            self.extent(&self.level_set(self.rank(truth)))
        };
        DensityOutcome {
            nll_nats,
            level: extent.mass.min(1.0),
            searched_area_km2: extent.area_km2(),
        }
    }

    /// By which places are taken into regions, the highest first.
    fn rank(&self, place: LatLon) -> f64 {
        self.log_density(place) - TIE * place.latitude().to_radians().sin()
    }

    pub(super) fn level_set(&self, threshold: f64) -> LevelSet {
        LevelSet {
            threshold,
            tiling: self.mesh.tiling,
            small: if self.has_steps { SMALL_STEPPED } else { SMALL },
        }
    }

    /// The rank from which on places hold a probability, and what they are.
    fn threshold(&self, level: f64) -> (f64, Extent) {
        let remembered = || self.thresholds.lock().unwrap_or_else(PoisonError::into_inner);
        let known = remembered().iter().find(|(of, ..)| *of == level).copied();
        if let Some((_, threshold, extent)) = known {
            return (threshold, extent);
        }
        let (threshold, extent) = self.find_threshold(level);
        let mut remembered = remembered();
        if remembered.len() < REMEMBERED && Meter::current().goes_on() {
            remembered.push((level, threshold, extent));
        }
        (threshold, extent)
    }

    fn find_threshold(&self, level: f64) -> (f64, Extent) {
        // All points by rank give a first guess, and how fast the probability falls with the rank, which differs by many orders:
        // flat densities differ by their latitudes only.
        let nodes = self.nodes().points.iter();
        let mut falling: Vec<(f64, f64)> = nodes.map(|node| (-node.rank, node.mass)).collect();
        let mut rank = |level: f64| -weighted_quantile(&mut falling, level);
        let guess = rank(level);
        let apart = rank(level - FIRST_STEP) - rank(level + FIRST_STEP);
        let apart = if apart.is_finite() { apart.clamp(1e-4 * TIE, 1.0) } else { 1.0 };
        let everywhere = [f64::NEG_INFINITY, f64::INFINITY];
        let mut extent = Extent::default();
        let slope = -2.0 * FIRST_STEP / apart;
        let (threshold, _) =
            root_of_falling(guess, slope, everywhere, MASS_TOLERANCE, |threshold| {
                extent = self.extent(&self.level_set(threshold));
                extent.mass - level
            });
        (threshold, extent)
    }
}

impl Region<'_> {
    /// The probability that was asked for.
    pub fn level(&self) -> f64 {
        self.level
    }

    /// The probability that the region holds, as measured.
    pub fn probability(&self) -> f64 {
        self.extent.mass
    }

    /// Area on a sphere with the Earth's mean radius.
    pub fn area_km2(&self) -> f64 {
        self.extent.area_km2()
    }

    /// Whether the rim runs through places of equal density, so that it is where it is by convention only: a picture without it shows more.
    pub fn has_arbitrary_rim(&self) -> bool {
        // Latitudes change ranks by up to one tie to both sides.
        let higher = self.survey.level_set(self.threshold + 2.5 * TIE);
        self.survey.extent(&higher).mass < self.extent.mass - 0.05
    }

    /// The log-density at the region's rim: higher ones are inside.
    pub fn rim_log_density(&self) -> f64 {
        self.threshold + self.survey.shift
    }

    /// Whether a place lies in the region. The density is asked at that place.
    pub fn contains(&self, place: LatLon) -> bool {
        self.survey.rank(place) >= self.threshold
    }

    /// Width in km of the kernel that spread point masses, if there were any.
    pub fn kernel_km(&self) -> Option<f64> {
        self.survey.density.kernel_km()
    }
}

pub(super) fn rank_of(point: &Point) -> f64 {
    point.log_density - TIE * point.theta.cos()
}

pub(super) struct LevelSet {
    threshold: f64,
    tiling: Tiling,
    small: Extent,
}

impl Border for LevelSet {
    fn cover(&self, id: CellId, Range { lowest, highest }: Range) -> Cover {
        // Between and beyond the points there may be a little more.
        let margin = if lowest.is_finite() { 0.1 * (highest - lowest) + 1e-3 * TIE } else { 1.0 };
        let (north, height) = (self.tiling.corner(id).0, self.tiling.height(id.level));
        if lowest - margin - TIE * north.cos() >= self.threshold {
            Cover::Inside
        } else if highest + margin - TIE * (north + height).cos() < self.threshold {
            Cover::Outside
        } else {
            Cover::Cut
        }
    }

    fn share(&self, patch: &Patch, point: &Point) -> f64 {
        let above = rank_of(point) - self.threshold;
        // Ranks around the point vary by about so much; without it, all points of a line
        // along the border would change sides at once.
        let height = Rule::get().weights[point.index.0] * self.tiling.height(patch.id.level);
        let variation = patch.variation(point) + TIE * point.theta.sin() * height;
        if above.is_finite() { (0.5 + above / variation).clamp(0.0, 1.0) } else { 0.0 }
    }

    fn small(&self, _patch: &Patch) -> Extent {
        self.small
    }
}
