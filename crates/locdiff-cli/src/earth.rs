//! `locdiff earth`: a larger atlas for views from above than the one inside the program, and rendered views to try things with.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::Context;
use burn::tensor::Device;
use clap::{Args, Subcommand};
use locdiff::models::earth_view::EarthLocator;
use locdiff_earth::{Imagery, Light, Renderer, Source};

use crate::progress::Progress;
use crate::text::stderr;
use crate::whole_file::write_file;
use crate::{NONSENSE, refused};

/// Of the program's map of land, in cells of 1.2 km at least.
const MOST_LAND_ROWS: usize = 16_384;
/// Of rendered views: pixels along a side, the width of the narrowest, and rows of the map that tells land from sea.
const SIDE_PX: usize = 128;
const NARROWEST_KM: f64 = 630.0;
const MASK_ROWS: u32 = 4096;
const WIDTHS_KM: std::ops::RangeInclusive<f64> = 20.0..=4000.0;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Build a model like earth-view from tiles of the Earth, for narrower views
    Build(Arguments),
    /// Render views of the Earth from above with known places, to try out training and evaluation
    Views(ViewsArguments),
}

#[derive(Args)]
pub(crate) struct ViewsArguments {
    /// Where to put the pictures and manifest.csv: a directory that does not exist, or is empty
    #[arg(long, value_name = "DIRECTORY")]
    out: PathBuf,
    /// Number of views
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: u64,
    /// Seed: the same seed gives the same views
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Args)]
pub(crate) struct Arguments {
    /// An MBTiles file of the whole Earth by day, in web Mercator: tiles of one zoom, 256 pixels each
    #[arg(value_name = "TILES")]
    tiles: PathBuf,
    /// Where to put the model: a directory that does not exist, or is empty
    #[arg(long, value_name = "DIRECTORY")]
    out: PathBuf,
    /// Width of the narrowest views
    #[arg(long, value_name = "KM", default_value_t = 100.0)]
    narrowest_km: f64,
    /// Width of the widest views
    #[arg(long, value_name = "KM", default_value_t = 2000.0)]
    widest_km: f64,
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Build(arguments) => build(arguments),
        Command::Views(arguments) => views(&arguments),
    }
}

/// Whether a directory can be filled: it does not exist, or is empty.
fn is_free(out: &Path) -> anyhow::Result<bool> {
    let is_empty = || Ok::<bool, std::io::Error>(std::fs::read_dir(out)?.next().is_none());
    Ok(!out.exists() || is_empty().with_context(|| out.display().to_string())?)
}

fn views(arguments: &ViewsArguments) -> anyhow::Result<ExitCode> {
    let out = &arguments.out;
    if !is_free(out)? {
        let reason = format!("{} is not empty: choose another directory with --out", out.display());
        return Ok(refused(&reason, NONSENSE));
    }
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let imagery = EarthLocator::built_in_mosaic().into_imagery();
    let mask = imagery.land_mask(MASK_ROWS);
    let mut renderer = Renderer::new(mask, vec![imagery], Vec::new());
    // The mosaic in the program has no finer detail.
    renderer.framing.width_km[0] = NARROWEST_KM;
    let mut progress = Progress::new("views", Some(arguments.count));
    let mut manifest = String::from("image,latitude,longitude\n");
    for start in (0..arguments.count).step_by(64) {
        let numbers = start..(start + 64).min(arguments.count);
        let rendered = renderer.render_range(arguments.seed, numbers.clone(), SIDE_PX);
        for (number, view) in numbers.zip(&rendered) {
            let name = format!("{number:06}.jpg");
            let side = view.size_px as u16;
            let jpeg =
                locdiff_server::jpeg(&view.pixels, side, side).context("cannot encode a JPEG")?;
            let path = out.join(&name);
            std::fs::write(&path, jpeg)
                .with_context(|| format!("cannot write {}", path.display()))?;
            let (latitude, longitude) = (view.label.latitude, view.label.longitude);
            manifest.push_str(&format!("{name},{latitude:.5},{longitude:.5}\n"));
        }
        progress.add(rendered.len() as u64);
    }
    write_file(&out.join("manifest.csv"), manifest.as_bytes())?;
    drop(progress);
    writeln!(stderr(), "{} rendered views are in {}", arguments.count, out.display())?;
    Ok(ExitCode::SUCCESS)
}

fn build(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let widths_km = [arguments.narrowest_km, arguments.widest_km];
    let makes_sense = |width: &f64| WIDTHS_KM.contains(width);
    if !widths_km.iter().all(makes_sense) || widths_km[0] > widths_km[1] {
        let (least, most) = (WIDTHS_KM.start(), WIDTHS_KM.end());
        let [narrowest, widest] = widths_km;
        let reason = format!(
            "--narrowest-km {narrowest} --widest-km {widest}: use widths from {least} to {most} km, the smaller first"
        );
        return Ok(refused(&reason, NONSENSE));
    }
    let out = &arguments.out;
    if !is_free(out)? {
        let reason = format!("{} is not empty: choose another directory with --out", out.display());
        return Ok(refused(&reason, NONSENSE));
    }
    let phase = |what: &str| {
        // Nobody may be listening there.
        let _ = writeln!(stderr(), "{what}");
    };
    let rows = Source::rows_of_tiles(&arguments.tiles)?.min(MOST_LAND_ROWS);
    phase("Computing the land mask");
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
