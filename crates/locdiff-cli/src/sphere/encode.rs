//! `locdiff sphere encode`: places in, coefficients out.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use locdiff_sphere::{Basis, LARGEST_DEGREE, LatLon};
use serde::Serialize;

use super::output::{Output, OutputArguments};
use super::{Format, input};
use crate::progress::Progress;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Places, for example 48.86,2.35 -33.87,151.21
    #[arg(value_name = "LAT,LON")]
    places: Vec<String>,
    /// Read places from this file (`-` for stdin, the default without places)
    #[arg(short, long, value_name = "FILE", conflicts_with = "places")]
    input: Option<PathBuf>,
    /// Highest degree, inclusive: (L+1)² coefficients, a resolution of about 20000/L km
    #[arg(short = 'L', long, value_name = "L", default_value_t = 47)]
    max_degree: usize,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Serialize)]
struct Encoded<'a> {
    latitude: f64,
    longitude: f64,
    max_degree: usize,
    coefficients: &'a [f64],
}

/// Places encoded at a time.
const BLOCK: usize = 256;

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let max_degree = arguments.max_degree;
    ensure!(
        max_degree <= LARGEST_DEGREE,
        "--max-degree {max_degree} is too high: use at most {LARGEST_DEGREE}"
    );
    let places: Vec<LatLon> = if arguments.places.is_empty() {
        input::places(arguments.input.as_deref())?
    } else {
        let parsed = arguments.places.iter().map(|text| text.parse());
        parsed.collect::<Result<_, _>>().context("cannot read the places")?
    };
    let mut output = Output::open(&arguments.output)?;
    let basis = Basis::new(max_degree);
    output.start_array(&[places.len(), basis.len()])?;
    let mut progress = Progress::new("encoding", Some(places.len() as u64));
    let mut matrix = vec![0.0; BLOCK * basis.len()];
    for block in places.chunks(BLOCK) {
        let matrix = &mut matrix[..block.len() * basis.len()];
        basis.encode_into(block, matrix);
        for (place, row) in block.iter().zip(matrix.chunks_exact(basis.len())) {
            match output.format() {
                Format::Text => output.text_row(row)?,
                Format::Npy => output.npy_row(row)?,
                Format::Json => output.json(&Encoded {
                    latitude: place.latitude(),
                    longitude: place.longitude(),
                    max_degree,
                    coefficients: row,
                })?,
            }
        }
        progress.add(block.len() as u64);
    }
    output.finish()
}
