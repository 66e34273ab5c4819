//! Classification of cells that follow the training places (PlaNet, Weyand et al. 2016): a piecewise
//! constant density. Cells are those of `CubeCover`: S2's hierarchy, with areas in closed form.

use std::f64::consts::PI;
use std::sync::Arc;

use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor, TensorData};
use locdiff_sphere::{CubeCover, LatLon, UnitVector, mean_place};
use rand_chacha::ChaCha8Rng;

use super::answer::{Calibration, Rule, Shape, log_with_uniform};
use super::bumps::{Bump, Bumps};
use super::fitting::{Examples, batches, initialised, numbers_of, train, training_device};
use super::networks::Direct;
use super::{Answer, Baseline, FitOptions, Fitted};

/// A cell holds at most this share of the training places: about a thousand cells come of it.
const LARGEST_SHARE: f64 = 1.0 / 600.0;
/// Cells with less count for nothing when one place is chosen.
const LEAST_MASS: f64 = 1e-4;

pub(super) fn fit(examples: &Examples<'_>, options: &FitOptions) -> Fitted {
    let at_most = (examples.places.len() as f64 * LARGEST_SHARE).ceil() as usize;
    let cells = Arc::new(Cells::new(examples.places, at_most));
    // Begins with the shares of the training places.
    let start = cells.counts.iter().map(|count| ((*count as f32) + 0.5).ln()).collect();
    let network = initialised(options.seed, |device| Direct::init(examples.width, start, device));
    let device = training_device();
    let trained = train(network, examples, options, |network, embeddings, places, _| {
        let logs = log_softmax(network.forward(embeddings), 1); // [batch, cells]
        let truths: Vec<i64> = places.iter().map(|place| cells.cover.find(*place) as i64).collect();
        let truths = TensorData::new(truths, [places.len(), 1]);
        logs.gather(1, Tensor::<2, Int>::from_data(truths, &device)).mean().neg()
    });
    let width = examples.width;
    Fitted::direct(trained, |network| Classification { network, width, cells })
}

struct Cells {
    cover: CubeCover,
    areas: Vec<f64>,
    /// Training places in each.
    counts: Vec<usize>,
    /// Their mean, or the cell's centre.
    centres: Vec<LatLon>,
}

impl Cells {
    fn new(places: &[LatLon], at_most: usize) -> Cells {
        let cover = CubeCover::adapted_to(places, at_most);
        let mut inside: Vec<Vec<LatLon>> = vec![Vec::new(); cover.cells().len()];
        places.iter().for_each(|place| inside[cover.find(*place)].push(*place));
        let centre = |(places, cell): (&Vec<LatLon>, &locdiff_sphere::CubeCell)| {
            mean_place(places).unwrap_or_else(|| cell.centre())
        };
        Cells {
            areas: cover.cells().iter().map(|cell| cell.area()).collect(),
            counts: inside.iter().map(Vec::len).collect(),
            centres: inside.iter().zip(cover.cells()).map(centre).collect(),
            cover,
        }
    }
}

struct Classification {
    network: Direct,
    width: usize,
    cells: Arc<Cells>,
}

impl Baseline for Classification {
    fn answers(&self, embeddings: &[f32], _seed: u64) -> Vec<Box<dyn Answer>> {
        let count = self.cells.areas.len();
        let mut answers: Vec<Box<dyn Answer>> = Vec::new();
        for batch in batches(embeddings, self.width) {
            for logits in numbers_of(self.network.forward(batch)).chunks_exact(count) {
                let answer = CellMasses { cells: self.cells.clone(), logits: logits.to_vec() };
                answers.push(Box::new(answer));
            }
        }
        answers
    }
}

struct CellMasses {
    cells: Arc<Cells>,
    logits: Vec<f32>,
}

impl CellMasses {
    /// Masses, which sum to one.
    fn masses(&self, shape: Shape) -> Vec<f64> {
        let power = match shape {
            Shape::Power(power) => power,
            Shape::Kernel { .. } => 1.0,
        };
        let highest = self.logits.iter().copied().fold(f32::MIN, f32::max);
        let part = |logit: &f32| (power * f64::from(logit - highest)).exp();
        let sum: f64 = self.logits.iter().map(part).sum();
        self.logits.iter().map(|logit| part(logit) / sum).collect()
    }
}

impl Answer for CellMasses {
    fn log_densities(&self, place: LatLon, shapes: &[Shape]) -> Vec<f64> {
        let cell = self.cells.cover.find(place);
        let log = |shape: &Shape| (self.masses(*shape)[cell] / self.cells.areas[cell]).ln();
        shapes.iter().map(log).collect()
    }

    fn shapes(&self) -> Vec<Shape> {
        (6..=28).map(|k| Shape::Power(f64::from(k) / 20.0)).collect()
    }

    fn place(&self, rule: Rule, shape: Shape) -> LatLon {
        let masses = self.masses(shape);
        if rule == (Rule::Mode { spread_km: 0.0 }) {
            let best = (0..masses.len()).max_by(|a, b| masses[*a].total_cmp(&masses[*b]));
            return self.cells.centres[best.expect("there are cells")];
        }
        // Round bumps in place of squares.
        let heaviest = masses.iter().copied().fold(0.0, f64::max);
        let bumps = masses.iter().enumerate().filter(|(_, mass)| **mass > LEAST_MASS * heaviest);
        let bump = |(cell, mass): (usize, &f64)| Bump {
            log_weight: mass.ln(),
            centre: UnitVector::from(self.cells.centres[cell]).to_array(),
            variance: Some(self.cells.areas[cell] / 12.0),
        };
        Bumps::new(bumps.map(bump).collect()).place(rule, Shape::Power(1.0))
    }

    fn level(&self, place: LatLon, calibration: &Calibration, _rng: &mut ChaCha8Rng) -> f64 {
        let share = calibration.uniform_share;
        let masses = self.masses(calibration.shape);
        let cell = self.cells.cover.find(place);
        let log =
            |cell: usize| log_with_uniform((masses[cell] / self.cells.areas[cell]).ln(), share);
        let mass = |cell: usize| {
            (1.0 - share) * masses[cell] + share * self.cells.areas[cell] / (4.0 * PI)
        };
        let of_truth = log(cell);
        let above: f64 = (0..masses.len()).filter(|k| log(*k) > of_truth).map(mass).sum();
        // All places of a cell are as probable; the truth stands in the middle of them.
        above + 0.5 * mass(cell)
    }
}

#[cfg(test)]
mod tests {
    use locdiff_sphere::{Anchors, Grid};

    use super::*;

    #[test]
    fn baseline_cell_densities_integrate_to_one() {
        let places = Anchors::fibonacci(600).places()[..200].to_vec();
        let cells = Arc::new(Cells::new(&places, 10));
        let logits = (0..cells.areas.len()).map(|k| ((k * 7 % 11) as f32) * 0.6).collect();
        let answer = CellMasses { cells: cells.clone(), logits };
        let mass: f64 = answer.masses(Shape::Power(0.7)).iter().sum();
        assert!((mass - 1.0).abs() < 1e-12);
        let grid = Grid::new(300, 600);
        let values: Vec<f64> = (0..grid.len())
            .map(|k| {
                let place = grid.place(k / 600, k % 600);
                answer.log_densities(place, &[Shape::Power(0.7)])[0].exp()
            })
            .collect();
        // The grid cuts the borders of cells.
        assert!((grid.integrate(&values) - 1.0).abs() < 5e-3);
    }
}
