//! A model on disk: a directory with `config.json`, weights and a `README.md`, whatever kind it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use locdiff_gallery::special_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checksum::sha256_of_file;
use crate::diffusion::InvalidSchedule;
use crate::tensors::InvalidWeights;

pub(super) const FORMAT: &str = "locdiff-model";
pub(super) const VERSION: u32 = 2;
/// What diffusions were before directories had kinds.
pub(super) const FORMAT_1: &str = "locdiff-diffusion";
pub(super) const CONFIG: &str = "config.json";
pub(super) const WEIGHTS: &str = "model.safetensors";
pub(super) const CARD: &str = "README.md";
/// What a model must give, beside its weights.
pub(super) const SELF_TEST: &str = "self-test.json";
/// What makes a directory a gallery.
pub(super) const GALLERY: &str = "gallery.json";
/// GeoCLIP's own releases have no kind.
const GEOCLIP: &str = "geoclip-geolocation";

/// What is in a model directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ModelKind {
    /// A network of the paper's, with its schedule and objective: what `locdiff train` writes.
    Diffusion,
    /// An encoder, a gallery of the Earth and a mosaic, for views from above.
    EarthView,
    /// GeoCLIP's head, location encoder and gallery.
    Geoclip,
    /// Photographs with known places, in the format of `locdiff-gallery`, which has its own description.
    Gallery,
    /// A density model, a gallery, and a rule that makes one density of both.
    Hybrid,
    /// A flow on the sphere from noise to places: plonk's published models.
    Flow,
}

impl ModelKind {
    /// Value of `kind` in `config.json`.
    pub fn name(self) -> &'static str {
        match self {
            ModelKind::Diffusion => "diffusion",
            ModelKind::EarthView => "earth-view",
            ModelKind::Geoclip => "geoclip",
            ModelKind::Gallery => "gallery",
            ModelKind::Hybrid => "hybrid",
            ModelKind::Flow => "flow",
        }
    }
}

