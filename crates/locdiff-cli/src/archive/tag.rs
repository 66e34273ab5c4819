//! `locdiff tag`: places into XMP sidecars or pictures, and back.

use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use locdiff::photo::ExifFacts;
use locdiff_archive::library::{ContentHash, Decision, Entry, Library, UsedModel};
use locdiff_archive::tags::{
    PlaceTag, TagError, XmpFacts, has_place, is_our_method, recover, sidecar_of, undo,
    write_in_place, write_sidecar,
};
use locdiff_sphere::LatLon;
use serde::Serialize;

use super::{entries, open_library};
use crate::FAILED;
use crate::progress::Progress;

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
    let (written, forgotten) = match arguments.dry_run {
        // Nothing is written, not even into the library.
        true => (0, 0),
        false => recover(&mut library)?,
    };
    if written + forgotten > 0 {
        writeln!(
            stderr(),
            "an earlier run was interrupted: {written} of its writes were done, {forgotten} were not"
        )?;
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
            let target = if arguments.in_place { picture.to_owned() } else { sidecar_of(picture) };
            let force = match existing(library, &target, arguments.in_place)? {
                Existing::Ours(place) if place.distance_km(tag.place) < SAME_KM => {
                    summary.already += 1;
                    continue;
                }
                Existing::Ours(_) => true,
                // Also if the place is only inside of the picture, and a sidecar would hide it.
                Existing::Other if !arguments.force => {
                    summary.with_place += 1;
                    continue;
                }
                _ if entry.gps.is_some() && !arguments.force => {
                    summary.with_place += 1;
                    continue;
                }
                _ => arguments.force,
            };
            let done = match (arguments.dry_run, arguments.in_place) {
                (true, _) => Ok(target.clone()),
                (false, true) => write_in_place(library, picture, entry.hash, &tag, force),
                (false, false) => write_sidecar(library, picture, entry.hash, &tag, force),
            };
            let shown = target.to_string_lossy().into_owned();
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

/// The place that a file has.
enum Existing {
    None,
    /// Written by this program, according to the file itself or to the undo log.
    Ours(LatLon),
    Other,
}

fn existing(library: &Library, target: &Path, in_place: bool) -> anyhow::Result<Existing> {
    // What can't be read will be told when it is written.
    let Ok(bytes) = fs::read(target) else { return Ok(Existing::None) };
    let (place, method) = if in_place {
        let exif = ExifFacts::of(&bytes);
        (exif.gps.and_then(|(lat, lon)| LatLon::new(lat, lon).ok()), exif.gps_method)
    } else {
        let text = String::from_utf8_lossy(&bytes);
        let xmp = XmpFacts::of(&text).unwrap_or_default();
        (xmp.place, xmp.method)
    };
    let logged = || -> anyhow::Result<bool> {
        let tag = library.tag_of(&target.to_string_lossy())?;
        Ok(tag.is_some_and(|tag| tag.hash_after == ContentHash::of(&bytes)))
    };
    Ok(match place {
        // Numbers that make no place, or that the camera calls void, are not replaced either.
        None if in_place && has_place(&bytes).unwrap_or(false) => Existing::Other,
        None => Existing::None,
        Some(place) if method.as_deref().is_some_and(is_our_method) || logged()? => {
            Existing::Ours(place)
        }
        Some(_) => Existing::Other,
    })
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
        writeln!(out, "locdiff: {path}: {reason}")?;
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
        writeln!(stdout(), "{}", serde_json::to_string(summary)?)?;
    } else if summary.dry_run {
        for Written { path, place } in files {
            match place {
                Some(place) => writeln!(
                    stdout(),
                    "{path}: {:.5},{:.5} ± {:.1} km ({})",
                    place.latitude,
                    place.longitude,
                    place.error_km,
                    place.method
                )?,
                None => writeln!(stdout(), "{path}")?,
            }
        }
    }
    Ok(())
}
