//! What the network is trained to give out, and so what its output means.
//!
//! The output is e, d coefficients. Under [`Objective::Likelihood`] the answer is the
//! exponential density exp(e·Y − A(e)); under the others e estimates the encoding Y(place).
//! See [`super::Meaning`].
//!
//! Two objectives contain integrals over the sphere. [`Quadrature::Anchors`] takes the
//! paper's random points, new ones for each batch; [`Quadrature::Transform`] a grid whose
//! rings and longitudes shift from batch to batch, so that no peak can hide between them for
//! long. A grid resolves densities only up to a sharpness ([`Loss::sharpest`]); beyond that
//! the noise level leaves nothing to decide, and training doesn't go there. Should an image tell more
//! than the grid can see, the true place itself is among the points (see `guard_area`).

use std::f64::consts::{PI, TAU};

use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Tensor};
use locdiff_sphere::{Anchors, Basis, EARTH_RADIUS_KM, Grid, LatLon};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::cpu_integrals::{CpuGrid, guard_area, likelihood_over_anchors, reverse_kl_over_anchors};
use super::sphere_grid::{SphereGrid, encodings, tensor};
use crate::tensors::fused::{is_cpu, numbers_of, with_gradient};

/// The quantity that training minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Objective {
    /// KL(q_e ‖ q_Y(place)) with q_e ∝ exp(e·Y): the paper's. Its expected minimiser is the
    /// mean encoding.
    ReverseKl,
    /// A(e) − e·Y(place): a proper score of the exponential density.
    Likelihood,
    /// One minus the cosine between e and Y(place).
    Cosine,
    /// Mean absolute difference between e and Y(place).
    L1,
    /// Mean squared difference between e and Y(place).
    L2,
}

impl Objective {
    /// Name of the objective in running text.
    pub fn in_words(self) -> &'static str {
        match self {
            Objective::ReverseKl => "reverse KL",
            Objective::Likelihood => "likelihood",
            Objective::Cosine => "cosine",
            Objective::L1 => "L1",
            Objective::L2 => "L2",
        }
    }

    fn has_integral(self) -> bool {
        matches!(self, Objective::ReverseKl | Objective::Likelihood)
    }
}

/// How integrals over the sphere are taken in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Quadrature {
    /// So many places drawn uniformly for each batch; the paper takes 2048.
    Anchors(usize),
    /// A grid of about this many rings and twice as many longitudes; 0 chooses by the degree.
    Transform(usize),
}

impl Default for Quadrature {
    fn default() -> Quadrature {
        Quadrature::Transform(0)
    }
}

impl Quadrature {
    /// Rings of the coarsest grid; 0 without one.
    pub(super) fn rings(self, max_degree: usize) -> usize {
        match self {
            Quadrature::Transform(0) => default_rings(max_degree),
            Quadrature::Transform(rings) => rings.max(max_degree + 1),
            Quadrature::Anchors(_) => 0,
        }
    }

    /// The sharpest density that sums over the grid resolve, as the factor t of t·Y(place).
    /// At most 1, a clean encoding; random anchors resolve nothing in particular and say 1.
    pub(crate) fn sharpest(self, max_degree: usize) -> f64 {
        let rings = self.rings(max_degree);
        if rings == 0 {
            return 1.0;
        }
        let sigma = PI / rings as f64 / SPACING_PER_SIGMA;
        (1.0 / (curvature_of_encoding(max_degree) * sigma * sigma)).min(1.0)
    }
}

/// Rings that differ from batch to batch.
const RING_CHOICES: usize = 3;
/// Spacing of the grid over the narrowest standard deviation for which sums over it are good
/// to about 0.01 nat.
const SPACING_PER_SIGMA: f64 = 1.75;

/// An objective ready to be evaluated.
#[derive(Debug)]
pub struct Loss {
    objective: Objective,
    quadrature: Quadrature,
    basis: Basis,
    /// Of the coarsest grid; 0 without grids.
    rings: usize,
    integrals: Integrals,
    device: Device,
}

/// The points of one batch's integrals: see [`Loss::points`].
#[derive(Debug, Clone)]
pub struct Points(Drawn);

#[derive(Debug, Clone)]
enum Drawn {
    /// The objective has no integral.
    None,
    /// Y at random places `[count, d]`, without gradients.
    Anchors(Box<Tensor<2>>),
    /// One of the grids, turned eastwards by an angle.
    Grid { choice: usize, angle: f64 },
}

