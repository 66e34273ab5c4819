//! `locdiff model list | show | verify | remove`: models that are on this machine.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use burn::tensor::Device;
use clap::Args;
use locdiff::diffusion::Diffusion;
use locdiff::models::earth_view::EarthLocator;
use locdiff::models::geoclip::GeoClip;
use locdiff::models::{
    BUILT_IN, EncoderSource, ModelDirectory, ModelKind, installed_models, model_directories,
    model_directory,
};
use locdiff::{CannotOpen, Geolocator, ModelHome, OpenOptions};
use serde_json::{Value, json};

use crate::{FAILED, with_causes};

#[derive(Args)]
pub(crate) struct ListArguments {
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct ShowArguments {
    /// A model's name or directory
    model: String,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct RemoveArguments {
    /// The name of an installed model; remove directories elsewhere yourself
    model: String,
    /// Remove the model without asking
    #[arg(long)]
    yes: bool,
}

/// Fields of `config.json` that are shown as they are: of diffusions, of hybrids, and of flows.
const SHOWN: [&str; 12] = [
    "training",
    "objective",
    "denoiser",
    "schedule",
    "quadrature",
    "model",
    "gallery",
    "rule",
    "count",
    "radius_km",
    "network",
    "source",
];

/// Names, kinds and sizes.
pub(super) fn list(arguments: &ListArguments) -> anyhow::Result<()> {
    let home = ModelHome::from_env()?;
    let mut rows =
        vec![(BUILT_IN.to_owned(), "earth-view".to_owned(), "built into this program".to_owned())];
    let complete = installed_models(&home);
    for (name, directory) in model_directories(&home) {
        let (kind, note) = match directory {
            Ok(directory) => {
                let megabytes = directory.size_bytes() as f64 / 1e6;
                let mut note = format!("{megabytes:.1} MB in {}", directory.path().display());
                let published = [ModelKind::Geoclip, ModelKind::Flow].contains(&directory.kind());
                if published && !complete.contains(&name) {
                    note.push_str("; not complete: see `locdiff doctor`");
                }
                (directory.kind().name().to_owned(), note)
            }
            Err(error) => ("damaged".to_owned(), error.to_string()),
        };
        rows.push((name, kind, note));
    }
    let mut out = crate::text::stdout();
    for (name, kind, note) in rows {
        if arguments.json {
            writeln!(
                crate::text::json_stdout(),
                "{}",
                json!({ "name": name, "kind": kind, "detail": note })
            )?;
        } else {
            writeln!(out, "{name:<20} {kind:<12} {note}")?;
        }
    }
    Ok(())
}

/// Name, version and description of a model.
pub(super) fn show(arguments: &ShowArguments) -> anyhow::Result<()> {
    let directory = directory_of(&arguments.model).ok();
    let directory = directory.and_then(|path| ModelDirectory::read(&path).ok());
    if let Some(directory) = directory.as_ref().filter(|d| d.kind() == ModelKind::Geoclip) {
        // Opening it takes CLIP, and perhaps a minute.
        let mut facts = directory.config().clone();
        facts["kind"] = directory.kind().name().into();
        facts["directory"] = directory.path().display().to_string().into();
        facts["size_bytes"] = directory.size_bytes().into();
        return print_facts(&facts, arguments.json);
    }
    // Without its encoder: to be shown, a model needs not be asked.
    let options = OpenOptions { encoder: EncoderSource::NotNeeded, ..OpenOptions::default() };
    let model = Geolocator::open_with(&arguments.model, &options, &mut |_, _| {})?;
    let identity = model.identity();
    let mut facts = json!({
        "name": identity.name,
        "version": identity.version,
        "description": identity.description,
        "calibrated": identity.calibrated,
        "prior": identity.prior,
        "inference": model.inference(),
    });
    if let Some((encoder, width)) = model.takes_embeddings_of() {
        let mut encoder = serde_json::to_value(encoder)?;
        // Thousands of letters of base64.
        if let Value::Object(fields) = &mut encoder {
            fields.remove("test_embedding");
        }
        facts["encoder"] = encoder;
        facts["embedding_width"] = width.into();
    }
    if let Some(directory) = directory {
        facts["kind"] = directory.kind().name().into();
        facts["directory"] = directory.path().display().to_string().into();
        facts["size_bytes"] = directory.size_bytes().into();
        for field in SHOWN {
            if !directory.config()[field].is_null() {
                facts[field] = directory.config()[field].clone();
            }
        }
    }
    print_facts(&facts, arguments.json)
}

fn print_facts(facts: &Value, json: bool) -> anyhow::Result<()> {
    let mut out = crate::text::stdout();
    if json {
        writeln!(crate::text::json_stdout(), "{facts}")?;
        return Ok(());
    }
    for (name, value) in facts.as_object().into_iter().flatten() {
        let text = match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        writeln!(out, "{name:<16} {text}")?;
    }
    Ok(())
}

/// Reads every file of a model, and names what is damaged.
pub(super) fn verify(arguments: &ShowArguments) -> anyhow::Result<ExitCode> {
    let directory = ModelDirectory::read(&directory_of(&arguments.model)?)?;
    let files = directory.verify();
    // Checksums show that files are as they were written, opening shows that they fit together.
    let (path, device) = (directory.path(), Device::flex());
    let opened: anyhow::Result<()> = match directory.kind() {
        ModelKind::Diffusion => Diffusion::open(path, &device).map(drop).map_err(Into::into),
        ModelKind::EarthView => {
            EarthLocator::open(&directory, &device).map(drop).map_err(Into::into)
        }
        ModelKind::Gallery | ModelKind::Hybrid | ModelKind::Flow => {
            let options =
                OpenOptions { encoder: EncoderSource::NotNeeded, ..OpenOptions::default() };
            let opened = Geolocator::open_with(&arguments.model, &options, &mut |_, _| {});
            opened.map(drop).map_err(Into::into)
        }
        _ => GeoClip::open(path, &device).map(drop).map_err(Into::into),
    };
    let opened = opened.err().map(|error: anyhow::Error| with_causes(error.as_ref()));
    let damaged: Vec<_> = files.iter().filter(|file| file.problem.is_some()).collect();
    let fine = damaged.is_empty() && opened.is_none();
    let mut out = crate::text::stdout();
    if arguments.json {
        let files: Vec<Value> = files
            .iter()
            .map(|file| json!({ "name": file.name, "problem": file.problem }))
            .collect();
        let report = json!({ "ok": fine, "files": files, "problem": opened });
        writeln!(crate::text::json_stdout(), "{report}")?;
    } else {
        for file in &files {
            let state =
                file.problem.as_deref().map_or("ok".to_owned(), |p| format!("DAMAGED: {p}"));
            writeln!(out, "{}: {state}", directory.path().join(&file.name).display())?;
        }
        let has_checksums = !matches!(directory.kind(), ModelKind::Gallery | ModelKind::Hybrid);
        if files.is_empty() && has_checksums {
            writeln!(
                out,
                "config.json has no checksums: this model was written by an earlier version"
            )?;
        }
        match &opened {
            Some(problem) => writeln!(out, "the model cannot be opened: {problem}")?,
            None if fine => writeln!(out, "{} is whole", directory.path().display())?,
            None => {}
        }
    }
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Removes an installed model.
pub(super) fn remove(arguments: &RemoveArguments) -> anyhow::Result<()> {
    let RemoveArguments { model, yes } = arguments;
    ensure!(model != BUILT_IN, "{BUILT_IN} is inside this program and can't be removed");
    let is_name = Path::new(model).components().count() == 1 && !model.starts_with('.');
    ensure!(
        is_name,
        "`{model}` is not the name of an installed model: remove the directory yourself"
    );
    let home = ModelHome::from_env()?;
    let directory = home.model(model);
    ensure!(
        directory.join("config.json").is_file(),
        "there is no model in {}: list installed models with `locdiff model list`",
        directory.display()
    );
    if !yes {
        bail!("this removes {} and everything in it: add --yes to confirm", directory.display());
    }
    fs::remove_dir_all(&directory)
        .with_context(|| format!("cannot remove {}", directory.display()))?;
    writeln!(crate::text::stderr(), "removed {}", directory.display())?;
    Ok(())
}

/// The directory that a name or path stands for.
fn directory_of(model: &str) -> anyhow::Result<PathBuf> {
    if let Some(directory) = model_directory(model, ModelHome::from_env().ok().as_ref()) {
        return Ok(directory);
    }
    if model == BUILT_IN {
        bail!("{BUILT_IN} is inside this program and has no files; `locdiff doctor` tests it");
    }
    Err(CannotOpen::Unknown(model.to_owned()).into())
}