/// Why a directory is not a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidModel {
    /// A file can't be read or written.
    #[error("cannot {what} {}: {error}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file that could not be read or written.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// `config.json` is not what it should be.
    #[error("{} is not a model's configuration: {error}", path.display())]
    Config {
        /// Path of `config.json`.
        path: PathBuf,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// The model is of another kind or from another version.
    #[error(
        "{} is {found}, this program reads {FORMAT} version {VERSION}, {FORMAT_1} version 1 and GeoCLIP's releases",
        path.display()
    )]
    Version {
        /// Path of `config.json`.
        path: PathBuf,
        /// The value in the file.
        found: String,
    },
    /// A training run was opened as a model.
    #[error("{} {reason}", path.display())]
    Run {
        /// Directory of the training run.
        path: PathBuf,
        /// What to open instead.
        reason: String,
    },
    /// A directory of one kind was opened as another.
    #[error("{} is of kind {}, expected {}", path.display(), found.name(), expected.name())]
    Kind {
        /// Directory of the model.
        path: PathBuf,
        /// Kind of the model in the directory.
        found: ModelKind,
        /// The kind that was expected.
        expected: ModelKind,
    },
    /// The configuration and what lies beside it contradict each other.
    #[error("{}: {reason}", path.display())]
    Contents {
        /// The directory or file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The noise levels are of no use.
    #[error(transparent)]
    Schedule(#[from] InvalidSchedule),
    /// The weights are not those of the configuration.
    #[error(transparent)]
    Weights(#[from] InvalidWeights),
}

impl InvalidModel {
    pub(super) fn file(what: &'static str, path: PathBuf) -> impl FnOnce(std::io::Error) -> Self {
        move |error| InvalidModel::File { what, path, error }
    }
}

/// A directory whose `config.json` was read.
#[derive(Debug, Clone)]
pub struct ModelDirectory {
    path: PathBuf,
    kind: ModelKind,
    text: String,
    config: Value,
}

/// A file of a model, compared with its checksum in `config.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedFile {
    /// Its name in the directory.
    pub name: String,
    /// What is wrong with it, if anything.
    pub problem: Option<String>,
}

impl ModelDirectory {
    /// Reads `config.json`, or `gallery.json` of a gallery, and nothing else.
    pub fn read(path: &Path) -> Result<ModelDirectory, InvalidModel> {
        let manifest = path.join(GALLERY);
        let is_gallery = manifest.is_file() && !path.join(CONFIG).is_file();
        let file = if is_gallery { manifest } else { path.join(CONFIG) };
        // Whoever names the run means its model.
        let model = path.join("model");
        let reason = match file.is_file() {
            false if model.join(CONFIG).is_file() => {
                Some(format!("is a training run; its model is {}", model.display()))
            }
            false if path.join("checkpoints").is_dir() => Some(format!(
                "is a training run without a model yet; export one with `locdiff model export {}`",
                path.display()
            )),
            _ => None,
        };
        if let Some(reason) = reason {
            return Err(InvalidModel::Run { path: path.to_owned(), reason });
        }
        if let Some(path) = special_file(path) {
            let reason = "is a pipe or a device, not a file".to_owned();
            return Err(InvalidModel::Contents { path, reason });
        }
        let text = fs::read_to_string(&file).map_err(InvalidModel::file("read", file.clone()))?;
        let invalid = |error| InvalidModel::Config { path: file.clone(), error };
        let config: Value = serde_json::from_str(&text).map_err(invalid)?;
        let kind = if is_gallery {
            ModelKind::Gallery
        } else if config["format"] == FORMAT && config["version"] == VERSION {
            serde_json::from_value(config["kind"].clone()).map_err(invalid)?
        } else if config["format"] == FORMAT_1 && config["version"] == 1 {
            ModelKind::Diffusion
        } else if config["model_type"] == GEOCLIP {
            ModelKind::Geoclip
        } else {
            let found = match (&config["format"], &config["model_type"]) {
                (Value::Null, Value::Null) => "not a model's configuration".to_owned(),
                (Value::Null, kind) => format!("of model_type {kind}"),
                (format, _) => format!("of format {format} version {}", config["version"]),
            };
            return Err(InvalidModel::Version { path: file, found });
        };
        Ok(ModelDirectory { path: path.to_owned(), kind, text, config })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Kind of the model, from `config.json`.
    pub fn kind(&self) -> ModelKind {
        self.kind
    }

    /// All of `config.json`.
    pub fn config(&self) -> &Value {
        &self.config
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What people call it: the directory's name.
    pub fn name(&self) -> String {
        let full = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let name = full.file_name().map(|name| name.to_string_lossy().into_owned());
        // A run's model is in `RUN/model`, and all runs' are.
        match name.as_deref() {
            Some("model") => {
                let run = full.parent().and_then(Path::file_name);
                run.map_or("model".to_owned(), |run| format!("{}/model", run.to_string_lossy()))
            }
            _ => name.unwrap_or_else(|| self.path.display().to_string()),
        }
    }

    pub(super) fn expect(&self, expected: ModelKind) -> Result<(), InvalidModel> {
        if self.kind == expected {
            return Ok(());
        }
        Err(InvalidModel::Kind { path: self.path.clone(), found: self.kind, expected })
    }

    /// The files that the directory has checksums of, with their SHA-256: in `config.json`, or, of GeoCLIP, in what
    /// its self-test has stored. Versions before 2 have none.
    pub fn files(&self) -> BTreeMap<String, String> {
        self.checksums().unwrap_or_default()
    }

    fn checksums(&self) -> Result<BTreeMap<String, String>, String> {
        let files = match self.kind {
            ModelKind::Geoclip => {
                let stored = fs::read_to_string(self.path.join(SELF_TEST)).ok();
                let stored: Value =
                    stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
                stored["files"].clone()
            }
            _ => self.config["files"].clone(),
        };
        if files.is_null() {
            return Ok(BTreeMap::new());
        }
        let files: BTreeMap<String, String> = serde_json::from_value(files)
            .map_err(|error| format!("`files` is damaged: {error}"))?;
        let is_plain = |name: &str| Path::new(name).file_name().is_some_and(|plain| plain == name);
        match files.keys().find(|name| !is_plain(name)) {
            Some(name) => Err(format!("`files` names `{name}`, which is not in the directory")),
            None => Ok(files),
        }
    }

    /// Reads every file that there is a checksum of, and compares.
    pub fn verify(&self) -> Vec<CheckedFile> {
        let files = match self.checksums() {
            Ok(files) => files,
            Err(problem) => {
                return vec![CheckedFile { name: CONFIG.to_owned(), problem: Some(problem) }];
            }
        };
        let check = |(name, expected): (String, String)| {
            let problem = match sha256_of_file(&self.path.join(&name)) {
                Ok(found) if found == expected => None,
                Ok(found) => Some(format!("has SHA-256 {found}, {expected} was stored")),
                Err(error) => Some(error.to_string()),
            };
            CheckedFile { name, problem }
        };
        files.into_iter().map(check).collect()
    }

    /// Bytes of all its files.
    pub fn size_bytes(&self) -> u64 {
        size_of(&self.path)
    }
}

fn size_of(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let sizes = entries.flatten().filter_map(|entry| {
        let facts = entry.metadata().ok()?;
        Some(if facts.is_dir() { size_of(&entry.path()) } else { facts.len() })
    });
    sizes.sum()
}

/// Writes `config.json` of version 2 with the checksums of the files beside it. Last: a directory with a
/// configuration is whole.
pub(super) fn write_config(
    directory: &Path,
    kind: ModelKind,
    config: Value,
    files: &[&str],
) -> Result<(), InvalidModel> {
    let mut sums = BTreeMap::new();
    for name in files {
        let path = directory.join(name);
        let sum = sha256_of_file(&path).map_err(InvalidModel::file("read", path))?;
        sums.insert(*name, sum);
    }
    let mut whole = serde_json::json!({
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "written_by": concat!("locdiff ", env!("CARGO_PKG_VERSION")),
        "files": sums,
    });
    if let (Value::Object(whole), Value::Object(config)) = (&mut whole, config) {
        whole.extend(config);
    }
    let text = serde_json::to_string_pretty(&whole).expect("a configuration is JSON");
    let path = directory.join(CONFIG);
    fs::write(&path, text + "\n").map_err(InvalidModel::file("write", path))
}
