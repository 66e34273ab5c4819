//! The network and sampler of plonk: "Around the World in 80 Timesteps" (Dufour et al., CVPR 2025,
//! <https://arxiv.org/abs/2412.06781>), a flow on the sphere from uniform noise (γ = 0) to places (γ = 1).
//!
//! ```text
//! c     = W_cond·embedding + time(γ)                              `[1, dim]`
//! h     = W_in·x                                                  `[particles, dim]`
//! block: (g, m, s) = W_ada·silu(c);  h += s ⊙ (W_3·gelu(W_0·((1 + g) ⊙ norm(h) + m)))
//! dx/dγ = W_out·((1 + g) ⊙ norm(h) + m)                           `[particles, 3]`
//! ```
//!
//! c, g, m and s depend on the picture and on γ only: [`FlowNetwork::field`] computes them once for all particles. Names of
//! tensors are those of the published checkpoints. Places are x = (cos φ cos λ, cos φ sin λ, sin φ), as everywhere here.
//! Tested against the package `diff-plonk`: `parity/plonk`.

use std::path::Path;

use burn::tensor::activation::silu;
use burn::tensor::{Device, Tensor, TensorData};
use locdiff_sphere::UnitVector;
use serde::{Deserialize, Serialize};

use super::by_rows::{self, Layer, Modulation};
use crate::tensors::InvalidWeights;
use crate::tensors::fused::{Gelu, gelu, is_frozen_cpu, normalise, numbers_of};
use crate::tensors::weights::FileOfWeights;

/// Particles that go through the network together: more do not make it faster, and take memory.
pub(super) const TOGETHER: usize = 1024;
/// Of γ, before its frequencies.
const TIME_SCALE: f32 = 1000.0;

/// Widths of a network, at most.
const MOST_WIDTH: usize = 1 << 20;

/// The shape of a network: the published `config.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowConfig {
    /// Coordinates of a place: 3.
    pub input_dim: usize,
    /// Width; a multiple of 8.
    pub dim: usize,
    /// Blocks.
    pub depth: usize,
    /// How many times wider a block is inside.
    pub expansion: usize,
    /// Length of the embedding of a picture.
    pub cond_dim: usize,
}

impl FlowConfig {
    /// What is wrong with the numbers, if anything.
    pub fn problem(&self) -> Option<String> {
        let FlowConfig { input_dim, dim, expansion, cond_dim, .. } = *self;
        if input_dim != 3 {
            return Some(format!("input_dim is {input_dim}, a place has 3 coordinates"));
        }
        if dim < 8 || !dim.is_multiple_of(8) {
            return Some(format!("dim is {dim}, it must be a multiple of 8"));
        }
        if expansion == 0 || cond_dim == 0 {
            return Some("expansion and cond_dim must not be 0".to_owned());
        }
        // So that their products can be computed.
        let widest = dim.max(expansion).max(cond_dim);
        (widest > MOST_WIDTH).then(|| {
            format!("dim, expansion and cond_dim must be {MOST_WIDTH} at most, {widest} is more")
        })
    }
}

/// γ at t = 1 − k/steps, from noise (0) to places (1): a sigmoid from −7 to 3, as all published models were trained with. In the
/// precision of the package, because the network has frequencies of 1000 rad.
pub fn gammas(steps: usize) -> Vec<f32> {
    let sigmoid = |x: f32| (1.0 / (1.0 + (-f64::from(x)).exp())) as f32;
    let (start, end) = (sigmoid(-7.0), sigmoid(3.0));
    let gamma = |k: usize| {
        let t = 1.0 - k as f32 / steps as f32;
        ((end - sigmoid(t * 10.0 - 7.0)) / (end - start)).clamp(1e-9, 1.0)
    };
    (0..=steps).map(gamma).collect()
}

