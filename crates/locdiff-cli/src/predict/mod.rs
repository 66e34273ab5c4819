//! `locdiff predict`: a picture in, a map of probabilities out.

mod answer;
mod drawing;
mod pictures;
mod records;
mod terminal_map;
mod text;

use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use burn::tensor::Device;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use locdiff::{
    CannotOpen, Constraint, Geolocator, ModelHome, OpenOptions, PhotoError, device_by_name,
    installed_models,
};
use rayon::prelude::*;

use crate::memory;
use crate::progress::Progress;
use answer::{Answer, Failure, Picture};
use records::Records;

/// The command line makes no sense.
const NONSENSE: u8 = 2;
/// No model on this machine is for these pictures.
const NO_MODEL: u8 = 3;
/// Some pictures could not be located.
const SOME_FAILED: u8 = 1;
/// Pictures that are read and encoded together.
const TOGETHER: usize = 8;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Pictures, folders of pictures, patterns such as 'trip/*.jpg', or `-` for stdin
    #[arg(required = true, value_name = "PICTURE")]
    pictures: Vec<String>,
    /// Which model answers: geoclip, or geoclip-even. Several may be named. Without it, the first that is
    /// installed
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
    /// Ten views of each picture instead of one: ten times the work, slightly better
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
    text.parse().map_err(|error: locdiff::InvalidConstraint| error.to_string())
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
    let Some((models, because)) = models(&arguments)? else {
        return Ok(refused(no_model(), NO_MODEL));
    };
    let mut locators = Vec::new();
    for name in &models {
        match open(name, &device, &arguments) {
            Ok(locator) => locators.push(locator),
            Err(error @ CannotOpen::Unknown(_)) => {
                return Ok(refused(&error.to_string(), NONSENSE));
            }
            Err(error @ CannotOpen::Missing { .. }) => {
                return Ok(refused(&error.to_string(), NO_MODEL));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let mut records = Records::new(&arguments, stdout().is_terminal());
    let mut progress = Progress::new("pictures", Some(pictures.len() as u64));
    let mut failures = 0;
    for batch in pictures.chunks(TOGETHER) {
        let answers = locate(batch, &locators, &arguments, because);
        for answer in answers {
            match answer {
                Ok(answer) => {
                    records.answer(&answer)?;
                    let drawn = plot.map(|plot| drawing::draw(&answer, plot, &arguments));
                    if let Some(Err(error)) = drawn {
                        failures += 1;
                        let _ = writeln!(stderr(), "locdiff: {}: {error:#}", answer.name);
                    }
                }
                Err(failure) => {
                    failures += 1;
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
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::from(SOME_FAILED) })
}

/// The names of models to ask, and why these; `None` if none is installed.
fn models(arguments: &Arguments) -> anyhow::Result<Option<(Vec<String>, &'static str)>> {
    if !arguments.model.is_empty() {
        let mut names = arguments.model.clone();
        // Once each, in the order given.
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        return Ok(Some((names, "it was asked for by name")));
    }
    let installed = installed_models(&ModelHome::from_env()?);
    let first = installed.first().map(|name| vec![(*name).to_owned()]);
    Ok(first.map(|names| (names, "it is the one installed for photographs from the ground")))
}

fn no_model() -> &'static str {
    "no suitable model is installed\n\n\
     For photographs from the ground, GeoCLIP (1.7 GB, MIT) can be had with\n\n    \
     locdiff model fetch geoclip\n\n\
     `locdiff doctor` says what is on this machine and what is missing."
}

/// Says why there is no answer, and with which code the program ends.
fn refused(reason: &str, code: u8) -> ExitCode {
    // Nobody may be listening there.
    let _ = writeln!(stderr(), "locdiff: {reason}");
    ExitCode::from(code)
}

fn open(name: &str, device: &Device, arguments: &Arguments) -> Result<Geolocator, CannotOpen> {
    let options = OpenOptions {
        device: device.clone(),
        ten_crop: arguments.ten_crop,
        ..OpenOptions::default()
    };
    let template = "{msg} {wide_bar} {pos}/{len} {eta}";
    let bar = ProgressBar::hidden().with_message(format!("{name}: encoding places, this once"));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let opened = Geolocator::open_with(name, &options, &mut |done, total| {
        if bar.is_hidden() {
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    opened
}

/// What each model says of each picture, picture by picture.
fn locate<'a>(
    batch: &'a [Picture],
    locators: &'a [Geolocator],
    arguments: &Arguments,
    because: &'static str,
) -> Vec<Result<Answer<'a>, Failure>> {
    let read: Vec<_> = batch.par_iter().map(Picture::read).collect();
    let photos: Vec<_> = read.iter().flatten().map(|(photo, _)| photo.clone()).collect();
    let mut estimates: Vec<_> =
        locators.iter().map(|locator| locator.locate_all(&photos).into_iter()).collect();
    let mut jobs = Vec::new();
    for (picture, read) in batch.iter().zip(read) {
        match read {
            Err(error) => jobs.push((picture, Err(reason(&error)))),
            Ok((_, gps)) => {
                for estimates in &mut estimates {
                    let estimate = estimates.next().expect("an answer for each photograph");
                    let estimate = estimate.map_err(|reason| reason.to_string());
                    jobs.push((picture, estimate.map(|estimate| (estimate, gps))));
                }
            }
        }
    }
    // Surveys are work for one thread each.
    jobs.into_par_iter()
        .map(|(picture, job)| {
            let name = picture.name();
            let failed = |reason: String| Failure { name: name.to_owned(), reason };
            let (mut estimate, gps) = job.map_err(failed)?;
            for constraint in &arguments.within {
                estimate = estimate
                    .restricted_to(constraint)
                    .map_err(|error| failed(format!("within {constraint}: {error}")))?;
            }
            Ok(Answer::new(name, estimate, gps, arguments.top as usize, because))
        })
        .collect()
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
