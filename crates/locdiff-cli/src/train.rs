//! `locdiff train`: embeddings in, a model out.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use locdiff::tensors::device_by_name;
use locdiff_train::{
    Dataset, Event, OnBadShard, Outcome, Plan, Replicas, RunOptions, Start, TrainingConfig, train,
};
use serde_json::json;

use crate::text::{json_stdout, stderr};
use crate::{interruption, memory};

/// Configurations that the program has.
const BUILT_IN: [(&str, &str); 5] = [
    ("tutorial", include_str!("../../../configs/tutorial.toml")),
    ("likelihood-l23", include_str!("../../../configs/likelihood-l23.toml")),
    ("likelihood-l47", include_str!("../../../configs/likelihood-l47.toml")),
    ("paper-l23", include_str!("../../../configs/paper-l23.toml")),
    ("paper-l47", include_str!("../../../configs/paper-l47.toml")),
];
/// More are worth a warning: published trainings have some tens.
const MANY_EPOCHS: f64 = 1000.0;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The configuration: a TOML file, or a built-in one: tutorial, likelihood-l23, likelihood-l47, paper-l23, paper-l47
    config: PathBuf,
    /// The embeddings: a directory of Parquet shards, or an s3:// address
    #[arg(long, value_name = "DIR")]
    data: String,
    /// Where the run is written: checkpoints, log, and the model at the end
    #[arg(short, long, value_name = "DIR", required_unless_present = "plan")]
    out: Option<PathBuf>,
    /// Number of steps, instead of the number in the configuration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Resume from the newest checkpoint in the output directory
    #[arg(long)]
    resume: bool,
    /// Save a checkpoint and stop after this many minutes
    #[arg(long, value_name = "N")]
    max_minutes: Option<f64>,
    /// Device to compute on: cpu, cuda:N, wgpu or metal, if this program was built with it
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Share each step's work among R replicas: pools of threads (cpu), or the devices cuda:0 to cuda:R−1. The
    /// result is the same with any R; see docs/training.md
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u16).range(1..))]
    replicas: Option<u16>,
    /// Skip damaged shards instead of failing; skipped shards are listed and counted
    #[arg(long)]
    skip_bad_shards: bool,
    /// Do not train: estimate the time and memory that training needs
    #[arg(long)]
    plan: bool,
    /// Results on stdout as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let path = &arguments.config;
    let built_in = BUILT_IN.iter().find(|(name, _)| Path::new(name) == path && !path.exists());
    let mut config = match built_in {
        Some((_, text)) => TrainingConfig::from_toml(text, path)?,
        None => TrainingConfig::read(path)?,
    };
    if let Some(steps) = arguments.steps {
        config.run.steps = steps;
        // A shorter run warms up for a shorter time.
        if config.optimizer.warmup_steps > steps / 2 {
            config.optimizer.warmup_steps = steps / 10;
        }
    }
    let device = device_by_name(&arguments.device)?;
    let replicas = arguments.replicas.map(|count| replicas(count.into(), &arguments.device));
    let replicas = replicas.transpose()?;
    let policy = if arguments.skip_bad_shards { OnBadShard::Skip } else { OnBadShard::Fail };
    let data = Dataset::open(&arguments.data, policy)?;
    for skipped in data.skipped() {
        writeln!(stderr(), "left out: {skipped}")?;
    }
    let epochs = config.run.steps as f64 * config.run.batch as f64 / data.rows().max(1) as f64;
    if epochs > MANY_EPOCHS {
        writeln!(
            stderr(),
            "warning: {} steps of {} rows are {epochs:.0} epochs of {} rows, which probably overfits: use fewer with --steps",
            config.run.steps,
            config.run.batch,
            data.rows()
        )?;
    }
    if arguments.plan {
        let (width, rows) = (data.layout().width, Some(data.rows()));
        let plan = Plan::measure(&config, width, rows, &device, replicas)?;
        return print_plan(&plan, arguments.json);
    }
    memory::keep_for_a_while();
    let directory = arguments.out.context("--out is missing")?;
    let start = if arguments.resume { Start::Resume } else { Start::New };
    let at_most = match arguments.max_minutes {
        Some(minutes) if !(minutes > 0.0 && minutes < 1e9) => {
            bail!("--max-minutes {minutes} is not a positive number")
        }
        minutes => minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes)),
    };
    // Lets the step end, and saves.
    let interrupted = interruption::flag()?;
    let options = RunOptions { directory, start, at_most, device, replicas };
    let mut bar = Bar::new(config.run.steps);
    let outcome =
        train(&config, &data, &options, &|| interrupted.load(Ordering::Relaxed), &mut |event| {
            bar.show(&event)
        })?;
    bar.bar.finish_and_clear();
    let (state, step, path) = match &outcome {
        Outcome::Finished(path) => ("finished", config.run.steps, Some(path.display().to_string())),
        Outcome::Stopped(step) => ("stopped", *step, None),
        _ => ("ended", config.run.steps, None),
    };
    match &path {
        Some(path) => writeln!(
            stderr(),
            "finished after {step} steps: the model is in {path}\nuse it with `locdiff predict --model {path} PICTURE`"
        )?,
        None => writeln!(
            stderr(),
            "stopped after {step} steps; resume with --resume, or export a model with `locdiff model export {}`",
            options.directory.display()
        )?,
    }
    if arguments.json {
        writeln!(json_stdout(), "{}", json!({ "state": state, "step": step, "model": path }))?;
    }
    Ok(())
}

