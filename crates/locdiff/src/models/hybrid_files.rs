//! The files of a hybrid: `config.json`, which names a model, a gallery and a rule, and the model card.

use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use locdiff_sphere::LatLon;
use serde::{Deserialize, Serialize};

use super::directory::{CARD, CONFIG, InvalidModel, ModelDirectory, ModelKind, write_config};
use super::opening::{CannotOpen, OpenOptions};
use super::registry::open_hybrid;
use crate::locate::{Geolocator, InvalidInference};

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
    /// All of them.
    pub const ALL: [HybridRule; 2] = [HybridRule::Paper, HybridRule::Product];

    /// As people write it.
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
            format!("count is {count}, from 1 to 1024 are possible")
        } else if !(radius_km > 0.0 && radius_km <= 20_000.0) {
            format!("radius_km is {radius_km}, more than 0 and up to 20000 are possible")
        } else {
            return Ok(config);
        };
        Err(InvalidModel::Contents { path, reason })
    }
}

/// Photographs that neither the model nor the gallery has seen.
#[derive(Debug)]
pub struct HeldOut {
    /// What they are called.
    pub name: String,
    /// Embeddings, places and ids.
    pub rows: Vec<(Vec<f32>, LatLon, String)>,
}

/// Writes a new model directory of a model, by name or directory, and a gallery, and opens it, so that only what fits
/// together stays. With held-out photographs, the product is fitted on them. A directory that exists is never overwritten.
/// Paths are stored relative to it.
pub fn create_hybrid(
    directory: &Path,
    model: &str,
    gallery: &Path,
    rule: HybridRule,
    held_out: Option<&HeldOut>,
    options: &OpenOptions,
) -> Result<Geolocator, CannotOpen> {
    if directory.symlink_metadata().is_ok() {
        let reason = "exists: delete it, or choose another directory".to_owned();
        return Err(InvalidModel::Contents { path: directory.to_owned(), reason }.into());
    }
    let make = InvalidModel::file("make", directory.to_owned());
    fs::create_dir_all(directory).map_err(make)?;
    let open = |()| Geolocator::open_with(&directory.to_string_lossy(), options, &mut |_, _| {});
    let fit = |()| match held_out {
        Some(held_out) => fit_product(directory, held_out, options),
        None => Ok(()),
    };
    let made = write(directory, model, gallery, rule).map_err(CannotOpen::from);
    let made = made.and_then(fit).and_then(open);
    if made.is_err() {
        // Nobody else's: it did not exist before.
        let _ = fs::remove_dir_all(directory);
    }
    made
}

fn fit_product(
    directory: &Path,
    held_out: &HeldOut,
    options: &OpenOptions,
) -> Result<(), CannotOpen> {
    // The paper's rule needs no fit.
    let opened = ModelDirectory::read(directory)?;
    let unfitted = open_hybrid(&opened, Some(HybridRule::Paper), None, options, &mut |_, _| {})?;
    Ok(unfitted.fit(&held_out.rows, &held_out.name)?.write(directory)?)
}

fn write(
    directory: &Path,
    model: &str,
    gallery: &Path,
    rule: HybridRule,
) -> Result<(), InvalidModel> {
    let model = match Path::new(model).is_dir() {
        true => relative(directory, Path::new(model))?,
        false => model.to_owned(),
    };
    let config = HybridConfig::new(&model, &relative(directory, gallery)?, rule);
    let name = directory.file_name().map_or("Hybrid".into(), |name| name.to_string_lossy());
    let card = format!(
        "# {name}\n\nA LocDiff model of kind `hybrid`: the density model `{}`, the gallery `{}`, and the rule `{}`.\n\n\
         - `product`: the model's density times the gallery's likelihood, normalized, with the numbers of `fusion.json` if both were fitted together. The prior of the gallery is divided out.\n\
         - `paper`: samples of the model, references within {RADIUS_KM} km of them; the most similar reference is the answer.\n\n\
         Limits are those of the model and of the gallery. Answers name the references that they rest on.\n",
        config.model, config.gallery, rule,
    );
    let path = directory.join(CARD);
    fs::write(&path, card).map_err(InvalidModel::file("write", path))?;
    let value = serde_json::to_value(&config).expect("a configuration is JSON");
    write_config(directory, ModelKind::Hybrid, value, &[])
}

/// The way from one directory to another, so that both can be moved together.
fn relative(from: &Path, to: &Path) -> Result<String, InvalidModel> {
    let full =
        |path: &Path| path.canonicalize().map_err(InvalidModel::file("find", path.to_owned()));
    let (from, to) = (full(from)?, full(to)?);
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(to.components().skip(common)).collect();
    Ok(way.to_string_lossy().into_owned())
}