/// Where integrals are taken, and with which grids.
#[derive(Debug)]
enum Integrals {
    /// In vectors on all cores, gradients written down.
    Cpu(Vec<CpuGrid>),
    /// As tensor operations that differentiate on every device.
    Tensors(Vec<SphereGrid>),
}

impl Loss {
    /// Prepares an objective for coefficients up to `max_degree`.
    pub fn new(
        objective: Objective,
        quadrature: Quadrature,
        max_degree: usize,
        device: &Device,
    ) -> Loss {
        Loss::on(is_cpu(device), objective, quadrature, max_degree, device)
    }

    fn on(
        cpu: bool,
        objective: Objective,
        quadrature: Quadrature,
        max_degree: usize,
        device: &Device,
    ) -> Loss {
        let rings = if objective.has_integral() { quadrature.rings(max_degree) } else { 0 };
        let choices = if rings == 0 { 0..0 } else { rings..rings + RING_CHOICES };
        let integrals = if cpu {
            Integrals::Cpu(choices.map(|rings| CpuGrid::new(rings, max_degree)).collect())
        } else {
            let grid = |rings| SphereGrid::new(Grid::new(rings, 2 * rings), max_degree, device);
            Integrals::Tensors(choices.map(grid).collect())
        };
        let basis = Basis::new(max_degree);
        Loss { objective, quadrature, basis, rings, integrals, device: device.clone() }
    }

    /// The sharpest density that the quadrature resolves, as the factor t of t·Y(place):
    /// training draws noise levels whose evidence is no sharper. At most 1, a clean encoding.
    pub fn sharpest(&self) -> f64 {
        if self.rings == 0 { 1.0 } else { self.quadrature.sharpest(self.basis.max_degree()) }
    }

    /// Draws the points of a batch's integrals. Parts of the batch that are computed apart take the same ones.
    pub fn points(&self, rng: &mut impl Rng) -> Points {
        if !self.objective.has_integral() {
            return Points(Drawn::None);
        }
        Points(match self.quadrature {
            Quadrature::Anchors(count) => {
                let anchors = Anchors::uniform(count, rng);
                let device = self.device.clone().inner();
                Drawn::Anchors(Box::new(encodings(&self.basis, anchors.places(), &device)))
            }
            Quadrature::Transform(_) => {
                let choice = rng.random_range(0..RING_CHOICES);
                Drawn::Grid { choice, angle: rng.random_range(0.0..TAU) }
            }
        })
    }

    /// The mean of the objective over a batch of outputs `[batch, d]` and true places, with points of its own.
    ///
    /// # Panics
    /// If there are not as many places as outputs.
    pub fn mean(&self, output: Tensor<2>, places: &[LatLon], rng: &mut impl Rng) -> Tensor<1> {
        self.mean_at(output, places, &self.points(rng))
    }

    /// The mean of the objective over a batch of outputs `[batch, d]` and true places, at these points.
    ///
    /// # Panics
    /// If there are not as many places as outputs, or the points are those of another objective.
    pub fn mean_at(&self, output: Tensor<2>, places: &[LatLon], points: &Points) -> Tensor<1> {
        let [batch, size] = output.dims();
        assert_eq!(batch, places.len(), "{batch} outputs, but {} places", places.len());
        assert_eq!(size, self.basis.len(), "outputs of {size} numbers, not {}", self.basis.len());
        if let Integrals::Cpu(grids) = &self.integrals
            && self.objective.has_integral()
        {
            return self.mean_on_cpu(grids, output, places, points);
        }
        let truth = encodings(&self.basis, places, &self.device); // [batch, d]
        match self.objective {
            // On x_0 = √4π·Y, whose coefficients have unit mean square.
            Objective::L2 => (output - truth).square().mean() * (4.0 * PI),
            Objective::L1 => (output - truth).abs().mean() * (4.0 * PI).sqrt(),
            Objective::Cosine => {
                let dot = (output.clone() * truth.clone()).sum_dim(1);
                let length = |v: Tensor<2>| (v.square().sum_dim(1) + 1e-12).sqrt();
                (dot / (length(output) * length(truth))).neg().mean() + 1.0
            }
            Objective::Likelihood => self.likelihood(output, truth, points).mean(),
            Objective::ReverseKl => self.reverse_kl(output, truth, points).mean(),
        }
    }

