//! Flow matching along great circles (Chen and Lipman 2024; for images of places: plonk, Dufour et al.
//! 2025): uniform places flow to the truth, and a density follows from the flow.
//!
//! Convention: x_t lies on the great circle from a uniform place at t = 0 to the truth at t = 1; the
//! network's vector is projected to the tangent plane there. With v the projection of a field f,
//! div v = tr(P·∂f) − 2·x·f, and log p(x_1) = −log 4π − ∫ div v(x_t, t) dt along the way back. That
//! is the divergence on the sphere itself; in R³, without projecting ∂f, it would be another number.

use burn::tensor::Device;
use locdiff_sphere::{LatLon, UNIFORM_NLL_NATS, UnitVector, uniform_place};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bumps::Bumps;
use super::euclidean::SAMPLES;
use super::fitting::{
    BATCH, Examples, batches, initialised, rows_of, train, training_device, triples_of,
};
use super::kernel::{dot, tangents};
use super::networks::{Field, Modulation};
use super::{Answer, Baseline, FitOptions, Fitted};

/// Of samples; each asks the network twice (midpoint rule).
const STEPS: usize = 16;
/// Of densities, where steps must not only end at the right place but also keep its area.
const DENSITY_STEPS: usize = 48;

pub(super) fn fit(examples: &Examples<'_>, options: &FitOptions) -> Fitted {
    let network = initialised(options.seed, |device| Field::init(examples.width, device));
    let device = training_device();
    let trained = train(network, examples, options, |network, embeddings, places, rng| {
        let (mut latents, mut targets, mut times) = (Vec::new(), Vec::new(), Vec::new());
        for place in places {
            let time: f64 = rng.random();
            let (latent, target) = on_the_way(uniform_place(rng), *place, time);
            latents.push(latent);
            targets.push(target);
            times.push(time);
        }
        let modulation = network.modulation(embeddings);
        let x = rows_of(&latents, &device);
        let output = network.forward(x.clone(), &modulation, &times);
        let upwards = (output.clone() * x.clone()).sum_dim(1);
        (output - x * upwards - rows_of(&targets, &device)).square().mean()
    });
    let width = examples.width;
    Fitted::direct(trained, |network| Riemannian { network, width })
}

/// The place at a time on the great circle between two, and the velocity there.
fn on_the_way(from: LatLon, to: LatLon, time: f64) -> ([f64; 3], [f64; 3]) {
    let (from, to) = (UnitVector::from(from), UnitVector::from(to));
    let angle = from.angle_to(to);
    let sin = angle.sin();
    if sin < 1e-9 {
        // The same place, or antipodes, between which every way is as good.
        return (to.to_array(), [0.0; 3]);
    }
    let (from, to) = (from.to_array(), to.to_array());
    let (s0, c0) = ((1.0 - time) * angle).sin_cos();
    let (s1, c1) = (time * angle).sin_cos();
    (
        [0, 1, 2].map(|axis| (s0 * from[axis] + s1 * to[axis]) / sin),
        [0, 1, 2].map(|axis| angle * (c1 * to[axis] - c0 * from[axis]) / sin),
    )
}

/// Along a great circle from a place, by a tangent vector.
fn moved(place: [f64; 3], by: [f64; 3]) -> [f64; 3] {
    let angle = dot(by, by).sqrt();
    if angle < 1e-12 {
        return place;
    }
    let (sin, cos) = angle.sin_cos();
    let end = [0, 1, 2].map(|axis| cos * place[axis] + sin / angle * by[axis]);
    UnitVector::from_direction(end).map_or(place, UnitVector::to_array)
}

struct Riemannian {
    network: Field,
    width: usize,
}

impl Riemannian {
    fn velocities(&self, places: &[[f64; 3]], modulation: &Modulation, time: f64) -> Vec<[f64; 3]> {
        let x = rows_of(places, &Device::flex());
        let outputs = triples_of(self.network.forward(x, modulation, &[time]));
        places.iter().zip(outputs).map(|(place, output)| tangential(*place, output)).collect()
    }

