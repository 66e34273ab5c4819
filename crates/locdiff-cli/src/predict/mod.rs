//! `locdiff predict`: a picture in, a map of probabilities out.

mod answer;
mod drawing;
mod models;
mod pictures;
mod records;
mod terminal_map;
mod text;

use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use locdiff::locate::NoAnswer;
use locdiff::photo::PhotoError;
use locdiff::tensors::device_by_name;
use locdiff::{CannotOpen, Constraint};
use rayon::prelude::*;

use crate::memory;
use crate::progress::Progress;
use answer::{Answer, Failure, Picture};
use models::Models;
pub(crate) use models::open as open_model;
use records::Records;

/// The command line makes no sense.
pub(crate) const NONSENSE: u8 = 2;
/// No model on this machine is for these pictures.
pub(crate) const NO_MODEL: u8 = 3;
/// Some pictures could not be located.
const SOME_FAILED: u8 = 1;
/// Pictures that are read and encoded together.
const TOGETHER: usize = 8;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Pictures, folders of pictures, patterns such as 'trip/*.jpg', or `-` for stdin
    #[arg(required = true, value_name = "PICTURE")]
    pictures: Vec<String>,
    /// Which model answers: earth-view, geoclip, or geoclip-even. Several may be named. Without it, earth-view
    /// if it takes the picture for a view of the Earth from above, else geoclip if it is installed
    #[arg(short, long, value_name = "NAME")]
    model: Vec<String>,
    /// Where it can only have been: a country, `land`, SOUTH,WEST,NORTH,EAST, LAT,LON,RADIUSkm, or a GeoJSON file
    /// of polygons. Given twice, both must hold. What is left is scaled to 100 %
    #[arg(short, long, value_name = "AREA", value_parser = parse_constraint, allow_hyphen_values = true)]
    within: Vec<Constraint>,
    /// How many candidates to show at most
    #[arg(short = 'k', long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    top: u64,
    /// Draw a map: a .png or .svg file, or for several pictures a folder
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// How the map shows the Earth [default: a globe, or the whole Earth if the answer is vague]
    #[arg(long, value_enum, requires = "plot")]
    projection: Option<drawing::View>,
    /// One JSON object per picture and model
    #[arg(long, group = "format")]
    json: bool,
    /// A GeoJSON FeatureCollection: candidates as points, the 50 % and 90 % regions as polygons
    #[arg(long, group = "format")]
    geojson: bool,
    /// One line per candidate, with a heading
    #[arg(long, group = "format")]
    csv: bool,
    /// For GeoCLIP, ten views of each picture instead of one: ten times the work, slightly better
    #[arg(long)]
    ten_crop: bool,
    /// The small map in the terminal
    #[arg(long, value_enum, default_value_t = When::Auto, value_name = "WHEN")]
    map: When,
    /// Where to compute: cpu, cuda:N, wgpu or metal, as far as this program was built for them
    #[arg(long, default_value = "cpu")]
    device: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// If stdout is a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

fn parse_constraint(text: &str) -> Result<Constraint, String> {
    text.parse().map_err(|error: locdiff::geography::InvalidConstraint| error.to_string())
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    memory::keep_for_a_while();
    let plot = arguments.plot.as_deref();
    let pictures = pictures::find(&arguments.pictures)?;
    if let Some(Err(error)) = plot.map(|plot| drawing::check_destination(plot, &pictures)) {
        return Ok(refused(&error.to_string(), NONSENSE));
    }
    let device = match device_by_name(&arguments.device) {
        Ok(device) => device,
        Err(error) => return Ok(refused(&error.to_string(), NONSENSE)),
    };
    let models = match Models::open(&arguments, &device) {
        Ok(models) => models,
        Err(error @ CannotOpen::Unknown(_)) => return Ok(refused(&error.to_string(), NONSENSE)),
        Err(error @ CannotOpen::Missing { .. }) => {
            return Ok(refused(&error.to_string(), NO_MODEL));
        }
        Err(error) => return Err(error.into()),
    };
    let mut records = Records::new(&arguments, stdout().is_terminal());
    let mut progress = Progress::new("pictures", Some(pictures.len() as u64));
    let (mut answered, mut failures, mut without_model) = (0, 0, 0);
    for batch in pictures.chunks(TOGETHER) {
        let answers = locate(batch, &models, &arguments);
        for answer in answers {
            match answer {
                Ok(answer) => {
                    answered += 1;
                    records.answer(&answer)?;
                    let drawn = plot.map(|plot| drawing::draw(&answer, plot, &arguments));
                    if let Some(Err(error)) = drawn {
                        failures += 1;
                        let _ = writeln!(stderr(), "locdiff: {}: {error:#}", answer.name);
                    }
                }
                Err(failure) => {
                    failures += 1;
                    without_model += usize::from(failure.no_model);
                    let _ = writeln!(stderr(), "locdiff: {}: {}", failure.name, failure.reason);
                    records.failure(&failure)?;
                }
            }
        }
        // A person who reads along needs no bar.
        if !stdout().is_terminal() {
            progress.add(batch.len() as u64);
        }
    }
    records.finish()?;
    if without_model > 0 {
        let _ = writeln!(stderr(), "\n{}", models::GET_GEOCLIP);
    }
    Ok(match failures {
        0 => ExitCode::SUCCESS,
        _ if answered == 0 && without_model == failures => ExitCode::from(NO_MODEL),
        _ => ExitCode::from(SOME_FAILED),
    })
}

/// Says why there is no answer, and with which code the program ends.
pub(crate) fn refused(reason: &str, code: u8) -> ExitCode {
    // Nobody may be listening there.
    let _ = writeln!(stderr(), "locdiff: {reason}");
    ExitCode::from(code)
}

/// What each model says of each picture, picture by picture.
fn locate<'a>(
    batch: &'a [Picture],
    models: &Models<'_>,
    arguments: &Arguments,
) -> Vec<Result<Answer<'a>, Failure>> {
    let (mut photos, mut rest) = (Vec::new(), Vec::new());
    for read in batch.par_iter().map(Picture::read).collect::<Vec<_>>() {
        rest.push(read.map(|(photo, gps)| {
            photos.push(photo);
            gps
        }));
    }
    let mut estimates = models.locate(&photos).into_iter();
    let mut jobs = Vec::new();
    for (picture, read) in batch.iter().zip(rest) {
        match read {
            Err(error) => {
                jobs.push((picture, Err(NoAnswer { reason: reason(&error), no_model: false })))
            }
            Ok(gps) => {
                for estimate in estimates.next().expect("answers for each photograph") {
                    jobs.push((picture, estimate.map(|(estimate, why)| (estimate, why, gps))));
                }
            }
        }
    }
    // Surveys are work for one thread each.
    let answers = jobs.into_par_iter().map(|(picture, job)| {
        let name = picture.name();
        let failed = |NoAnswer { reason, no_model }: NoAnswer| Failure {
            name: name.to_owned(),
            reason,
            no_model,
        };
        let (mut estimate, because, gps) = job.map_err(failed)?;
        for constraint in &arguments.within {
            estimate = estimate.restricted_to(constraint).map_err(|error| {
                let reason = format!("within {constraint}: {error}");
                failed(NoAnswer { reason, no_model: false })
            })?;
        }
        Ok(Answer::new(name, estimate, gps, arguments.top as usize, because))
    });
    answers.collect()
}

/// Why a picture can't be read; its name stands before that already.
fn reason(error: &PhotoError) -> String {
    match error {
        PhotoError::Unreadable { source, .. } => source.to_string(),
        error => error.to_string(),
    }
}

/// Whether a path names a folder, existing or not.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR)
}