    fn mean_on_cpu(
        &self,
        grids: &[CpuGrid],
        output: Tensor<2>,
        places: &[LatLon],
        points: &Points,
    ) -> Tensor<1> {
        let shape = output.dims();
        let likelihood = self.objective == Objective::Likelihood;
        let device = self.device.clone().inner();
        let (value, gradient) = match &points.0 {
            Drawn::Grid { choice, angle } => {
                let mut truth = vec![0.0_f32; places.len() * self.basis.len()];
                self.basis.encode_into(places, &mut truth);
                let grid = &grids[*choice];
                let e = numbers_of(&output);
                let (value, gradient) = if likelihood {
                    grid.likelihood(&e, &truth, *angle)
                } else {
                    grid.reverse_kl(&e, &truth, *angle)
                };
                (value, tensor(gradient, shape, &device))
            }
            Drawn::Anchors(anchors) => {
                let truth = encodings(&self.basis, places, &device);
                let e = if output.device().is_autodiff() {
                    output.clone().inner()
                } else {
                    output.clone()
                };
                if likelihood {
                    likelihood_over_anchors(e, &truth, anchors)
                } else {
                    reverse_kl_over_anchors(e, &truth, anchors)
                }
            }
            Drawn::None => panic!("points of an objective without integrals"),
        };
        with_gradient(output, value, gradient)
    }

    /// A(e) − e·Y(place) `[batch, 1]`, in nats.
    fn likelihood(&self, output: Tensor<2>, truth: Tensor<2>, points: &Points) -> Tensor<2> {
        let at_truth = (output.clone() * truth).sum_dim(1); // [batch, 1]
        let (values, log_areas) = self.values(output, points); // [batch, nodes]
        match self.quadrature {
            // Random points alone would miss a peak at the truth, and nothing would hold it
            // back: the truth is one of them.
            Quadrature::Anchors(count) => {
                let log_area = (4.0 * PI / (count + 1) as f64).ln();
                let values = Tensor::cat(vec![values, at_truth.clone()], 1);
                log_sum_exp(values) + log_area - at_truth
            }
            Quadrature::Transform(_) => {
                let [_, nodes] = values.dims();
                let truth_alone = at_truth.clone() + guard_area(nodes).ln();
                let values = Tensor::cat(vec![values + log_areas, truth_alone], 1);
                log_sum_exp(values) - at_truth
            }
        }
    }

    /// KL(q_e ‖ q_Y(place)) `[batch, 1]`, in nats.
    fn reverse_kl(&self, output: Tensor<2>, truth: Tensor<2>, points: &Points) -> Tensor<2> {
        let [batch, _] = output.dims();
        // Both on the same points.
        let (values, log_areas) = self.values(Tensor::cat(vec![output, truth], 0), points);
        let logs = log_softmax(values + log_areas, 1); // [2·batch, nodes]
        let [_, nodes] = logs.dims();
        let mine = logs.clone().slice([0..batch, 0..nodes]);
        let theirs = logs.slice([batch..2 * batch, 0..nodes]);
        (mine.clone().exp() * (mine - theirs)).sum_dim(1)
    }

    /// F at the points `[batch, points]`, and the logarithms of their areas.
    fn values(&self, coefficients: Tensor<2>, points: &Points) -> (Tensor<2>, Tensor<2>) {
        match (&points.0, &self.integrals) {
            (Drawn::Anchors(anchors), _) => {
                // Drawn for all devices; without gradients even where the others have them.
                let anchors = anchors.clone().to_device(&self.device.clone().inner());
                let anchors =
                    if self.device.is_autodiff() { Tensor::from_inner(anchors) } else { anchors };
                let [count, _] = anchors.dims();
                let log_area = (4.0 * PI / count as f64).ln();
                let log_areas = Tensor::full([1, count], log_area, &self.device);
                (coefficients.matmul(anchors.transpose()), log_areas)
            }
            (Drawn::Grid { choice, angle }, Integrals::Tensors(grids)) => {
                let grid = grids[*choice].turned(*angle);
                (grid.synthesize(coefficients), grid.log_areas())
            }
            (Drawn::Grid { .. }, Integrals::Cpu(_)) => {
                unreachable!("the CPU has integrals of its own")
            }
            (Drawn::None, _) => panic!("points of an objective without integrals"),
        }
    }
}

