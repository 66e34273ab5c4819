//! The outline of a region as polygons.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::patch::Patch;
use super::region::{Region, TIE};
use super::{Border, Survey, angles};
use crate::area::Cover;
use crate::budget::Meter;
use crate::cells::{CellId, Tiling, place_at};
use crate::{LatLon, MultiPolygon, contour};

/// Leaves that the outline crosses are cut into 2^this strips each way.
const OUTLINE_DEPTH: u32 = 4;
/// No more cells than this are crossed by an outline, if the leaves allow it: each has about two corners of it.
const MOST_CROSSED: usize = 4_000;
/// So if the density has steps.
const MOST_CROSSED_OF_STEPS: usize = 8_000;
/// So often if the density is piecewise constant: its leaves are as wide as it is constant.
const OUTLINE_DEPTH_OF_STEPS: u32 = 12;
/// Between its steps such a density varies by latitude only, and by less than this on the way to a line of
/// equal rank 600 m away.
const STEPS: f64 = 1e-4 * TIE;
/// Mixtures and products with piecewise constant densities vary between their steps.
const BETWEEN_STEPS: f64 = 0.05;
/// Places so close to a step lie on it: half a metre.
const ON_A_STEP_DEGREES: f64 = 5e-6;
/// Patches of this part of a region's area show its outline by their corners: they are as wide as a sixtieth of it.
const FINE: f64 = 3e-4;
/// So if a border runs through them, which has corners.
const FINE_OF_BORDERS: f64 = 2e-5;
/// So if the density has steps, but varies between them.
const FINE_BETWEEN_STEPS: f64 = 1e-4;
/// So if the density is piecewise constant: there may be thousands of cells, each with its corners.
const FINE_OF_STEPS: f64 = 4e-5;

