//! From coefficients back to places: the maxima of F(u) = Σ c_lm·Y_lm(u), continuously.
//!
//! Every density exp F or F itself peaks where F does. F is band-limited, so a grid with
//! three rings per degree shows every peak, but a node can lie tens of nats below its
//! peak, and on a narrow ridge that runs across the grid a peak need not even be a grid-local
//! maximum. So every node on a crest (highest along one of the four lines through it) that
//! could still belong to one of the best peaks gets its exact local parabola; those that have
//! a peak nearby are refined by Newton's method, and peaks are ranked by the refined value.
//!
//! What "could still" means: along any great circle F is a trigonometric polynomial of
//! degree L, so by Bernstein's inequality |F″| ≤ L²·(max F − min F)/2, and a node at
//! distance s from a peak lies at most a·(max F − min F) below it, a = (L·s)²/4. Maximum
//! and minimum are themselves at most that far from the grid's extremes. That much is a
//! bound; that the node nearest to a peak lies on a crest holds for parabolas, and beyond
//! them is tested, not proven (`tests/all/laws/decoding.rs`).

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::f64::consts::PI;

use crate::derivatives::{Jet, JetWorkspace, SplitFunction};
use crate::legendre_stage::GROUP;
use crate::simd::{Kernel, vectorised};
use crate::triangle::LANES;
use crate::{Basis, Coefficients, Grid, LatLon, Scalar, Transform, UnitVector};

/// Rings per degree of the coarse grid; there are twice as many longitudes.
const OVERSAMPLING: usize = 3;

/// A local maximum of a function on the sphere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Place of the maximum.
    pub place: LatLon,
    /// The function's value there.
    pub value: f64,
    /// Value and derivatives at the last step of the search, next to the maximum: the
    /// Hessian gives the width of the peak.
    pub jet: Jet,
}

/// Finds the maxima of functions of one maximum degree.
///
/// ```
/// use locdiff_sphere::{Coefficients, Decoder, LatLon};
///
/// let lima = LatLon::new(-12.0464, -77.0428)?;
/// let decoder = Decoder::new(23);
/// let peak = decoder.mode(&Coefficients::of(lima, 23));
/// assert!(peak.place.distance_km(lima) < 0.001);
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
pub struct Decoder {
    basis: Basis,
    /// f32 is enough to see peaks; the refinement is done in f64.
    coarse: Transform<f32>,
    /// How far a node can lie below its peak, in units of the grid's largest difference.
    slack: f64,
}

impl Decoder {
    /// Prepares decoding of coefficients up to `max_degree`.
    ///
    /// # Panics
    /// If `max_degree` is 0 (a constant has no maximum) or beyond
    /// [`crate::LARGEST_DEGREE`].
    pub fn new(max_degree: usize) -> Decoder {
        assert!(max_degree > 0, "coefficients of degree 0 are a constant, without a maximum");
        let rings = OVERSAMPLING * (max_degree + 1);
        let grid = Grid::new(rings, 2 * rings);
        // The poles are farthest from any node; elsewhere half a diagonal is less.
        let farthest = grid.colatitude(0);
        let below = (max_degree as f64 * farthest).powi(2) / 4.0;
        Decoder {
            basis: Basis::new(max_degree),
            coarse: Transform::new(grid, max_degree),
            slack: below / (1.0 - 2.0 * below),
        }
    }

    /// The basis that the decoder evaluates.
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    /// The global maximum.
    ///
    /// # Panics
    /// If the coefficients have another maximum degree.
    pub fn mode(&self, coefficients: &Coefficients) -> Peak {
        self.modes(coefficients, 1)[0]
    }

    /// The `count` highest local maxima, highest first; fewer if there are not so many,
    /// but at least one.
    ///
    /// The rim of a crater, such as a side lobe of an encoding, is no local maximum; it
    /// counts only if there is nothing else.
    ///
    /// # Panics
    /// If the coefficients have another maximum degree.
    pub fn modes(&self, coefficients: &Coefficients, count: usize) -> Vec<Peak> {
        coefficients.assert_fits(&self.basis);
        self.modes_of_batch(coefficients.as_slice(), count).swap_remove(0)
    }

    /// [`Decoder::modes`] of each row of a matrix `[batch, (max_degree + 1)²]`.
    ///
    /// # Panics
    /// If the size is not a multiple of (max_degree + 1)², or an entry is not finite.
    pub fn modes_of_batch<T: Scalar>(&self, coefficients: &[T], count: usize) -> Vec<Vec<Peak>> {
        let size = self.basis.len();
        assert!(
            coefficients.len().is_multiple_of(size),
            "{} coefficients are not rows of {size}",
            coefficients.len()
        );
        let points = self.coarse.grid().len();
        let mut jets = JetWorkspace::new(self.basis.max_degree());
        let (mut scaled, mut values) = (Vec::new(), Vec::new());
        let mut peaks = Vec::with_capacity(coefficients.len() / size);
        for group in coefficients.chunks(GROUP * size) {
            scaled.clear();
            let functions: Vec<(SplitFunction, f64)> = group
                .chunks_exact(size)
                .map(|function| {
                    let function = function.iter().map(|c| c.widened()).collect();
                    without_constant(function, &mut scaled)
                })
                .collect();
            values.resize(functions.len() * points, 0.0);
            self.coarse.synthesize_into(&scaled, &mut values);
            for ((function, constant), values) in functions.iter().zip(values.chunks_exact(points))
            {
                let mut best = self.best_peaks(function, values, count.max(1), &mut jets);
                for peak in &mut best {
                    peak.value += constant;
                    peak.jet.value += constant;
                }
                peaks.push(best);
            }
        }
        peaks
    }