fn replicas(count: usize, device: &str) -> anyhow::Result<Replicas> {
    match device {
        "cpu" => {
            let threads = (rayon::current_num_threads() / count).max(1);
            Ok(Replicas::on_threads(count, threads)?)
        }
        "cuda" => {
            let devices = (0..count).map(|number| device_by_name(&format!("cuda:{number}")));
            Ok(Replicas::on_devices(devices.collect::<Result<_, _>>()?))
        }
        _ => bail!("--replicas needs --device cpu or --device cuda, not {device}"),
    }
}

fn print_plan(plan: &Plan, as_json: bool) -> anyhow::Result<()> {
    let mut out = stdout();
    if as_json {
        writeln!(out, "{}", serde_json::to_string(plan)?)?;
        return Ok(());
    }
    writeln!(out, "parameters  {:>12}", plan.parameters)?;
    writeln!(out, "steps       {:>12}", plan.steps)?;
    writeln!(out, "rows        {:>12}", plan.rows)?;
    if let Some(epochs) = plan.epochs {
        writeln!(out, "epochs      {epochs:>12.1}")?;
    }
    writeln!(
        out,
        "step        {:>9.1} ms, measured now: {:.0} rows/s",
        plan.step_ms, plan.rows_per_s
    )?;
    let (time, unit) = match plan.hours {
        hours if hours < 1.0 => (60.0 * hours, "minutes"),
        hours if hours < 48.0 => (hours, "hours"),
        hours => (hours / 24.0, "days"),
    };
    writeln!(out, "time        {time:>12.1} {unit}, without validation")?;
    writeln!(out, "memory      {:>9.0} MB, about", plan.memory_mb)?;
    writeln!(out, "checkpoint  {:>9.0} MB", plan.checkpoint_mb)?;
    writeln!(out, "disk        {:>9.0} MB at most", plan.disk_mb)?;
    Ok(())
}

/// A progress bar with the loss; lines above it for what else happens.
struct Bar {
    bar: ProgressBar,
    began: Instant,
    began_at: u64,
    loss: Option<f64>,
    rows: u64,
}

impl Bar {
    fn new(steps: u64) -> Bar {
        let template = "{wide_bar} {pos}/{len} steps  {msg}  {elapsed} < {eta}";
        let bar = ProgressBar::new(steps);
        let bar = match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Bar { bar, began: Instant::now(), began_at: 0, loss: None, rows: 0 }
    }

    fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Begun { step, rows, damaged } => {
                for checkpoint in *damaged {
                    self.line(format!("skipped a damaged checkpoint: {checkpoint}"));
                }
                if *step > 0 {
                    self.line(format!("resuming after step {step}"));
                }
                self.line(format!("{rows} rows of data"));
                self.began = Instant::now();
                self.began_at = *step;
                self.bar.set_position(*step);
                self.bar.reset_eta();
            }
            Event::Step(report) => {
                // A moving mean: single batches jump.
                let loss = self.loss.map_or(report.loss, |old| 0.98 * old + 0.02 * report.loss);
                self.loss = Some(loss);
                self.rows += report.rows as u64;
                let rate = self.rows as f64 / self.began.elapsed().as_secs_f64();
                self.bar.set_message(format!("loss {loss:.4}  {rate:.0} rows/s"));
                self.bar.set_position(report.step);
            }
            Event::Validated(step, scores) => {
                let nll = scores.nll.map_or(String::new(), |nll| format!(", NLL {nll:.2}"));
                self.line(format!(
                    "step {step}: {:.0}/{:.0}/{:.0}/{:.0} % within 25/200/750/2500 km, \
                     median {:.0} km{nll}",
                    scores.within_25,
                    scores.within_200,
                    scores.within_750,
                    scores.within_2500,
                    scores.median_km,
                ));
            }
            Event::Saved(path) => self.line(format!("saved {}", path.display())),
            Event::NotSaved(error) => {
                self.line(format!("checkpoint not saved, training continues: {error}"))
            }
            Event::NotLogged(error) => {
                self.line(format!("log.jsonl was not written, training continues: {error}"))
            }
            Event::Skipped(part) => self.line(format!("left out: {part}")),
            _ => {}
        }
    }

    /// Above the bar if there is one to be seen, else plainly on stderr.
    fn line(&self, text: String) {
        self.bar.suspend(|| {
            let _ = writeln!(stderr(), "{text}");
        });
    }
}
