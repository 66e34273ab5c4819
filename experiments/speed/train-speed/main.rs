//! The training step of `torch_step.py`, by us: the paper's network and loss, batch 512.
//!
//! `train-speed MAX_DEGREE SECONDS [REPLICAS [SLICES]]` prints one JSON object; the number of threads is rayon's
//! (`RAYON_NUM_THREADS`). With replicas the batch is cut into slices, and each replica has one thread: see
//! `experiments/replicas`. `run` puts both beside each other.

use std::time::Instant;

use anyhow::{Context, Result};
use burn::tensor::{Device, Distribution, Tensor};
use locdiff::diffusion::{DenoiserConfig, Loss, Objective, Quadrature};
use locdiff_experiments::keep_freed_memory;
use locdiff_sphere::{Anchors, coefficient_count};
use locdiff_train::{Adam, AdamConfig, Replicas, SLICES};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

const BATCH: usize = 512;
const CONDITION: usize = 768;
const TIME: usize = 200;
const ANCHORS: usize = 2048;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    keep_freed_memory(); // as `locdiff train` does
    let usage = "train-speed MAX_DEGREE SECONDS [REPLICAS [SLICES]]";
    let mut arguments = std::env::args().skip(1);
    let max_degree: usize = arguments.next().context(usage)?.parse()?;
    let seconds: f64 = arguments.next().context(usage)?.parse()?;
    let replicas: Option<usize> = arguments.next().map(|text| text.parse()).transpose()?;
    let slices = match (replicas, arguments.next()) {
        (_, Some(text)) => text.parse()?,
        (Some(_), None) => SLICES,
        (None, None) => 1,
    };
    let replicas = match replicas {
        Some(count) => Replicas::on_threads(count, 1)?,
        None => Replicas::one(),
    };
    let device = Device::flex().autodiff();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let d = coefficient_count(max_degree);
    let config = DenoiserConfig { dropout: 0.0, ..DenoiserConfig::new(max_degree, CONDITION) };
    let mut denoiser = config.init(&device);
    let mut optimizer = Adam::new(AdamConfig::default());
    let loss = Loss::new(Objective::ReverseKl, Quadrature::Anchors(ANCHORS), max_degree, &device);
    let normal = Distribution::Normal(0.0, 1.0);
    let x = Tensor::<2>::random([BATCH, d], normal, &device);
    let condition = Tensor::<2>::random([BATCH, CONDITION], normal, &device);
    let places = Anchors::uniform(BATCH, &mut rng).places().to_vec();
    let steps: Vec<usize> = (0..BATCH).map(|k| 1 + k % 200).collect();
    let mut laps = Vec::new();
    let mut parts = [Vec::new(), Vec::new()];
    let mut began = Instant::now();
    for number in 0.. {
        if number == 2 {
            // The first steps allocate.
            laps.clear();
            parts.iter_mut().for_each(Vec::clear);
            began = Instant::now();
        }
        if number >= 5 && began.elapsed().as_secs_f64() > seconds {
            break;
        }
        let lap = Instant::now();
        let points = loss.points(&mut rng);
        let (_, gradients) = replicas.gradients(&denoiser, slices, |denoiser, _, slice| {
            let rows = BATCH * slice / slices..BATCH * (slice + 1) / slices;
            let of = |tensor: &Tensor<2>| tensor.clone().slice([rows.clone()]);
            let output = denoiser.forward(of(&x), of(&condition), &steps[rows.clone()]);
            let share = rows.len() as f64 / BATCH as f64;
            loss.mean_at(output, &places[rows.clone()], &points) * share
        });
        let gradient = lap.elapsed().as_secs_f64();
        denoiser = optimizer.step(1e-4, denoiser, gradients).0;
        laps.push(lap.elapsed().as_secs_f64());
        for (part, time) in parts.iter_mut().zip([gradient, lap.elapsed().as_secs_f64() - gradient])
        {
            part.push(time);
        }
    }
    let products = products(d).into_iter().map(time_of_product).sum::<f64>();
    let [gradient, optimizer] = parts.map(|mut part| 1e3 * median(&mut part));
    let figures = json!({
        "ms": 1e3 * median(&mut laps),
        "steps": laps.len(),
        "gradient_ms": gradient,
        "optimizer_ms": optimizer,
        "products_ms": 1e3 * products,
    });
    println!("{figures}");
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Rows, inner and columns of every matrix product of a step.
fn products(d: usize) -> Vec<[usize; 3]> {
    let widths = [d, d / 2, d / 4, d / 4, d / 2, d];
    let inputs = [d, d, d / 2, d / 4, 2 * (d / 4), 2 * (d / 2)];
    let mut shapes = Vec::new();
    let mut layer = |input: usize, output: usize, differentiate_input: bool| {
        shapes.push([BATCH, input, output]);
        shapes.push([input, BATCH, output]);
        if differentiate_input {
            shapes.push([BATCH, output, input]);
        }
    };
    for (number, (input, output)) in inputs.into_iter().zip(widths).enumerate() {
        layer(input, output, number > 0);
        layer(CONDITION, output, false);
        layer(TIME, 2 * output, false);
        layer(output, output, true);
    }
    layer(2 * d, d, true);
    // The loss: both functions on the anchors, and one gradient.
    shapes.extend([[BATCH, d, ANCHORS], [BATCH, d, ANCHORS], [BATCH, ANCHORS, d]]);
    shapes
}

/// Seconds, the median of three.
fn time_of_product([rows, inner, columns]: [usize; 3]) -> f64 {
    let device = Device::flex();
    let normal = Distribution::Normal(0.0, 1.0);
    let a = Tensor::<2>::random([rows, inner], normal, &device);
    let b = Tensor::<2>::random([inner, columns], normal, &device);
    let mut laps: Vec<f64> = (0..3)
        .map(|_| {
            let lap = Instant::now();
            std::hint::black_box(a.clone().matmul(b.clone()));
            lap.elapsed().as_secs_f64()
        })
        .collect();
    median(&mut laps)
}
