//! `locdiff predict`: a picture in, a map of probabilities out.

mod answer;
mod drawing;
mod models;
mod pictures;
mod records;
mod report;
mod tally;
mod terminal_map;
mod text;

use std::ffi::OsString;
use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use locdiff::Constraint;
use locdiff::geography::{InvalidConstraint, place_name};
use locdiff::locate::{AnswerOptions, Answered, ExifPlace, ImageFacts, NoAnswer};
use locdiff_sphere::{LatLon, shown};
use rayon::prelude::*;

use crate::asking::{InferenceArguments, OpeningArguments};
use crate::progress::{Progress, Waiting};
use crate::text::stderr;
use crate::{FAILED, NO_MODEL, NONSENSE, memory, refused, with_causes};
use answer::{Failure, Picture};
pub use drawing::{Colors, View, answer_map};
pub(crate) use models::{Asking, GET_A_MODEL, Models};
pub(crate) use pictures::{is_hidden, is_picture};
use records::Records;
use report::Report;
use tally::Tally;

/// Pictures that are read and encoded together.
const TOGETHER: usize = 8;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Pictures, folders of pictures, patterns such as 'trip/*.jpg', or `-` for stdin
    #[arg(required = true, value_name = "PICTURE")]
    pictures: Vec<OsString>,
    /// In folders, also files and folders whose names begin with a dot
    #[arg(long)]
    hidden: bool,
    /// Which model answers: earth-view, geoclip, geoclip-even, plonk-yfcc, plonk-inaturalist, plonk-osv5m, or the directory of a
    /// model such as runs/first/model. May be given several times. Default: earth-view if it accepts the picture as a
    /// view of the Earth from above, else the best installed model for photographs from the ground
    #[arg(short, long, value_name = "NAME")]
    model: Vec<String>,
    /// Kind of the pictures, if you know it: only models for this kind are used
    #[arg(long, value_enum, conflicts_with = "model")]
    scene: Option<Scene>,
    /// Restrict answers to an area: a country, `land`, SOUTH,WEST,NORTH,EAST, LAT,LON,RADIUSkm, or a GeoJSON file
    /// of polygons. If given several times, all must hold. The rest of the density is removed
    #[arg(short, long, value_name = "AREA", value_parser = parse_constraint, allow_hyphen_values = true)]
    within: Vec<Constraint>,
    /// How many candidates to show at most
    #[arg(short = 'k', long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    top: u64,
    /// Draw a map: a .png or .svg file, or for several pictures a folder (a name that ends in a slash), in which the maps are
    /// ordered as the pictures are
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// How the map shows the Earth [default: a globe, or the whole Earth if the answer is vague]
    #[arg(long, value_enum, requires = "plot")]
    projection: Option<drawing::View>,
    /// Radius of the close-up in a corner of the map; 0 draws none [default: fits the answer, if the answer is precise]
    #[arg(long, value_name = "KM", requires = "plot", value_parser = parse_zoom)]
    zoom: Option<f64>,
    /// Colors of the map
    #[arg(long, value_enum, default_value_t = drawing::Colors::Dark)]
    theme: drawing::Colors,
    /// Write a report about all pictures: one .html file with thumbnails and a map
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Replace maps and reports that exist already
    #[arg(long)]
    overwrite: bool,
    /// One JSON object per picture and model
    #[arg(long, group = "format")]
    json: bool,
    /// A GeoJSON FeatureCollection: candidates as points, the 50 % and 90 % regions and the picture's footprint, if
    /// there is one, as polygons
    #[arg(long, group = "format")]
    geojson: bool,
    /// One line per candidate, with a heading
    #[arg(long, group = "format")]
    csv: bool,
    /// With --json: the whole density, which docs/density-record.md describes
    #[arg(long, requires = "json")]
    density: bool,
    /// With --json: this many places drawn from the density
    #[arg(long, value_name = "N", default_value_t = 0, requires = "json")]
    draws: usize,
    /// With --json: this many steps of the denoising, from noise to answer, if the model is a diffusion
    #[arg(long, value_name = "N", requires = "json", value_parser = clap::value_parser!(u64).range(2..=1000))]
    frames: Option<u64>,
    /// When to draw the small map in the terminal
    #[arg(long, value_enum, default_value_t = When::Auto, value_name = "WHEN")]
    map: When,
    #[command(flatten)]
    opening: OpeningArguments,
    #[command(flatten)]
    inference: InferenceArguments,
}

