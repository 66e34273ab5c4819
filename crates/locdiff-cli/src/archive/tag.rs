//! `locdiff tag`: places into XMP sidecars or pictures, and back.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use locdiff::photo::ExifFacts;
use locdiff_archive::library::{ContentHash, Decision, Entry, Library, UsedModel};
use locdiff_archive::tags::{
    PlaceTag, Recovered, Replace, TagError, recover, sidecar_to_write, undo, write_in_place,
    write_sidecar,
};
use locdiff_sphere::LatLon;
use serde::Serialize;

use super::facts::claims;
use super::{entries, open_library};
use crate::FAILED;
use crate::progress::Progress;
use crate::text::{json_stdout, on_one_line, stderr};

/// The same place to what is written, in km.
const SAME_KM: f64 = 0.002;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The library that `locdiff scan` made
    library: PathBuf,
    /// Places that were accepted or corrected in `locdiff review`. This is the default
    #[arg(long, conflicts_with = "confidence")]
    accepted: bool,
    /// Also write places that were not reviewed, if the best candidate has at least this probability (or score), 0 to 1
    #[arg(long, value_name = "P", value_parser = parse_confidence)]
    confidence: Option<f64>,
    /// Write into JPEG and PNG files themselves, after a copy of each (`name.jpg_original`). Without it, into sidecars
    /// (`name.jpg.xmp`)
    #[arg(long)]
    in_place: bool,
    /// Only list what would be written
    #[arg(long)]
    dry_run: bool,
    /// Restore all files that were written, byte for byte
    #[arg(long, conflicts_with_all = ["accepted", "confidence", "in_place", "force", "precision"])]
    undo: bool,
    /// Replace places that cameras or other programs wrote
    #[arg(long)]
    force: bool,
    /// Round places to a grid of this many km
    #[arg(long, value_name = "KM", value_parser = parse_precision)]
    precision: Option<f64>,
    /// Print the summary on stdout as JSON
    #[arg(long)]
    json: bool,
}

fn parse_confidence(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "not a number from 0 to 1".to_owned())
}

fn parse_precision(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|km: &f64| *km > 0.0 && *km <= 5000.0);
    number
        .ok_or_else(|| "not a number of kilometers that is more than 0 and at most 5000".to_owned())
}

/// What was done, or would be.
#[derive(Default, Serialize)]
struct Summary {
    dry_run: bool,
    undo: bool,
    /// Files that were written, or would be; with `undo`, restored.
    files: Vec<Written>,
    /// Files that have this place already, from an earlier run.
    already: usize,
    /// Pictures with a place of a camera or another program: left alone.
    with_place: usize,
    failures: Vec<Failed>,
}

#[derive(Serialize)]
struct Written {
    path: String,
    #[serde(flatten)]
    place: Option<Place>,
}

#[derive(Serialize)]
struct Place {
    latitude: f64,
    longitude: f64,
    error_km: f64,
    method: String,
}