/// plonk's network: the velocity of particles on the sphere, given an embedding and a moment.
#[derive(Debug, Clone)]
pub struct FlowNetwork {
    config: FlowConfig,
    frequencies: Vec<f32>,
    map_time: [Dense; 2],
    cond_mapper: Dense,
    initial_mapper: Dense,
    blocks: Vec<Block>,
    final_adaln: Dense,
    final_linear: Dense,
    device: Device,
}

#[derive(Debug, Clone)]
struct Block {
    up: Dense,
    down: Dense,
    ada_map: Dense,
}

#[derive(Debug, Clone)]
pub(super) struct Dense {
    /// `[inputs, outputs]`.
    pub(super) weight: Tensor<2>,
    pub(super) bias: Tensor<1>,
}

impl Dense {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.weight.clone()) + self.bias.clone().unsqueeze()
    }
}

impl FlowNetwork {
    /// Reads `model.safetensors` as it is published.
    pub fn read(
        config: &FlowConfig,
        path: &Path,
        device: &Device,
    ) -> Result<FlowNetwork, InvalidWeights> {
        let FlowConfig { input_dim, dim, depth, expansion, cond_dim } = *config;
        let mut file = FileOfWeights::read(path)?;
        let (time, wide) = (dim / 4, dim * expansion);
        let frequencies = file.take("time_embedder.encode_time.freqs", &[time / 2])?;
        let mut dense = |name: &str, inputs: usize, outputs: usize| {
            let weight = file.take(&format!("{name}.weight"), &[outputs, inputs])?;
            let bias = file.take(&format!("{name}.bias"), &[outputs])?;
            if !weight.iter().chain(&bias).all(|number| number.is_finite()) {
                let reason = format!("{name} has numbers that are not finite");
                return Err(InvalidWeights::Format { path: path.into(), reason });
            }
            let weight = Tensor::<2>::from_data(TensorData::new(weight, [outputs, inputs]), device);
            let bias = Tensor::from_data(TensorData::new(bias, [outputs]), device);
            // Turned round once: products then read it in order.
            let turned = numbers_of(&weight.transpose());
            let weight = Tensor::from_data(TensorData::new(turned, [inputs, outputs]), device);
            Ok(Dense { weight, bias })
        };
        let map_time = [
            dense("time_embedder.map_time.0", time, dim)?,
            dense("time_embedder.map_time.2", dim, dim)?,
        ];
        let cond_mapper = dense("cond_mapper", cond_dim, dim)?;
        let initial_mapper = dense("initial_mapper", input_dim, dim)?;
        let mut blocks = Vec::new();
        for number in 0..depth {
            blocks.push(Block {
                up: dense(&format!("blocks.{number}.mlp.0"), dim, wide)?,
                down: dense(&format!("blocks.{number}.mlp.3"), wide, dim)?,
                ada_map: dense(&format!("blocks.{number}.ada_map.1"), dim, 3 * dim)?,
            });
        }
        let final_adaln = dense("final_adaln.1", dim, 2 * dim)?;
        let final_linear = dense("final_linear", dim, input_dim)?;
        file.expect_empty()?;
        Ok(FlowNetwork {
            config: config.clone(),
            frequencies,
            map_time,
            cond_mapper,
            initial_mapper,
            blocks,
            final_adaln,
            final_linear,
            device: device.clone(),
        })
    }

    /// Widths and depth of the network.
    pub fn config(&self) -> &FlowConfig {
        &self.config
    }

    /// The velocities at one moment, for all particles of a picture. `guidance` weighs the picture against none, which is an
    /// embedding of zeros: 1 is as trained, 0 ignores the picture. plonk's `cfg` is one less.
    ///
    /// # Panics
    /// If the embedding has another length than the network takes.
    pub fn field(&self, embedding: &[f32], gamma: f32, guidance: f64) -> FlowField {
        assert_eq!(embedding.len(), self.config.cond_dim, "numbers of an embedding");
        let mut parts = Vec::new();
        if guidance != 0.0 {
            parts.push((guidance, self.part(embedding, gamma)));
        }
        if guidance != 1.0 {
            parts.push((1.0 - guidance, self.part(&vec![0.0; embedding.len()], gamma)));
        }
        FlowField { parts, device: self.device.clone() }
    }

