//! What is trained: a configuration of the product, and what is changed in it.

use std::path::Path;

use anyhow::{Context, Result};
use locdiff_experiments::paper::digest;
use locdiff_train::TrainingConfig;
use serde::Deserialize;
use serde_json::json;
use toml::{Table, Value};

/// Raised by hand if the same configuration would give other answers: after a change of the loss, the network, the
/// samplers, the decoder or the simulation.
const ARITHMETIC: u32 = 1;
/// What the answers' keys say of the data.
pub const DATA: &str = "simulation 1: seed 5, 4 images per place, half precision";
/// Sampled rows take every sixth place: 500.
pub const EVERY: usize = 6;
/// Of the rows that the paper's main claims rest on.
pub const SEEDS: u64 = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    row: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub name: String,
    pub title: String,
    /// A file of `configs/`.
    base: Option<String>,
    /// Tables of it, and what is other there.
    #[serde(default)]
    changes: Table,
    #[serde(default = "one_pass")]
    pub answers: Vec<How>,
    #[serde(default = "three")]
    pub seeds: u64,
    /// Instead of a configuration: steps of Riemannian flow matching, by the loop that all baselines share.
    pub flow_steps: Option<usize>,
}

fn three() -> u64 {
    SEEDS
}

fn one_pass() -> Vec<How> {
    vec![How::OnePass]
}

/// How a trained network is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The mode of the network's output at the highest noise level.
    OnePass,
    /// The mean of the modes of 16 samples by DDPM through all levels.
    Sampled,
    /// Retrieval among the places within 200 km of the one-pass mode.
    HybridOnePass,
    /// Retrieval among the places within 200 km of the 16 samples.
    HybridSampled,
    /// The place of each of several lists where what one pass gives is highest.
    Lists,
    /// No place: minus the logarithm of what the one-pass density gives the truth.
    Nll,
    /// No place: the first coefficients of one pass themselves.
    Outputs,
}

impl How {
    pub fn suffix(self) -> &'static str {
        match self {
            How::OnePass => "",
            How::Sampled => "-sampled",
            How::HybridOnePass => "-hybrid",
            How::HybridSampled => "-hybrid-sampled",
            How::Lists => "-lists",
            How::Nll => "-nll",
            How::Outputs => "-outputs",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            How::OnePass => "one pass",
            How::Sampled => "mean of 16 samples, DDPM, 200 steps",
            How::HybridOnePass => "retrieval within 200 km of the one-pass mode",
            How::HybridSampled => "retrieval within 200 km of the 16 samples (LocDiff-H)",
            How::Lists => "the best place of a list",
            How::Nll => "likelihood of the truth",
            How::Outputs => "coefficients",
        }
    }
}

impl Rows {
    pub fn read() -> Result<Rows> {
        Ok(toml::from_str(&std::fs::read_to_string("experiments/paper/rows.toml")?)?)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Row> {
        self.row.iter()
    }

    pub fn find(&self, name: &str) -> Result<&Row> {
        self.iter().find(|row| row.name == name).with_context(|| format!("no row {name}"))
    }
}

/// What answers without a training depend on.
pub fn key_of_retrieval() -> String {
    format!("{:016x}", digest(&json!([DATA, ARITHMETIC]).to_string()))
}

impl Row {
    /// The complete configuration.
    pub fn config(&self, seed: u64) -> Result<TrainingConfig> {
        let base = self.base.as_deref().context("it has no configuration")?;
        let mut table: Table = toml::from_str(&std::fs::read_to_string(Path::new(base))?)?;
        for (name, changes) in &self.changes {
            let of = table.entry(name).or_insert(Value::Table(Table::new()));
            let (Value::Table(of), Value::Table(changes)) = (of, changes) else {
                anyhow::bail!("{name} is no table");
            };
            of.extend(changes.clone());
        }
        let mut config: TrainingConfig = table.try_into()?;
        config.run.seed = seed;
        // Nothing is chosen by what is held out, so nothing is.
        config.validation.share = 0.0;
        config.validation.every_steps = 0;
        Ok(config)
    }

    /// How its answers came about.
    pub fn how(&self, how: How) -> &'static str {
        match self.flow_steps {
            Some(_) => "32 samples, read as fitted on held-out places",
            None => how.name(),
        }
    }

    /// What answers depend on, in 64 bits: the configuration, the data, and the version of the arithmetic.
    pub fn key(&self, seed: u64) -> Result<String> {
        let config = match self.flow_steps {
            Some(steps) => json!(["riemannian flow", steps, seed]),
            None => serde_json::to_value(self.config(seed)?)?,
        };
        let text = json!([config, DATA, ARITHMETIC]).to_string();
        Ok(format!("{:016x}", digest(&text)))
    }
}