#[derive(Serialize)]
struct Failed {
    path: String,
    reason: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut library = open_library(&arguments.library)?;
    // Nothing is written in a dry run, not even into the library.
    let _lock = match arguments.dry_run {
        true => None,
        false => Some(library.lock_for_tags()?),
    };
    if !arguments.dry_run {
        let recovered = recover(&mut library)?;
        let Recovered { written, forgotten, unsettled } = recovered;
        if recovered != Recovered::default() {
            writeln!(
                stderr(),
                "an earlier run was interrupted: {written} of its writes were done, {forgotten} were not, \
                 {unsettled} are not known, because their files can't be read now"
            )?;
        }
    }
    let mut summary =
        Summary { dry_run: arguments.dry_run, undo: arguments.undo, ..Summary::default() };
    match arguments.undo {
        true => undo_all(&mut library, arguments, &mut summary)?,
        false => write_all(&mut library, arguments, &mut summary)?,
    }
    print(&summary, arguments)?;
    Ok(if summary.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn undo_all(
    library: &mut Library,
    arguments: &Arguments,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    let tags = library.written_tags()?;
    let mut progress = Progress::new("restoring files", Some(tags.len() as u64));
    for tag in tags {
        let undone = if arguments.dry_run { Ok(()) } else { undo(library, &tag) };
        summary.note(tag.path, None, undone)?;
        progress.add(1);
    }
    Ok(())
}

fn write_all(
    library: &mut Library,
    arguments: &Arguments,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    let model = library.model()?;
    if let (Some(_), Some(UsedModel { name, calibrated: false, .. })) =
        (arguments.confidence, &model)
    {
        writeln!(
            stderr(),
            "{name} is not calibrated: --confidence compares scores, not probabilities"
        )?;
    }
    let chosen: Vec<(Entry, PlaceTag)> = entries(library, model.as_ref())?
        .into_iter()
        .filter_map(|entry| tag_of(&entry, arguments).map(|tag| (entry, tag)))
        .collect();
    let mut progress = Progress::new("writing places", Some(chosen.len() as u64));
    for (entry, tag) in chosen {
        for path in library.paths(entry.hash)? {
            let picture = Path::new(&path);
            let target =
                if arguments.in_place { picture.to_owned() } else { sidecar_to_write(picture) };
            let shown = target.to_string_lossy().into_owned();
            let existing = match existing(picture, entry.hash, &target) {
                Ok(existing) => existing,
                Err(error) => {
                    summary.note(shown, None, Err(error))?;
                    continue;
                }
            };
            let replace = match existing {
                Existing::Ours(place) if place.distance_km(tag.place) < SAME_KM => {
                    summary.already += 1;
                    continue;
                }
                _ if arguments.force => Replace::Everything,
                Existing::Other => {
                    summary.with_place += 1;
                    continue;
                }
                // Copies may have other sidecars.
                _ if entry.gps.is_some() => {
                    summary.with_place += 1;
                    continue;
                }
                Existing::Ours(_) => Replace::Own,
                Existing::None => Replace::Nothing,
            };
            let done = match (arguments.dry_run, arguments.in_place) {
                (true, _) => Ok(target),
                (false, true) => write_in_place(library, picture, entry.hash, &tag, replace),
                (false, false) => write_sidecar(library, picture, entry.hash, &tag, replace),
            };
            summary.note(shown, Some(&tag), done.map(|_| ()))?;
        }
        progress.add(1);
    }
    Ok(())
}

/// What is to be written about a picture, if anything.
fn tag_of(entry: &Entry, arguments: &Arguments) -> Option<PlaceTag> {
    let tag = match (entry.decision, &entry.prediction) {
        (Some(Decision::Rejected), _) => return None,
        (Some(Decision::Moved(pin)), _) => PlaceTag::chosen(pin),
        (decision, Some(prediction)) => {
            let sure = arguments.confidence.is_some_and(|least| prediction.confidence >= least);
            let place = prediction.place.filter(|_| decision.is_some() || sure)?;
            let named = if prediction.fused { PlaceTag::fused } else { PlaceTag::estimated };
            named(place, prediction.radius_68_km, &prediction.model, &prediction.version)
        }
        (_, None) => return None,
    };
    Some(arguments.precision.map_or(tag.clone(), |km| tag.coarsened(km)))
}

/// The place that a picture has already.
enum Existing {
    None,
    /// In the file that is to be written, by this program.
    Ours(LatLon),
    /// Of a camera or another program, in the picture or beside it.
    Other,
}

/// Looks at the picture and its sidecars as they are now, not as they were scanned.
fn existing(picture: &Path, content: ContentHash, target: &Path) -> Result<Existing, TagError> {
    let bytes =
        fs::read(picture).map_err(|source| TagError::File { path: picture.to_owned(), source })?;
    if ContentHash::of(&bytes) != content {
        return Err(TagError::Changed(picture.to_owned()));
    }
    let claims = claims(picture, &bytes, &ExifFacts::of(&bytes));
    if claims.iter().any(|claim| claim.has_coordinates && !claim.is_ours()) {
        return Ok(Existing::Other);
    }
    let mut own = claims.iter().filter(|c| c.sidecar.as_deref().unwrap_or(picture) == target);
    Ok(own.find_map(|claim| claim.place).map_or(Existing::None, Existing::Ours))
}

impl Summary {
    /// Keeps what became of a file. Only a library that fails stops everything.
    fn note(
        &mut self,
        path: String,
        tag: Option<&PlaceTag>,
        done: Result<(), TagError>,
    ) -> anyhow::Result<()> {
        let place = tag.map(|tag| Place {
            latitude: tag.place.latitude(),
            longitude: tag.place.longitude(),
            error_km: tag.error_km,
            method: tag.method.clone(),
        });
        match done {
            Ok(()) => self.files.push(Written { path, place }),
            Err(TagError::HasPlace) => self.with_place += 1,
            Err(TagError::Library(error)) => return Err(error.into()),
            Err(error) => self.failures.push(Failed { path, reason: error.to_string() }),
        }
        Ok(())
    }
}

fn print(summary: &Summary, arguments: &Arguments) -> anyhow::Result<()> {
    let mut out = stderr();
    for Failed { path, reason } in &summary.failures {
        writeln!(out, "locdiff: {}: {reason}", on_one_line(path))?;
    }
    let Summary { files, already, with_place, failures, .. } = summary;
    let what = match (summary.undo, summary.dry_run) {
        (true, true) => "would be restored",
        (true, false) => "restored",
        (false, true) => "would be written",
        (false, false) => "written",
    };
    writeln!(
        out,
        "{} files {what}, {already} have this place already, {with_place} keep another place, {} failed",
        files.len(),
        failures.len()
    )?;
    if arguments.json {
        writeln!(json_stdout(), "{}", serde_json::to_string(summary)?)?;
    } else if summary.dry_run {
        for Written { path, place } in files {
            match place {
                Some(place) => writeln!(
                    crate::text::stdout(),
                    "{}: {:.5},{:.5} ± {:.1} km ({})",
                    on_one_line(path),
                    place.latitude,
                    place.longitude,
                    place.error_km,
                    place.method
                )?,
                None => writeln!(crate::text::stdout(), "{}", on_one_line(path))?,
            }
        }
    }
    Ok(())
}
