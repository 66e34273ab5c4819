//! `locdiff model import`: weights of others in, a model directory out.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;

use burn::tensor::Device;
use clap::{Args, Subcommand};
use locdiff::{Existing, GeoClip, GeoClipError};
use serde::Serialize;

use super::default_directory;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// GeoCLIP's location encoder, image head and gallery, from its Python wheel.
    ///
    /// Get the wheel with `pip download geoclip==1.3.0 --no-deps`. Its files are checked against
    /// known checksums, and no Python in it is run.
    Geoclip(Arguments),
}

#[derive(Args)]
pub(crate) struct Arguments {
    /// The wheel, geoclip-1.3.0-py3-none-any.whl
    wheel: PathBuf,
    /// The model directory to write [default: $LOCDIFF_HOME/models/geoclip, or the same below
    /// ~/.local/share/locdiff]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace the model that is there
    #[arg(long)]
    force: bool,
    /// Say on stdout, as JSON, what was imported
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

pub(crate) fn run(Command::Geoclip(arguments): Command) -> anyhow::Result<()> {
    let directory = arguments.output.map_or_else(|| default_directory("geoclip"), Ok)?;
    let existing = if arguments.force { Existing::Replace } else { Existing::Keep };
    let geoclip = GeoClip::import(&arguments.wheel, &Device::flex())?;
    geoclip.save(&directory, existing).map_err(|error| match error {
        GeoClipError::Exists(_) => anyhow::anyhow!("{error}: replace it with --force"),
        error => error.into(),
    })?;
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
        writeln!(stdout(), "{}", serde_json::to_string(&imported)?)?;
    }
    Ok(())
}