impl Arguments {
    fn asking(&self) -> Asking<'_> {
        Asking {
            models: &self.model,
            scene: self.scene,
            within: &self.within,
            opening: &self.opening,
            inference: &self.inference,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scene {
    /// A photograph from the ground.
    Ground,
    /// A view of the Earth from above.
    Orbit,
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

fn parse_zoom(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|km: &f64| *km == 0.0 || (5.0..=10_000.0).contains(km));
    number.ok_or_else(|| "kilometers: 0, or from 5 to 10000".to_owned())
}

pub(crate) fn parse_constraint(text: &str) -> Result<Constraint, String> {
    text.parse().map_err(|error: InvalidConstraint| error.to_string())
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    memory::keep_for_a_while();
    let found = pictures::find(&arguments.pictures, arguments.hidden)?;
    let pictures = &found.pictures;
    if let Err(error) = drawing::check_destinations(pictures, &arguments) {
        return Ok(refused(&error.to_string(), NONSENSE));
    }
    for reason in &found.unreadable {
        let _ = writeln!(stderr(), "locdiff: cannot read {reason}");
    }
    // The first name takes a third of a second: meanwhile the model is opened and asked.
    std::thread::spawn(|| LatLon::new(0.0, 0.0).map(place_name));
    let waiting = Waiting::new("opening the model");
    let models = match Models::open(arguments.asking()) {
        Ok(models) => models,
        Err(error) => return Ok(refused(&error.to_string(), error.code())),
    };
    drop(waiting);
    let mut records = Records::new(&arguments, stdout().is_terminal());
    let mut report = arguments.html.as_deref().map(|_| Report::default());
    let mut progress = Progress::new("pictures", Some(pictures.len() as u64));
    let mut tally = Tally::new(&found);
    for batch in pictures.chunks(TOGETHER) {
        for Outcome { picture, answer, thumbnail } in locate(batch, &models, &arguments) {
            tally.count(&answer);
            match answer {
                Ok(mut answer) => {
                    match drawing::draw(&answer, picture, &arguments) {
                        Ok(map) => answer.record.map = map,
                        Err(error) => {
                            tally.maps_failed += 1;
                            let reason = with_causes(error.as_ref());
                            let _ =
                                writeln!(stderr(), "locdiff: {}: {reason}", shown(answer.name()));
                        }
                    }
                    records.answer(&answer)?;
                    if let Some(report) = &mut report {
                        report.add(&answer, thumbnail.as_deref());
                    }
                }
                Err(failure) => {
                    let _ =
                        writeln!(stderr(), "locdiff: {}: {}", shown(&failure.name), failure.reason);
                    records.failure(&failure)?;
                    if let Some(report) = &mut report {
                        report.add_failure(&failure, thumbnail.as_deref());
                    }
                }
            }
        }
        // A person who reads along needs no bar.
        if !stdout().is_terminal() {
            progress.add(batch.len() as u64);
        }
    }
    records.finish()?;
    drop(progress);
    if let (Some(report), Some(path)) = (report, &arguments.html) {
        report.write(path, &tally, arguments.theme)?;
        let _ = writeln!(stderr(), "the report is in {}", path.display());
    }
    tally.print(&mut stderr())?;
    if tally.without_model > 0 {
        let _ = writeln!(stderr(), "\n{GET_A_MODEL}");
    }
    Ok(match tally.failures() {
        0 => ExitCode::SUCCESS,
        failures if tally.located == 0 && tally.without_model == failures => {
            ExitCode::from(NO_MODEL)
        }
        _ => ExitCode::from(FAILED),
    })
}

/// What one model makes of one picture.
struct Outcome<'a> {
    picture: &'a Picture,
    answer: Result<Answered, Failure>,
    /// A small JPEG, for a report.
    thumbnail: Option<Vec<u8>>,
}

/// What each model makes of each picture, picture by picture.
fn locate<'a>(
    batch: &'a [Picture],
    models: &Models<'_>,
    arguments: &Arguments,
) -> Vec<Outcome<'a>> {
    let mut read: Vec<_> = batch.par_iter().map(Picture::read).collect();
    // Pictures are large: they are lent out, not copied.
    let blank = || locdiff::Photo::from_rgb(1, 1, vec![0; 3]).expect("one pixel");
    let photos: Vec<locdiff::Photo> = read
        .iter_mut()
        .filter_map(|read| Some(std::mem::replace(&mut read.as_mut().ok()?.photo, blank())))
        .collect();
    let mut located = models.locate(&photos).into_iter();
    let mut photos = photos.iter();
    let mut jobs = Vec::new();
    for (picture, read) in batch.iter().zip(&read) {
        match read {
            Err(error) => {
                let facts = ImageFacts::named(picture.name());
                let none = NoAnswer { reason: error.reason(), no_model: false };
                jobs.push((picture, facts, None, None, Err(none)));
            }
            Ok(read) => {
                let photo = photos.next().expect("a photograph for each picture that was read");
                for (located, model) in located.next().expect("answers for each photograph") {
                    let job = located.map(|(estimate, why)| (estimate, why, model));
                    jobs.push((picture, read.facts.clone(), read.gps, Some(photo), job));
                }
            }
        }
    }
    let options = AnswerOptions {
        top: arguments.top as usize,
        density: arguments.density,
        draws: arguments.draws,
    };
    // Surveys are work for one thread each.
    let outcomes = jobs.into_par_iter().map(|(picture, facts, gps, photo, job)| {
        let failed = |NoAnswer { reason, no_model }: NoAnswer| Failure {
            name: picture.name().to_owned(),
            facts: Box::new(facts.clone()),
            exif: gps.map(|gps| Box::new(ExifPlace::new(gps, None))),
            reason,
            no_model,
        };
        let answer = job.map_err(failed).map(|(estimate, because, model)| {
            let mut answered = Answered::new(estimate, because, facts.clone(), gps, &options);
            if let (Some(photo), Some(model), Some(frames)) = (photo, model, arguments.frames)
                && model.can_denoise()
            {
                answered.record.frames = Some(model.denoising(photo, frames as usize));
            }
            answered
        });
        let thumbnail = photo.filter(|_| arguments.html.is_some()).and_then(report::thumbnail);
        Outcome { picture, answer, thumbnail }
    });
    outcomes.collect()
}

/// Whether a path names a folder, existing or not.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR)
}
