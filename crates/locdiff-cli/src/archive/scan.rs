//! `locdiff scan`: folders in, a library of places out.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use clap::{Args, ValueEnum};
use locdiff_archive::Moment;
use locdiff_archive::fusion::{FusionOptions, Orbit, Track};
use locdiff_archive::library::{Kind, Known, Library, Scanned, UsedModel};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::context::{Context, Contexts, fuse_outings};
use super::predicting::{self, Predicted};
use super::walking::Found;
use super::{entries, facts, walking};
use crate::asking::{InferenceArguments, OpeningArguments};
use crate::predict::{Asking, GET_A_MODEL, Models, Scene, parse_constraint};
use crate::progress::Progress;
use crate::text::{json_stdout, on_one_line, stderr};
use crate::{FAILED, interruption, memory, refused};

/// Files that are looked up together, and those that are read and recorded together.
const LOOKED_UP: usize = 512;
const RECORDED: usize = 64;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Folders of pictures. Everything below them is scanned, but nothing is changed there
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Where results are stored: one SQLite file, which is created if it does not exist. Run the command again to add new
    /// and changed files
    #[arg(short, long, value_name = "FILE")]
    library: PathBuf,
    /// Which model predicts pictures without a place: a name or a directory, as in `locdiff predict`. Without it, the
    /// model is chosen as by `locdiff predict`
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,
    /// Kind of the pictures, if you know it: only models for this kind are used
    #[arg(long, value_enum, conflicts_with = "model")]
    scene: Option<Scene>,
    /// Only read the metadata of files (place, time, camera), predict nothing
    #[arg(long, conflicts_with_all = ["model", "scene", "track", "within"])]
    no_predict: bool,
    /// A GPX file that was recorded on the way. May be given several times. The library keeps --track, --within and --motion
    /// for these folders until one of them is given again
    #[arg(long, value_name = "FILE")]
    track: Vec<PathBuf>,
    /// Where all these pictures were taken, if you know: a country, `land`, SOUTH,WEST,NORTH,EAST, LAT,LON,RADIUSkm,
    /// or a GeoJSON file of polygons. If given several times, all must hold
    #[arg(short, long, value_name = "AREA", value_parser = parse_area, allow_hyphen_values = true)]
    within: Vec<String>,
    /// How the photographer moved: `travel` unless something else was given before
    #[arg(long, value_enum)]
    motion: Option<Motion>,
    /// Time zone of pictures without one, for files that are read now. GPX tracks are in UTC
    #[arg(long, value_name = "±HH:MM", default_value = "+00:00", value_parser = parse_zone, allow_hyphen_values = true)]
    zone: String,
    /// The summary on stdout as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    opening: OpeningArguments,
    #[command(flatten)]
    inference: InferenceArguments,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Motion {
    /// A person on foot, in vehicles and in airplanes.
    #[default]
    Travel,
    /// The International Space Station.
    Orbit,
}

impl Motion {
    fn options(self) -> FusionOptions {
        match self {
            Motion::Travel => FusionOptions::default(),
            Motion::Orbit => FusionOptions::orbit(Orbit::default()),
        }
    }

    /// Seconds without a picture that end an outing: a night, or a part of an orbit after which nothing is left to say.
    fn gap_s(self) -> f64 {
        match self {
            Motion::Travel => 43_200.0,
            Motion::Orbit => 900.0,
        }
    }
}

/// What the user states about the pictures of some folders, as the library keeps it.
#[derive(Default, Serialize, Deserialize)]
struct Stated {
    tracks: Vec<PathBuf>,
    within: Vec<String>,
    motion: Motion,
}

impl Stated {
    /// None if nothing is stated.
    fn of(arguments: &Arguments) -> anyhow::Result<Option<Stated>> {
        let Arguments { track, within, motion, .. } = arguments;
        if track.is_empty() && within.is_empty() && motion.is_none() {
            return Ok(None);
        }
        let whole = |path: &PathBuf| {
            path.canonicalize().with_context(|| format!("cannot read {}", path.display()))
        };
        let tracks = track.iter().map(whole).collect::<anyhow::Result<_>>()?;
        Ok(Some(Stated { tracks, within: within.clone(), motion: motion.unwrap_or_default() }))
    }

    fn context(&self) -> anyhow::Result<Context> {
        let area = |text: &String| parse_constraint(text).map_err(anyhow::Error::msg);
        Ok(Context {
            tracks: self.tracks.iter().map(|path| track(path)).collect::<anyhow::Result<_>>()?,
            within: self.within.iter().map(area).collect::<anyhow::Result<_>>()?,
            options: self.motion.options(),
            gap_s: self.motion.gap_s(),
        })
    }
}

