//! The paper's tables of cost: training time and memory by degree, and the time of encoding, sampling
//! and decoding.
//!
//! Each degree is trained for a few steps in a process of its own, so that its peak memory is its own:
//! the paper's settings (configs/paper-l23.toml, batch 512, condition of 768 numbers) with L changed, and
//! ours (configs/likelihood-l23.toml) with and without narrow modules. On the CPU: the paper's numbers
//! are of a GPU, so only ratios between rows compare. `--quick` takes L = 15 and 23.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use burn::tensor::{Device, Tensor};
use locdiff::diffusion::{Diffusion, Method, SampleOptions};
use locdiff_experiments::paper::{commit, config};
use locdiff_experiments::{Dense, multiply, round};
use locdiff_map::{Chart, Panels, Series};
use locdiff_sphere::{Anchors, Basis, Decoder, LatLon, uniform_place};
use locdiff_train::{Plan, TrainingConfig};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ITERATIONS_PER_EPOCH: f64 = 1500.0;
/// How often each row is measured.
const ROUNDS: usize = 4;

/// `config.json`. The condition is as long as CLIP ViT-L/14's embeddings.
#[derive(Deserialize)]
struct Config {
    batch: usize,
    condition: usize,
    trainings: Vec<Training>,
}

#[derive(Deserialize)]
struct Training {
    name: String,
    config: PathBuf,
    degree: usize,
    #[serde(default)]
    narrow: bool,
}

fn read_config() -> Result<Config> {
    Ok(serde_json::from_value(config("experiments/paper/cost".as_ref())?)?)
}

/// The paper's table, of one GPU of 24 GB: degree, seconds per epoch of 1,500 iterations, MB. Quoted.
const PAPER: [(usize, f64, f64); 3] =
    [(15, 130.0, 5691.0), (23, 212.0, 10599.0), (31, 388.0, 17407.0)];

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["step", number] => train_few_steps(number.parse()?),
        ["--quick"] => report(true),
        [] => report(false),
        _ => anyhow::bail!("--quick, or nothing"),
    }
}

/// In a process of its own: a few steps, and the most memory that was ever resident.
fn train_few_steps(number: usize) -> Result<()> {
    let Config { batch, condition, trainings } = read_config()?;
    let training = trainings.get(number).context("no such training")?;
    let mut config = TrainingConfig::read(&training.config)?;
    ensure!(config.run.batch == batch, "{} has another batch", training.config.display());
    config.network.max_degree = training.degree;
    if training.narrow {
        config.network.bottleneck = Some(128);
        config.network.head_rank = Some(256);
    }
    let plan = Plan::measure(&config, condition, None, &Device::flex(), None)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|line| line.split_whitespace().next()).context("no VmHWM")?;
    let kibibytes: f64 = peak.parse()?;
    let measured = json!({
        "parameters": plan.parameters,
        "step_ms": plan.step_ms,
        "planned_mb": plan.memory_mb,
        "peak_mb": kibibytes * 1024.0 / 1e6,
    });
    println!("{measured}");
    Ok(())
}

