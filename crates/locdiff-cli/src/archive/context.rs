//! What the other pictures of an outing, a track and the user's words tell about a picture.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use locdiff::Constraint;
use locdiff::locate::Decode;
use locdiff_archive::fusion::{
    Fused, FusionOptions, Influence, Sighting, Source, Track, fuse, outings,
};
use locdiff_archive::library::{
    ContentHash, Decision, Entry, Kind, Library, Prediction, UsedModel, is_below,
};
use locdiff_sphere::{Density, LatLon};
use rayon::prelude::*;

use super::{entries, file_name, predicting};
use crate::progress::Progress;

/// Outings that are computed at the same time.
const TOGETHER: usize = 16;
/// Places of cameras and pins are right to about this, per axis.
const GPS_KM: f64 = 0.02;
const PIN_KM: f64 = 0.1;
/// Points of a track are connected over so many seconds.
const TRACK_GAP_S: f64 = 900.0;
/// A picture that has no density of its own is located by its neighbors if nine tenths lie within this radius.
const VAGUE_KM: f64 = 1000.0;

/// What is known beside the pictures.
pub(super) struct Context {
    pub(super) tracks: Vec<Track>,
    pub(super) within: Vec<Constraint>,
    pub(super) options: FusionOptions,
    /// A longer time between two pictures ends an outing.
    pub(super) gap_s: f64,
}

/// The contexts of folders of which the user stated something.
pub(super) struct Contexts {
    /// The first is that of all other folders.
    pub(super) all: Vec<Context>,
    /// Numbers of contexts, the innermost folders first. Folders of which the same was stated share one, and their pictures
    /// are fused together.
    pub(super) folders: Vec<(String, usize)>,
}

impl Contexts {
    fn number_of(&self, path: &str) -> usize {
        let inside = self.folders.iter().find(|(folder, _)| is_below(path, folder));
        inside.map_or(0, |(_, number)| *number)
    }
}

/// One outing, ready to be fused.
struct Outing {
    /// The pictures that have no known place, with the numbers of their sightings.
    pictures: Vec<Pictured>,
    sightings: Vec<Sighting>,
    /// What each sighting is called, and its time.
    labels: Vec<String>,
    inputs: ContentHash,
}

struct Pictured {
    hash: ContentHash,
    sighting: usize,
    /// Whether the model returned a density for it.
    answered: bool,
    /// How the user's words changed it.
    stated: Vec<String>,
}

/// Fuses the outings of pictures below some folders whose inputs changed. Returns how many pictures have a new answer.
pub(super) fn fuse_outings(
    library: &mut Library,
    model: &UsedModel,
    contexts: &Contexts,
    folders: &[String],
    interrupted: &AtomicBool,
) -> anyhow::Result<usize> {
    let all = entries(library, Some(model))?;
    let below = |path: &str| folders.iter().any(|folder| is_below(path, folder));
    let mut photos: Vec<Vec<&Entry>> = contexts.all.iter().map(|_| Vec::new()).collect();
    for entry in all.iter().filter(|entry| entry.kind == Kind::Photo && below(&entry.path)) {
        photos[contexts.number_of(&entry.path)].push(entry);
    }
    let mut moved = 0;
    let used = contexts.all.iter().zip(photos).filter(|(_, photos)| !photos.is_empty());
    for (context, photos) in used {
        moved += fuse_photos(library, model, context, photos, interrupted)?;
    }
    Ok(moved)
}

