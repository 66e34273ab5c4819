//! Trains the aligned encoder: of 64 maps and 25 places in each, which one does a view show?

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use burn::module::Module;
use burn::optim::{GradientsAccumulator, GradientsParams};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use locdiff::models::earth_view::{
    AlignedEncoder, AlignedEncoderConfig, NUMBERS, PackedWeights, VIEW,
};
use locdiff_earth::Renderer;
use locdiff_experiments::earth_sources::Folders;
use locdiff_train::{Adam, AdamConfig, Checkpoint, Checkpoints, moved_towards};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::json;

use crate::pairs::{MAP, MAP_PARTS, Pair, Pairs, SHIFTS, VIEW_PARTS};

/// Pairs that are told apart from each other.
const GROUP: usize = 64;
const GROUPS: u64 = 2;
const RATE: f64 = 2e-3;
const WARM_UP: f64 = 60.0;
/// The last part of the steps, over which the rate falls.
const FALL: f64 = 0.35;
const SEED: u64 = 11;
const HELD_OUT_SEED: u64 = 1_000_033;
const HELD_OUT_GROUPS: u64 = 6;
const LOG_STEPS: u64 = 25;
/// Keeps maps without any contrast from looking like everything.
const LEAST_ENERGY: f64 = 1e-3;
/// The part's name in files of weights.
pub const PART_NAME: &str = "aligned";

fn optimizer() -> AdamConfig {
    AdamConfig { beta_2: 0.98, weight_decay: 0.02, clip_norm: Some(1.0), ..AdamConfig::default() }
}

/// Goes on with a run, or begins it, until its steps are done or a file named `stop` appears in its directory.
pub fn train(directory: &Path, steps: u64, threads: usize) -> Result<()> {
    fs::create_dir_all(directory)?;
    let _ = fs::remove_file(directory.join("stop"));
    let device = Device::flex().autodiff();
    device.seed(SEED);
    let mut model = AlignedEncoderConfig::default().init(&device);
    let mut averaged = model.valid();
    let mut adam = Adam::new(optimizer());
    let checkpoints = Checkpoints::new(directory, 2);
    let mut step = 0;
    if let Some((checkpoint, _)) = checkpoints.newest::<AlignedEncoder, ()>(&model)? {
        step = checkpoint.step;
        (model, averaged) = (checkpoint.network, checkpoint.averaged);
        adam = Adam::restored(optimizer(), checkpoint.optimizer, &device.clone().inner());
    }
    let pairs = open_pairs()?;
    let one = |_| ThreadPoolBuilder::new().num_threads(1).build();
    let pools: Vec<ThreadPool> = (0..threads).map(one).collect::<Result<_, _>>()?;
    let (mut since, mut saved) = (Instant::now(), Instant::now());
    let (mut loss, mut right, mut logged) = (0.0, 0, step);
    while step < steps {
        let groups: Vec<u64> = (0..GROUPS).map(|k| step * GROUPS + k).collect();
        let work = |groups: &[u64]| {
            // Leaves of its own: Burn's autodiff joins the graphs of threads that share leaves.
            let model = model.clone().fork(&device);
            let mut sum = GradientsAccumulator::new();
            let (mut nats, mut right) = (0.0, 0);
            for group in groups {
                let (value, of_group) = told_apart(&model, &pairs.group(SEED, *group, GROUP));
                let value = value / GROUPS as f64;
                nats += f64::from(value.clone().into_scalar::<f32>());
                right += of_group;
                sum.accumulate(&model, GradientsParams::from_grads(value.backward(), &model));
            }
            (nats, right, sum.grads())
        };
        let each = groups.len().div_ceil(pools.len());
        let parts: Vec<(f64, usize, GradientsParams)> = std::thread::scope(|scope| {
            let threads: Vec<_> = groups
                .chunks(each)
                .zip(&pools)
                .map(|(groups, pool)| scope.spawn(|| pool.install(|| work(groups))))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a worker fell over")).collect()
        });
        let mut sum = GradientsAccumulator::new();
        for (nats, of_part, gradients) in parts {
            loss += nats;
            right += of_part;
            sum.accumulate(&model, gradients);
        }
        anyhow::ensure!(loss.is_finite(), "the loss is {loss} at step {step}");
        let rise = ((step + 1) as f64 / WARM_UP).min(1.0);
        let fall = ((steps - step) as f64 / (FALL * steps as f64)).min(1.0);
        let old = std::mem::replace(&mut model, averaged.clone());
        model = adam.step(RATE * rise * fall, old, sum.grads()).0;
        step += 1;
        let decay = 0.995_f64.min(step as f64 / (10.0 + step as f64));
        averaged = moved_towards(averaged, &model.valid(), 1.0 - decay);
        let stopping = step == steps || directory.join("stop").exists();
        if step.is_multiple_of(LOG_STEPS) || stopping {
            let seen = (step - logged) * GROUPS * GROUP as u64;
            let record = json!({
                "step": step,
                "loss": loss / (step - logged) as f64,
                "right": 100.0 * right as f64 / seen as f64,
                "pairs_per_s": seen as f64 / since.elapsed().as_secs_f64(),
            });
            eprintln!("{record}");
            (since, loss, right, logged) = (Instant::now(), 0.0, 0, step);
        }
        if step.is_multiple_of(10 * LOG_STEPS) || stopping {
            let found: usize = (0..HELD_OUT_GROUPS)
                .map(|k| told_apart(&averaged, &pairs.group(HELD_OUT_SEED, k, GROUP)).1)
                .sum();
            let share = 100.0 * found as f64 / (HELD_OUT_GROUPS * GROUP as u64) as f64;
            eprintln!("{}", json!({ "step": step, "held_out_right": share }));
        }
        if stopping || saved.elapsed() > Duration::from_secs(240) {
            checkpoints.save(&Checkpoint {
                step,
                position: (),
                network: model.clone(),
                averaged: averaged.clone(),
                optimizer: adam.state(),
            })?;
            saved = Instant::now();
        }
        if stopping {
            break;
        }
    }
    Ok(())
}

