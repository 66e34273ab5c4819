//! Diffusion and flow matching in R³: places are vectors, noise is a Gaussian of the same size, and
//! what comes out is projected to the sphere.
//!
//! Convention: x_t = α·x + σ·n, from noise at t = 0 to the place at t = 1; x has unit mean square per
//! axis. Diffusion: α = sin(πt/2), σ = cos(πt/2), the network gives v = α·n − σ·x (Salimans and Ho
//! 2022). Flow: α = t, σ = 1 − t, the network gives x − n. Both samplers estimate x and n, and mix them
//! anew for the next time: DDIM for the one, Euler's method for the other.

use std::f64::consts::FRAC_PI_2;

use burn::tensor::Device;
use locdiff_sphere::UnitVector;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bumps::Bumps;
use super::fitting::{
    Examples, batches, initialised, normal_triple, place_towards, rows_of, train, training_device,
    triples_of,
};
use super::networks::{Field, Modulation};
use super::{Answer, Baseline, FitOptions, Fitted};

/// Points that stand for an answer.
pub(super) const SAMPLES: usize = 32;
const STEPS: usize = 32;
/// Unit vectors have a mean square of 1/3 per axis.
const SCALE: f64 = 1.732_050_807_568_877_2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Process {
    Diffusion,
    Flow,
}

impl Process {
    /// α and σ.
    fn mix(self, time: f64) -> [f64; 2] {
        match self {
            Process::Diffusion => (FRAC_PI_2 * time).sin_cos().into(),
            Process::Flow => [time, 1.0 - time],
        }
    }

    /// What the network is to give, for a place and noise.
    fn target(self, time: f64, x: [f64; 3], n: [f64; 3]) -> [f64; 3] {
        let [alpha, sigma] = self.mix(time);
        [0, 1, 2].map(|axis| match self {
            Process::Diffusion => alpha * n[axis] - sigma * x[axis],
            Process::Flow => x[axis] - n[axis],
        })
    }

    /// The place and the noise that a latent and the network's answer stand for.
    fn parts(self, time: f64, latent: [f64; 3], v: [f64; 3]) -> [[f64; 3]; 2] {
        let [alpha, sigma] = self.mix(time);
        let both = |axis: usize| match self {
            Process::Diffusion => {
                [alpha * latent[axis] - sigma * v[axis], sigma * latent[axis] + alpha * v[axis]]
            }
            Process::Flow => [latent[axis] + sigma * v[axis], latent[axis] - alpha * v[axis]],
        };
        let [a, b, c] = [both(0), both(1), both(2)];
        [[a[0], b[0], c[0]], [a[1], b[1], c[1]]]
    }
}

pub(super) fn fit(examples: &Examples<'_>, process: Process, options: &FitOptions) -> Fitted {
    let network = initialised(options.seed, |device| Field::init(examples.width, device));
    let device = training_device();
    let trained = train(network, examples, options, |network, embeddings, places, rng| {
        let (mut latents, mut targets, mut times) = (Vec::new(), Vec::new(), Vec::new());
        for place in places {
            let x = UnitVector::from(*place).to_array().map(|part| SCALE * part);
            let (time, n): (f64, _) = (rng.random(), normal_triple(rng));
            let [alpha, sigma] = process.mix(time);
            latents.push([0, 1, 2].map(|axis| alpha * x[axis] + sigma * n[axis]));
            targets.push(process.target(time, x, n));
            times.push(time);
        }
        let modulation = network.modulation(embeddings);
        let output = network.forward(rows_of(&latents, &device), &modulation, &times);
        (output - rows_of(&targets, &device)).square().mean()
    });
    let width = examples.width;
    Fitted::direct(trained, |network| Euclidean { network, width, process })
}

struct Euclidean {
    network: Field,
    width: usize,
    process: Process,
}

impl Euclidean {
    /// One sample for each row.
    fn sample(&self, modulation: &Modulation, rows: usize, rng: &mut ChaCha8Rng) -> Vec<[f64; 3]> {
        let mut latents: Vec<[f64; 3]> = (0..rows).map(|_| normal_triple(rng)).collect();
        for step in 0..STEPS {
            let [time, next] = [step, step + 1].map(|step| step as f64 / STEPS as f64);
            let x = rows_of(&latents, &Device::flex());
            let outputs = triples_of(self.network.forward(x, modulation, &[time]));
            let [alpha, sigma] = self.process.mix(next);
            for (latent, output) in latents.iter_mut().zip(outputs) {
                let [x, n] = self.process.parts(time, *latent, output);
                *latent = [0, 1, 2].map(|axis| alpha * x[axis] + sigma * n[axis]);
            }
        }
        let project = |latent| UnitVector::from(place_towards(latent)).to_array();
        latents.into_iter().map(project).collect()
    }
}

impl Baseline for Euclidean {
    fn answers(&self, embeddings: &[f32], seed: u64) -> Vec<Box<dyn Answer>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut answers: Vec<Box<dyn Answer>> = Vec::new();
        for batch in batches(embeddings, self.width) {
            let [rows, _] = batch.dims();
            let modulation = self.network.modulation(batch);
            let samples: Vec<Vec<[f64; 3]>> =
                (0..SAMPLES).map(|_| self.sample(&modulation, rows, &mut rng)).collect();
            for row in 0..rows {
                let points = samples.iter().map(|sample| sample[row]);
                answers.push(Box::new(Bumps::samples(points)));
            }
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baseline_processes_find_place_and_noise_again() {
        let (x, n) = ([0.3, -1.2, 0.9], [-0.4, 0.1, 1.5]);
        for process in [Process::Diffusion, Process::Flow] {
            for time in [0.0, 0.3, 0.8, 1.0] {
                let [alpha, sigma] = process.mix(time);
                let latent = [0, 1, 2].map(|axis| alpha * x[axis] + sigma * n[axis]);
                let parts = process.parts(time, latent, process.target(time, x, n));
                for axis in 0..3 {
                    assert!((parts[0][axis] - x[axis]).abs() < 1e-12);
                    assert!((parts[1][axis] - n[axis]).abs() < 1e-12);
                }
            }
        }
    }
}
