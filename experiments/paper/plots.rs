//! Pictures of the tables.

use anyhow::Result;
use locdiff_map::{Chart, Panels, Series};
use locdiff_sphere::ACCURACY_RADII_KM;

use crate::report::picture;

type Curve = Vec<(f64, [f64; 5])>;
const CAPTION: &str = "A simulation: it compares variants, and says nothing about photographs.";

/// Accuracy by degree: a panel for each model.
pub fn degrees(curves: &[(&str, Curve)]) -> Result<()> {
    let mut sheet = Panels::new().columns(2);
    for (title, curve) in curves {
        let mut chart = Chart::new("degree L", "test places, %")
            .y_range(0.0..=100.0)
            .x_range(5.0..=33.0)
            .width_px(560)
            .height_px(400);
        for (k, radius) in ACCURACY_RADII_KM.iter().enumerate() {
            let points = curve.iter().map(|(degree, shares)| (*degree, shares[k]));
            chart = chart.series(Series::points(format!("≤ {radius} km"), points).joined());
        }
        sheet = sheet.panel(*title, chart.draw());
    }
    let sheet = sheet.title("Accuracy by degree, one pass, 1,500 steps").caption(CAPTION);
    Ok(std::fs::write(picture("degree.png"), sheet.draw().png())?)
}

/// Accuracy against samples seen: a panel for each of two radii.
pub fn samples(curves: &[(&str, Curve)]) -> Result<()> {
    let mut sheet = Panels::new().columns(2);
    for (k, radius) in [(2, 200), (3, 750)] {
        let mut chart = Chart::new("samples seen", format!("within {radius} km, %"))
            .log_x()
            .y_range(0.0..=100.0)
            .width_px(560)
            .height_px(420);
        for (title, curve) in curves {
            let points = curve.iter().map(|(samples, shares)| (*samples, shares[k]));
            chart = chart.series(Series::points(*title, points).joined());
        }
        sheet = sheet.panel("", chart.draw());
    }
    let sheet = sheet.title("Accuracy against samples seen").caption(CAPTION);
    Ok(std::fs::write(picture("samples-seen.png"), sheet.draw().png())?)
}

/// Accuracy by the list of places that is chosen from: the paper's five panels, one for each radius.
pub fn lists(curves: &[(&str, Vec<[f64; 5]>)]) -> Result<()> {
    let mut sheet = Panels::new().columns(3);
    for (k, radius) in ACCURACY_RADII_KM.iter().enumerate() {
        let mut chart = Chart::new("MP16, then grids of 1M, 500k, 100k, 21k", "test places, %")
            .x_range(0.5..=5.5)
            .y_range(0.0..)
            .width_px(460)
            .height_px(320);
        for (title, curve) in curves {
            let points = curve.iter().enumerate().map(|(at, shares)| (1.0 + at as f64, shares[k]));
            let title = title.split(" by ").next().and_then(|title| title.split(',').next());
            let title = title.unwrap_or_default();
            chart = chart.series(Series::points(title, points).joined());
        }
        sheet = sheet.panel(format!("within {radius} km"), chart.draw());
    }
    let sheet = sheet.title("Accuracy by the list of places that is chosen from").caption(CAPTION);
    Ok(std::fs::write(picture("anchors.png"), sheet.draw().png())?)
}
