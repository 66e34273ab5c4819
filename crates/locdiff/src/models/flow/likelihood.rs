//! The density of a flow at a place, by the divergence on the way back to noise.
//!
//! Convention: per steradian, in nats. For a velocity v in space with Jacobian J, the part of v along the sphere has the
//! divergence tr(J) − xᵀJx − 2 x·v there. plonk integrates tr(J), which is that of a flow in space: its densities do not
//! integrate to one over the sphere. Tested against areas of pulled-back cells and against the integral over the sphere.

use std::f64::consts::PI;

use burn::tensor::{Tensor, TensorData};
use locdiff_sphere::UnitVector;

use super::network::{
    Conditioned, ConditionedBlock, Dense, FlowField, FlowNetwork, TOGETHER, moments_back,
};
use crate::tensors::fused::numbers_of;

/// How a particle moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Motion {
    /// dx/dγ, in space.
    pub velocity: [f64; 3],
    /// Its derivatives: `[output][input]`.
    pub jacobian: [[f64; 3]; 3],
}

impl FlowNetwork {
    /// The log-density of places, by so many steps of the midpoint rule.
    pub fn log_density(
        &self,
        embedding: &[f32],
        places: &[UnitVector],
        steps: usize,
        guidance: f64,
    ) -> Vec<f64> {
        let mut x: Vec<[f64; 3]> = places.iter().map(|place| place.to_array()).collect();
        let mut logs = vec![-(4.0 * PI).ln(); x.len()];
        for [now, middle, next] in moments_back(steps) {
            let [first, second] = [now, middle].map(|gamma| self.field(embedding, gamma, guidance));
            let (half_step, step) = (f64::from(middle - now), f64::from(next - now));
            let halfway: Vec<[f64; 3]> = first
                .motion(&x)
                .iter()
                .zip(&x)
                .map(|(motion, x)| moved(*x, motion.tangent(*x), half_step))
                .collect();
            for (k, motion) in second.motion(&halfway).iter().enumerate() {
                x[k] = moved(x[k], motion.tangent(halfway[k]), step);
                // Backwards, the step is negative.
                logs[k] += step * motion.divergence_along_sphere(halfway[k]);
            }
        }
        logs
    }
}

impl FlowField {
    /// Velocities and their derivatives.
    pub fn motion(&self, particles: &[[f64; 3]]) -> Vec<Motion> {
        let tracked = |(weight, part): &(f64, Conditioned)| (*weight, part.tracked());
        let field = FlowField {
            parts: self.parts.iter().map(tracked).collect(),
            device: self.device.clone().autodiff(),
        };
        particles.chunks(TOGETHER).flat_map(|particles| field.tracked_motion(particles)).collect()
    }

    fn tracked_motion(&self, particles: &[[f64; 3]]) -> Vec<Motion> {
        let count = particles.len();
        // Three times the same: each third has the gradient of one coordinate of the velocity.
        let numbers: Vec<f32> = particles.as_flattened().iter().map(|x| *x as f32).collect();
        let data = TensorData::new(numbers.repeat(3), [3 * count, 3]);
        let x = Tensor::<2>::from_data(data, &self.device).require_grad();
        let velocity = self.velocity(x.clone());
        let chosen = (0..9 * count).map(|k| f32::from(u8::from(k / (3 * count) == k % 3)));
        let chosen = TensorData::new(chosen.collect::<Vec<f32>>(), [3 * count, 3]);
        let chosen = Tensor::<2>::from_data(chosen, &self.device);
        let gradients = (velocity.clone() * chosen).sum().backward();
        let gradient = x.grad(&gradients).expect("the velocity depends on the place");
        let (velocity, gradient) = (numbers_of(&velocity), numbers_of(&gradient));
        let triple =
            |numbers: &[f32], row: usize| std::array::from_fn(|k| f64::from(numbers[3 * row + k]));
        let motion = |k: usize| Motion {
            velocity: triple(&velocity, k),
            jacobian: std::array::from_fn(|output| triple(&gradient, output * count + k)),
        };
        (0..count).map(motion).collect()
    }
}

impl Dense {
    fn tracked(&self) -> Dense {
        let Dense { weight, bias } = self.clone();
        Dense { weight: Tensor::from_inner(weight), bias: Tensor::from_inner(bias) }
    }
}

impl Conditioned {
    /// The same on a device that keeps track of gradients.
    fn tracked(&self) -> Conditioned {
        let vector = |vector: &Tensor<1>| Tensor::from_inner(vector.clone());
        let block = |block: &ConditionedBlock| ConditionedBlock {
            scale: vector(&block.scale),
            shift: vector(&block.shift),
            gate: vector(&block.gate),
            up: block.up.tracked(),
            down: block.down.tracked(),
        };
        Conditioned {
            initial: self.initial.tracked(),
            blocks: self.blocks.iter().map(block).collect(),
            scale: vector(&self.scale),
            shift: vector(&self.shift),
            last: self.last.tracked(),
        }
    }
}

impl Motion {
    /// The velocity along the sphere.
    fn tangent(&self, x: [f64; 3]) -> [f64; 3] {
        let outwards = dot(self.velocity, x);
        std::array::from_fn(|k| self.velocity[k] - outwards * x[k])
    }

    /// The divergence, on the sphere, of the velocity along it.
    pub fn divergence_along_sphere(&self, x: [f64; 3]) -> f64 {
        let trace: f64 = (0..3).map(|k| self.jacobian[k][k]).sum();
        let outwards = dot(x, self.jacobian.map(|row| dot(row, x)));
        trace - outwards - 2.0 * dot(self.velocity, x)
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn moved(x: [f64; 3], velocity: [f64; 3], step: f64) -> [f64; 3] {
    let moved: [f64; 3] = std::array::from_fn(|k| x[k] + step * velocity[k]);
    UnitVector::from_direction(moved).map_or(x, UnitVector::to_array)
}