    /// The best peaks of a function whose coarse values, divided by its scale, are given.
    fn best_peaks(
        &self,
        function: &SplitFunction,
        values: &[f32],
        count: usize,
        jets: &mut JetWorkspace,
    ) -> Vec<Peak> {
        let grid = self.coarse.grid();
        let (lowest, highest) = vectorised(Range { values });
        if lowest == highest {
            // A constant: every place is as good.
            let place = grid.place(0, 0);
            return vec![Peak { place, value: 0.0, jet: Jet::default() }];
        }
        let slack = f64::from(highest - lowest) * self.slack;
        // The best peak is at least as high as the highest node.
        let threshold =
            if count == 1 { (f64::from(highest) - slack) as f32 } else { f32::NEG_INFINITY };
        let mut candidates = crest_nodes(grid, values, threshold);
        let spacing = PI / grid.rings() as f64;
        let mut peaks: Vec<Peak> = Vec::new();
        let mut rim = None;
        while let Some(Node { value, index, maximum }) = candidates.pop() {
            let worst = peaks.get(count - 1).map_or(f64::NEG_INFINITY, |peak| peak.value);
            if f64::from(value) + slack < worst / function.scale {
                break;
            }
            let start = grid.place(index / grid.longitudes(), index % grid.longitudes());
            let jet = self.basis.jet_of(function, start, jets);
            let step = jet.newton_step(f64::INFINITY);
            let length = step[0].hypot(step[1]);
            // Another node is nearer to this one's peak, unless the grid says otherwise.
            if length > 2.0 * spacing && !maximum {
                continue;
            }
            let is_known = |place: LatLon, within: f64| {
                peaks.iter().any(|known| known.place.angle_to(place) < within)
            };
            if length < spacing && is_known(moved(start, step), 0.3 * spacing) {
                continue;
            }
            let peak = self.climb(function, start, jet, jets);
            // The rim of a crater is no peak: its points are maxima by rounding only.
            let [(curvature, _), _] = peak.jet.principal_curvatures();
            if curvature > -FLAT * peak.jet.steepest_curvature() {
                rim = rim.or(Some(peak));
            } else if !is_known(peak.place, 0.01 * spacing) {
                let rank = peaks.partition_point(|known| known.value >= peak.value);
                peaks.insert(rank, peak);
            }
        }
        peaks.truncate(count);
        // If there is nothing but a rim, its first point has to do.
        if peaks.is_empty() { rim.into_iter().collect() } else { peaks }
    }

    /// Newton's method in the tangent plane, made to climb: eigenvalues of the Hessian count
    /// by their size, steps are at most half a radian per degree, a step that doesn't climb
    /// is halved, and from a saddle the way goes on along the axis that curves upwards.
    fn climb(
        &self,
        function: &SplitFunction,
        start: LatLon,
        jet: Jet,
        workspace: &mut JetWorkspace,
    ) -> Peak {
        let longest = 0.5 / self.basis.max_degree() as f64;
        let (mut place, mut jet) = (start, jet);
        for _ in 0..100 {
            let mut step = jet.newton_step(longest);
            let (curvature, axis) = jet.principal_curvatures()[0];
            // Below this length Newton has converged to rounding: what remains is its
            // square times the degree.
            if step[0].hypot(step[1]) < 1e-7 * longest {
                if curvature <= FLAT * jet.steepest_curvature() {
                    place = moved(place, step);
                    break;
                }
                step = axis.map(|part| 0.2 * longest * part);
            }
            let mut next = moved(place, step);
            let mut next_jet = self.basis.jet_of(function, next, workspace);
            while next_jet.value < jet.value && step[0].hypot(step[1]) > 1e-9 * longest {
                step = step.map(|part| 0.5 * part);
                next = moved(place, step);
                next_jet = self.basis.jet_of(function, next, workspace);
            }
            if next_jet.value < jet.value {
                // Rounding is all that is left.
                break;
            }
            (place, jet) = (next, next_jet);
        }
        Peak { place, value: jet.value, jet }
    }
}

/// Curvatures below this part of the steepest one are rounding: the function is flat there.
const FLAT: f64 = 1e-7;

impl Jet {
    /// The step (east, north) in radians towards the maximum of the local parabola.
    fn newton_step(&self, longest: f64) -> [f64; 2] {
        let [(first, axis), (second, other)] = self.principal_curvatures();
        let flat = (FLAT * self.steepest_curvature()).max(f64::MIN_POSITIVE);
        let along = |curvature: f64, [x, y]: [f64; 2]| {
            // Along a flat direction, such as the rim of a crater, there is nowhere to go.
            let slope = self.east * x + self.north * y;
            let length = if curvature.abs() > flat { slope / curvature.abs() } else { 0.0 };
            [length * x, length * y]
        };
        let (a, b) = (along(first, axis), along(second, other));
        let step = [a[0] + b[0], a[1] + b[1]];
        let length = step[0].hypot(step[1]);
        if length > longest { step.map(|part| part * longest / length) } else { step }
    }

