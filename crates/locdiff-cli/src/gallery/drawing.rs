//! References on a map: `--plot`.

use std::ffi::OsStr;
use std::path::Path;

use locdiff::geography::place_name;
use locdiff_map::{LineStyle, Map, Marker, Projection, Theme};
use locdiff_sphere::{Density, LatLon};

use super::Nonsense;
use crate::outlines::outline;
use crate::whole_file::write_file;

/// References that are numbered on the map.
const NUMBERED: usize = 5;

/// Rejects what can't be a picture, before any work is done.
pub(super) fn check_destination(plot: &Path, photo: &Path) -> anyhow::Result<()> {
    let shown = plot.display();
    if ending(plot).is_none() {
        return Err(Nonsense(format!("--plot {shown} must end in .png or .svg")).into());
    }
    if plot.canonicalize().is_ok_and(|plot| photo.canonicalize().ok() == Some(plot)) {
        return Err(Nonsense(format!("--plot {shown} would overwrite the photograph")).into());
    }
    Ok(())
}

fn ending(path: &Path) -> Option<&str> {
    path.extension().and_then(OsStr::to_str).filter(|ending| ["png", "svg"].contains(ending))
}

/// A globe with the references; the best one is in the middle.
pub(super) fn draw(
    plot: &Path,
    photo: &Path,
    references: &[LatLon],
    density: Option<Density>,
) -> anyhow::Result<()> {
    let Some(best) = references.first() else {
        anyhow::bail!("there is nothing to draw in {}: no reference was found", plot.display());
    };
    let survey = density.as_ref().map(|density| density.survey());
    let stem = photo.file_name().unwrap_or_default().to_string_lossy();
    let mut caption = "Numbered: the most similar references of the gallery.".to_owned();
    let mut map = Map::new(Projection::Globe { centre: *best }).theme(Theme::Dark);
    if let Some(survey) = &survey {
        let modes = survey.modes();
        let highest = modes.modes.iter().map(|mode| mode.log_density).fold(f64::MIN, f64::max);
        map = map.top(highest).field(|place| survey.interpolated_log_density(place));
        for (level, style) in [(0.9, LineStyle::Dashed), (0.5, LineStyle::Solid)] {
            if let Some(polygons) = survey.region(level).outline() {
                map = map.outline(outline(&polygons)?.style(style));
            }
        }
        caption
            .push_str(" Lines: the smallest regions that contain 50 % (solid) and 90 % (dashed).");
    }
    for (rank, place) in references.iter().enumerate() {
        let marker = Marker::new(*place);
        let is_numbered = rank < NUMBERED && !references[..rank].contains(place);
        map = map.marker(if is_numbered { marker.label((rank + 1).to_string()) } else { marker });
    }
    let picture = map.title(format!("{stem}: {}", place_name(*best))).caption(caption).draw();
    let bytes =
        if ending(plot) == Some("svg") { picture.svg().into_bytes() } else { picture.png() };
    write_file(plot, &bytes)
}