pub fn open_pairs() -> Result<Pairs> {
    let folders = Folders::from_environment()?;
    let mask = folders.mask()?;
    let names = ["blue-marble", "bmng", "march", "may", "july"];
    let day = names.map(|name| folders.open(name, &mask));
    let day = day.into_iter().collect::<Result<Vec<_>>>()?;
    let data = std::env::var("LOCDIFF_DATA").context("LOCDIFF_DATA is not set")?;
    let renderer = Renderer::new(mask.clone(), day, Vec::new());
    Pairs::new(renderer, mask, &Path::new(&data).join("clouds"))
}

/// Mean nats by which views are told apart from those of other maps and places, and how many are found.
fn told_apart(model: &AlignedEncoder, pairs: &[Pair]) -> (Tensor<1>, usize) {
    let gathered = |of: fn(&Pair) -> &Vec<f32>| -> Vec<f32> {
        pairs.iter().flat_map(|pair| of(pair).iter().copied()).collect()
    };
    let count = pairs.len();
    let parts = VIEW_PARTS * VIEW_PARTS;
    let views = model.parts(gathered(|pair| &pair.view), VIEW);
    let device = views.device();
    let inside = gathered(|pair| &pair.inside);
    let inside = Tensor::<2>::from_data(TensorData::new(inside, [count, parts]), &device);
    let views = views.reshape([count, parts, NUMBERS]) * inside.clone().unsqueeze_dim(2);
    let views = views.reshape([count, parts * NUMBERS]);
    let energy = views.clone().powi_scalar(2).sum_dim(1) + LEAST_ENERGY;
    let maps = model.parts(gathered(|pair| &pair.map), MAP);
    let maps = maps.reshape([count, MAP_PARTS, MAP_PARTS, NUMBERS]);
    let windows = (0..SHIFTS * SHIFTS).map(|shift| {
        let (row, column) = (shift / SHIFTS, shift % SHIFTS);
        maps.clone().slice([
            0..count,
            row..row + VIEW_PARTS,
            column..column + VIEW_PARTS,
            0..NUMBERS,
        ])
    });
    // [shifts · maps, parts · numbers]
    let windows =
        Tensor::cat(windows.collect(), 0).reshape([SHIFTS * SHIFTS * count, parts * NUMBERS]);
    let products = views.matmul(windows.clone().transpose());
    let squares =
        windows.powi_scalar(2).reshape([SHIFTS * SHIFTS * count * parts, NUMBERS]).sum_dim(1);
    let squares = squares.reshape([SHIFTS * SHIFTS * count, parts]);
    let energies = inside.matmul(squares.transpose()) + LEAST_ENERGY;
    let likeness = products / (energies * energy).sqrt();
    let logits = log_softmax(likeness * model.sharpness().unsqueeze(), 1);
    let targets: Vec<i32> =
        pairs.iter().enumerate().map(|(k, pair)| (pair.shift * count + k) as i32).collect();
    let best: Vec<i32> =
        logits.clone().argmax(1).into_data().convert::<i32>().try_to_vec().expect("whole numbers");
    let found = best.iter().zip(&targets).filter(|(best, target)| best == target).count();
    let targets = Tensor::<1, Int>::from_data(TensorData::new(targets, [count]), &device);
    (-logits.gather(1, targets.unsqueeze_dim(1)).mean(), found)
}

