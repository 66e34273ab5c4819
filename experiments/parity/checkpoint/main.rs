//! Writes a model with random weights, an input, and the network's output for it, so that
//! `read_checkpoint.py` can try to get the same output from the files alone.

use std::path::PathBuf;

use anyhow::{Context, Result};
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::diffusion::{
    DenoiserConfig, Diffusion, DiffusionConfig, Objective, Quadrature, ScheduleConfig,
};
use locdiff::models::DiffusionAbout;
use locdiff_experiments::standard_normal;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

fn main() -> Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).context("checkpoint DIRECTORY")?);
    let device = Device::flex();
    device.seed(7);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    // Every option that changes the shape of the network.
    let variants = [
        DenoiserConfig::new(15, 64),
        DenoiserConfig { bottleneck: Some(24), head_rank: Some(16), ..DenoiserConfig::new(23, 48) },
        DenoiserConfig { depth: 3, frequency: 30.0, time_size: 32, ..DenoiserConfig::new(11, 20) },
    ];
    for (number, denoiser) in variants.into_iter().enumerate() {
        let (size, condition_size) = (denoiser.coefficients(), denoiser.condition_size);
        let config = DiffusionConfig {
            denoiser,
            schedule: ScheduleConfig::default(),
            objective: Objective::Likelihood,
            quadrature: Quadrature::default(),
        };
        let diffusion = Diffusion::init(config, &device)?;
        let folder = directory.join(number.to_string());
        let about = DiffusionAbout::of_embeddings("random numbers");
        diffusion.save(&folder, &about, "# Random weights\n")?;
        let steps = vec![1, 20, 100, 200];
        let mut normal = |count: usize| -> Vec<f32> {
            (0..count).map(|_| standard_normal(&mut rng) as f32).collect()
        };
        let (x, condition) = (normal(4 * size), normal(4 * condition_size));
        let output = diffusion.denoiser().forward(
            Tensor::from_data(TensorData::new(x.clone(), [4, size]), &device),
            Tensor::from_data(TensorData::new(condition.clone(), [4, condition_size]), &device),
            &steps,
        );
        let output: Vec<f32> = output.into_data().try_to_vec()?;
        let case = json!({ "x": x, "condition": condition, "steps": steps, "output": output });
        std::fs::write(folder.join("case.json"), case.to_string())?;
    }
    Ok(())
}
