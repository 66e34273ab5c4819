//! `locdiff evaluate data`: public test sets.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use locdiff_evaluate::{BENCHMARKS, Benchmark, Completeness, make_manifest, manifest_path};

use crate::text::{data_stdout, on_one_line, stderr};
use crate::whole_file;
use crate::{NONSENSE, refused};

/// Missing files that are named one by one.
const SHOWN: usize = 10;

#[derive(Args)]
pub(super) struct Arguments {
    /// The test set: im2gps, im2gps3k, yfcc4k, yfcc26k, gws15k, osv5m or mp16. Without a name, all are listed
    name: Option<String>,
    /// Make the manifest from this file of places, as published by the authors
    #[arg(long, value_name = "FILE", requires = "name")]
    places: Option<PathBuf>,
    /// The folder of the images, also in subfolders. The manifest of the images that are found is
    /// written there. Without --images, the manifest is printed
    #[arg(long, value_name = "DIR", requires = "places")]
    images: Option<PathBuf>,
    /// Check a manifest, or the manifest in a folder: the number of images, missing files, and for
    /// a known set whether it is complete
    #[arg(long, value_name = "PATH", conflicts_with = "places")]
    check: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let known = match arguments.name.as_deref().map(|name| (name, Benchmark::find(name))) {
        None => None,
        Some((_, Some(benchmark))) => Some(benchmark),
        Some((name, None)) => {
            let keys: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.key).collect();
            let reason = format!("there is no test set `{name}`: use {}", keys.join(", "));
            return Ok(refused(&reason, NONSENSE));
        }
    };
    match (&arguments.check, &arguments.places, known) {
        (Some(path), _, known) => return check(path, known),
        (_, Some(places), Some(benchmark)) => convert(benchmark, places, arguments)?,
        (_, _, Some(benchmark)) => describe(benchmark)?,
        _ => list()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> anyhow::Result<()> {
    let mut out = crate::text::stdout();
    for benchmark in &BENCHMARKS {
        let images = benchmark.images.map_or("?".to_owned(), |images| images.to_string());
        writeln!(out, "{:<10}{images:>8}  {}", benchmark.key, benchmark.about)?;
    }
    writeln!(
        out,
        "\n`locdiff evaluate data NAME` shows where to get a test set and how to make its manifest."
    )?;
    Ok(())
}

fn describe(benchmark: &Benchmark) -> anyhow::Result<()> {
    let mut out = crate::text::stdout();
    let key = benchmark.key;
    writeln!(out, "{}: {}\n", benchmark.name, benchmark.about)?;
    let images = benchmark.images.map_or("no fixed number".to_owned(), |images| images.to_string());
    writeln!(out, "images   {images}")?;
    writeln!(out, "get it   {}", benchmark.source)?;
    writeln!(out, "places   {}", benchmark.file)?;
    writeln!(out, "license  {}\n", benchmark.licence)?;
    writeln!(out, "Make the manifest, then check it:\n")?;
    writeln!(out, "    locdiff evaluate data {key} --places FILE --images DIR")?;
    writeln!(out, "    locdiff evaluate data {key} --check DIR")?;
    Ok(())
}

fn convert(benchmark: &Benchmark, places: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let images = arguments.images.as_deref();
    let (manifest, missing) = make_manifest(benchmark, places, images)?;
    match images {
        None => data_stdout().write_all(manifest.as_bytes())?,
        Some(folder) => {
            let path = folder.join("manifest.csv");
            whole_file::write_file(&path, manifest.as_bytes())?;
            writeln!(
                crate::text::stdout(),
                "{}: {} images",
                path.display(),
                manifest.lines().count() - 1
            )?;
        }
    }
    if missing > 0 {
        writeln!(stderr(), "{missing} rows were left out: no place, or no file of that name")?;
    }
    Ok(())
}

fn check(path: &Path, known: Option<&Benchmark>) -> anyhow::Result<ExitCode> {
    let manifest = manifest_path(path);
    let found = Completeness::of(&manifest, known)?;
    let mut out = crate::text::stdout();
    write!(out, "{}: {} images", manifest.display(), found.images)?;
    match (found.expected, known) {
        (Some(expected), Some(known)) if expected == found.images => {
            writeln!(out, ", as many as {} has", known.name)?;
        }
        (Some(expected), Some(known)) => writeln!(out, ", but {} has {expected}", known.name)?,
        _ => writeln!(out)?,
    }
    let missing = found.files_missing.len();
    if missing == 0 {
        writeln!(out, "no file is missing")?;
    } else {
        writeln!(out, "{missing} files are missing:")?;
        for name in found.files_missing.iter().take(SHOWN) {
            writeln!(out, "  {}", on_one_line(name))?;
        }
        if missing > SHOWN {
            writeln!(out, "  and {} more", missing - SHOWN)?;
        }
    }
    match found.expected_digest {
        Some(expected) if expected == found.digest => {
            writeln!(out, "names and places are those that were published")?;
        }
        Some(_) => writeln!(out, "names and places are not those that were published")?,
        None => writeln!(out, "digest of names and places: {}", found.digest)?,
    }
    Ok(if found.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