/// Writes the averaged weights of a run's last checkpoint, with the numbers of descriptors in the order of their size.
pub fn pack(run: &Path, out: &Path) -> Result<()> {
    let template = AlignedEncoderConfig::default().init(&Device::flex().autodiff());
    let (checkpoint, _) = Checkpoints::new(run, 2)
        .newest::<AlignedEncoder, ()>(&template)?
        .context("the run has no checkpoint yet")?;
    let encoder = checkpoint.averaged.valid();
    let pairs = open_pairs()?;
    let mut moments = vec![0.0_f64; NUMBERS * NUMBERS];
    for group in 0..HELD_OUT_GROUPS {
        for pair in pairs.group(HELD_OUT_SEED, group, GROUP) {
            let numbers: Vec<f32> =
                encoder.parts(pair.map, MAP).into_data().try_to_vec().expect("numbers");
            for part in numbers.chunks_exact(NUMBERS) {
                for (row, a) in moments.chunks_exact_mut(NUMBERS).zip(part) {
                    row.iter_mut().zip(part).for_each(|(sum, b)| *sum += f64::from(a * b));
                }
            }
        }
    }
    let (sizes, rotation) = principal_axes(moments);
    let all: f64 = sizes.iter().sum();
    let share = |count: usize| 100.0 * sizes[..count].iter().sum::<f64>() / all;
    eprintln!(
        "step {}: 8 numbers have {:.1} %, 16 have {:.1} %",
        checkpoint.step,
        share(8),
        share(16)
    );
    let mut weights = PackedWeights::default();
    weights.add(PART_NAME, &encoder.turned(rotation));
    let about = serde_json::to_string(&AlignedEncoderConfig::default())?;
    Ok(fs::write(out, weights.to_bytes(&[("aligned-encoder", &about)]))?)
}

/// Eigenvalues of a symmetric matrix, largest first, and its eigenvectors as columns: by Jacobi's rotations.
fn principal_axes(mut a: Vec<f64>) -> (Vec<f64>, Vec<f32>) {
    let n = NUMBERS;
    let mut v: Vec<f64> = (0..n * n).map(|k| f64::from(u8::from(k / n == k % n))).collect();
    for _ in 0..30 {
        for p in 0..n {
            for q in p + 1..n {
                let angle = 0.5 * (2.0 * a[p * n + q]).atan2(a[q * n + q] - a[p * n + p]);
                let (sine, cosine) = angle.sin_cos();
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    (a[k * n + p], a[k * n + q]) = (cosine * x - sine * y, sine * x + cosine * y);
                }
                for k in 0..n {
                    let (x, y) = (a[p * n + k], a[q * n + k]);
                    (a[p * n + k], a[q * n + k]) = (cosine * x - sine * y, sine * x + cosine * y);
                    let (x, y) = (v[k * n + p], v[k * n + q]);
                    (v[k * n + p], v[k * n + q]) = (cosine * x - sine * y, sine * x + cosine * y);
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| a[j * n + j].total_cmp(&a[i * n + i]));
    let sizes = order.iter().map(|i| a[i * n + i]).collect();
    let columns = (0..n * n).map(|k| v[k / n * n + order[k % n]] as f32).collect();
    (sizes, columns)
}
