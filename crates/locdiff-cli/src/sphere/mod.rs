//! `locdiff sphere`: the mathematics by itself, without any model.

mod decode;
mod encode;
mod input;
mod output;
mod plot;

use clap::{Subcommand, ValueEnum};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Turn places into coefficients.
    ///
    /// Places are LATITUDE,LONGITUDE in degrees: arguments, or lines of a file or of stdin.
    /// Files may also be JSON (pairs, or objects with latitude and longitude) or .npy
    /// (n × 2). Coefficient (l, m) of the real orthonormal harmonics is at index l² + l + m.
    Encode(encode::Arguments),
    /// Turn coefficients into the places where their function is highest.
    ///
    /// Reads what `locdiff sphere encode` writes, from a file or stdin: lines of numbers,
    /// JSON (arrays, or objects with coefficients) or .npy (n × (L+1)²). The degree follows
    /// from the length. With one mode per row, text output is LATITUDE,LONGITUDE lines.
    Decode(decode::Arguments),
    /// Draw the density of coefficients, on a globe or a map.
    ///
    /// The density is exp F, normalized, where F is the function with these coefficients. For
    /// several places, the mean of their densities is drawn. Modes are marked with their probability.
    Plot(plot::Arguments),
}

pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Encode(arguments) => encode::run(arguments),
        Command::Decode(arguments) => decode::run(arguments),
        Command::Plot(arguments) => plot::run(arguments),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line of text per row.
    Text,
    /// One JSON object per line.
    Json,
    /// A NumPy array.
    Npy,
}
