//! How long our sampler and the exact density take: `plonk-speed DIRECTORY SAMPLES STEPS REPEATS [POINTS]`, a network as
//! `parity/plonk/generate.py` writes it. One JSON object.

#[path = "../../crates/locdiff/tests/all/flow/parity.rs"]
#[expect(dead_code, reason = "only the network and its input are needed")]
mod parity;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use locdiff_sphere::{Anchors, PullBack, UnitVector};
use mimalloc::MiMalloc;
use serde_json::json;

/// As in the program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Steps of the exact density.
const EXACT_STEPS: usize = 48;

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    ensure!(arguments.len() >= 4, "plonk-speed DIRECTORY SAMPLES STEPS REPEATS [POINTS]");
    let number = |k: usize| arguments[k].parse::<usize>().context("a number");
    let (samples, steps, repeats) = (number(1)?, number(2)?, number(3)?);
    let directory = Path::new(&arguments[0]);
    let (network, expected) = (parity::network(directory), parity::expected(directory));
    let embedding = &parity::embeddings(&expected)[0];
    let noise: Vec<UnitVector> =
        Anchors::fibonacci(samples).places().iter().map(|place| (*place).into()).collect();
    let mut seconds = Vec::new();
    // The first is not counted.
    for _ in 0..=repeats {
        let began = Instant::now();
        network.sample(embedding, &noise, steps, 1.0);
        seconds.push(began.elapsed().as_secs_f64());
    }
    let mut result =
        json!({ "sample_s": seconds[1..].iter().copied().fold(f64::INFINITY, f64::min) });
    if arguments.len() > 4 {
        let options = PullBack { most_points: number(4)?, ..PullBack::default() };
        let began = Instant::now();
        let pulled =
            options.density(|places| network.pull_back(embedding, places, EXACT_STEPS, 1.0));
        result["exact_s"] = began.elapsed().as_secs_f64().into();
        result["exact_points"] = pulled.points.into();
        result["folded"] = pulled.folded.into();
    }
    println!("{result}");
    Ok(())
}
