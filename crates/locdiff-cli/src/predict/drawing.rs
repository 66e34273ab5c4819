//! An answer as a picture: `--plot`.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use locdiff::geography::{names_around, outlines};
use locdiff::locate::Answered;
use locdiff_map::{LineStyle, Map, Marker, Name, Projection, Symbol, Theme};

use super::answer::Picture;
use super::{Arguments, is_folder};
use crate::outlines::outline;
use crate::whole_file::write_file;

/// How a map shows the Earth.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// A globe, with the first candidate in the middle.
    Globe,
    /// The whole Earth, with true areas.
    EqualEarth,
}

/// Answers less certain than this are shown on the whole Earth.
const GLOBE_RADIUS_KM: f64 = 4000.0;

/// Colors of a map.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colors {
    /// Light on black.
    Dark,
    /// Dark on white.
    Light,
}

impl From<Colors> for Theme {
    fn from(colors: Colors) -> Theme {
        match colors {
            Colors::Dark => Theme::Dark,
            Colors::Light => Theme::Day,
        }
    }
}

/// Answers that fit into a circle of this radius have a close-up, of at least the other one.
const PRECISE_KM: f64 = 1500.0;
const LEAST_CLOSEUP_KM: f64 = 25.0;

/// Refuses what can't be a map or a report, and what would replace a file, before any work is done.
pub(super) fn check_destinations(
    pictures: &[Picture],
    arguments: &Arguments,
) -> anyhow::Result<()> {
    let mut files: Vec<PathBuf> = Vec::new();
    if let Some(html) = &arguments.html {
        let is_html = html.extension().is_some_and(|ending| ending == "html" || ending == "htm");
        ensure!(is_html, "--html {} must end in .html", html.display());
        files.push(html.clone());
    }
    if let Some(plot) = &arguments.plot {
        let shown = plot.display();
        if !is_folder(plot) {
            ensure!(
                ending(plot).is_some(),
                "--plot {shown} must end in .png or .svg, or in a slash for a folder of maps"
            );
            ensure!(
                pictures.len() == 1,
                "--plot {shown} is one file, but there are {} pictures: name a folder, with a slash at its end",
                pictures.len()
            );
        }
        let models: Vec<Option<&str>> = match arguments.model.len() {
            0 | 1 => vec![None],
            _ => arguments.model.iter().map(|name| Some(name.as_str())).collect(),
        };
        let of =
            |picture: &Picture| models.iter().map(|m| destination(plot, picture, *m)).collect();
        files.extend(pictures.iter().flat_map(|picture| -> Vec<PathBuf> { of(picture) }));
    }
    let inputs: HashSet<PathBuf> = pictures
        .iter()
        .filter_map(|picture| match picture {
            Picture::Path { path, .. } => path.canonicalize().ok(),
            Picture::Stdin => None,
        })
        .collect();
    let mut existing = Vec::new();
    for file in files.iter().filter(|file| file.exists()) {
        let is_input = file.canonicalize().is_ok_and(|file| inputs.contains(&file));
        ensure!(!is_input, "{} is one of the pictures: it is not overwritten", file.display());
        existing.push(file);
    }
    if let (Some(first), false) = (existing.first(), arguments.overwrite) {
        let more = match existing.len() {
            1 => String::new(),
            count => format!(" and {} more files", count - 1),
        };
        bail!(
            "{}{more} would be overwritten: add --overwrite, or choose another name",
            first.display()
        );
    }
    Ok(())
}

fn ending(path: &Path) -> Option<&str> {
    path.extension().and_then(OsStr::to_str).filter(|ending| ["png", "svg"].contains(ending))
}

/// Where the map of a picture goes. A model is named if several are asked.
fn destination(plot: &Path, picture: &Picture, model: Option<&str>) -> PathBuf {
    let model = model.map(|model| format!("-{}", model.replace(['/', '\\'], "-")));
    let model = model.unwrap_or_default();
    if is_folder(plot) {
        // IMG_1.jpg and IMG_1.png may be neighbors.
        let mut name = picture.relative().file_name().unwrap_or_default().to_owned();
        name.push(format!("{model}.png"));
        return plot.join(picture.relative()).with_file_name(name);
    }
    let mut name = plot.file_stem().unwrap_or_default().to_owned();
    name.push(format!("{model}.{}", ending(plot).unwrap_or("png")));
    plot.with_file_name(name)
}

/// Draws the map of an answer, if maps are asked for. Returns its path.
pub(super) fn draw(
    answer: &Answered,
    picture: &Picture,
    arguments: &Arguments,
) -> anyhow::Result<Option<String>> {
    let Some(plot) = &arguments.plot else { return Ok(None) };
    let model = (arguments.model.len() > 1).then_some(answer.record.model.name.as_str());
    let path = destination(plot, picture, model);
    ensure!(
        arguments.overwrite || !path.exists(),
        "{} would be overwritten: add --overwrite, or choose another name",
        path.display()
    );
    if let Some(folder) = path.parent().filter(|_| is_folder(plot)) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let drawn = answer_map(answer, arguments.projection, arguments.theme, arguments.zoom)?.draw();
    let bytes = if ending(&path) == Some("svg") { drawn.svg().into_bytes() } else { drawn.png() };
    write_file(&path, &bytes)?;
    Ok(Some(path.display().to_string()))
}

