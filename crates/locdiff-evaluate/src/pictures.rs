//! The report's pictures: maps of errors and curves, light and dark.

use locdiff_map::{Chart, Graticule, Map, Projection, Theme};
use locdiff_sphere::{ACCURACY_RADII_KM, LatLon, RadiusRule};

use super::scoring::Evaluation;

/// More dots than this hide each other, and make a report that no browser likes.
const MOST_DOTS: usize = 4000;
/// Points of a curve.
const CURVE: usize = 121;
const MAP_WIDTH_PX: u32 = 1100;
const CHART_SIZE_PX: [u32; 2] = [640, 440];

/// Colours of answers by the radius that they lie within, and of those beyond all: from blue to red by
/// way of yellow, of growing contrast with neither ground, safe for most who see fewer colours.
pub(super) const BANDS: [(&str, &str); 6] = [
    ("#2c7fb8", "up to 1 km"),
    ("#41b6c4", "up to 25 km"),
    ("#a1dab4", "up to 200 km"),
    ("#fecc5c", "up to 750 km"),
    ("#fd8d3c", "up to 2500 km"),
    ("#e31a1c", "farther"),
];

/// A picture for each theme.
pub(super) struct Both {
    pub(super) day: String,
    pub(super) dark: String,
    /// What it shows, for those who can't see it.
    pub(super) description: String,
}

fn both(description: impl Into<String>, draw: impl Fn(Theme) -> String) -> Both {
    Both { day: draw(Theme::Day), dark: draw(Theme::Dark), description: description.into() }
}

fn band(distance_km: f64) -> usize {
    let band = ACCURACY_RADII_KM.iter().position(|radius_km| distance_km <= *radius_km);
    band.unwrap_or(ACCURACY_RADII_KM.len())
}

/// Dots at places, coloured by how far off the answer is. They are drawn in the order of the list: were the
/// worst on top, every town would look bad. Says how many are shown.
pub(super) fn error_map(evaluation: &Evaluation, places: &[LatLon]) -> (Both, usize) {
    let rows: Vec<usize> =
        (0..places.len()).filter(|row| evaluation.answered.is_answered[*row]).collect();
    // Evenly over the list, so that no part of it is preferred.
    let step = rows.len().div_ceil(MOST_DOTS).max(1);
    let dots: Vec<usize> = rows.into_iter().step_by(step).collect();
    let count = dots.len();
    let radius = if count > 1500 { 2.2 } else { 3.4 };
    let draw = |theme: Theme| {
        let map = Map::new(Projection::EqualEarth)
            .theme(theme)
            .width_px(MAP_WIDTH_PX)
            .graticule(Graticule::Every { degrees: 30.0 })
            .draw();
        let ring = if theme == Theme::Day { "#1c242c" } else { "#0b0f15" };
        let mut circles =
            format!("<g stroke=\"{ring}\" stroke-width=\"0.6\" stroke-opacity=\"0.6\">");
        for row in &dots {
            if let Some([x, y]) = map.position_px(places[*row]) {
                let colour = BANDS[band(evaluation.distances_km[*row])].0;
                circles.push_str(&format!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>"
                ));
            }
        }
        circles.push_str("</g></svg>");
        let svg = map.svg();
        let end = svg.rfind("</svg>").unwrap_or(svg.len());
        format!("{}{circles}", &svg[..end])
    };
    let description =
        format!("A map of the world with {count} dots, colored by the error of the answers.");
    (both(description, draw), count)
}

fn chart(theme: Theme, chart: Chart) -> String {
    let [width, height] = CHART_SIZE_PX;
    chart.theme(theme).width_px(width).height_px(height).draw().svg()
}

/// Share of images within a distance, over the distance.
pub(super) fn accuracy_curve(evaluation: &Evaluation) -> Both {
    let curve = |distances_km: &[f64]| -> Vec<(f64, f64)> {
        let count = distances_km.len() as f64;
        logarithmic(0.1, 20_000.0)
            .map(|radius_km| {
                let rule: RadiusRule = evaluation.rules.radius;
                let within = distances_km.iter().filter(|km| rule.is_within(**km, radius_km));
                (radius_km, within.count() as f64 / count)
            })
            .collect()
    };
    let (ours, other) = (
        curve(&evaluation.distances_km),
        evaluation
            .paired
            .as_ref()
            .map(|paired| (paired.other.clone(), curve(&paired.other_distances_km))),
    );
    let description = "Share of images whose answer lies within a distance, over that distance.";
    both(description, |theme| {
        let mut drawing = Chart::new("distance, km", "share of images")
            .log_x()
            .y_range(0.0..=1.0)
            .line(evaluation.model.clone(), ours.clone());
        if let Some((name, curve)) = &other {
            drawing = drawing.line(name.clone(), curve.clone());
        }
        chart(theme, drawing)
    })
}

/// How often regions of a level hold the truth, over the level.
pub(super) fn reliability_curve(evaluation: &Evaluation) -> Option<Both> {
    let outcomes = evaluation.answered.outcomes.as_ref()?;
    let levels: Vec<f64> = outcomes.iter().map(|outcome| outcome.level).collect();
    let points: Vec<(f64, f64)> = (0..=100)
        .map(|percent| {
            let level = f64::from(percent) / 100.0;
            let covered = levels.iter().filter(|of_truth| **of_truth <= level).count();
            (level, covered as f64 / levels.len() as f64)
        })
        .collect();
    let description = "How often regions of a probability contain the truth, over that probability; the diagonal is calibrated.";
    Some(both(description, |theme| {
        let drawing = Chart::new("probability of the region", "share that contain the truth")
            .x_range(0.0..=1.0)
            .y_range(0.0..=1.0)
            .diagonal("calibrated")
            .line(evaluation.model.clone(), points.clone());
        chart(theme, drawing)
    }))
}

/// Share of images found in an area, over the area.
pub(super) fn recall_curve(evaluation: &Evaluation) -> Option<Both> {
    let outcomes = evaluation.answered.outcomes.as_ref()?;
    let areas: Vec<f64> = outcomes.iter().map(|outcome| outcome.searched_area_km2).collect();
    let points: Vec<(f64, f64)> = logarithmic(10.0, 510e6)
        .map(|area_km2| {
            let found = areas.iter().filter(|searched| **searched <= area_km2).count();
            (area_km2, found as f64 / areas.len() as f64)
        })
        .collect();
    let description = "Share of images whose truth is found by searching an area, the most probable places first, over that area.";
    Some(both(description, |theme| {
        let drawing = Chart::new("area searched, km²", "share of images found")
            .log_x()
            .y_range(0.0..=1.0)
            .line(evaluation.model.clone(), points.clone());
        chart(theme, drawing)
    }))
}

fn logarithmic(from: f64, to: f64) -> impl Iterator<Item = f64> {
    (0..CURVE).map(move |step| from * (to / from).powf(step as f64 / (CURVE - 1) as f64))
}