    fn steepest_curvature(&self) -> f64 {
        let [(first, _), (second, _)] = self.principal_curvatures();
        first.abs().max(second.abs())
    }

    /// The Hessian's eigenvalues, each with its unit direction (east, north); the largest
    /// first.
    pub fn principal_curvatures(&self) -> [(f64, [f64; 2]); 2] {
        let mean = 0.5 * (self.east_east + self.north_north);
        let half_difference = 0.5 * (self.east_east - self.north_north);
        let radius = half_difference.hypot(self.east_north);
        let (sin, cos) = (0.5 * self.east_north.atan2(half_difference)).sin_cos();
        [(mean + radius, [cos, sin]), (mean - radius, [-sin, cos])]
    }
}

/// The function without its constant part, and that part. The constant moves no peak; without
/// it the others keep their digits. Appends the coefficients divided by the largest, which no
/// longer overflow f32.
fn without_constant(mut function: Vec<f64>, scaled: &mut Vec<f32>) -> (SplitFunction, f64) {
    assert!(function.iter().all(|c| c.is_finite()), "coefficients must be finite");
    let constant = std::mem::take(&mut function[0]) / (4.0 * PI).sqrt();
    let split = SplitFunction::new(&function);
    scaled.extend(function.iter().map(|c| (c / split.scale) as f32));
    (split, constant)
}

/// The point reached from `place` along the great circle by (east, north) radians.
fn moved(place: LatLon, [east, north]: [f64; 2]) -> LatLon {
    let [east_axis, north_axis] = UnitVector::frame_at(place);
    let up = UnitVector::from(place).to_array();
    let length = east.hypot(north);
    let (sin, cos) = length.sin_cos();
    let ratio = if length > 0.0 { sin / length } else { 1.0 };
    let target = std::array::from_fn(|axis| {
        cos * up[axis] + ratio * (east * east_axis[axis] + north * north_axis[axis])
    });
    UnitVector::from_direction(target).map_or(place, LatLon::from)
}

/// A node of the coarse grid, ordered by its value; of equal ones, the first is greater.
#[derive(PartialEq)]
struct Node {
    value: f32,
    index: usize,
    /// Whether no neighbour is higher.
    maximum: bool,
}

impl Eq for Node {}

impl Ord for Node {
    fn cmp(&self, other: &Node) -> Ordering {
        self.value.total_cmp(&other.value).then(other.index.cmp(&self.index))
    }
}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Node) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Nodes from the threshold up that are highest along at least one of the four lines
/// through them: peaks and crests of ridges.
fn crest_nodes(grid: &Grid, values: &[f32], threshold: f32) -> BinaryHeap<Node> {
    let (rings, n) = (grid.rings(), grid.longitudes());
    let row = |ring: usize| &values[ring * n..][..n];
    let mut nodes = Vec::new();
    for ring in 0..rings {
        let here = row(ring);
        for (j, &value) in here.iter().enumerate().filter(|(_, value)| **value >= threshold) {
            let (west, east) =
                (if j == 0 { n - 1 } else { j - 1 }, if j + 1 == n { 0 } else { j + 1 });
            let around = [west, j, east];
            // Across a pole, the neighbours are on the same ring, half a turn away; what was
            // to the west is then to the east.
            let opposite = [east, j, west].map(|j| here[(j + n / 2) % n]);
            let north = if ring == 0 { opposite } else { around.map(|j| row(ring - 1)[j]) };
            let south = if ring + 1 == rings { opposite } else { around.map(|j| row(ring + 1)[j]) };
            let lines = [
                [here[west], here[east]],
                [north[1], south[1]],
                [north[0], south[2]],
                [north[2], south[0]],
            ];
            let highest_along = lines.map(|[a, b]| value >= a && value >= b);
            if highest_along.contains(&true) {
                let maximum = !highest_along.contains(&false);
                nodes.push(Node { value, index: ring * n + j, maximum });
            }
        }
    }
    nodes.into()
}

/// The lowest and the highest value.
struct Range<'a> {
    values: &'a [f32],
}

impl Kernel for Range<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run(self) -> (f32, f32) {
        let (blocks, rest) = self.values.as_chunks::<LANES>();
        let (mut lowest, mut highest) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
        for block in blocks {
            for i in 0..LANES {
                lowest[i] = if block[i] < lowest[i] { block[i] } else { lowest[i] };
                highest[i] = if block[i] > highest[i] { block[i] } else { highest[i] };
            }
        }
        let all = lowest.iter().chain(&highest).chain(rest);
        let finite = || all.clone().copied().filter(|value| value.is_finite());
        (finite().fold(f32::INFINITY, f32::min), finite().fold(f32::NEG_INFINITY, f32::max))
    }
}
