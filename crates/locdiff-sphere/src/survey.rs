//! A density measured all over the sphere: what can be asked of a probability map.

mod basins;
mod circle;
mod decisions;
mod divergence;
mod moments;
mod nodes;
mod outline;
mod patch;
mod radii;
mod region;
mod root;
mod samples;
mod steps;

use std::sync::{Arc, Mutex, OnceLock};

pub use basins::{Mode, Modes};
pub use decisions::Decision;
pub use region::Region;

use crate::area::{Area, Cover};
use crate::budget::Meter;
use crate::cells::{CellId, POINTS, PointValues, Rule, Tiling, place_at};
use crate::mesh::{Coverage, Leaf, Mesh};
use crate::{Density, EARTH_RADIUS_KM, LatLon};
use circle::CircleBorder;
use nodes::Nodes;
use patch::{Patch, Point};
use steps::Steps;

/// A density on cells that resolve it. Made by [`Density::survey`].
///
/// Numbers come from Gauss points in the cells, and from polynomials through them where a
/// border runs through a cell; the density itself is asked again only where that is said.
#[derive(Debug, Clone)]
pub struct Survey<'a> {
    density: &'a Density,
    mesh: Arc<Mesh>,
    /// How far the cells' log-densities are below those of the density, which is normalised by itself: the
    /// logarithm of its integral over the cells.
    shift: f64,
    /// The cells of a piecewise constant density, restricted or not.
    steps: Option<Steps<'a>>,
    /// Whether the density jumps somewhere.
    has_steps: bool,
    /// The lowest and highest log-density at each leaf's points.
    ranges: Arc<[Range]>,
    /// The modes of the usual prominence, once they were asked for.
    modes: OnceLock<Modes>,
    /// The cells' points, once somebody sorted by them.
    nodes: Arc<OnceLock<Nodes>>,
    /// Levels of regions that were asked for, with their thresholds.
    thresholds: Arc<Mutex<Vec<(f64, f64, Extent)>>>,
}

/// A part of the sphere: its probability, and its area in steradians.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Extent {
    mass: f64,
    area: f64,
}

/// A border through cells: where things inside it are.
trait Border {
    /// Where a piece of a cell lies. [`Cover::Inside`] and [`Cover::Outside`] must be true.
    fn cover(&self, id: CellId, range: Range) -> Cover;
    /// How much of what a point stands for lies inside, 0 to 1.
    fn share(&self, patch: &Patch, point: &Point) -> f64;
    /// How much of it does if only a part of it is allowed.
    fn share_of(&self, allowed: f64, patch: &Patch, point: &Point) -> f64 {
        allowed * self.share(patch, point)
    }
    /// From which size on a piece of a cell is judged by its points.
    fn small(&self, _patch: &Patch) -> Extent {
        SMALL
    }
}

/// How many regions are remembered.
const REMEMBERED: usize = 16;
/// A piece of a cell with less than this is not cut further, but judged by its points: which
/// of them lie inside of the border is a matter of chance, and there are hundreds of pieces.
const SMALL: Extent = Extent { mass: 5e-3, area: 1e-2 };
/// Nor is one that was quartered so often.
const DEEPEST_PATCH: u32 = 6;
/// How often a leaf is cut to find a part of it that is allowed.
const DEEPEST_CORNER: u32 = 4;

impl<'a> Survey<'a> {
    pub(crate) fn new(density: &'a Density, mesh: Arc<Mesh>) -> Survey<'a> {
        let ranges = mesh.leaves.iter().map(|leaf| Range::of(&leaf.sheet.values)).collect();
        let shift = if density.is_normalised_by_itself() { mesh.log_integral } else { 0.0 };
        let steps = Steps::of(density, shift);
        let has_steps = steps.is_some() || mesh.leaves.iter().any(|leaf| leaf.sheet.stepped);
        let (modes, nodes, thresholds) = (OnceLock::new(), Arc::default(), Arc::default());
        Survey { density, mesh, shift, steps, has_steps, ranges, modes, nodes, thresholds }
    }

    /// The density that was measured.
    pub fn density(&self) -> &'a Density {
        self.density
    }

    /// Number of cells: how much detail the density has.
    pub fn cells(&self) -> usize {
        self.mesh.leaves.len()
    }

