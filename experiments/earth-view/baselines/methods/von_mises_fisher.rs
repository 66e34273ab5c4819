//! A von Mises-Fisher density, or a mixture of several, by likelihood.
//!
//! Convention: log p = log κ − log 2π − log(1 − e^(−2κ)) − κ·|μ − x|²/2, which neither overflows for
//! large κ nor loses digits near the middle. A component is five numbers: a direction, log κ, and the
//! logarithm of its weight.

use std::f64::consts::TAU;

use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;
use locdiff_sphere::{Anchors, UnitVector};

use super::bumps::{Bump, Bumps};
use super::fitting::{
    Examples, batches, initialised, numbers_of, place_towards, train, training_device, vectors_of,
};
use super::networks::Direct;
use super::{Answer, Baseline, FitOptions, Fitted};

/// Of a mixture.
pub(super) const COMPONENTS: usize = 16;
/// Numbers of a component.
const NUMBERS: usize = 5;
/// From nearly uniform to a width of 26 km.
const LOG_KAPPAS: [f64; 2] = [-3.0, 11.0];

pub(super) fn fit(examples: &Examples<'_>, components: usize, options: &FitOptions) -> Fitted {
    let network =
        initialised(options.seed, |device| Direct::init(examples.width, start(components), device));
    let device = training_device();
    let trained = train(network, examples, options, |network, embeddings, places, _| {
        let truths = vectors_of(places, &device);
        log_density(network.forward(embeddings), truths).mean().neg()
    });
    let width = examples.width;
    Fitted::direct(trained, |network| VonMisesFisher { network, width, components })
}

/// Components begin all over the Earth, and wide.
fn start(components: usize) -> Vec<f32> {
    let middles = Anchors::fibonacci(components);
    let numbers = middles.places().iter().flat_map(|place| {
        let [x, y, z] = UnitVector::from(*place).to_array();
        [x, y, z, 1.0, 0.0]
    });
    numbers.map(|number| number as f32).collect()
}

/// Of truths `[batch, 3]` under outputs `[batch, 5·components]`: `[batch, 1]`.
fn log_density(output: Tensor<2>, truths: Tensor<2>) -> Tensor<2> {
    let [batch, size] = output.dims();
    let components = size / NUMBERS;
    let output = output.reshape([batch, components, NUMBERS]);
    let column = |k: usize| output.clone().narrow(2, k, 1).reshape([batch, components]);
    let directions = output.clone().narrow(2, 0, 3);
    let length = (directions.clone().square().sum_dim(2) + 1e-12).sqrt();
    let truths = truths.reshape([batch, 1, 3]);
    let chords = (directions / length - truths).square().sum_dim(2).reshape([batch, components]);
    let log_kappas = column(3).clamp(LOG_KAPPAS[0], LOG_KAPPAS[1]);
    let kappas = log_kappas.clone().exp();
    let rest = ((kappas.clone() * -2.0).exp().neg() + 1.0).log();
    let logs = log_softmax(column(4), 1) + log_kappas - rest - kappas * chords * 0.5 - TAU.ln();
    let highest = logs.clone().detach().max_dim(1);
    (logs - highest.clone()).exp().sum_dim(1).log() + highest
}

struct VonMisesFisher {
    network: Direct,
    width: usize,
    components: usize,
}

impl Baseline for VonMisesFisher {
    fn answers(&self, embeddings: &[f32], _seed: u64) -> Vec<Box<dyn Answer>> {
        let mut answers: Vec<Box<dyn Answer>> = Vec::new();
        for batch in batches(embeddings, self.width) {
            let numbers = numbers_of(self.network.forward(batch));
            for row in numbers.chunks_exact(NUMBERS * self.components) {
                answers.push(Box::new(answer(row)));
            }
        }
        answers
    }
}

fn answer(row: &[f32]) -> Bumps {
    let bump = |numbers: &[f32]| {
        let numbers: Vec<f64> = numbers.iter().map(|number| f64::from(*number)).collect();
        let log_kappa = numbers[3].clamp(LOG_KAPPAS[0], LOG_KAPPAS[1]);
        let centre = place_towards([numbers[0], numbers[1], numbers[2]]);
        Bump {
            log_weight: numbers[4],
            centre: UnitVector::from(centre).to_array(),
            variance: Some((-log_kappa).exp()),
        }
    };
    Bumps::new(row.chunks_exact(NUMBERS).map(bump).collect())
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use locdiff_sphere::{Grid, LatLon};

    use super::super::Shape;
    use super::super::fitting::matrix_of;
    use super::*;

    fn numbers() -> Vec<f32> {
        vec![0.3, 0.1, -2.0, 2.5, 0.4, -1.0, 0.0, 0.001, 4.0, -0.3, 0.0, 0.2, 0.1, -2.0, 0.0]
    }

    /// What is trained, what is answered, and a density: the same three times over.
    #[test]
    fn baseline_mixture_answers_what_it_was_trained_for() {
        let device = Device::flex();
        let answer = answer(&numbers());
        let grid = Grid::new(96, 192);
        let places: Vec<LatLon> = (0..grid.len()).map(|k| grid.place(k / 192, k % 192)).collect();
        let logs: Vec<f64> = places
            .iter()
            .map(|place| answer.log_densities(*place, &[Shape::Power(1.0)])[0])
            .collect();
        let values: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        assert!((grid.integrate(&values) - 1.0).abs() < 1e-4);
        for k in (0..grid.len()).step_by(97) {
            let output = matrix_of(numbers(), 15, &device);
            let trained = log_density(output, vectors_of(&places[k..=k], &device));
            let trained = f64::from(trained.into_scalar::<f32>());
            assert!((trained - logs[k]).abs() < 1e-4, "{trained}, {}", logs[k]);
        }
    }
}
