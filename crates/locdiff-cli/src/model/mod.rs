//! `locdiff model`: models on this machine.

mod directories;
mod export;
#[cfg(feature = "hub")]
mod fetch;
#[cfg(feature = "hub")]
mod fetch_flow;
mod hybrid;
mod import;
#[cfg(feature = "hub")]
mod licence;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use locdiff::ModelHome;

/// What a model must give, beside its weights.
pub(crate) const SELF_TEST: &str = "self-test.json";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Get a model: GeoCLIP, a model of plonk, or an image encoder from the Hugging Face hub.
    ///
    /// GeoCLIP's wheel is downloaded with `pip download` from the package index, everything else from the hub. Files
    /// are stored in the cache of Python's huggingface_hub. HF_HOME, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE are
    /// used. No other command uses the network, except for data sets at s3:// addresses.
    #[cfg(feature = "hub")]
    Fetch(fetch::Arguments),
    /// Make a model directory from a checkpoint of `locdiff train`.
    Export(export::Arguments),
    /// Combine a density model and a gallery into a hybrid model.
    ///
    /// Both must use the same encoder. The rule `product` needs a gallery that `locdiff gallery fit` has fitted.
    Hybrid(hybrid::Arguments),
    /// List installed models, and the built-in model.
    List(directories::ListArguments),
    /// Show a model: its encoder, inference settings and training.
    Show(directories::ShowArguments),
    /// Check every file of a model, and list damaged files.
    Verify(directories::ShowArguments),
    /// Remove an installed model.
    Remove(directories::RemoveArguments),
    /// Install files that are already on this machine.
    #[command(subcommand)]
    Import(import::Command),
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        #[cfg(feature = "hub")]
        Command::Fetch(arguments) => fetch::run(arguments)?,
        Command::Export(arguments) => export::run(&arguments)?,
        Command::Hybrid(arguments) => hybrid::run(&arguments)?,
        Command::List(arguments) => directories::list(&arguments)?,
        Command::Show(arguments) => directories::show(&arguments)?,
        Command::Verify(arguments) => return directories::verify(&arguments),
        Command::Remove(arguments) => directories::remove(&arguments)?,
        Command::Import(command) => import::run(command)?,
    }
    Ok(ExitCode::SUCCESS)
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
