//! The `locdiff` program: arguments, printing, exit codes. One file per command. A library, because the Python package
//! brings the same program, and makes the same answers and maps of pictures.
//!
//! Data goes to stdout, everything else to stderr. Exit code 0: done; 1: failed, or in part; 2: the
//! command line made no sense; 3: no model for this picture is installed.

#[cfg(feature = "models")]
mod archive;
#[cfg(feature = "models")]
mod asking;
#[cfg(feature = "models")]
mod batch;
#[cfg(feature = "models")]
mod calibrate;
mod counts;
#[cfg(feature = "models")]
mod doctor;
#[cfg(feature = "models")]
mod earth;
#[cfg(feature = "models")]
mod embed;
#[cfg(feature = "models")]
mod encoders;
#[cfg(feature = "models")]
mod evaluate;
#[cfg(feature = "models")]
mod gallery;
#[cfg(feature = "models")]
mod interruption;
#[cfg(feature = "models")]
mod memory;
#[cfg(feature = "models")]
mod model;
mod outlines;
#[cfg(feature = "models")]
mod predict;
mod progress;
#[cfg(feature = "models")]
mod serve;
mod sphere;
mod text;
#[cfg(feature = "models")]
mod train;
mod whole_file;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(feature = "models")]
pub use memory::keep_for_a_while;
#[cfg(feature = "models")]
pub use predict::{Colors, View, answer_map};

/// Where on Earth was this taken? Answers with a probability map, not just a pin.
#[derive(Parser)]
#[command(name = "locdiff", version = VERSION, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Locate or embed millions of images, on one machine or on a cluster.
    #[cfg(feature = "models")]
    #[command(subcommand)]
    Batch(batch::Command),
    /// Calibrate a model: turn its scores into probabilities with pictures whose places are known.
    #[cfg(feature = "models")]
    Calibrate(Box<calibrate::Arguments>),
    /// Show what is installed, what is missing and how to get it, and test the models.
    #[cfg(feature = "models")]
    Doctor(doctor::Arguments),
    /// Maps of the Earth for views from above.
    #[cfg(feature = "models")]
    #[command(subcommand)]
    Earth(earth::Command),
    /// Turn images into embeddings for training.
    #[cfg(feature = "models")]
    Embed(embed::Arguments),
    /// Score the answers of any model against true places.
    #[cfg(feature = "models")]
    Evaluate(Box<evaluate::Arguments>),
    /// Write the places of a photo archive as GeoJSON, KML, GPX, CSV or Parquet.
    #[cfg(feature = "models")]
    Export(archive::ExportArguments),
    /// Search photographs with known places by similarity.
    #[cfg(feature = "models")]
    #[command(subcommand)]
    Gallery(gallery::Command),
    /// Install, list, check and remove models.
    #[cfg(feature = "models")]
    #[command(subcommand)]
    Model(model::Command),
    /// Predict where pictures were taken.
    #[cfg(feature = "models")]
    Predict(predict::Arguments),
    /// Look through a photo archive on a map: accept, reject or correct predicted places.
    #[cfg(feature = "models")]
    Review(archive::ReviewArguments),
    /// Find where the pictures in folders were taken, and store the places in a library.
    #[cfg(feature = "models")]
    Scan(Box<archive::ScanArguments>),
    /// Serve models over HTTP, with a map page.
    #[cfg(feature = "models")]
    Serve(Box<serve::Arguments>),
    /// Turn places into spherical-harmonic coefficients and back, and draw them.
    #[command(subcommand)]
    Sphere(sphere::Command),
    /// Write the places of a photo archive into XMP sidecars or pictures, or undo that.
    #[cfg(feature = "models")]
    Tag(archive::TagArguments),
    /// Train a model on embeddings with known places.
    #[cfg(feature = "models")]
    Train(train::Arguments),
}

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("LOCDIFF_BUILD"), ")");