    /// The log-density at a place, by interpolation between the cells' points where the density is smooth: for pictures.
    /// Where there is hardly any probability it is coarse.
    pub fn interpolated_log_density(&self, place: LatLon) -> f64 {
        if let (Density::Cells(_), Some(steps)) = (self.density, &self.steps) {
            return steps.log_density(place);
        }
        let (theta, phi) = angles(place);
        let leaf = self.mesh.leaf_at(theta, phi);
        // No polynomial has a kink.
        if leaf.kinked && self.steps.is_none() {
            return self.log_density(place);
        }
        self.interpolated_in(leaf, place)
    }

    /// The log-density at a place in a leaf, by interpolation.
    fn interpolated_in(&self, leaf: &Leaf, place: LatLon) -> f64 {
        let beyond = matches!(leaf.sheet.coverage, Coverage::Nothing);
        if beyond || leaf.sheet.is_cut() && !self.density.allows(place) {
            return f64::NEG_INFINITY;
        }
        let (theta, phi) = angles(place);
        match &self.steps {
            Some(steps) => steps.log_density(place),
            None => Patch::of(leaf, self.mesh.tiling).log_density_at(theta, phi),
        }
    }

    /// The density's own log-density at a place, on the cells' scale.
    fn log_density(&self, place: LatLon) -> f64 {
        self.density.log_density(place) - self.shift
    }

    /// Entropy in nats: log 4π for the uniform density, and less for every other.
    pub fn entropy_nats(&self) -> f64 {
        -self.expectation(|_, log_density| log_density)
    }

    /// Estimated relative error of the survey's probabilities: that of
    /// the density's normaliser, and what its cells may have missed.
    pub fn error(&self) -> f64 {
        let of_normaliser = self.density.normaliser_error();
        if self.density.is_normalised_by_itself() {
            // The integral is a check.
            self.mesh.error.max(self.mesh.log_integral.abs()) + of_normaliser
        } else {
            of_normaliser
        }
    }

    /// Integral of the density over an area.
    pub fn probability_in(&self, area: &Area) -> f64 {
        self.extent(&AreaBorder { tiling: self.mesh.tiling, area }).mass.min(1.0)
    }

    /// The probability that the truth lies within a distance of a place.
    ///
    /// # Panics
    /// If the radius is not a positive number.
    pub fn probability_within(&self, centre: LatLon, radius_km: f64) -> f64 {
        let area = Area::circle(centre, radius_km).expect("the radius is a positive number");
        let radius = radius_km / EARTH_RADIUS_KM;
        if radius < 0.25 * self.width_at(centre) {
            return self.probability_of_spot(centre, radius);
        }
        let border = CircleBorder::new(self.mesh.tiling, &area, centre, radius);
        let (mut mass, meter) = (0.0, Meter::current());
        for disc in &self.nodes().discs {
            if !meter.goes_on() {
                break;
            }
            // Most cells are surely in or out; only the others are worth an exact look.
            let cover = border.cover_of_disc(disc.middle, disc.reach);
            if cover != Cover::Outside {
                mass += self.extent_of_leaf(&self.mesh.leaves[disc.leaf], cover, &border).mass;
            }
        }
        mass.min(1.0)
    }

    /// The width of the cell at a place, in radians on the ground.
    fn width_at(&self, place: LatLon) -> f64 {
        let (theta, phi) = angles(place);
        let leaf = self.mesh.leaf_at(theta, phi);
        self.mesh.tiling.size(leaf.id)
    }

    /// The probability of a circle that is small against the cells: a spiral of places where
    /// the density itself is asked.
    fn probability_of_spot(&self, centre: LatLon, radius: f64) -> f64 {
        const COUNT: usize = 200;
        let golden_turn = 360.0 * 0.381_966_011_250_105;
        let sum: f64 = (0..COUNT)
            .map(|k| {
                // Equal areas, as far as the circle is flat.
                let angle = radius * ((k as f64 + 0.5) / COUNT as f64).sqrt();
                let place = centre.destination(golden_turn * k as f64, angle * EARTH_RADIUS_KM);
                self.density.log_density(place).exp()
            })
            .sum();
        let area = 4.0 * std::f64::consts::PI * (0.5 * radius).sin().powi(2);
        (sum / COUNT as f64 * area).min(1.0)
    }

