//! An answer as a picture: `--plot`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use locdiff::locate::Answered;
use locdiff_map::{LineStyle, Map, Marker, Projection, Symbol, Theme};

use super::answer::Picture;
use super::{Arguments, is_folder};
use crate::outlines::outline;
use crate::whole_file::write_file;

/// How a map shows the Earth.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// The Earth from afar, the first candidate in the middle.
    Globe,
    /// The whole Earth, areas true.
    EqualEarth,
}

/// Answers less certain than this are shown on the whole Earth.
const GLOBE_RADIUS_KM: f64 = 4000.0;

/// Refuses what can't be a picture, before any work is done.
pub(super) fn check_destination(plot: &Path, pictures: &[Picture]) -> anyhow::Result<()> {
    if is_folder(plot) {
        return Ok(());
    }
    let shown = plot.display();
    ensure!(ending(plot).is_some(), "--plot {shown} must end in .png or .svg, or be a folder");
    ensure!(
        pictures.len() == 1,
        "--plot {shown} is one file, but there are {} pictures: give a folder, with a slash at its end",
        pictures.len()
    );
    let is_input = match &pictures[0] {
        Picture::Path(path, _) => {
            plot.canonicalize().is_ok_and(|plot| Some(plot) == path.canonicalize().ok())
        }
        Picture::Stdin => false,
    };
    ensure!(!is_input, "--plot {shown} would overwrite the picture itself");
    Ok(())
}

fn ending(path: &Path) -> Option<&str> {
    path.extension().and_then(OsStr::to_str).filter(|ending| ["png", "svg"].contains(ending))
}

pub(super) fn draw(answer: &Answered, plot: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let path = if is_folder(plot) {
        std::fs::create_dir_all(plot)
            .with_context(|| format!("cannot make the folder {}", plot.display()))?;
        unused(plot, answer)
    } else if arguments.model.len() > 1 {
        let stem = plot.file_stem().unwrap_or_default().to_string_lossy();
        let name = file_name(&answer.record.model.name);
        plot.with_file_name(format!("{stem}-{name}.{}", ending(plot).unwrap_or("png")))
    } else {
        plot.to_owned()
    };
    let picture = answer_map(answer, arguments.projection)?.draw();
    let bytes =
        if ending(&path) == Some("svg") { picture.svg().into_bytes() } else { picture.png() };
    write_file(&path, &bytes)
}

/// A name in a folder that no picture has had so far: two folders may hold an IMG_0001.jpg each.
fn unused(folder: &Path, answer: &Answered) -> PathBuf {
    let stem = Path::new(answer.name()).file_stem().unwrap_or_default().to_string_lossy();
    let stem = format!("{stem}-{}", file_name(&answer.record.model.name));
    let numbered = (2..).map(|number| format!("{stem}-{number}.png"));
    let mut names = [format!("{stem}.png")].into_iter().chain(numbered).map(|n| folder.join(n));
    names.find(|path| !path.exists()).unwrap_or_else(|| folder.join("map.png"))
}

/// A model's name as part of a file's.
fn file_name(model: &str) -> String {
    model.replace(['/', '\\'], "-")
}

/// An answer as a map: by default a globe, or the whole Earth if the answer is vague.
pub fn answer_map(answer: &Answered, view: Option<View>) -> anyhow::Result<Map<'_>> {
    let (record, model) = (&answer.record, &answer.record.model);
    let vague = record.radius_90_km > GLOBE_RADIUS_KM;
    let projection = match view.unwrap_or(if vague { View::EqualEarth } else { View::Globe }) {
        View::Globe => Projection::Globe { centre: answer.place() },
        View::EqualEarth => Projection::EqualEarth,
    };
    let survey = answer.estimate.survey();
    let highest = survey.modes().modes.iter().map(|mode| mode.log_density).fold(f64::MIN, f64::max);
    let mut outlines = Vec::new();
    for (level, style) in [(0.9, LineStyle::Dashed), (0.5, LineStyle::Solid)] {
        if let Some(polygons) = survey.region(level).outline() {
            outlines.push(outline(&polygons)?.style(style));
        }
    }
    let ground = answer.estimate.footprint().and_then(|footprint| footprint.outline());
    if let Some(ground) = &ground {
        outlines.push(outline(ground)?);
    }
    let mut caption = format!("A prediction by {}, not a fact", model.name);
    if !model.calibrated {
        caption.push_str("; scores, not probabilities");
    }
    caption.push_str(". Lines: ");
    if ground.is_some() {
        caption.push_str("the ground that the picture shows, and ");
    }
    caption.push_str("the smallest regions that hold 50 % (solid) and 90 % (dashed).");
    if !answer.estimate.within().is_empty() {
        caption.push_str(&format!(" Within {} only.", answer.estimate.within().join(" and ")));
    }
    let stem = Path::new(answer.name()).file_name().unwrap_or_default().to_string_lossy();
    let mut map = Map::new(projection)
        .theme(Theme::Dark)
        .top(highest)
        .title(format!("{stem}: {}", record.place.name))
        .caption(caption)
        .field(move |place| survey.interpolated_log_density(place));
    for outline in outlines {
        map = map.outline(outline);
    }
    for (rank, (place, mass)) in answer.places().enumerate() {
        let label = format!("{} · {:.0} %", rank + 1, 100.0 * mass);
        map = map.marker(Marker::new(place).label(label));
    }
    if let Some(gps) = answer.gps {
        map = map.marker(Marker::new(gps).label("GPS").symbol(Symbol::Cross));
    }
    Ok(map)
}
