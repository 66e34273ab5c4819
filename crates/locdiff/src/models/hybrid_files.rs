//! `config.json` of a hybrid, which names a model, a gallery and a rule.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::directory::{CONFIG, InvalidModel, ModelDirectory, ModelKind};
use crate::locate::InvalidInference;

/// Samples of the paper's rule.
const COUNT: usize = 16;
/// How near to a sample the paper searches references.
const RADIUS_KM: f64 = 200.0;

/// What a hybrid consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HybridConfig {
    /// The density model: a path relative to the directory, or a name.
    pub model: String,
    /// The gallery: a path relative to the directory.
    pub gallery: String,
    /// What makes one density of both.
    pub rule: HybridRule,
    /// How many samples the rule `paper` draws from a model that answers with a density.
    #[serde(default = "count")]
    pub count: usize,
    /// How far references may be from a sample under the rule `paper`.
    #[serde(default = "radius_km")]
    pub radius_km: f64,
}

fn count() -> usize {
    COUNT
}

fn radius_km() -> f64 {
    RADIUS_KM
}

/// What makes one density of a model and a gallery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HybridRule {
    /// The most similar reference near samples of the model.
    Paper,
    /// The model's density times the gallery's likelihood, normalized.
    Product,
}

impl HybridRule {
    /// Every rule, in the order of the documentation.
    pub const ALL: [HybridRule; 2] = [HybridRule::Paper, HybridRule::Product];

    /// Name of the rule in options and records.
    pub fn name(self) -> &'static str {
        match self {
            HybridRule::Paper => "paper",
            HybridRule::Product => "product",
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            HybridRule::Paper => "the most similar reference near samples",
            HybridRule::Product => "product",
        }
    }
}

impl fmt::Display for HybridRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for HybridRule {
    type Err = InvalidInference;

    fn from_str(text: &str) -> Result<HybridRule, InvalidInference> {
        let known = HybridRule::ALL.into_iter().find(|rule| rule.name() == text);
        known.ok_or_else(|| InvalidInference::Name {
            option: "rule",
            text: text.to_owned(),
            known: "paper, product",
        })
    }
}

impl HybridConfig {
    /// With the paper's numbers.
    pub fn new(model: &str, gallery: &str, rule: HybridRule) -> HybridConfig {
        let (model, gallery) = (model.to_owned(), gallery.to_owned());
        HybridConfig { model, gallery, rule, count: COUNT, radius_km: RADIUS_KM }
    }

    pub(super) fn read(directory: &ModelDirectory) -> Result<HybridConfig, InvalidModel> {
        directory.expect(ModelKind::Hybrid)?;
        let path = directory.path().join(CONFIG);
        let config: HybridConfig = serde_json::from_value(directory.config().clone())
            .map_err(|error| InvalidModel::Config { path: path.clone(), error })?;
        let HybridConfig { count, radius_km, .. } = config;
        let reason = if !(1..=1024).contains(&count) {
            format!("count is {count}: use 1 to 1024")
        } else if !(radius_km > 0.0 && radius_km <= 20_000.0) {
            format!("radius_km is {radius_km}: use more than 0 and at most 20000")
        } else {
            return Ok(config);
        };
        Err(InvalidModel::Contents { path, reason })
    }
}