    /// Hears the probability that each point of the cells stands for, for histograms and small maps.
    pub fn for_each_mass(&self, mut hear: impl FnMut(LatLon, f64)) {
        let points = Rule::get().points;
        for leaf in self.leaves_with_mass() {
            for (k, mass) in self.node_masses(leaf).into_iter().flatten().enumerate() {
                if mass > 0.0 {
                    let (i, j) = (k / POINTS, k % POINTS);
                    let (theta, phi) = self.mesh.tiling.point(leaf.id, points[i], points[j]);
                    hear(place_at(theta, phi), mass);
                }
            }
        }
    }

    /// The mean of a function of colatitude, longitude (radians) and log-density.
    fn expectation(&self, of: impl Fn((f64, f64), f64) -> f64) -> f64 {
        let points = Rule::get().points;
        let mut sum = 0.0;
        for leaf in self.leaves_with_mass() {
            let masses = self.node_masses(leaf);
            for i in 0..POINTS {
                for j in 0..POINTS {
                    if masses[i][j] > 0.0 {
                        let point = self.mesh.tiling.point(leaf.id, points[i], points[j]);
                        sum += masses[i][j] * of(point, leaf.sheet.values[i][j]);
                    }
                }
            }
        }
        sum
    }

    fn leaves_with_mass(&self) -> impl Iterator<Item = &Leaf> {
        self.mesh.leaves.iter().filter(|leaf| leaf.mass > 0.0)
    }

    /// What each point of a leaf stands for; together the leaf's mass.
    fn node_masses(&self, leaf: &Leaf) -> PointValues {
        node_masses(self.mesh.tiling, leaf)
    }

    /// Probability and area of what lies inside a border.
    fn extent(&self, border: &impl Border) -> Extent {
        let (mut sum, meter) = (Extent::default(), Meter::current());
        for (leaf, range) in self.mesh.leaves.iter().zip(self.ranges.iter()) {
            if !meter.goes_on() {
                break;
            }
            sum.add(self.extent_of_leaf(leaf, border.cover(leaf.id, *range), border));
        }
        sum
    }

    fn extent_of_leaf(&self, leaf: &Leaf, cover: Cover, border: &impl Border) -> Extent {
        // Nothing of a restricted density lies outside of its area.
        let nothing = matches!(leaf.sheet.coverage, Coverage::Nothing);
        if nothing || cover == Cover::Outside {
            return Extent::default();
        }
        if cover == Cover::Inside && !leaf.sheet.is_cut() {
            return Extent { mass: leaf.mass, area: self.mesh.tiling.area(leaf.id) };
        }
        let mut patch = Patch::of(leaf, self.mesh.tiling);
        if let Coverage::Partial(shares) = &leaf.sheet.coverage
            && !patch.stepped
            && (cover == Cover::Inside || is_small(&patch, border))
        {
            patch.cut = false;
            return extent_by_shares(&patch, shares, cover, border);
        }
        let (mut inside, mut whole) = self.extent_of_patch(&patch, cover, border, 0);
        // A corner of the leaf may be allowed that none of its points lies in.
        for depth in 1..=DEEPEST_CORNER {
            if whole.mass > 0.0 || leaf.mass == 0.0 {
                break;
            }
            (inside, whole) = self.extent_of_patch(&patch, cover, border, depth);
        }
        // The pieces may differ from the leaf by the error of interpolation.
        let correction = if whole.mass > 0.0 { leaf.mass / whole.mass } else { 1.0 };
        Extent { mass: inside.mass * correction, area: inside.area }
    }

