//! `locdiff sphere decode`: coefficients in, places out.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use locdiff_sphere::{AnchorDecoder, Anchors, Coefficients, Decoder, LARGEST_DEGREE, LatLon};
use serde::Serialize;

use super::output::{Output, OutputArguments};
use super::{Format, input};
use crate::counts::count;
use crate::progress::Progress;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Read coefficients from this file (`-` for stdin, the default)
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// How many of the highest maxima to give per row
    #[arg(short, long, value_name = "K", default_value_t = 1, value_parser = count::<0, 10_000>)]
    modes: usize,
    /// How to decode
    #[arg(long, value_enum, default_value_t = Method::Continuous)]
    decoder: Method,
    /// Number of evenly spaced anchors for the paper's decoders [default: 21000]
    #[arg(long, value_name = "N", value_parser = count::<1, 10_000_000>)]
    anchors: Option<usize>,
    /// Radius ρ of the paper's mode-seeking decoder; 0, the default, returns the best anchor
    #[arg(long, value_name = "KM")]
    radius_km: Option<f64>,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// The exact maxima.
    Continuous,
    /// The paper's mode-seeking decoder over anchors.
    PaperMode,
    /// The paper's KL decoder over anchors, in closed form.
    PaperKl,
}

#[derive(Serialize)]
struct Decoded {
    row: usize,
    max_degree: usize,
    modes: Vec<Mode>,
}

/// A place and the function's value there.
#[derive(Serialize)]
struct Mode {
    latitude: f64,
    longitude: f64,
    value: f64,
}

impl Mode {
    fn new(place: LatLon, value: f64) -> Mode {
        Mode { latitude: place.latitude(), longitude: place.longitude(), value }
    }

    /// To a centimetre, and still a valid place: no −0, no longitude of 180.
    fn place_text(&self) -> String {
        let round = |degrees: f64| (degrees * 1e7).round() / 1e7 + 0.0;
        let (latitude, longitude) = (round(self.latitude), round(self.longitude));
        let longitude = if longitude >= 180.0 { longitude - 360.0 } else { longitude };
        format!("{latitude:.7},{longitude:.7}")
    }
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    ensure!(arguments.modes > 0, "--modes 0: use at least 1");
    ensure!(
        arguments.modes == 1 || arguments.decoder == Method::Continuous,
        "the paper's decoders give one place per row: leave out --modes or --decoder"
    );
    ensure!(
        arguments.anchors.is_none() || arguments.decoder != Method::Continuous,
        "--anchors is for the paper's decoders: choose one with --decoder"
    );
    ensure!(
        arguments.radius_km.is_none() || arguments.decoder == Method::PaperMode,
        "--radius-km is for the paper's mode-seeking decoder: choose it with --decoder paper-mode"
    );
    let radius_km = arguments.radius_km.unwrap_or(0.0);
    ensure!(radius_km >= 0.0 && radius_km.is_finite(), "--radius-km {radius_km} is not a distance");
    let rows = input::rows(arguments.input.as_deref())?;
    let mut output = Output::open(&arguments.output)?;
    let mut progress = Progress::new("decoding", rows.len());
    let (mut decode, mut decoded) = (None::<(usize, Decode)>, Vec::new());
    for (index, row) in rows.enumerate() {
        let row = row.with_context(|| format!("row {index}"))?;
        let coefficients = Coefficients::from_vec(row).with_context(|| format!("row {index}"))?;
        let max_degree = coefficients.max_degree();
        ensure!(
            max_degree <= LARGEST_DEGREE,
            "row {index}: max degree {max_degree} is above the limit, {LARGEST_DEGREE}"
        );
        ensure!(
            max_degree > 0,
            "row {index}: a single coefficient is a constant function without a maximum"
        );
        let decode = match &mut decode {
            Some((degree, decode)) if *degree == max_degree => decode,
            other => &mut other.insert((max_degree, Decode::new(&arguments, max_degree))).1,
        };
        let modes = decode.modes(&coefficients);
        match output.format() {
            Format::Json => output.json(&Decoded { row: index, max_degree, modes })?,
            Format::Text if arguments.modes == 1 => {
                output.line(&modes[0].place_text())?;
            }
            Format::Text => {
                if index == 0 {
                    output.line("row,rank,latitude,longitude,value")?;
                }
                for (rank, mode) in modes.iter().enumerate() {
                    let (rank, place) = (rank + 1, mode.place_text());
                    output.line(&format!("{index},{rank},{place},{:.9}", mode.value))?;
                }
            }
            Format::Npy => decoded.push(modes),
        }
        progress.add(1);
    }
    if output.format() == Format::Npy {
        write_array(&mut output, &decoded, arguments.modes)?;
    }
    output.finish()
}

/// `[rows, modes, (latitude, longitude, value)]`; rows with fewer modes end in NaN.
fn write_array(output: &mut Output, decoded: &[Vec<Mode>], count: usize) -> anyhow::Result<()> {
    output.start_array(&[decoded.len(), count, 3])?;
    for modes in decoded {
        for rank in 0..count {
            let mode = modes.get(rank).map(|mode| [mode.latitude, mode.longitude, mode.value]);
            output.npy_row(&mode.unwrap_or([f64::NAN; 3]))?;
        }
    }
    Ok(())
}

/// The chosen decoder, prepared for one degree.
struct Decode {
    method: Method,
    modes: usize,
    radius_km: f64,
    exact: Decoder,
    paper: Option<AnchorDecoder>,
}

impl Decode {
    fn new(arguments: &Arguments, max_degree: usize) -> Decode {
        let paper = (arguments.decoder != Method::Continuous).then(|| {
            AnchorDecoder::new(max_degree, Anchors::fibonacci(arguments.anchors.unwrap_or(21_000)))
        });
        Decode {
            method: arguments.decoder,
            modes: arguments.modes,
            radius_km: arguments.radius_km.unwrap_or(0.0),
            exact: Decoder::new(max_degree),
            paper,
        }
    }

    fn modes(&self, coefficients: &Coefficients) -> Vec<Mode> {
        let place = match (&self.paper, self.method) {
            (Some(paper), Method::PaperMode) => paper.mode(coefficients, self.radius_km),
            (Some(paper), _) => paper.kl(coefficients, &self.exact),
            (None, _) => {
                let peaks = self.exact.modes(coefficients, self.modes);
                return peaks.iter().map(|peak| Mode::new(peak.place, peak.value)).collect();
            }
        };
        vec![Mode::new(place, coefficients.value_at(self.exact.basis(), place))]
    }
}