fn fuse_photos(
    library: &mut Library,
    model: &UsedModel,
    context: &Context,
    photos: Vec<&Entry>,
    interrupted: &AtomicBool,
) -> anyhow::Result<usize> {
    let (mut timed, untimed): (Vec<&Entry>, Vec<&Entry>) =
        photos.into_iter().partition(|entry| entry.time.is_some());
    let time_of = |entry: &Entry| entry.time.map_or(0.0, |time| time.unix_s());
    timed.sort_by(|a, b| time_of(a).total_cmp(&time_of(b)).then_with(|| a.path.cmp(&b.path)));
    let times: Vec<f64> = timed.iter().map(|entry| time_of(entry)).collect();
    let ranges = outings(&times, context.gap_s);
    let groups = ranges.iter().map(|range| &timed[range.clone()]).chain(untimed.chunks(1));
    let with_density = library.with_density(model)?;
    let before = library.fused_from(model)?;
    // Digests first: most outings of a second scan need nothing else.
    let changed: Vec<(&[&Entry], ContentHash)> = groups
        .map(|group| (group, inputs_of(group, context, |hash| with_density.contains(&hash))))
        .filter(|(group, inputs)| {
            let mut asked = group.iter().filter(|entry| known_place(entry).is_none()).peekable();
            // A picture alone has no context, unless it had some before.
            let alone = group.len() == 1 && context.within.is_empty() && context.tracks.is_empty();
            asked.peek().is_some()
                && asked.any(|entry| match before.get(&entry.hash) {
                    Some(old) => old != inputs,
                    None => !alone,
                })
        })
        .collect();
    let mut progress = Progress::new("fusing outings", Some(changed.len() as u64));
    let mut moved = 0;
    for batch in changed.chunks(TOGETHER) {
        if interrupted.load(Ordering::Relaxed) {
            bail!("stopped while outings were fused; the same command does the rest");
        }
        let outings: Vec<Outing> = batch
            .iter()
            .map(|(group, inputs)| outing(library, model, context, group, *inputs))
            .collect::<anyhow::Result<_>>()?;
        let fused: Vec<Vec<Prediction>> =
            outings.par_iter().map(|outing| outing.fused(model, context)).collect();
        for (outing, predictions) in outings.iter().zip(fused) {
            let pictures: Vec<ContentHash> = outing.pictures.iter().map(|p| p.hash).collect();
            library.fuse(model, &pictures, outing.inputs, &predictions)?;
            moved += predictions.len();
        }
        progress.add(batch.len() as u64);
    }
    Ok(moved)
}

/// Where a picture is for sure, and how exactly.
fn known_place(entry: &Entry) -> Option<(LatLon, f64)> {
    match (entry.gps, entry.decision) {
        (Some(place), _) => Some((place, GPS_KM)),
        (None, Some(Decision::Moved(pin))) => Some((pin, PIN_KM)),
        _ => None,
    }
}

/// A digest of all that an outing's answers depend on, beside the model.
fn inputs_of(
    group: &[&Entry],
    context: &Context,
    with_density: impl Fn(ContentHash) -> bool,
) -> ContentHash {
    let mut text = format!("{:?}", context.options);
    for area in &context.within {
        // Two files may have the same name.
        let _ = write!(text, "\nwithin {area} {:?}", area.area());
    }
    for entry in group {
        let (known, time) = (known_place(entry), entry.time.map(|time| time.unix_s()));
        let track = time.and_then(|time| on_track(context, time));
        let answered = with_density(entry.hash);
        let _ = write!(text, "\n{} {time:?} {known:?} {track:?} {answered}", entry.hash);
    }
    ContentHash::of(text.as_bytes())
}

fn on_track(context: &Context, time_s: f64) -> Option<(LatLon, f64)> {
    context.tracks.iter().find_map(|track| track.at(time_s, TRACK_GAP_S))
}