/// What was stated about all folders of a library.
fn contexts(library: &Library) -> anyhow::Result<Contexts> {
    let stated = library.stated()?;
    let mut words: Vec<&str> = Vec::new();
    let mut contexts = Contexts { all: vec![Stated::default().context()?], folders: Vec::new() };
    for (folder, text) in &stated {
        let number = match words.iter().position(|known| known == text) {
            Some(number) => number,
            None => {
                let context = serde_json::from_str::<Stated>(text)
                    .map_err(anyhow::Error::from)
                    .and_then(|stated| stated.context());
                contexts.all.push(context.with_context(|| {
                    format!(
                        "an earlier scan of {folder} stated something that can't be read now: \
                         scan {folder} with --track, --within or --motion again"
                    )
                })?);
                words.push(text);
                words.len() - 1
            }
        };
        contexts.folders.push((folder.clone(), number + 1));
    }
    Ok(contexts)
}

/// An area that can be read. Files are named by their whole path, so that they are found again from everywhere.
fn parse_area(text: &str) -> Result<String, String> {
    parse_constraint(text)?;
    let is_land = text.trim().eq_ignore_ascii_case("land");
    let whole = Path::new(text.trim()).canonicalize().ok().filter(|path| path.is_file());
    Ok(whole
        .filter(|_| !is_land)
        .and_then(|path| path.to_str().map(str::to_owned))
        .unwrap_or_else(|| text.to_owned()))
}

fn parse_zone(text: &str) -> Result<String, String> {
    let text = text.trim();
    match Moment::from_exif("2000:01:01 00:00:00", None, Some(text)) {
        Some(_) => Ok(text.to_owned()),
        None => Err("write it as +02:00 or -05:30".to_owned()),
    }
}

