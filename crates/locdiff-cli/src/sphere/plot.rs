//! `locdiff sphere plot`: a picture of the density that coefficients stand for.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use locdiff_map::{Map, Marker, Projection, Scale, Theme};
use locdiff_sphere::{Basis, Coefficients, Integrator, LARGEST_DEGREE, LatLon, UnitVector};

use super::{input, output};

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
    /// Middle of the globe; by default that of the marked places
    #[arg(long, value_name = "LAT,LON")]
    centre: Option<LatLon>,
    /// Colours
    #[arg(long, value_enum, default_value_t = Colours::Dark)]
    theme: Colours,
    /// Width in pixels [default: 800 for a globe, 1200 for a map]
    #[arg(long, value_name = "PX", value_parser = clap::value_parser!(u32).range(1..=i64::from(Map::MAX_WIDTH_PX)))]
    width: Option<u32>,
    /// Factors of ten that the colours span
    #[arg(long, value_name = "N", default_value_t = 3.0)]
    decades: f64,
}

#[derive(Clone, Copy, ValueEnum)]
enum View {
    /// The Earth from afar.
    Globe,
    /// The whole Earth, areas true.
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

/// Peaks this far below the highest are not marked.
const MARKED_NATS: f64 = 5.0;

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
    let functions = functions(&arguments)?;
    let max_degree = functions[0].max_degree();
    let basis = Basis::new(max_degree);
    let integrator = Integrator::new(max_degree);
    let normalisers: Vec<f64> =
        functions.iter().map(|e| integrator.log_integral_exp(e).value).collect();
    // The mean of the functions' densities, as a logarithm.
    let log_density = |place: LatLon| {
        let harmonics = basis.encode(place);
        let logs = functions.iter().zip(&normalisers).map(|(function, normaliser)| {
            let terms = function.as_slice().iter().zip(harmonics.as_slice());
            terms.map(|(e, y)| e * y).sum::<f64>() - normaliser
        });
        let highest = logs.clone().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logs.map(|log| (log - highest).exp()).sum();
        highest + (sum / functions.len() as f64).ln()
    };
    let mut places: Vec<(LatLon, f64)> = Vec::new();
    for (function, normaliser) in functions.iter().zip(&normalisers) {
        let peaks = integrator.decoder().modes(function, 5);
        places.extend(peaks.iter().map(|peak| (peak.place, peak.value - normaliser)));
    }
    places.sort_by(|a, b| b.1.total_cmp(&a.1));
    let highest = places[0];
    places.retain(|place| place.1 > highest.1 - MARKED_NATS);
    let projection = match arguments.projection {
        View::Globe => {
            Projection::Globe { centre: arguments.centre.unwrap_or_else(|| middle(&places)) }
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
        .top(log_density(highest.0))
        .field(log_density)
        .caption(format!(
            "exp F of coefficients to degree {max_degree}: mathematics, not a prediction"
        ));
    if let Some(width) = arguments.width {
        map = map.width_px(width);
    }
    for (place, _) in places {
        map = map.marker(Marker::new(place).label(format!("{place:.2}")));
    }
    let picture = map.draw();
    let bytes = if as_svg { picture.svg().into_bytes() } else { picture.png() };
    output::write_file(Path::new(&arguments.output), &bytes)
}

/// The middle of the marked places, or the first if they have none.
fn middle(places: &[(LatLon, f64)]) -> LatLon {
    let vectors = places.iter().map(|(place, _)| UnitVector::from(*place).to_array());
    let sum = vectors.fold([0.0; 3], |sum, v| std::array::from_fn(|axis| sum[axis] + v[axis]));
    UnitVector::from_direction(sum).map_or(places[0].0, LatLon::from)
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
            (1..=LARGEST_DEGREE).contains(&max_degree),
            "max degree {max_degree} cannot be drawn: 1 to {LARGEST_DEGREE}"
        );
        return Ok(vec![coefficients]);
    }
    let max_degree = arguments.max_degree;
    ensure!(
        (1..=LARGEST_DEGREE).contains(&max_degree),
        "--max-degree {max_degree} cannot be drawn: 1 to {LARGEST_DEGREE}"
    );
    ensure!(!arguments.places.is_empty(), "nothing to draw: name places, or a file with --input");
    let places: Result<Vec<LatLon>, _> = arguments.places.iter().map(|text| text.parse()).collect();
    let basis = Basis::new(max_degree);
    let places = places.context("cannot read the places")?;
    Ok(places.into_iter().map(|place| basis.encode(place)).collect())
}
