//! Every number that fixes a training run, as TOML.
//!
//! Unknown names are refused, so that a misspelt one does not silently mean the default.

use std::path::{Path, PathBuf};

use crate::{AdamConfig, SLICES};
use locdiff::diffusion::{
    DenoiserConfig, DiffusionConfig, Objective, Quadrature, Schedule, ScheduleConfig,
};
use locdiff::{Inference, InferenceOptions};
use serde::{Deserialize, Serialize};

/// With a smaller share of rows at the highest noise level, one pass is not what a model is good at.
const LITTLE_AT_FULL_NOISE: f64 = 0.05;

/// A training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingConfig {
    /// Shape of the network, and how embeddings are scaled.
    pub network: NetworkConfig,
    /// The noise levels.
    #[serde(default)]
    pub schedule: ScheduleConfig,
    /// What is minimised.
    pub objective: ObjectiveConfig,
    /// How.
    pub optimizer: OptimizerConfig,
    /// For how long, and with what.
    pub run: RunConfig,
    /// What is measured on the way.
    #[serde(default)]
    pub validation: ValidationConfig,
    /// When the run is saved.
    #[serde(default)]
    pub checkpoint: CheckpointConfig,
    /// How the model answers, where that is not what suits its training.
    #[serde(default)]
    pub inference: InferenceOptions,
}

/// Shape of the network, except the length of its condition, which comes from the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// L, inclusive.
    pub max_degree: usize,
    /// Width of the narrowest part of each module; by default the module's own.
    #[serde(default)]
    pub bottleneck: Option<usize>,
    /// Halvings down the U.
    #[serde(default = "two")]
    pub depth: usize,
    /// Rank of the head; by default it is a full matrix.
    #[serde(default)]
    pub head_rank: Option<usize>,
    /// Length of the embedding of the time step.
    #[serde(default = "two_hundred")]
    pub time_size: usize,
    /// Share of activations dropped.
    #[serde(default)]
    pub dropout: f64,
    /// ω of the sines.
    #[serde(default = "five")]
    pub frequency: f64,
    /// Whether embeddings are centered and scaled by the mean and deviation of the training rows.
    #[serde(default)]
    pub standardize: bool,
}

fn two() -> usize {
    2
}
fn two_hundred() -> usize {
    200
}
fn five() -> f64 {
    5.0
}

/// What is minimised, and how its integrals are taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveConfig {
    /// Which loss is minimized.
    pub kind: Objective,
    /// How the integrals of the loss are computed.
    #[serde(default)]
    pub quadrature: Quadrature,
    /// Share of rows at the highest noise level, which one pass uses; the others are spread
    /// evenly over the levels.
    #[serde(default = "half")]
    pub share_at_full_noise: f64,
    /// Share of rows whose condition is dropped, for guidance and unconditional samples.
    #[serde(default = "tenth")]
    pub condition_dropout: f64,
}

fn half() -> f64 {
    0.5
}
fn tenth() -> f64 {
    0.1
}

/// Settings of `[optimizer]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimizerConfig {
    /// Adam as in the paper, or AdamW.
    pub kind: OptimizerKind,
    /// The highest learning rate.
    pub rate: f64,
    /// Memory of the mean gradient.
    #[serde(default = "beta_1")]
    pub beta_1: f64,
    /// Memory of the mean square.
    #[serde(default = "beta_2")]
    pub beta_2: f64,
    /// How strongly weights are drawn to zero.
    #[serde(default)]
    pub weight_decay: f64,
    /// The length to which longer gradients are cut.
    #[serde(default)]
    pub clip_norm: Option<f64>,
    /// Steps over which the rate rises from zero.
    #[serde(default)]
    pub warmup_steps: u64,
    /// How it falls afterwards.
    #[serde(default)]
    pub decay: Decay,
}

fn beta_1() -> f64 {
    0.9
}
fn beta_2() -> f64 {
    0.99
}

/// Which optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OptimizerKind {
    /// Weight decay is part of the gradient.
    Adam,
    /// Weight decay is apart from the gradient.
    Adamw,
}

/// How the learning rate falls after its warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decay {
    /// Not at all.
    #[default]
    None,
    /// To zero at the last step, as half a cosine.
    Cosine,
    /// To zero at the last step, straight.
    Linear,
}

/// For how long, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// Number of optimizer steps of the whole run.
    pub steps: u64,
    /// Rows per step.
    pub batch: usize,
    /// Fixes weights, noise and the order of the data.
    #[serde(default)]
    pub seed: u64,
    /// Memory of the averaged weights, which are what a run gives out; 0 takes the last ones.
    #[serde(default = "ema_decay")]
    pub ema_decay: f64,
    /// Pieces that a batch is cut into, so that replicas can share it: as many as there are replicas, or more. The
    /// result depends on this number, but not on that of the replicas. Without it the batch is one piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<usize>,
}

