//! `locdiff model import`: files that are already here become models.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use burn::tensor::Device;
use clap::{Args, Subcommand};
use locdiff::ModelHome;
use locdiff::encoders::{Embedder, ImageEncoder, Reading};
use locdiff::models::geoclip::{Existing, GeoClip, GeoClipError};
use locdiff::models::{record_published_geoclip, test_encoder};
use serde::Serialize;
use serde_json::json;

use super::SELF_TEST;
use crate::text::{json_stdout, stderr};

/// Names of models.
const RESERVED: [&str; 6] =
    ["earth-view", "geoclip", "geoclip-even", "plonk-yfcc", "plonk-inaturalist", "plonk-osv5m"];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// GeoCLIP's location encoder, image head and gallery, from its Python wheel.
    ///
    /// Get the wheel with `pip download geoclip==1.3.0 --no-deps`. Its files are checked against
    /// known checksums, and no Python in it is run.
    Geoclip(GeoclipArguments),
    /// An image encoder in Hugging Face layout, from a directory.
    ///
    /// config.json, preprocessor_config.json (if there is one) and model.safetensors or pytorch_model.bin are
    /// copied. `locdiff model import encoder clip-vit-l-14 DIRECTORY` completes GeoCLIP without the hub.
    Encoder(EncoderArguments),
}

#[derive(Args)]
pub(crate) struct GeoclipArguments {
    /// The wheel, geoclip-1.3.0-py3-none-any.whl
    wheel: PathBuf,
    /// The model directory to write [default: $LOCDIFF_HOME/models/geoclip, or the same below
    /// ~/.local/share/locdiff]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace the model that is there
    #[arg(long)]
    force: bool,
    /// Print what was imported on stdout, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct EncoderArguments {
    /// Name for the encoder, for example clip-vit-l-14
    name: String,
    /// The directory of the encoder
    directory: PathBuf,
    /// Replace the encoder that is there
    #[arg(long)]
    force: bool,
    /// Print what was imported on stdout, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Imported {
    model: &'static str,
    directory: String,
    parameters: usize,
    embedding_width: usize,
    image_feature_width: usize,
    logit_scale: f32,
    gallery_places: usize,
}

pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Geoclip(arguments) => import_geoclip(arguments),
        Command::Encoder(arguments) => import_encoder(&arguments),
    }
}

fn import_geoclip(arguments: GeoclipArguments) -> anyhow::Result<()> {
    let directory = match arguments.output {
        Some(directory) => directory,
        None => ModelHome::from_env()?.model("geoclip"),
    };
    let geoclip = install_geoclip(&arguments.wheel, &directory, arguments.force)?;
    writeln!(stderr(), "GeoCLIP is in {}", directory.display())?;
    if arguments.json {
        let imported = Imported {
            model: "geoclip",
            directory: directory.display().to_string(),
            parameters: geoclip.parameter_count(),
            embedding_width: geoclip.location_encoder.width(),
            image_feature_width: geoclip.image_head.feature_width(),
            logit_scale: geoclip.logit_scale(),
            gallery_places: geoclip.gallery.len(),
        };
        writeln!(json_stdout(), "{}", serde_json::to_string(&imported)?)?;
    }
    Ok(())
}

/// From the wheel into a model directory, with the numbers that it must give.
pub(super) fn install_geoclip(
    wheel: &Path,
    directory: &Path,
    force: bool,
) -> anyhow::Result<GeoClip> {
    let existing = if force { Existing::Replace } else { Existing::Keep };
    let geoclip = GeoClip::import(wheel, &Device::flex())?;
    geoclip.save(directory, existing).map_err(|error| match error {
        GeoClipError::Exists(_) => anyhow::anyhow!("{error}: replace it with --force"),
        error => error.into(),
    })?;
    record_published_geoclip(&directory.join(SELF_TEST))?;
    Ok(geoclip)
}

fn import_encoder(arguments: &EncoderArguments) -> anyhow::Result<()> {
    let EncoderArguments { name, directory: from, force, json } = arguments;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    ensure!(
        name.chars().all(plain)
            && !name.is_empty()
            && !name.starts_with('.')
            && !RESERVED.contains(&name.as_str()),
        "`{name}` can't be an encoder's name: use letters, digits and hyphens, and no name of a model"
    );
    ensure!(from.is_dir(), "{} is not a directory", from.display());
    ensure!(from.join("config.json").is_file(), "{} contains no config.json", from.display());
    // Opened first: what can't be used isn't copied.
    let encoder = ImageEncoder::open_as(&Reading::of(name), from, &Device::flex())?;
    let to = ModelHome::from_env()?.model(name);
    if to.exists() {
        ensure!(*force, "{} exists already: replace it with --force", to.display());
        ensure!(
            to.join("config.json").is_file(),
            "{} is not the directory of an encoder and was not replaced",
            to.display()
        );
    }
    let parent = to.parent().context("the directory of models has no parent")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let unfinished = tempfile::tempdir_in(parent)?;
    let mut copied = Vec::new();
    for names in [
        &["config.json"][..],
        &["preprocessor_config.json"],
        &["model.safetensors", "pytorch_model.bin"],
    ] {
        let Some(file) = names.iter().find(|file| from.join(file).is_file()) else { continue };
        let (source, target) = (from.join(file), unfinished.path().join(file));
        fs::copy(&source, &target).with_context(|| format!("cannot copy {}", source.display()))?;
        copied.push(*file);
    }
    if copied.is_empty() {
        bail!("{} contains no encoder", from.display());
    }
    test_encoder(&encoder, &unfinished.path().join(SELF_TEST))?;
    if to.exists() {
        fs::remove_dir_all(&to).with_context(|| format!("cannot remove {}", to.display()))?;
    }
    let unfinished = unfinished.keep();
    // Others on this machine may use it too.
    #[cfg(unix)]
    fs::set_permissions(&unfinished, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    fs::rename(&unfinished, &to).with_context(|| format!("cannot make {}", to.display()))?;
    writeln!(stderr(), "{name} is in {}", to.display())?;
    if *json {
        let imported = json!({
            "encoder": name,
            "directory": to.display().to_string(),
            "identity": encoder.record().identity,
            "embedding_width": encoder.width(),
            "files": copied,
        });
        writeln!(json_stdout(), "{imported}")?;
    }
    Ok(())
}
