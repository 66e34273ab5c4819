//! `locdiff model`: models on this machine.

#[cfg(feature = "hub")]
mod fetch;
mod import;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use locdiff::ModelHome;

/// What a model must give, beside its weights.
pub(crate) const SELF_TEST: &str = "self-test.json";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Get a model: GeoCLIP, or an image encoder from the Hugging Face hub.
    ///
    /// GeoCLIP's own part comes by `pip download` from the package index, all else from the hub. Files go into the cache that Python's huggingface_hub uses too. HF_HOME, HF_ENDPOINT,
    /// HF_TOKEN and HF_HUB_OFFLINE are honoured. Nothing else in this program uses the network, but for data
    /// sets at s3:// addresses.
    #[cfg(feature = "hub")]
    Fetch(fetch::Arguments),
    /// Install files that are already on this machine.
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

/// Where the numbers are kept that an encoder must give: beside it, or, if it is in the hub's cache, in
/// ours. Not by what its weights are: damaged ones would find no record.
pub(crate) fn self_test_record(home: &ModelHome, name: &str, directory: &Path) -> PathBuf {
    let imported = home.model(name);
    if directory == imported {
        return imported.join(SELF_TEST);
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    home.directory().join("self-tests").join(format!("{name}.json"))
}
