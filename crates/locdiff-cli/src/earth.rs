//! `locdiff earth`: a larger atlas for views from above than the one inside the program.

use std::io::{Write, stderr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::Context;
use burn::tensor::Device;
use clap::{Args, Subcommand};
use locdiff::models::earth_view::EarthLocator;
use locdiff_earth::{Imagery, Light, Source};

use crate::progress::Progress;
use crate::{NONSENSE, refused};

/// Of the land that the program knows, asked in cells of 1.2 km at least.
const MOST_LAND_ROWS: usize = 16_384;
const WIDTHS_KM: std::ops::RangeInclusive<f64> = 20.0..=4000.0;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Build a model like earth-view from tiles of the Earth, for narrower views
    Build(Arguments),
}

#[derive(Args)]
pub(crate) struct Arguments {
    /// An MBTiles file of the whole Earth by day, in web Mercator: tiles of one zoom, 256 pixels each
    #[arg(value_name = "TILES")]
    tiles: PathBuf,
    /// Where to put the model: a directory that does not exist, or is empty
    #[arg(long, value_name = "DIRECTORY")]
    out: PathBuf,
    /// How wide the narrowest views are that it is for
    #[arg(long, value_name = "KM", default_value_t = 100.0)]
    narrowest_km: f64,
    /// How wide the widest are
    #[arg(long, value_name = "KM", default_value_t = 2000.0)]
    widest_km: f64,
}

pub(crate) fn run(Command::Build(arguments): Command) -> anyhow::Result<ExitCode> {
    let widths_km = [arguments.narrowest_km, arguments.widest_km];
    let makes_sense = |width: &f64| WIDTHS_KM.contains(width);
    if !widths_km.iter().all(makes_sense) || widths_km[0] > widths_km[1] {
        let (least, most) = (WIDTHS_KM.start(), WIDTHS_KM.end());
        let [narrowest, widest] = widths_km;
        let reason = format!(
            "views of {narrowest} to {widest} km: widths are from {least} to {most} km, the narrowest first"
        );
        return Ok(refused(&reason, NONSENSE));
    }
    let out = &arguments.out;
    let is_empty = || Ok::<bool, std::io::Error>(std::fs::read_dir(out)?.next().is_none());
    if out.exists() && !is_empty().with_context(|| out.display().to_string())? {
        let reason = format!("{} is there already: nothing is overwritten", out.display());
        return Ok(refused(&reason, NONSENSE));
    }
    let phase = |what: &str| {
        // Nobody may be listening there.
        let _ = writeln!(stderr(), "{what}");
    };
    let rows = Source::rows_of_tiles(&arguments.tiles)?.min(MOST_LAND_ROWS);
    phase("Where land is");
    let mask =
        EarthLocator::built_in(&Device::flex()).atlas().mosaic.imagery().land_mask(rows as u32);
    phase("Reading tiles");
    let imagery = Imagery::read(&Source::Mbtiles(arguments.tiles), Light::Day, &mask)?;
    phase("Describing land");
    let progress = Mutex::new(Progress::new("maps", None));
    EarthLocator::build(&imagery, widths_km, out, |_, of| {
        if let Ok(mut progress) = progress.lock() {
            progress.of(of as u64);
            progress.add(1);
        }
    })?;
    drop(progress);
    phase(&format!("Ready: locdiff predict PICTURE --model {}", out.display()));
    Ok(ExitCode::SUCCESS)
}
