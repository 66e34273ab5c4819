//! `locdiff sphere plot`: a picture of the density that coefficients stand for.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use locdiff_map::{LineStyle, Map, Marker, Projection, Scale, Theme};
use locdiff_sphere::{Basis, Coefficients, Density, Integrator, LatLon, Mode, UnitVector};

use super::input;
use crate::outlines::outline;
use crate::whole_file::write_file;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Places to encode and draw together, for example 48.86,2.35 -33.87,151.21
    #[arg(value_name = "LAT,LON")]
    places: Vec<String>,
    /// Draw coefficients from this file instead (`-` for stdin)
    #[arg(short, long, value_name = "FILE", conflicts_with = "places")]
    input: Option<PathBuf>,
    /// Which row of the file, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "input")]
    row: usize,
    /// Highest degree for places; the higher, the smaller the spots
    #[arg(short = 'L', long, value_name = "L", default_value_t = 15, conflicts_with = "input")]
    max_degree: usize,
    /// Where to write: .png or .svg
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// How to show the Earth
    #[arg(long, value_enum, default_value_t = View::Globe)]
    projection: View,
    /// Middle of the globe [default: the middle of the marked places]
    #[arg(long, value_name = "LAT,LON", allow_hyphen_values = true)]
    centre: Option<LatLon>,
    /// Colors
    #[arg(long, value_enum, default_value_t = Colours::Dark)]
    theme: Colours,
    /// Width in pixels [default: 800 for a globe, 1200 for a map]
    #[arg(long, value_name = "PX", value_parser = clap::value_parser!(u32).range(1..=i64::from(Map::MAX_WIDTH_PX)))]
    width: Option<u32>,
    /// Draw the smallest regions that contain these probabilities, for example 0.5,0.9
    #[arg(long, value_name = "P", value_delimiter = ',')]
    regions: Vec<f64>,
    /// Factors of ten that the colors span
    #[arg(long, value_name = "N", default_value_t = 3.0)]
    decades: f64,
}

#[derive(Clone, Copy, ValueEnum)]
enum View {
    /// A globe.
    Globe,
    /// The whole Earth, with true areas.
    EqualEarth,
    /// The whole Earth, a plain grid of degrees.
    Equirectangular,
}

#[derive(Clone, Copy, ValueEnum)]
enum Colours {
    /// Light on dark.
    Dark,
    /// Dark on light.
    Day,
}

/// Beyond this degree the survey of the density takes minutes, and no picture shows the
/// difference.
const LARGEST_DRAWN: usize = 400;
/// Modes with less than this part of the heaviest one's probability are not marked.
const MARKED_SHARE: f64 = 0.02;
/// Nor are more than this.
const MARKED: usize = 12;

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let ending = arguments.output.extension().and_then(|ending| ending.to_str());
    let as_svg = match ending {
        Some("png") => false,
        Some("svg") => true,
        _ => bail!("--output {} must end in .png or .svg", arguments.output.display()),
    };
    ensure!(
        arguments.decades > 0.0 && arguments.decades.is_finite(),
        "--decades {} is not a positive number",
        arguments.decades
    );
    for level in &arguments.regions {
        ensure!(*level > 0.0 && *level < 1.0, "--regions {level} is not between 0 and 1");
    }
    let functions = functions(&arguments)?;
    let max_degree = functions[0].max_degree();
    let integrator = Integrator::new(max_degree);
    let parts = functions.iter().map(|function| (1.0, integrator.exponential(function)));
    let density = Density::mixture(parts.collect())?;
    let survey = density.survey();
    let mut modes = survey.modes().modes;
    let heaviest = modes[0].mass;
    modes.retain(|mode| mode.mass > MARKED_SHARE * heaviest);
    modes.truncate(MARKED);
    let highest = modes.iter().map(|mode| mode.log_density).fold(f64::NEG_INFINITY, f64::max);
    let projection = match arguments.projection {
        View::Globe => {
            Projection::Globe { centre: arguments.centre.unwrap_or_else(|| middle(&modes)) }
        }
        View::EqualEarth => Projection::EqualEarth,
        View::Equirectangular => Projection::Equirectangular,
    };
    let mut map = Map::new(projection)
        .theme(match arguments.theme {
            Colours::Dark => Theme::Dark,
            Colours::Day => Theme::Day,
        })
        .scale(Scale::log_decades(arguments.decades))
        // A peak that falls between pixels still sets the scale.
        .top(highest)
        .field(|place| survey.interpolated_log_density(place))
        .caption(format!(
            "Density exp F of coefficients up to degree {max_degree}, not a prediction"
        ));
    if let Some(width) = arguments.width {
        map = map.width_px(width);
    }
    for level in &arguments.regions {
        if let Some(polygons) = survey.region(*level).outline() {
            // The usual pair reads as core and fringe.
            let style = if *level > 0.75 { LineStyle::Dashed } else { LineStyle::Solid };
            map = map.outline(outline(&polygons)?.style(style));
        }
    }
    for Mode { place, mass, .. } in modes {
        let label = format!("{place:.2} · {:.0} %", 100.0 * mass);
        map = map.marker(Marker::new(place).label(label));
    }
    let picture = map.draw();
    let bytes = if as_svg { picture.svg().into_bytes() } else { picture.png() };
    write_file(Path::new(&arguments.output), &bytes)
}

/// The middle of the marked places, or the first if they have none.
fn middle(modes: &[Mode]) -> LatLon {
    let vectors = modes.iter().map(|mode| UnitVector::from(mode.place).to_array());
    let sum = vectors.fold([0.0; 3], |sum, v| std::array::from_fn(|axis| sum[axis] + v[axis]));
    UnitVector::from_direction(sum).map_or(modes[0].place, LatLon::from)
}

/// The encodings of the places, or the row of the file.
fn functions(arguments: &Arguments) -> anyhow::Result<Vec<Coefficients>> {
    if let Some(path) = &arguments.input {
        let row = input::rows(Some(path))?.nth(arguments.row);
        let row = row.with_context(|| {
            format!("{} has no row {}, counted from 0", path.display(), arguments.row)
        })??;
        let coefficients = Coefficients::from_vec(row)?;
        let max_degree = coefficients.max_degree();
        ensure!(
            (1..=LARGEST_DRAWN).contains(&max_degree),
            "max degree {max_degree} cannot be drawn: use 1 to {LARGEST_DRAWN}"
        );
        return Ok(vec![coefficients]);
    }
    let max_degree = arguments.max_degree;
    ensure!(
        (1..=LARGEST_DRAWN).contains(&max_degree),
        "--max-degree {max_degree} cannot be drawn: use 1 to {LARGEST_DRAWN}"
    );
    ensure!(!arguments.places.is_empty(), "nothing to draw: give places, or a file with --input");
    let places: Result<Vec<LatLon>, _> = arguments.places.iter().map(|text| text.parse()).collect();
    let basis = Basis::new(max_degree);
    let places = places.context("cannot read the places")?;
    Ok(places.into_iter().map(|place| basis.encode(place)).collect())
}