/// What a scan did, and what the library contains now.
#[derive(Default, Serialize)]
struct Summary {
    /// Files below the folders, and of them those that were read now.
    files: usize,
    read: usize,
    added: usize,
    moved: usize,
    /// Contents that no file has any more.
    missing: usize,
    /// Files and folders that could not be read.
    unreadable: usize,
    /// Distinct pictures in the library, and what is known of them.
    pictures: usize,
    with_gps: usize,
    graphics: usize,
    damaged: usize,
    located: usize,
    /// Pictures that models were asked about now, and those that they located.
    predicted: usize,
    answered: usize,
    /// Pictures whose place other pictures, tracks or areas changed now.
    fused: usize,
    model: Option<String>,
    version: Option<String>,
    seconds: f64,
    read_per_s: f64,
    predicted_per_s: f64,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    memory::keep_for_a_while();
    let began = Instant::now();
    let folders =
        arguments.folders.iter().map(|folder| root(folder)).collect::<Result<Vec<_>, _>>()?;
    let stated = Stated::of(&arguments)?;
    // Before hours of reading: a track that can't be used is reported at once.
    stated.as_ref().map(Stated::context).transpose()?;
    let asking = Asking {
        models: arguments.model.as_slice(),
        scene: arguments.scene,
        // Areas are part of the context, which may change: predictions stay as they are.
        within: &[],
        opening: &arguments.opening,
        inference: &arguments.inference,
    };
    // Before hours of reading: a missing model is reported at once.
    let models = match (!arguments.no_predict).then(|| Models::open(asking)).transpose() {
        Ok(models) => models,
        Err(error) => return Ok(refused(&error.to_string(), error.code())),
    };
    let mut library = Library::open(&arguments.library)
        .with_context(|| format!("cannot open {}", arguments.library.display()))?;
    if let Some(stated) = &stated {
        let words = serde_json::to_string(stated)?;
        folders.iter().try_for_each(|folder| library.state(folder, &words))?;
    }
    let contexts = contexts(&library)?;
    let interrupted = interruption::flag()?;
    let mut summary = Summary::default();
    for folder in &folders {
        read_folder(&mut library, folder, &arguments.zone, &interrupted, &mut summary)?;
    }
    let reading_s = began.elapsed().as_secs_f64();
    let mut model = library.model()?;
    if let Some(models) = &models {
        let used = predicting::identity(models, &arguments.inference)?;
        library.use_model(&used)?;
        let started = Instant::now();
        let Predicted { pictures, answered, without_model } =
            predicting::predict(&mut library, models, &used, &interrupted)?;
        summary.predicted = pictures;
        summary.answered = answered;
        summary.predicted_per_s = pictures as f64 / started.elapsed().as_secs_f64();
        summary.fused = fuse_outings(&mut library, &used, &contexts, &folders, &interrupted)?;
        if without_model > 0 {
            writeln!(
                stderr(),
                "Pictures without a suitable model: {without_model}.\n{GET_A_MODEL}"
            )?;
        }
        model = Some(used);
    }
    count(&library, model.as_ref(), &mut summary)?;
    summary.seconds = began.elapsed().as_secs_f64();
    summary.read_per_s = summary.read as f64 / reading_s;
    print(&summary, &arguments)?;
    Ok(if summary.unreadable > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// A folder's whole path, so that files are found again from everywhere.
fn root(folder: &Path) -> anyhow::Result<String> {
    let shown = folder.display();
    let path = folder.canonicalize().with_context(|| format!("cannot read the folder {shown}"))?;
    ensure!(path.is_dir(), "{shown} is not a folder: name the folder that contains the pictures");
    let text = path.to_str().with_context(|| format!("the path {shown} is not valid UTF-8"))?;
    Ok(text.to_owned())
}

fn track(path: &Path) -> anyhow::Result<Track> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    Track::from_gpx(&text).with_context(|| format!("cannot use {shown}"))
}

/// Reads what is new below a folder.
fn read_folder(
    library: &mut Library,
    folder: &str,
    zone: &str,
    interrupted: &AtomicBool,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    let scan = library.begin_scan(folder)?;
    let mut progress = Progress::new("reading files", None);
    let mut files = walking::pictures(Path::new(folder));
    let mut unreadable = 0;
    let mut complain = |progress: &Progress, text: &str| {
        unreadable += 1;
        progress.line(&format!("locdiff: {text}"));
    };
    loop {
        let met: Vec<Result<Found, String>> = files.by_ref().take(LOOKED_UP).collect();
        if met.is_empty() {
            break;
        }
        let mut found = Vec::new();
        for file in met {
            match file {
                Ok(file) => found.push(file),
                Err(reason) => complain(&progress, &reason),
            }
        }
        let stamps: Vec<_> =
            found.iter().map(|f| (f.name.as_str(), f.size, f.modified_ns)).collect();
        let known = library.known_all(scan, &stamps)?;
        let is_new = |known: &Known| !matches!(known, Known::Unchanged(_));
        let new: Vec<&Found> =
            found.iter().zip(&known).filter(|(_, k)| is_new(k)).map(|(f, _)| f).collect();
        progress.add((found.len() - new.len()) as u64);
        summary.files += found.len();
        for some in new.chunks(RECORDED) {
            if interrupted.load(Ordering::Relaxed) {
                bail!("stopped while files were read; the same command reads the rest");
            }
            let read: Vec<_> = some.par_iter().map(|file| facts::read(file, zone)).collect();
            let mut scanned: Vec<Scanned> = Vec::new();
            for (file, read) in some.iter().zip(read) {
                match read {
                    Ok(read) => scanned.push(read),
                    Err(error) => {
                        complain(&progress, &format!("{}: {error}", on_one_line(&file.name)))
                    }
                }
            }
            library.record(scan, &scanned)?;
            summary.read += scanned.len();
            progress.add(some.len() as u64);
        }
    }
    summary.unreadable += unreadable;
    if unreadable > 0 {
        // What could not be read is not gone.
        let _ = writeln!(
            stderr(),
            "not everything below {folder} could be read: no file counts as missing"
        );
        return Ok(());
    }
    let finished = library.finish_scan(scan)?;
    summary.added += finished.added;
    summary.moved += finished.moved;
    summary.missing = finished.missing;
    Ok(())
}

fn count(
    library: &Library,
    model: Option<&UsedModel>,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    for entry in entries(library, model)? {
        summary.pictures += 1;
        summary.with_gps += usize::from(entry.gps.is_some());
        summary.graphics += usize::from(entry.kind == Kind::Graphic);
        summary.damaged += usize::from(entry.error.is_some());
        summary.located += usize::from(entry.gps.is_none() && entry.place().is_some());
    }
    summary.model = model.map(|model| model.name.clone());
    summary.version = model.map(|model| model.version.clone());
    Ok(())
}

fn print(summary: &Summary, arguments: &Arguments) -> anyhow::Result<()> {
    let Summary { files, read, added, moved, missing, read_per_s, .. } = summary;
    let mut out = stderr();
    writeln!(
        out,
        "{files} files: {read} read ({read_per_s:.0}/s), {added} new, {moved} moved, {missing} missing"
    )?;
    let Summary { pictures, with_gps, graphics, damaged, located, .. } = summary;
    writeln!(
        out,
        "{pictures} pictures: {with_gps} with GPS, {located} located by predictions, {graphics} graphics, {damaged} not readable"
    )?;
    let Summary { predicted, answered, fused, predicted_per_s, .. } = summary;
    if *predicted > 0 {
        writeln!(
            out,
            "{predicted} predicted ({predicted_per_s:.1}/s), {answered} of them with a place"
        )?;
    }
    if *fused > 0 {
        writeln!(out, "{fused} places were computed with other pictures, tracks or areas")?;
    }
    if arguments.json {
        writeln!(json_stdout(), "{}", serde_json::to_string(summary)?)?;
    }
    Ok(())
}