fn step(number: usize) -> Result<Value> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).args(["step", &number.to_string()]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn report(quick: bool) -> Result<()> {
    let folder = Path::new("experiments/paper/cost");
    let threads = rayon::current_num_threads();
    let Config { batch, condition, trainings } = read_config()?;
    let rounds = if quick { 1 } else { ROUNDS };
    println!("# What it costs\n");
    println!(
        "On a shared CPU, {threads} threads, batch {batch}, condition of {condition} numbers; the fastest of {rounds} times 4 steps, each row in processes of its own, peak resident \
         memory. Made from commit {}.\n\n## Training\n",
        commit(),
    );
    println!(
        "| variant | L | numbers | parameters, M | ms per step | s per 1,500 steps | × L = 23 as published | peak memory, MB | `--plan` says, MB |\n|---|---|---|---|---|---|---|---|---|"
    );
    let number = |value: &Value, key: &str| value[key].as_f64().unwrap_or(f64::NAN);
    let wanted = |degree: usize| !quick || degree <= 23;
    let mut rows: Vec<(usize, Value)> = Vec::new();
    for (number, training) in
        trainings.iter().enumerate().filter(|(_, training)| wanted(training.degree))
    {
        eprintln!("{}, L = {}", training.name, training.degree);
        rows.push((number, step(number)?));
    }
    // The machine is shared: every row again, some time later, and the faster one counts.
    for _ in 1..rounds {
        for (training, row) in &mut rows {
            let again = step(*training)?;
            if number(&again, "step_ms") < number(row, "step_ms") {
                *row = again;
            }
        }
    }
    let is_unit = |row: &&(usize, Value)| {
        trainings[row.0].name == "as published" && trainings[row.0].degree == 23
    };
    let unit = rows.iter().find(is_unit).map_or(f64::NAN, |row| number(&row.1, "step_ms"));
    let mut figures = json!({ "n": rows.len() });
    let (mut times, mut memories) = (Vec::new(), Vec::new());
    for (training, row) in &rows {
        let Training { name, degree, .. } = &trainings[*training];
        let step_ms = number(row, "step_ms");
        println!(
            "| {name} | {degree} | {} | {:.1} | {step_ms:.0} | {:.0} | {:.2} | {:.0} | {:.0} |",
            (degree + 1) * (degree + 1),
            number(row, "parameters") / 1e6,
            step_ms * ITERATIONS_PER_EPOCH / 1e3,
            step_ms / unit,
            number(row, "peak_mb"),
            number(row, "planned_mb"),
        );
        if name == "as published" {
            times.push((*degree as f64, step_ms / unit));
            memories.push((*degree as f64, number(row, "peak_mb")));
            figures[format!("step_ms_l{degree}")] = json!(round(step_ms));
            figures[format!("peak_mb_l{degree}")] = json!(round(number(row, "peak_mb")));
        }
    }
    println!(
        "\nWhat the paper reports, one GPU (quoted):\n\n| L | s per 1,500 steps | × L = 23 | memory, MB |\n|---|---|---|---|"
    );
    for (degree, seconds, memory) in PAPER {
        println!("| {degree} | {seconds:.0} | {:.2} | {memory:.0} |", seconds / PAPER[1].1);
    }
    println!("\n## Encoding, sampling, decoding\n");
    println!("| | L | here | the paper, GPU unless said (quoted) |\n|---|---|---|---|");
    for degree in [23, 47] {
        if quick && degree > 23 {
            continue;
        }
        operations(degree, quick, [batch, condition], &mut figures)?;
    }
    if !quick {
        draw(folder, times, memories)?;
    }
    println!("\n![time and memory by degree](cost.png)\n");
    println!("{}", std::fs::read_to_string(folder.join("reading.md"))?.trim());
    println!("\n{figures}");
    Ok(())
}

/// Milliseconds of the fastest of some turns.
fn fastest_ms(turns: usize, mut work: impl FnMut()) -> f64 {
    let mut fastest = f64::INFINITY;
    for _ in 0..turns {
        let began = Instant::now();
        work();
        fastest = fastest.min(1e3 * began.elapsed().as_secs_f64());
    }
    fastest
}

fn operations(
    degree: usize,
    quick: bool,
    [batch, condition]: [usize; 2],
    figures: &mut Value,
) -> Result<()> {
    let turns = if quick { 1 } else { 5 };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let places: Vec<LatLon> = (0..batch).map(|_| uniform_place(&mut rng)).collect();
    let basis = Basis::new(degree);
    let mut encodings = vec![0.0_f32; batch * basis.len()];
    let encode_ms = fastest_ms(5, || basis.encode_into(&places, &mut encodings));
    println!(
        "| encoding a place | {degree} | {:.2} µs | 300 µs, CPU |",
        1e3 * encode_ms / batch as f64
    );

    let device = Device::flex();
    let mut published = TrainingConfig::read("configs/paper-l23.toml".as_ref())?;
    published.network.max_degree = degree;
    let diffusion = Diffusion::init(published.diffusion(condition), &device)?;
    let images = |rows: usize| Tensor::<2>::ones([rows, condition], &device);
    let sample_ms = |method: Method, rows: usize, turns: usize| {
        fastest_ms(turns, || {
            let options = SampleOptions { method, ..SampleOptions::default() };
            drop(diffusion.sample(Some(images(rows)), rows, options, |_| ()).into_data());
        })
    };
    let one_pass_ms = sample_ms(Method::OnePass, batch, turns) / batch as f64;
    println!("| one pass, per image, in a batch of {batch} | {degree} | {one_pass_ms:.3} ms | – |");
    let sampled_ms = sample_ms(Method::Ddpm, 16, turns.min(3));
    println!("| DDPM of 200 steps × 16, per image | {degree} | {sampled_ms:.0} ms | 56 ms |");

    let decoder = Decoder::new(degree);
    let decode_ms = fastest_ms(turns, || drop(decoder.modes_of_batch(&encodings, 1)));
    println!("| continuous decoding of a batch of {batch} | {degree} | {decode_ms:.1} ms | – |");
    let anchors = Anchors::fibonacci(21_000);
    let mut harmonics = vec![0.0_f32; anchors.len() * basis.len()];
    basis.encode_into(anchors.places(), &mut harmonics);
    let mut products = vec![0.0_f32; batch * anchors.len()];
    let over_anchors_ms = fastest_ms(turns, || {
        let matrix = Dense { entries: &harmonics, row: 1, column: basis.len() };
        multiply(&mut products, &encodings, matrix, [batch, anchors.len(), basis.len()]);
        let best: f32 = products.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        assert!(best.is_finite());
    });
    println!(
        "| decoding a batch of {batch} over 21,000 stored anchors, one thread | {degree} | {over_anchors_ms:.0} ms | 1.2 ms, anchors not said |"
    );
    figures[format!("encode_us_l{degree}")] = json!(round(1e3 * encode_ms / batch as f64));
    figures[format!("one_pass_ms_l{degree}")] = json!(round(one_pass_ms));
    figures[format!("ddpm_200_16_ms_l{degree}")] = json!(round(sampled_ms));
    figures[format!("decode_512_ms_l{degree}")] = json!(round(decode_ms));
    figures[format!("decode_512_anchors_ms_l{degree}")] = json!(round(over_anchors_ms));
    Ok(())
}

fn draw(folder: &Path, times: Vec<(f64, f64)>, memories: Vec<(f64, f64)>) -> Result<()> {
    let chart = |what: &str| Chart::new("degree L", what).log_y().width_px(540).height_px(380);
    let quoted_times = PAPER.map(|(degree, seconds, _)| (degree as f64, seconds / PAPER[1].1));
    let quoted_memories = PAPER.map(|(degree, _, memory)| (degree as f64, memory));
    let time = chart("time of a step, × L = 23")
        .series(Series::points("CPU, here", times).joined())
        .series(Series::points("GPU, quoted", quoted_times).joined());
    let memory = chart("memory, MB")
        .series(Series::points("CPU, here", memories).joined())
        .series(Series::points("GPU, quoted", quoted_memories).joined());
    let sheet = Panels::new()
        .columns(2)
        .panel("", time.draw())
        .panel("", memory.draw())
        .title("Training as published, by degree")
        .caption(
            "Batch 512, 2,048 anchors. Different machines: the shapes compare, not the heights.",
        );
    Ok(std::fs::write(folder.join("cost.png"), sheet.draw().png())?)
}
