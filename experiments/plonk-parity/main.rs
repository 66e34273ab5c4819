//! Networks with random weights beside what the package `diff-plonk` computed with them, and how far our exact density is from
//! one over the sphere: `plonk-parity DIRECTORY...`, each as `parity/plonk/generate.py` writes it.

#[path = "../../crates/locdiff/tests/all/flow/parity.rs"]
mod parity;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use locdiff_sphere::{Anchors, PullBack, UnitVector};
use serde_json::json;

/// Steps of the exact density.
const STEPS: usize = 48;
/// Places at which the likelihood is integrated over the sphere.
const PLACES: usize = 400;

fn main() -> Result<()> {
    let directories: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    ensure!(!directories.is_empty(), "plonk-parity DIRECTORY...");
    println!(
        "| network | velocity | trajectory | their likelihood, nat | folded | sum of masses − 1 | integral of the likelihood − 1 |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut worst = [0.0_f64; 6];
    for directory in &directories {
        let found = parity::compare(directory);
        let (network, expected) = (parity::network(directory), parity::expected(directory));
        let embedding = &parity::embeddings(&expected)[0];
        let pulled =
            PullBack::default().density(|places| network.pull_back(embedding, places, STEPS, 1.0));
        let off = (pulled.total - 1.0).abs();
        let places: Vec<UnitVector> =
            Anchors::fibonacci(PLACES).places().iter().map(|place| (*place).into()).collect();
        let logs = network.log_density(embedding, &places, STEPS, 1.0);
        let mean = logs.iter().map(|log| log.exp()).sum::<f64>() / PLACES as f64;
        let integral = (4.0 * std::f64::consts::PI * mean - 1.0).abs();
        let config = network.config();
        println!(
            "| width {}, depth {} | {:.1e} | {:.1e} | {:.1e} | {:.1e} | {off:.1e} | {integral:.1e} |",
            config.dim,
            config.depth,
            found.velocity,
            found.trajectory,
            found.their_likelihood_nat,
            pulled.folded,
        );
        let figures = [
            found.velocity,
            found.trajectory,
            found.their_likelihood_nat,
            // Folded cells hold mass twice: once positive, once negative.
            off.max(pulled.folded),
            integral,
            found.gamma,
        ];
        worst = std::array::from_fn(|k| worst[k].max(figures[k]));
    }
    let [velocity, trajectory, likelihood, normalization, integral, gamma] = worst;
    println!();
    println!(
        "{}",
        json!({
            "networks": directories.len(),
            "plonk_max_error": velocity,
            "trajectory_max_error": trajectory,
            "their_likelihood_error_nat": likelihood,
            "normalization_error": normalization,
            "likelihood_integral_error": integral,
            "gamma_max_error": gamma,
        })
    );
    Ok(())
}
