//! Trains the same model with one, two and four replicas, and compares the weights.
//!
//! `replicas DIRECTORY STEPS` writes runs into a directory that may be deleted, with the product's own loop, on the
//! embeddings of `experiments/end-to-end`, and prints one JSON object. `compare.py` adds time and PyTorch.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use locdiff_train::{
    Dataset, Event, OnBadShard, Outcome, Replicas, RunOptions, Start, TrainingConfig, train,
};
use safetensors::SafeTensors;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const DATA: &str = "experiments/end-to-end/embeddings";
const CONFIG: &str = "[network]\nmax_degree = 15\ndropout = 0.3\nstandardize = true\n\
    [objective]\nkind = \"likelihood\"\n\
    [optimizer]\nkind = \"adamw\"\nrate = 1e-3\nweight_decay = 5e-4\nclip_norm = 10.0\n\
    [run]\nsteps = 0\nbatch = 250\nema_decay = 0.9\n\
    [validation]\nshare = 0.1\nevery_steps = 0\nrows = 10\n";

fn main() -> Result<()> {
    let usage = "replicas DIRECTORY STEPS";
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().context(usage)?;
    let directory = Path::new(&directory);
    let mut config: TrainingConfig = toml::from_str(CONFIG)?;
    config.run.steps = arguments.next().context(usage)?.parse()?;
    let steps = config.run.steps;
    let data = Dataset::open(DATA, OnBadShard::Fail)?;
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    let run = |name: &str, replicas: usize, until: u64| -> Result<Weights> {
        let options = RunOptions {
            directory: directory.join(name),
            start: Start::Resume,
            at_most: None,
            device: Device::flex(),
            replicas: Some(Replicas::on_threads(replicas, 1)?),
        };
        let (seen, loss) = (Cell::new(0), Cell::new(0.0));
        let stop = || seen.get() >= until;
        let outcome = train(&config, &data, &options, &stop, &mut |event| {
            if let Event::Step(report) = event {
                seen.set(report.step);
                loss.set(report.loss);
            }
        })?;
        let expected = match outcome {
            Outcome::Stopped(at) => at == until,
            _ => until == steps,
        };
        ensure!(expected, "the run {name} ended after {} steps", seen.get());
        let checkpoint = directory.join(name).join(format!("checkpoints/{until:09}"));
        Weights::read(&checkpoint, loss.get())
    };
    let one = run("1", 1, steps)?;
    let mut apart = 0.0_f64;
    for replicas in [2, 4] {
        apart = apart.max(one.difference(&run(&replicas.to_string(), replicas, steps)?)?);
    }
    let mut resumed = 0.0_f64;
    for replicas in [1, 4] {
        let name = format!("2 then {replicas}");
        run(&name, 2, steps / 2)?;
        resumed = resumed.max(one.difference(&run(&name, replicas, steps)?)?);
    }
    let begun = TrainingConfig::read(&directory.join("1/config.toml"))?;
    let figures = json!({
        "parameter_difference": apart,
        "resume_difference": resumed,
        "steps": steps,
        "slices": begun.run.slices,
        "numbers": one.numbers.len(),
        "last_loss_nats": one.loss,
    });
    println!("{figures}");
    Ok(())
}

/// Weights, their average and the optimizer's memory.
struct Weights {
    numbers: Vec<f32>,
    loss: f64,
}

impl Weights {
    fn read(checkpoint: &Path, loss: f64) -> Result<Weights> {
        let mut numbers = Vec::new();
        for name in ["model", "averaged", "optimizer"] {
            let file = fs::read(checkpoint.join(name).with_extension("safetensors"))?;
            let tensors = SafeTensors::deserialize(&file)?;
            let mut names = tensors.names();
            names.sort();
            for name in names {
                let (values, _) = tensors.tensor(name)?.data().as_chunks::<4>();
                numbers.extend(values.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            }
        }
        Ok(Weights { numbers, loss })
    }

    /// The largest; infinite where bits differ that no difference shows.
    fn difference(&self, other: &Weights) -> Result<f64> {
        ensure!(self.numbers.len() == other.numbers.len(), "other shapes");
        let pairs = self.numbers.iter().zip(&other.numbers);
        let largest = pairs.fold(0.0_f64, |most, (a, b)| match a.to_bits() == b.to_bits() {
            true => most,
            false if a == b => f64::INFINITY,
            false => most.max(f64::from((a - b).abs())),
        });
        Ok(largest)
    }
}