/// Runs the program with a command line, the program's name first. Ends the process if there is nothing to run: after
/// `--help`, `--version`, and if the command line makes no sense.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    #[cfg(feature = "s3")]
    locdiff_train::choose_cryptography();
    let done = |()| ExitCode::SUCCESS;
    let arguments: Vec<OsString> = readable(arguments).collect();
    #[cfg(feature = "models")]
    let arguments =
        match serve::with_config(arguments, <Arguments as clap::CommandFactory>::command()) {
            Ok(arguments) => arguments,
            Err(error) => return refused(&with_causes(error.as_ref()), NONSENSE),
        };
    let parsed = match Arguments::try_parse_from(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return unparsed(&error),
    };
    let result = match parsed.command {
        #[cfg(feature = "models")]
        Command::Batch(command) => batch::run(command),
        #[cfg(feature = "models")]
        Command::Calibrate(arguments) => calibrate::run(&arguments),
        #[cfg(feature = "models")]
        Command::Doctor(arguments) => doctor::run(arguments),
        #[cfg(feature = "models")]
        Command::Earth(command) => earth::run(command),
        #[cfg(feature = "models")]
        Command::Embed(arguments) => embed::run(arguments).map(done),
        #[cfg(feature = "models")]
        Command::Evaluate(arguments) => evaluate::run(*arguments),
        #[cfg(feature = "models")]
        Command::Export(arguments) => archive::export(&arguments).map(done),
        #[cfg(feature = "models")]
        Command::Gallery(command) => gallery::run(command),
        #[cfg(feature = "models")]
        Command::Model(command) => model::run(command),
        #[cfg(feature = "models")]
        Command::Predict(arguments) => predict::run(arguments),
        #[cfg(feature = "models")]
        Command::Review(arguments) => archive::review(&arguments).map(done),
        #[cfg(feature = "models")]
        Command::Scan(arguments) => archive::scan(*arguments),
        #[cfg(feature = "models")]
        Command::Serve(arguments) => serve::run(*arguments),
        Command::Sphere(command) => sphere::run(command).map(done),
        #[cfg(feature = "models")]
        Command::Tag(arguments) => archive::tag(&arguments),
        #[cfg(feature = "models")]
        Command::Train(arguments) => train::run(arguments).map(done),
    };
    match result {
        Ok(code) => code,
        // Whoever read our output has seen enough, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}

/// The command line, with a blank before places such as -33.87,151.21, so that the south of
/// the equator is not taken for a flag. clap's `allow_hyphen_values` is no way out: a list of places
/// then also takes the flags behind it (`sphere plot 1,2 -o map.png`).
fn readable(arguments: impl IntoIterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    arguments.into_iter().map(|argument| match argument.to_str() {
        Some(text) if is_southern_place(text) => format!(" {text}").into(),
        _ => argument,
    })
}

fn is_southern_place(text: &str) -> bool {
    let number = text.strip_prefix('-').unwrap_or_default();
    number.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && text.contains([',', ' '])
        && text.chars().all(|c| c.is_ascii_digit() || "+-.,eE ".contains(c))
}

/// The command failed, or a part of it.
#[cfg(feature = "models")]
const FAILED: u8 = 1;
/// The command line makes no sense.
#[cfg(feature = "models")]
const NONSENSE: u8 = 2;
/// No model on this machine is for these pictures.
#[cfg(feature = "models")]
const NO_MODEL: u8 = 3;

/// Says why there is no answer, and with which code the program ends.
#[cfg(feature = "models")]
fn refused(reason: &str, code: u8) -> ExitCode {
    // Nobody may be listening there.
    let _ = writeln!(text::stderr(), "locdiff: {reason}");
    ExitCode::from(code)
}

/// Help, or what is wrong with the command line, which may contain names of files.
fn unparsed(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let _ = write!(text::stderr(), "{}", error.render());
    } else {
        let _ = error.print();
    }
    ExitCode::from(error.exit_code() as u8)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn print_error(error: &anyhow::Error) {
    // Nobody may be listening there.
    let _ = writeln!(text::stderr(), "locdiff: {}", with_causes(error.as_ref()));
}

/// An error and its causes, each once: many errors contain their cause already.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}