    /// What of a patch lies inside a border and is allowed, and what is allowed at all. Patches are cut at least so often.
    fn extent_of_patch(
        &self,
        patch: &Patch,
        cover: Cover,
        border: &impl Border,
        least_depth: u32,
    ) -> (Extent, Extent) {
        let (mut inside, mut allowed) = (Extent::default(), Extent::default());
        if patch.beyond {
            return (inside, allowed);
        }
        if !patch.cut && cover != Cover::Cut {
            patch.points().for_each(|point| allowed.add(point.extent));
            return (if cover == Cover::Inside { allowed } else { inside }, allowed);
        }
        let small = is_small(patch, border) && patch.depth >= least_depth;
        if small || patch.depth >= DEEPEST_PATCH {
            for point in patch.points() {
                if patch.cut && !self.density.allows(place_at(point.theta, point.phi)) {
                    continue;
                }
                allowed.add(point.extent);
                let share = match cover {
                    Cover::Inside => 1.0,
                    Cover::Outside => 0.0,
                    Cover::Cut => border.share(patch, &point),
                };
                inside.mass += share * point.extent.mass;
                inside.area += share * point.extent.area;
            }
            return (inside, allowed);
        }
        for quarter in self.parts(patch) {
            let is_cut = cover == Cover::Cut;
            let cover = if is_cut { border.cover(quarter.id, quarter.range()) } else { cover };
            let (a, b) = self.extent_of_patch(&quarter, cover, border, least_depth);
            inside.add(a);
            allowed.add(b);
        }
        (inside, allowed)
    }
}

/// Whether a patch is judged by its points.
fn is_small(patch: &Patch, border: &impl Border) -> bool {
    let (most, enough) = (patch.most(), border.small(patch));
    most.mass <= enough.mass && most.area <= enough.area
}

/// Probability and area of a whole leaf inside a border, if of what its points stand for only shares are allowed.
fn extent_by_shares(
    patch: &Patch,
    shares: &PointValues,
    cover: Cover,
    border: &impl Border,
) -> Extent {
    let mut inside = Extent::default();
    for point in patch.points() {
        let allowed = shares[point.index.0][point.index.1];
        if allowed > 0.0 {
            let share = match cover {
                Cover::Cut => border.share_of(allowed, patch, &point),
                _ => allowed,
            };
            inside.mass += share * point.extent.mass;
            inside.area += share * point.extent.area;
        }
    }
    inside
}

/// Colatitude and longitude in radians.
fn angles(place: LatLon) -> (f64, f64) {
    ((90.0 - place.latitude()).to_radians(), place.longitude().to_radians())
}

/// The lowest and highest log-density at some points.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    lowest: f64,
    highest: f64,
}

impl Range {
    fn of(values: &PointValues) -> Range {
        let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.as_flattened() {
            (lowest, highest) = (lowest.min(*value), highest.max(*value));
        }
        Range { lowest, highest }
    }
}

fn node_masses(tiling: Tiling, leaf: &Leaf) -> PointValues {
    let rule = Rule::get();
    let area = tiling.square(leaf.id);
    std::array::from_fn(|i| {
        let sin = tiling.point(leaf.id, rule.points[i], 0.0).0.sin();
        std::array::from_fn(|j| {
            let density = leaf.sheet.share(i, j) * leaf.sheet.values[i][j].exp();
            area * sin * rule.weights[i] * rule.weights[j] * density
        })
    })
}

impl Extent {
    fn add(&mut self, other: Extent) {
        self.mass += other.mass;
        self.area += other.area;
    }

    fn area_km2(self) -> f64 {
        self.area * EARTH_RADIUS_KM * EARTH_RADIUS_KM
    }
}

struct AreaBorder<'a> {
    tiling: Tiling,
    area: &'a Area,
}

impl Border for AreaBorder<'_> {
    fn cover(&self, id: CellId, _range: Range) -> Cover {
        self.area.cover(&self.tiling.rectangle(id))
    }

    fn share(&self, patch: &Patch, point: &Point) -> f64 {
        // Whether a cut patch allows a point is a matter of yes or no, and so must this be: a
        // density restricted to an area has all of its probability there. So for steps: a cell of a
        // piecewise constant density has all of its probability in itself.
        if patch.cut || patch.stepped {
            return f64::from(self.area.contains(place_at(point.theta, point.phi)));
        }
        let (row, column) = point.index;
        self.area.share(&self.tiling.rectangle_of_point(patch.id, row, column))
    }

    /// The border is often that of what is allowed, or a part of it.
    fn share_of(&self, allowed: f64, patch: &Patch, point: &Point) -> f64 {
        allowed.min(self.share(patch, point))
    }
}