/// log Σ exp along the second axis, `[batch, 1]`.
pub(crate) fn log_sum_exp(values: Tensor<2>) -> Tensor<2> {
    let highest = values.clone().detach().max_dim(1);
    (values - highest.clone()).exp().sum_dim(1).log() + highest
}

/// −F″ at the peak of an encoding's own function: Σ l(l+1)(2l+1)/8π.
fn curvature_of_encoding(max_degree: usize) -> f64 {
    (0..=max_degree).map(|l| (l * (l + 1) * (2 * l + 1)) as f64).sum::<f64>() / (8.0 * PI)
}

/// Standard deviation, in km, of the density that a clean encoding stands for: what an encoding of this degree can
/// tell apart.
pub fn encoding_width_km(max_degree: usize) -> f64 {
    EARTH_RADIUS_KM / curvature_of_encoding(max_degree.max(1)).sqrt()
}

/// Enough for a clean encoding, but no more than six per degree.
fn default_rings(max_degree: usize) -> usize {
    let sigma = 1.0 / curvature_of_encoding(max_degree).sqrt();
    let enough = (PI / (SPACING_PER_SIGMA * sigma)).ceil() as usize;
    enough.clamp(2 * max_degree + 2, 6 * (max_degree + 1).max(4))
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Distribution, Tolerance};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// The CPU's integrals and written-down gradients equal the differentiated tensors.
    #[test]
    fn both_ways_to_integrate_agree() {
        let device = Device::flex().autodiff();
        device.seed(1);
        let max_degree = 9;
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let places = Anchors::uniform(21, &mut rng).places().to_vec();
        let noise = Tensor::<2>::random([21, 100], Distribution::Normal(0.0, 0.5), &device);
        let near = encodings(&Basis::new(max_degree), &places, &device) * 0.7 + noise;
        for objective in [Objective::Likelihood, Objective::ReverseKl] {
            for quadrature in [Quadrature::Transform(40), Quadrature::Anchors(500)] {
                let run = |cpu: bool| {
                    let loss = Loss::on(cpu, objective, quadrature, max_degree, &device);
                    let output = near.clone().detach().require_grad();
                    let mut rng = ChaCha8Rng::seed_from_u64(3);
                    let mean = loss.mean(output.clone(), &places, &mut rng);
                    let gradients = (mean.clone() * 3.0).backward();
                    let gradient = output.grad(&gradients).expect("a gradient");
                    (mean.into_scalar::<f32>(), gradient.into_data())
                };
                let (fast, plain) = (run(true), run(false));
                assert!(
                    (fast.0 - plain.0).abs() < 1e-4,
                    "{objective:?} by {quadrature:?}: {} and {}",
                    fast.0,
                    plain.0
                );
                fast.1.assert_approx_eq::<f32>(&plain.1, Tolerance::absolute(1e-5));
            }
        }
    }

    /// However sharp an output is, on a grid that can't see it the loss has a floor; and where the grid
    /// resolves it, the floor changes little.
    #[test]
    fn a_coarse_grid_is_no_place_to_hide() {
        let device = Device::flex().autodiff();
        let max_degree = 15;
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let places = Anchors::uniform(64, &mut rng).places().to_vec();
        let encoded = encodings(&Basis::new(max_degree), &places, &device);
        let mean = |cpu: bool, rings: usize, sharpness: f64| {
            let quadrature = Quadrature::Transform(rings);
            let loss = Loss::on(cpu, Objective::Likelihood, quadrature, max_degree, &device);
            let mut rng = ChaCha8Rng::seed_from_u64(5);
            f64::from(
                loss.mean(encoded.clone() * sharpness, &places, &mut rng).into_scalar::<f32>(),
            )
        };
        for cpu in [true, false] {
            // The largest grid of those that take turns has 26 rings.
            let floor = guard_area(26 * 52).ln();
            assert!(mean(cpu, 24, 1000.0) >= floor - 1e-3, "{}", mean(cpu, 24, 1000.0));
            let sharpest = Quadrature::Transform(24).sharpest(max_degree);
            let (coarse, fine) = (mean(cpu, 24, sharpest), mean(cpu, 240, sharpest));
            assert!((coarse - fine).abs() < 0.05, "{coarse} and {fine}");
        }
    }
}
