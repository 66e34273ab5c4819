//! Where models and caches live on this machine.

use std::env;
use std::path::{Path, PathBuf};

/// `LOCDIFF_HOME` is not set, and there is no home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no home directory: set LOCDIFF_HOME to a directory for models")]
pub struct NoHome;

/// The directory of models and caches: `LOCDIFF_HOME`, or else `locdiff` in the user's data
/// directory by the XDG convention.
///
/// ```no_run
/// let home = locdiff::ModelHome::from_env()?;
/// println!("{}", home.model("geoclip").display()); // ~/.local/share/locdiff/models/geoclip
/// # Ok::<(), locdiff::models::NoHome>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelHome {
    directory: PathBuf,
}

impl ModelHome {
    /// Settings of the environment.
    pub fn from_env() -> Result<ModelHome, NoHome> {
        let variable =
            |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let directory = variable("LOCDIFF_HOME")
            // A relative path there is invalid by the convention, and to be ignored.
            .or_else(|| {
                variable("XDG_DATA_HOME")
                    .filter(|path| path.is_absolute())
                    .map(|path| path.join("locdiff"))
            })
            .or_else(|| env::home_dir().map(|home| home.join(".local/share/locdiff")));
        directory.map(ModelHome::at).ok_or(NoHome)
    }

    /// This directory, which needn't exist.
    pub fn at(directory: impl Into<PathBuf>) -> ModelHome {
        ModelHome { directory: directory.into() }
    }

    /// `LOCDIFF_HOME`, or the default place for data of the system.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where a model lives, whether it is there or not.
    pub fn model(&self, name: &str) -> PathBuf {
        self.models().join(name)
    }

    /// Directory of the installed models.
    pub fn models(&self) -> PathBuf {
        self.directory.join("models")
    }

    /// Where things are kept that can be computed again.
    pub fn cache(&self) -> PathBuf {
        self.directory.join("cache")
    }

    /// Where an image encoder is: imported here, or fetched from the hub by us or by Python.
    /// Nothing is downloaded.
    pub fn encoder(&self, name: &str) -> Option<PathBuf> {
        let imported = self.model(name);
        if imported.join("config.json").is_file() {
            return Some(imported);
        }
        fetched(name)
    }
}

#[cfg(feature = "hub")]
fn fetched(name: &str) -> Option<PathBuf> {
    use crate::encoders::hub::{Encoder, Hub};
    let encoder: Encoder = name.parse().ok()?;
    Some(Hub::from_env().ok()?.cached(&encoder)?.directory)
}

#[cfg(not(feature = "hub"))]
fn fetched(_name: &str) -> Option<PathBuf> {
    None
}
