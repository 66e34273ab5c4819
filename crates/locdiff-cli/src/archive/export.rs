//! `locdiff export`: the places of a library for maps and tables.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use locdiff_archive::export::{Pin, csv, geojson, gpx, kml};

use super::{entries, open_library, table};
use crate::text::{data_stdout, json_stdout};
use crate::whole_file::write_file;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The library that `locdiff scan` made
    library: PathBuf,
    /// How places are written. Each place is marked as measured, corrected by hand, or estimated
    #[arg(short, long, value_enum)]
    format: Format,
    /// Output file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Points for web maps and GIS.
    Geojson,
    /// Placemarks for Google Earth.
    Kml,
    /// Waypoints for GPS devices.
    Gpx,
    /// A table as text.
    Csv,
    /// A table for data frames.
    Parquet,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let library = open_library(&arguments.library)?;
    let model = library.model()?;
    let pins: Vec<Pin> = entries(&library, model.as_ref())?.iter().filter_map(Pin::of).collect();
    let bytes = match arguments.format {
        Format::Geojson => geojson(&pins).into_bytes(),
        Format::Kml => kml(&pins).into_bytes(),
        Format::Gpx => gpx(&pins).into_bytes(),
        Format::Csv => csv(&pins).into_bytes(),
        Format::Parquet => table::parquet(&pins)?,
    };
    match &arguments.output {
        Some(path) => write_file(path, &bytes),
        None if arguments.format == Format::Geojson => Ok(json_stdout().write_all(&bytes)?),
        None => Ok(data_stdout().write_all(&bytes)?),
    }
}