fn outing(
    library: &Library,
    model: &UsedModel,
    context: &Context,
    group: &[&Entry],
    inputs: ContentHash,
) -> anyhow::Result<Outing> {
    let mut outing =
        Outing { pictures: Vec::new(), sightings: Vec::new(), labels: Vec::new(), inputs };
    for entry in group {
        let name = file_name(&entry.path);
        let time_s = entry.time.map_or(0.0, |time| time.unix_s());
        if let Some((place, error_km)) = known_place(entry) {
            let how = if entry.gps.is_some() { "GPS" } else { "pin" };
            outing.add(Sighting::known(time_s, place, error_km), format!("{name} ({how})"));
            continue;
        }
        if let Some((place, error_km)) = entry.time.and_then(|_| on_track(context, time_s)) {
            outing.add(Sighting::known(time_s, place, error_km), "the GPX track".to_owned());
        }
        let density = library.density(entry.hash, &model.name, &model.version, false)?;
        let answered = density.is_some();
        let (density, stated) =
            restricted(density.unwrap_or_else(Density::uniform), &context.within);
        let (hash, sighting) = (entry.hash, outing.sightings.len());
        outing.pictures.push(Pictured { hash, sighting, answered, stated });
        outing.add(Sighting::pictured(time_s, density), name.to_owned());
    }
    Ok(outing)
}

/// A density within areas, and what that changed. Where it has no mass, the area itself is all that is left.
fn restricted(density: Density, within: &[Constraint]) -> (Density, Vec<String>) {
    let mut stated = Vec::new();
    let mut restricted = density;
    for area in within {
        let inside = restricted.survey().probability_in(area.area());
        stated.push(format!("stated: within {area}; before, {:.1} % was there", 100.0 * inside));
        let smaller = restricted.restricted_to(area.area().clone());
        let smaller = smaller.or_else(|_| Density::uniform().restricted_to(area.area().clone()));
        // Areas that exclude each other leave what the first one left.
        if let Ok(smaller) = smaller {
            restricted = smaller;
        }
    }
    (restricted, stated)
}

impl Outing {
    fn add(&mut self, sighting: Sighting, label: String) {
        self.sightings.push(sighting);
        self.labels.push(label);
    }

    /// New predictions for those pictures whose density something changed.
    fn fused(&self, model: &UsedModel, context: &Context) -> Vec<Prediction> {
        let fused = fuse(&self.sightings, &context.options);
        let one = |picture: &Pictured| {
            self.prediction(picture, &fused[picture.sighting], model, &context.within)
        };
        self.pictures.par_iter().filter_map(one).collect()
    }

    fn prediction(
        &self,
        picture: &Pictured,
        fused: &Fused,
        model: &UsedModel,
        within: &[Constraint],
    ) -> Option<Prediction> {
        let moved = fused.influences.iter().any(|influence| influence.source != Source::Itself);
        // Without a density of its own, a picture is where its neighbors are, or nowhere.
        let own = picture.answered || fused.stray < 0.5;
        if !own || !moved && picture.stated.is_empty() {
            return None;
        }
        // A model that may be wrong leaves some mass everywhere; what the user states is certain.
        let (density, _) = restricted(fused.density.clone(), within);
        let mut prediction = predicting::of_density(picture.hash, model, &density, Decode::Mode);
        if !picture.answered && prediction.radius_90_km > VAGUE_KM {
            return None;
        }
        prediction.fused = true;
        prediction.influences.clone_from(&picture.stated);
        let lines = fused.influences.iter().map(|i| self.described(picture.sighting, i));
        prediction.influences.extend(lines);
        let earlier = fused.influences.iter().find(|i| matches!(i.source, Source::Earlier(_)));
        prediction.influences.extend(earlier.map(|Influence { moved_km, .. }| {
            format!("without all earlier pictures the place would be {moved_km:.0} km away")
        }));
        Some(prediction)
    }

    fn described(&self, of: usize, Influence { source, nats, moved_km }: &Influence) -> String {
        let who = match source {
            Source::Earlier(number) => {
                let since_s = self.sightings[of].time_s - self.sightings[*number].time_s;
                let since = duration(since_s);
                return format!("{}, {since} earlier: {nats:.2} nats", self.labels[*number]);
            }
            Source::Later => "later pictures",
            _ => "the image itself",
        };
        format!("{who}: {nats:.2} nats; without it the place would be {moved_km:.0} km away")
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}