    fn part(&self, embedding: &[f32], gamma: f32) -> Conditioned {
        let embedding = TensorData::new(embedding.to_vec(), [1, embedding.len()]);
        let condition =
            self.cond_mapper.forward(Tensor::from_data(embedding, &self.device)) + self.time(gamma);
        let condition = silu(condition); // [1, dim]
        let dim = self.config.dim;
        let vector = |all: &Tensor<2>, k: usize| -> Tensor<1> {
            all.clone().narrow(1, k * dim, dim).reshape([dim])
        };
        let block = |block: &Block| {
            let all = block.ada_map.forward(condition.clone());
            ConditionedBlock {
                scale: vector(&all, 0) + 1.0,
                shift: vector(&all, 1),
                gate: vector(&all, 2),
                up: block.up.clone(),
                down: block.down.clone(),
            }
        };
        let blocks = self.blocks.iter().map(block).collect();
        let last = self.final_adaln.forward(condition.clone());
        Conditioned {
            initial: self.initial_mapper.clone(),
            blocks,
            scale: vector(&last, 0) + 1.0,
            shift: vector(&last, 1),
            last: self.final_linear.clone(),
        }
    }

    /// The embedding of γ, `[1, dim]`.
    fn time(&self, gamma: f32) -> Tensor<2> {
        let angles = self.frequencies.iter().map(|frequency| gamma * TIME_SCALE * frequency);
        let cosines = angles.clone().map(|angle| f64::from(angle).cos());
        let waves: Vec<f64> = cosines.chain(angles.map(|angle| f64::from(angle).sin())).collect();
        let count = waves.len() as f64;
        let mean = waves.iter().sum::<f64>() / count;
        let squares: f64 = waves.iter().map(|wave| (wave - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        let waves: Vec<f32> = waves.iter().map(|wave| ((wave - mean) / deviation) as f32).collect();
        let shape = [1, waves.len()];
        let waves = Tensor::from_data(TensorData::new(waves, shape), &self.device);
        self.map_time[1].forward(silu(self.map_time[0].forward(waves)))
    }

    /// Carries noise to places, as the package does: by Euler's steps, each brought back to the sphere.
    pub fn sample(
        &self,
        embedding: &[f32],
        noise: &[UnitVector],
        steps: usize,
        guidance: f64,
    ) -> Vec<UnitVector> {
        let mut states = self.states(noise);
        for pair in gammas(steps).windows(2) {
            let field = self.field(embedding, pair[0], guidance);
            for x in &mut states {
                *x = unit(x.clone() + field.velocity(x.clone()) * (pair[1] - pair[0]));
            }
        }
        points_of(&states)
    }

    /// Carries places back to noise, by steps of the midpoint rule along the sphere.
    pub fn pull_back(
        &self,
        embedding: &[f32],
        places: &[UnitVector],
        steps: usize,
        guidance: f64,
    ) -> Vec<UnitVector> {
        let mut states = self.states(places);
        for [now, middle, next] in moments_back(steps) {
            let [first, second] = [now, middle].map(|gamma| self.field(embedding, gamma, guidance));
            for x in &mut states {
                let half = unit(x.clone() + first.along_sphere(x.clone()) * (middle - now));
                *x = unit(x.clone() + second.along_sphere(half) * (next - now));
            }
        }
        points_of(&states)
    }

    fn states(&self, points: &[UnitVector]) -> Vec<Tensor<2>> {
        let tensor = |points: &[UnitVector]| {
            let numbers: Vec<f32> =
                points.iter().flat_map(|point| point.to_array()).map(|x| x as f32).collect();
            Tensor::from_data(TensorData::new(numbers, [points.len(), 3]), &self.device)
        };
        points.chunks(TOGETHER).map(tensor).collect()
    }
}

/// Now, the middle and the end of each step from places to noise, as γ.
pub(super) fn moments_back(steps: usize) -> impl Iterator<Item = [f32; 3]> {
    let moments = gammas(2 * steps);
    (0..steps).rev().map(move |k| [moments[2 * k + 2], moments[2 * k + 1], moments[2 * k]])
}

/// Velocities at one moment for the particles of one picture: [`FlowNetwork::field`].
#[derive(Debug, Clone)]
pub struct FlowField {
    /// With their weights.
    pub(super) parts: Vec<(f64, Conditioned)>,
    pub(super) device: Device,
}

/// The network with its condition filled in.
#[derive(Debug, Clone)]
pub(super) struct Conditioned {
    pub(super) initial: Dense,
    pub(super) blocks: Vec<ConditionedBlock>,
    pub(super) scale: Tensor<1>,
    pub(super) shift: Tensor<1>,
    pub(super) last: Dense,
}

#[derive(Debug, Clone)]
pub(super) struct ConditionedBlock {
    pub(super) scale: Tensor<1>,
    pub(super) shift: Tensor<1>,
    pub(super) gate: Tensor<1>,
    pub(super) up: Dense,
    pub(super) down: Dense,
}

impl FlowField {
    /// dx/dγ of particles `[particles, 3]`.
    pub fn velocity(&self, x: Tensor<2>) -> Tensor<2> {
        let weighed = |(weight, part): &(f64, Conditioned)| {
            let velocity = part.velocity(x.clone());
            if *weight == 1.0 { velocity } else { velocity * *weight }
        };
        let sum = self.parts.iter().map(weighed).reduce(|a, b| a + b);
        sum.expect("a field has a part")
    }

    /// The part of the velocity along the sphere.
    fn along_sphere(&self, x: Tensor<2>) -> Tensor<2> {
        let velocity = self.velocity(x.clone());
        let outwards = (velocity.clone() * x.clone()).sum_dim(1);
        velocity - x * outwards
    }
}

impl Conditioned {
    fn by_rows(&self) -> by_rows::Network {
        let layer = |dense: &Dense| Layer::new(&dense.weight, &dense.bias);
        let block = |block: &ConditionedBlock| {
            let modulation = Modulation::new(&block.scale, &block.shift);
            by_rows::Block::new(modulation, layer(&block.up), layer(&block.down), &block.gate)
        };
        by_rows::Network {
            initial: layer(&self.initial),
            blocks: self.blocks.iter().map(block).collect(),
            modulation: Modulation::new(&self.scale, &self.shift),
            last: layer(&self.last),
        }
    }

    fn velocity(&self, x: Tensor<2>) -> Tensor<2> {
        if is_frozen_cpu(&x.device()) {
            return self.by_rows().velocity(&x);
        }
        let scaled = |x: Tensor<2>, scale: &Tensor<1>, shift: &Tensor<1>| {
            x * scale.clone().unsqueeze() + shift.clone().unsqueeze()
        };
        let mut h = self.initial.forward(x); // [particles, dim]
        for block in &self.blocks {
            let ConditionedBlock { scale, shift, gate, up, down } = block;
            let inner = scaled(normalise(h.clone()), scale, shift).matmul(up.weight.clone());
            let inner = gelu(inner, up.bias.clone(), Gelu::Exact); // [particles, expansion·dim]
            h = h + down.forward(inner) * gate.clone().unsqueeze();
        }
        self.last.forward(scaled(normalise(h), &self.scale, &self.shift))
    }
}

/// Rows of length one.
fn unit(x: Tensor<2>) -> Tensor<2> {
    let length = x.clone().square().sum_dim(1).sqrt();
    x / length
}

fn points_of(states: &[Tensor<2>]) -> Vec<UnitVector> {
    let numbers = states.iter().flat_map(|x| numbers_of(x).into_iter().map(f64::from));
    let numbers: Vec<f64> = numbers.collect();
    let point = |x: &[f64; 3]| UnitVector::from_direction(*x).unwrap_or(UnitVector::NORTH);
    numbers.as_chunks().0.iter().map(point).collect()
}