/// An answer as a map: by default a globe, or the whole Earth if the answer is vague.
pub fn answer_map(
    answer: &Answered,
    view: Option<View>,
    colors: Colors,
    zoom_km: Option<f64>,
) -> anyhow::Result<Map<'_>> {
    let (record, model) = (&answer.record, &answer.record.model);
    let vague = record.radius_90_km > GLOBE_RADIUS_KM;
    let projection = match view.unwrap_or(if vague { View::EqualEarth } else { View::Globe }) {
        View::Globe => Projection::Globe { centre: answer.place() },
        View::EqualEarth => Projection::EqualEarth,
    };
    let survey = answer.estimate.survey();
    let highest = survey.modes().modes.iter().map(|mode| mode.log_density).fold(f64::MIN, f64::max);
    let mut lines = Vec::new();
    let mut levels = Vec::new();
    let regions =
        [(0.5, LineStyle::Solid, "50 % (solid)"), (0.9, LineStyle::Dashed, "90 % (dashed)")];
    for (level, style, words) in regions {
        let region = survey.region(level);
        if !region.has_arbitrary_rim()
            && let Some(polygons) = region.outline()
        {
            lines.push(outline(&polygons)?.style(style));
            levels.push(words);
        }
    }
    let ground = answer.estimate.footprint().and_then(|footprint| footprint.outline());
    if let Some(ground) = &ground {
        lines.push(outline(ground)?);
    }
    let mut caption = format!("A prediction by {}, not a fact", model.name);
    if !model.calibrated {
        caption.push_str("; scores, not probabilities");
    }
    caption.push('.');
    let mut drawn = Vec::new();
    if ground.is_some() {
        drawn.push("the ground that the picture shows".to_owned());
    }
    if !levels.is_empty() {
        let regions =
            if levels.len() == 1 { "region that contains" } else { "regions that contain" };
        drawn.push(format!("the smallest {regions} {}", levels.join(" and ")));
    }
    if !drawn.is_empty() {
        caption.push_str(&format!(" Lines: {}.", drawn.join(", and ")));
    }
    if !answer.estimate.within().is_empty() {
        caption.push_str(&format!(" Within {} only.", answer.estimate.within().join(" and ")));
    }
    let stem = Path::new(answer.name()).file_name().unwrap_or_default().to_string_lossy();
    let mut map = Map::new(projection)
        .theme(colors.into())
        .top(highest)
        .title(format!("{stem}: {}", record.place.words))
        .caption(caption)
        .field(move |place| survey.interpolated_log_density(place));
    let mut closeup = closeup_km(answer, zoom_km).map(|radius_km| closeup(answer, radius_km));
    for line in lines {
        closeup = closeup.map(|closeup| closeup.outline(line.clone()));
        map = map.outline(line);
    }
    for (rank, (place, mass)) in answer.places().enumerate() {
        let label = format!("{} · {:.0} %", rank + 1, 100.0 * mass);
        map = map.marker(Marker::new(place).label(label));
        closeup = closeup.map(|closeup| closeup.marker(Marker::new(place)));
    }
    if let Some(gps) = answer.gps {
        let marker = || Marker::new(gps).label("GPS").symbol(Symbol::Cross);
        map = map.marker(marker());
        closeup = closeup.map(|closeup| closeup.marker(marker()));
    }
    if let Some(closeup) = closeup {
        map = map.inset(closeup);
    }
    Ok(map)
}

/// The radius of the close-up, if there is one: what was asked for, or what shows the region of a precise answer, of 90 % or else of 50 %.
fn closeup_km(answer: &Answered, zoom_km: Option<f64>) -> Option<f64> {
    let (record, ground) = (&answer.record, answer.estimate.footprint());
    let radii = [record.radius_90_km, record.radius_50_km].map(|radius_km| 2.0 * radius_km);
    let radius_km = radii.into_iter().find(|radius_km| *radius_km < PRECISE_KM).unwrap_or(f64::MAX);
    let shown = ground.map_or(0.0, |ground| ground.width_km).max(radius_km);
    match zoom_km {
        Some(0.0) => None,
        Some(km) => Some(km),
        None => (shown < PRECISE_KM).then(|| shown.max(LEAST_CLOSEUP_KM)),
    }
}

fn closeup<'a>(answer: &Answered, radius_km: f64) -> Map<'a> {
    let centre = answer.place();
    let mut map = Map::new(Projection::Around { centre, radius_km })
        .countries(outlines())
        .title(format!("{radius_km:.0} km around"));
    for (number, found) in names_around(centre, radius_km).into_iter().enumerate() {
        map = map.name(match found.is_country {
            true => Name::country(found.place, found.name).weight(f64::INFINITY),
            false => Name::town(found.place, found.name).weight(-(number as f64)),
        });
    }
    map
}