impl Region<'_> {
    /// The region as polygons, valid by RFC 7946: cut at the antimeridian, with the poles
    /// as edges. `None` if it is too small for polygons.
    pub fn outline(&self) -> Option<MultiPolygon> {
        let tiling = self.survey.mesh.tiling;
        let cells = self.cells_of_outline();
        let limit = self.survey.step_limit();
        let polygons = contour::outline(tiling.base as usize, &cells, |place| match limit {
            None => self.above(place),
            Some(limit) => self.above_or_on_a_step(place, limit),
        });
        if polygons.is_empty() { None } else { Some(MultiPolygon::from_valid(polygons)) }
    }

    /// How far the density at a place is above the rim.
    fn above(&self, place: LatLon) -> f64 {
        let (theta, phi) = angles(place);
        let leaf = self.survey.mesh.leaf_at(theta, phi);
        let log_density = self.survey.interpolated_in(leaf, place);
        log_density - TIE * place.latitude().to_radians().sin() - self.threshold
    }

    /// As [`Region::above`], for outlines of densities with steps. How high a step is doesn't tell where it is, so
    /// higher ones count as `limit`, and the outline runs through the middle between two places. A place on the step
    /// itself is next to nothing above the rim, and the outline runs through it: cells of the mesh often begin
    /// where cells of the density do.
    fn above_or_on_a_step(&self, place: LatLon, limit: f64) -> f64 {
        let here = self.above(place).clamp(-limit, limit);
        let east = ON_A_STEP_DEGREES / place.latitude().to_radians().cos().max(1e-6);
        let around = [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)].map(|(up, right)| {
            let latitude = (place.latitude() + up * ON_A_STEP_DEGREES).clamp(-90.0, 90.0);
            let beside = LatLon::new(latitude, place.longitude() + right * east);
            self.above(beside.unwrap_or(place))
        });
        let lowest = around.into_iter().fold(f64::INFINITY, f64::min);
        let highest = around.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let on_a_step = lowest < 0.0 && highest >= 0.0 && highest - lowest > 0.1 * limit;
        if on_a_step { 1e-3 * limit } else { here }
    }

    /// The leaves as cells, smaller ones where the outline crosses them: the largest are cut first.
    fn cells_of_outline(&self) -> Vec<CellId> {
        let tiling = self.survey.mesh.tiling;
        let (mut cells, mut crossed) = (Vec::new(), BinaryHeap::new());
        let sort = |patch: Patch, cells: &mut Vec<CellId>, crossed: &mut BinaryHeap<Crossed>| {
            if self.crosses(&patch) && !self.is_fine(&patch) {
                crossed.push(Crossed { area: tiling.area(patch.id), patch });
            } else {
                cells.push(patch.id);
            }
        };
        for leaf in &self.survey.mesh.leaves {
            sort(Patch::of(leaf, tiling), &mut cells, &mut crossed);
        }
        let most = if self.survey.has_steps { MOST_CROSSED_OF_STEPS } else { MOST_CROSSED };
        let meter = Meter::current();
        while crossed.len() < most
            && meter.goes_on()
            && let Some(Crossed { patch, .. }) = crossed.pop()
        {
            for part in self.survey.parts(&patch) {
                sort(part, &mut cells, &mut crossed);
            }
        }
        cells.extend(crossed.into_iter().map(|crossed| crossed.patch.id));
        cells
    }

    /// Whether the outline may cross a patch.
    fn crosses(&self, patch: &Patch) -> bool {
        if patch.beyond {
            return false;
        }
        match self.survey.level_set(self.threshold).cover(patch.id, patch.range()) {
            Cover::Cut => true,
            Cover::Inside => patch.cut || self.crosses_edges_of(patch),
            Cover::Outside => self.crosses_edges_of(patch),
        }
    }

    /// Whether a step that the points of a patch do not show runs along its edges, or cuts a corner off.
    fn crosses_edges_of(&self, patch: &Patch) -> bool {
        if self.survey.steps.is_none() {
            return false;
        }
        // A little beyond the edges, since many steps run along them.
        let (near, middle, far) = (-1e-6, 0.5, 1.0 + 1e-6);
        let inside = |down: f64, right: f64| {
            let (theta, phi) = patch.tiling.point(patch.id, down, right);
            self.above(place_at(theta, phi)) >= 0.0
        };
        let of_middle = inside(middle, middle);
        let edges = [near, middle, far]
            .into_iter()
            .flat_map(|down| [near, middle, far].map(|right| (down, right)));
        let mut edges = edges.filter(|(down, right)| (*down, *right) != (middle, middle));
        edges.any(|(down, right)| inside(down, right) != of_middle)
    }

    /// Whether a patch is so small, against its leaf or the region, that its corners show the outline.
    fn is_fine(&self, patch: &Patch) -> bool {
        if patch.depth >= self.survey.outline_depth() {
            return true;
        }
        let tiling: Tiling = self.survey.mesh.tiling;
        let fine = match self.survey.steps {
            Some(_) => FINE_OF_STEPS,
            None if patch.cut => FINE_OF_BORDERS,
            None if self.survey.has_steps => FINE_BETWEEN_STEPS,
            None => FINE,
        };
        tiling.area(patch.id) < fine * self.extent.area
    }
}

/// A patch that the outline crosses, ordered by its area.
struct Crossed {
    area: f64,
    patch: Patch,
}

impl PartialEq for Crossed {
    fn eq(&self, other: &Crossed) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Crossed {}
impl Ord for Crossed {
    fn cmp(&self, other: &Crossed) -> Ordering {
        self.area.total_cmp(&other.area).then(other.patch.id.cmp(&self.patch.id))
    }
}
impl PartialOrd for Crossed {
    fn partial_cmp(&self, other: &Crossed) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Survey<'_> {
    fn outline_depth(&self) -> u32 {
        if self.steps.is_some() { OUTLINE_DEPTH_OF_STEPS } else { OUTLINE_DEPTH }
    }

    /// If the density has steps, by how much the log-density differs at least where one is.
    fn step_limit(&self) -> Option<f64> {
        match self.steps {
            Some(_) => Some(STEPS),
            None => self.has_steps.then_some(BETWEEN_STEPS),
        }
    }
}