    fn velocities_and_divergences(
        &self,
        places: &[[f64; 3]],
        modulation: &Modulation,
        time: f64,
    ) -> Vec<([f64; 3], f64)> {
        let device = Device::flex();
        let frames: Vec<[[f64; 3]; 2]> = places.iter().map(|place| tangents(*place)).collect();
        let direction =
            |k: usize| -> Vec<[f64; 3]> { frames.iter().map(|frame| frame[k]).collect() };
        let directions = [0, 1].map(|k| rows_of(&direction(k), &device));
        let x = rows_of(places, &device);
        let (outputs, derived) =
            self.network.forward_with_derivatives(x, directions, modulation, &[time]);
        let (outputs, [first, second]) = (triples_of(outputs), derived.map(triples_of));
        (0..places.len())
            .map(|k| {
                let trace = dot(frames[k][0], first[k]) + dot(frames[k][1], second[k]);
                let divergence = trace - 2.0 * dot(places[k], outputs[k]);
                (tangential(places[k], outputs[k]), divergence)
            })
            .collect()
    }

    /// From uniform places to samples, one for each row.
    fn sample(&self, modulation: &Modulation, rows: usize, rng: &mut ChaCha8Rng) -> Vec<[f64; 3]> {
        let uniform = |_| UnitVector::from(uniform_place(rng)).to_array();
        let mut places: Vec<[f64; 3]> = (0..rows).map(uniform).collect();
        let step = 1.0 / STEPS as f64;
        for k in 0..STEPS {
            let time = k as f64 * step;
            let slopes = self.velocities(&places, modulation, time);
            let middles = advanced(&places, &slopes, 0.5 * step);
            let slopes = self.velocities(&middles, modulation, time + 0.5 * step);
            // The middle's velocity, seen from where the step begins.
            let slopes: Vec<[f64; 3]> =
                places.iter().zip(slopes).map(|(place, slope)| tangential(*place, slope)).collect();
            places = advanced(&places, &slopes, step);
        }
        places
    }

    fn log_densities_of_batch(&self, modulation: &Modulation, places: &[LatLon]) -> Vec<f64> {
        let mut places: Vec<[f64; 3]> =
            places.iter().map(|place| UnitVector::from(*place).to_array()).collect();
        let mut logs = vec![-UNIFORM_NLL_NATS; places.len()];
        let step = 1.0 / DENSITY_STEPS as f64;
        for k in (0..DENSITY_STEPS).rev() {
            let time = (k + 1) as f64 * step;
            let slopes = self.velocities(&places, modulation, time);
            let middles = advanced(&places, &slopes, -0.5 * step);
            let slopes = self.velocities_and_divergences(&middles, modulation, time - 0.5 * step);
            for ((place, log), (slope, divergence)) in places.iter_mut().zip(&mut logs).zip(slopes)
            {
                *log -= step * divergence;
                let slope = tangential(*place, slope);
                *place = moved(*place, slope.map(|part| -step * part));
            }
        }
        logs
    }
}

fn tangential(place: [f64; 3], vector: [f64; 3]) -> [f64; 3] {
    let upwards = dot(place, vector);
    [0, 1, 2].map(|axis| vector[axis] - upwards * place[axis])
}

fn advanced(places: &[[f64; 3]], slopes: &[[f64; 3]], step: f64) -> Vec<[f64; 3]> {
    let pairs = places.iter().zip(slopes);
    pairs.map(|(place, slope)| moved(*place, slope.map(|part| step * part))).collect()
}

impl Baseline for Riemannian {
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

    fn log_densities(&self, embeddings: &[f32], places: &[LatLon]) -> Option<Vec<f64>> {
        let parts = batches(embeddings, self.width).zip(places.chunks(BATCH));
        let logs = parts.flat_map(|(batch, places)| {
            self.log_densities_of_batch(&self.network.modulation(batch), places)
        });
        Some(logs.collect())
    }
}

#[cfg(test)]
mod tests;
