//! `locdiff model`: models on this machine.

#[cfg(feature = "hub")]
mod fetch;
mod import;

use std::env;
use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Get an image encoder from the Hugging Face hub.
    ///
    /// Files go into the cache that Python's huggingface_hub uses too. HF_HOME, HF_ENDPOINT,
    /// HF_TOKEN and HF_HUB_OFFLINE are honoured. Nothing else in this program uses the network, but for data
    /// sets at s3:// addresses.
    #[cfg(feature = "hub")]
    Fetch(fetch::Arguments),
    /// Turn a model published elsewhere into a model directory.
    #[command(subcommand)]
    Import(import::Command),
}

pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        #[cfg(feature = "hub")]
        Command::Fetch(arguments) => fetch::run(arguments),
        Command::Import(command) => import::run(command),
    }
}

/// Where the model `name` lives unless the user says otherwise: below `LOCDIFF_HOME`, or else in
/// the user's data directory by the XDG convention.
fn default_directory(name: &str) -> anyhow::Result<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("LOCDIFF_HOME")
        // A relative path there is invalid, the convention says, and to be ignored.
        .or_else(|| {
            variable("XDG_DATA_HOME")
                .filter(|path| path.is_absolute())
                .map(|path| path.join("locdiff"))
        })
        .or_else(|| env::home_dir().map(|home| home.join(".local/share/locdiff")))
        .context("there is no home directory: name a place with --output or LOCDIFF_HOME")?;
    Ok(home.join("models").join(name))
}