fn ema_decay() -> f64 {
    0.999
}

/// What is measured on the way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationConfig {
    /// Share of rows held out of training, chosen by their ids.
    pub share: f64,
    /// Steps between two validations; 0 only at the end.
    pub every_steps: u64,
    /// At most so many of the held-out rows.
    pub rows: usize,
}

impl Default for ValidationConfig {
    fn default() -> ValidationConfig {
        ValidationConfig { share: 0.01, every_steps: 1000, rows: 2000 }
    }
}

/// When the run is saved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckpointConfig {
    /// Minutes between two checkpoints; it is also saved when it stops.
    pub every_minutes: f64,
    /// Steps between two checkpoints, if not 0: for tests.
    pub every_steps: u64,
    /// Checkpoints that are kept.
    pub keep: usize,
}

impl Default for CheckpointConfig {
    fn default() -> CheckpointConfig {
        CheckpointConfig { every_minutes: 10.0, every_steps: 0, keep: 2 }
    }
}

/// A configuration that can't be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidConfig {
    /// The file could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    File {
        /// The TOML file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// It is not TOML, or has unknown names.
    #[error("{path}: {reason}", path = path.display())]
    Format {
        /// The TOML file.
        path: PathBuf,
        /// What is wrong, with the line.
        reason: String,
    },
    /// A value makes no sense.
    #[error("{name} = {value}: {problem}")]
    Value {
        /// The name, with its table.
        name: &'static str,
        /// What it was set to.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl TrainingConfig {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<TrainingConfig, InvalidConfig> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| InvalidConfig::File { path: path.into(), source })?;
        TrainingConfig::from_toml(&text, path)
    }

    /// The text of a file, which errors name.
    pub fn from_toml(text: &str, path: &Path) -> Result<TrainingConfig, InvalidConfig> {
        let config: TrainingConfig = toml::from_str(text).map_err(|error| {
            InvalidConfig::Format { path: path.into(), reason: error.to_string() }
        })?;
        config.check()?;
        Ok(config)
    }

    /// Whether every value makes sense, alone and together.
    pub fn check(&self) -> Result<(), InvalidConfig> {
        let share = |name, value: f64, below_one: bool| {
            let fine = (0.0..=1.0).contains(&value) && !(below_one && value == 1.0);
            let range = if below_one { "0 ≤ value < 1" } else { "0 ≤ value ≤ 1" };
            require(fine, name, value, format!("it must be a share, {range}"))
        };
        let positive = |name, value: f64| {
            require(value > 0.0 && value.is_finite(), name, value, "it must be positive".into())
        };
        let RunConfig { steps, batch, ema_decay, slices, .. } = self.run;
        require(steps > 0, "run.steps", steps, "it must be at least 1".into())?;
        require(batch > 0, "run.batch", batch, "it must be at least 1".into())?;
        let slices = slices.unwrap_or(1);
        let problem = format!("a batch of {batch} rows can have 1 to {batch} slices");
        require((1..=batch).contains(&slices), "run.slices", slices, problem)?;
        share("run.ema_decay", ema_decay, true)?;
        share("network.dropout", self.network.dropout, true)?;
        positive("network.frequency", self.network.frequency)?;
        share("objective.share_at_full_noise", self.objective.share_at_full_noise, false)?;
        share("objective.condition_dropout", self.objective.condition_dropout, true)?;
        for (name, value) in [
            ("network.bottleneck", self.network.bottleneck),
            ("network.head_rank", self.network.head_rank),
        ] {
            let value = value.unwrap_or(1);
            require(value > 0, name, value, "it must be positive".into())?;
        }
        if let Quadrature::Anchors(count) = self.objective.quadrature {
            require(count > 0, "objective.quadrature", count, "it must be at least 1".into())?;
        }
        let weight_decay = self.optimizer.weight_decay;
        require(
            (0.0..1e6).contains(&weight_decay),
            "optimizer.weight_decay",
            weight_decay,
            "it must be at least 0 and below 1e6".into(),
        )?;
        positive("optimizer.rate", self.optimizer.rate)?;
        share("optimizer.beta_1", self.optimizer.beta_1, true)?;
        share("optimizer.beta_2", self.optimizer.beta_2, true)?;
        let warmup = self.optimizer.warmup_steps;
        require(
            warmup <= steps,
            "optimizer.warmup_steps",
            warmup,
            format!("the run has only {steps} steps"),
        )?;
        if let Some(clip) = self.optimizer.clip_norm {
            positive("optimizer.clip_norm", clip)?;
        }
        share("validation.share", self.validation.share, true)?;
        positive("checkpoint.every_minutes", self.checkpoint.every_minutes)?;
        let keep = self.checkpoint.keep;
        require(keep > 0, "checkpoint.keep", keep, "it must be at least 1".into())?;
        let time_size = self.network.time_size;
        require(
            time_size.is_multiple_of(2) && time_size > 0,
            "network.time_size",
            time_size,
            "sines and cosines come in pairs: it must be even".into(),
        )?;
        let problem = self.diffusion(1).denoiser.problem();
        let shape = format!("max_degree {}, depth {}", self.network.max_degree, self.network.depth);
        require(problem.is_none(), "network", shape, problem.unwrap_or_default())?;
        Schedule::new(self.schedule, self.network.max_degree).map_err(|error| {
            InvalidConfig::Value {
                name: "schedule",
                value: format!("{:?}", self.schedule),
                problem: error.to_string(),
            }
        })?;
        let inference = self.inference();
        require(
            inference.guidance == 1.0 || self.objective.condition_dropout > 0.0,
            "inference.guidance",
            inference.guidance,
            "guidance needs objective.condition_dropout > 0, to train also without the condition"
                .into(),
        )?;
        inference.check().map_err(|error| InvalidConfig::Value {
            name: "inference",
            value: format!("{:?}", self.inference),
            problem: error.to_string(),
        })
    }

    /// The configuration of a run that replicas share: with slices, at least as many as replicas.
    pub fn shared_by(&self, replicas: usize) -> Result<TrainingConfig, InvalidConfig> {
        let slices = self.run.slices.unwrap_or(SLICES);
        require(
            replicas <= slices,
            "run.slices",
            slices,
            format!("{replicas} replicas need {replicas} slices or more"),
        )?;
        let run = RunConfig { slices: Some(slices), ..self.run };
        let config = TrainingConfig { run, ..self.clone() };
        config.check()?;
        Ok(config)
    }

    /// How the model answers: in one pass if training was at the highest noise level often enough, else as the
    /// paper does; with what the configuration says instead.
    pub fn inference(&self) -> Inference {
        let base = if self.objective.share_at_full_noise < LITTLE_AT_FULL_NOISE {
            Inference::PAPER
        } else {
            Inference::default()
        };
        base.with(&self.inference)
    }

    /// The model that it trains on embeddings of some width.
    pub fn diffusion(&self, condition_size: usize) -> DiffusionConfig {
        let network = &self.network;
        DiffusionConfig {
            denoiser: DenoiserConfig {
                max_degree: network.max_degree,
                condition_size,
                time_size: network.time_size,
                bottleneck: network.bottleneck,
                depth: network.depth,
                head_rank: network.head_rank,
                dropout: network.dropout,
                frequency: network.frequency,
            },
            schedule: self.schedule,
            objective: self.objective.kind,
            quadrature: self.objective.quadrature,
        }
    }

    /// `[optimizer]` as the configuration of AdamW.
    pub fn adam(&self) -> AdamConfig {
        let optimizer = &self.optimizer;
        AdamConfig {
            beta_1: optimizer.beta_1,
            beta_2: optimizer.beta_2,
            epsilon: 1e-8,
            weight_decay: optimizer.weight_decay,
            decoupled: optimizer.kind == OptimizerKind::Adamw,
            clip_norm: optimizer.clip_norm,
        }
    }

    /// The learning rate of a step, counted from 0.
    pub fn rate(&self, step: u64) -> f64 {
        let OptimizerConfig { rate, warmup_steps, decay, .. } = self.optimizer;
        if step < warmup_steps {
            return rate * (step + 1) as f64 / warmup_steps as f64;
        }
        let rest = (self.run.steps - warmup_steps).max(1) as f64;
        let share = ((step - warmup_steps) as f64 / rest).min(1.0);
        match decay {
            Decay::None => rate,
            Decay::Linear => rate * (1.0 - share),
            Decay::Cosine => rate * 0.5 * (1.0 + (std::f64::consts::PI * share).cos()),
        }
    }
}

fn require(
    fine: bool,
    name: &'static str,
    value: impl std::fmt::Display,
    problem: String,
) -> Result<(), InvalidConfig> {
    if fine {
        Ok(())
    } else {
        Err(InvalidConfig::Value { name, value: value.to_string(), problem })
    }
}
