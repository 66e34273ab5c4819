//! `locdiff gallery`: photographs with known places, searched by embedding.

mod add;
mod build;
mod drawing;
pub(crate) mod encoder;
mod fit;
mod info;
pub(crate) mod rows;
mod search;

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Subcommand;
use locdiff_gallery::GalleryWriter;

use crate::progress::Progress;
use crate::{NONSENSE, memory, refused};
use rows::Rows;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a gallery of embeddings, of images, or of a list of coordinates
    Build(build::Arguments),
    /// Add references to a gallery. If the command is interrupted, the gallery is not changed
    Add(add::Arguments),
    /// Show what a gallery contains: its encoder, number and density of references, and whether it is fitted
    Info(info::Arguments),
    /// Find the references that are most similar to a photograph
    Search(search::Arguments),
    /// Measure on other photographs how near similar references are. A fitted gallery returns densities
    Fit(fit::Arguments),
}

/// The command line makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Nonsense(String);

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    memory::keep_for_a_while();
    let result = match command {
        Command::Build(arguments) => build::run(&arguments),
        Command::Add(arguments) => add::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Search(arguments) => search::run(&arguments),
        Command::Fit(arguments) => fit::run(&arguments),
    };
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => match error.downcast_ref::<Nonsense>() {
            Some(Nonsense(reason)) => Ok(refused(reason, NONSENSE)),
            None => Err(error),
        },
    }
}

/// Puts all rows into a gallery. An interruption leaves it as it was.
fn write(mut writer: GalleryWriter, rows: &Rows, stop: &AtomicBool) -> anyhow::Result<usize> {
    rows.visit("reading references", stop, &mut |embedding, place, id| {
        Ok(writer.push(embedding, place, id)?)
    })?;
    if stop.load(Ordering::Relaxed) {
        return Err(rows::interrupted());
    }
    let count = writer.rows();
    let mut progress = Progress::new("sorting references", Some(count as u64));
    let mut known = 0;
    writer.finish(|done| {
        progress.add((done - known) as u64);
        known = done;
    })?;
    Ok(count)
}

/// A line on stderr.
fn note(text: &str) {
    // Nobody may be listening there.
    let _ = writeln!(crate::text::stderr(), "{text}");
}
