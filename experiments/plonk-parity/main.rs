//! Networks with random weights beside what the package `diff-plonk` computed with them, and how far our exact density is from
//! one over the sphere: `plonk-parity DIRECTORY...`, each as `parity/plonk/generate.py` writes it.

#[path = "../../crates/locdiff/tests/all/flow/parity.rs"]
mod parity;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use locdiff_sphere::{LatLon, PullBack, UnitVector};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

/// Steps of the exact density.
const STEPS: usize = 48;
/// Networks up to this width are small: the package's likelihood is integrated too.
const SMALL: usize = 64;
/// Places at which the likelihood is compared with the exact density.
const PLACES: usize = 400;

fn main() -> Result<()> {
    let directories: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    ensure!(!directories.is_empty(), "plonk-parity DIRECTORY...");
    println!(
        "| network | velocity | trajectory | their likelihood, nat | folded | sum of masses − 1 | integral of the likelihood, ± standard error |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut worst = [0.0_f64; 6];
    let mut theirs = None;
    for directory in &directories {
        let found = parity::compare(directory);
        let (network, expected) = (parity::network(directory), parity::expected(directory));
        let embedding = &parity::embeddings(&expected)[0];
        let pulled =
            PullBack::default().density(|places| network.pull_back(embedding, places, STEPS, 1.0));
        let off = (pulled.total - 1.0).abs();
        // Where the exact density lies, so that few places are enough: the mean of likelihood over density is the integral.
        let mut rng = ChaCha8Rng::seed_from_u64(20261118);
        let places = pulled.density.survey().sample(PLACES, &mut rng);
        let points: Vec<UnitVector> = places.iter().map(|place| (*place).into()).collect();
        let logs = network.log_density(embedding, &points, STEPS, 1.0);
        let of_one =
            |(log, place): (&f64, &LatLon)| (log - pulled.density.log_density(*place)).exp();
        let ratios: Vec<f64> = logs.iter().zip(&places).map(of_one).collect();
        let mean = ratios.iter().sum::<f64>() / PLACES as f64;
        let variance =
            ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / PLACES as f64;
        let (integral, error) = (mean, (variance / PLACES as f64).sqrt());
        if network.config().dim <= SMALL {
            let degrees: Vec<[f64; 2]> =
                places.iter().map(|place| [place.latitude(), place.longitude()]).collect();
            let logs = parity::their_likelihoods(&network, embedding, &degrees, STEPS, 1.0);
            let sum: f64 = logs.iter().zip(&places).map(of_one).sum();
            theirs = Some(sum / PLACES as f64);
        }
        let config = network.config();
        println!(
            "| width {}, depth {} | {:.1e} | {:.1e} | {:.1e} | {:.1e} | {off:.1e} | {integral:.3} ± {error:.3} |",
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
            (integral - 1.0).abs(),
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
            "their_likelihood_integral_small": theirs,
        })
    );
    Ok(())
}
