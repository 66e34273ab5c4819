//! The views: embeddings with their places, and what each part of them is for.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use locdiff_sphere::LatLon;

/// Before the numbers of the embedding: latitude, longitude, width of the view in km.
const LABELS: usize = 3;
/// Views of the unseen source that everything is tuned on.
const CALIBRATION: usize = 1200;
/// The sets that are shown, with their files and the most views that count.
pub const SETS: [(&str, &str, usize); 3] = [
    ("three-globe, the unseen source", "three-globe", 4000),
    ("flightgear", "flightgear", 1500),
    ("like those of training", "validation", 1000),
];

#[derive(Default)]
pub struct Views {
    pub places: Vec<LatLon>,
    pub widths_km: Vec<f32>,
    /// Row by row.
    pub embeddings: Vec<f32>,
}

pub struct AllViews {
    pub train: Views,
    pub calibration: Views,
    /// In the order of [`SETS`].
    pub tests: Vec<Views>,
}

impl AllViews {
    pub fn read(folder: &Path) -> Result<AllViews> {
        let mut tests = Vec::new();
        let mut calibration = Views::default();
        for (_, file, at_most) in SETS {
            let views = Views::read(folder, file)?;
            let is_unseen = file == "three-globe";
            if is_unseen {
                calibration = views.select(CALIBRATION, is_for_calibration);
            }
            tests.push(views.select(at_most, |place| !is_unseen || !is_for_calibration(place)));
        }
        ensure!(tests.iter().all(|test| !test.places.is_empty()), "a set without views");
        Ok(AllViews { train: Views::read(folder, "train")?, calibration, tests })
    }
}

/// Places are divided like a chess board, as in earth-view's calibration: a place near one that was
/// tuned on tells nothing.
fn is_for_calibration(place: LatLon) -> bool {
    let square = |degrees: f64| (degrees / 15.0).floor() as i64;
    (square(place.latitude()) + square(place.longitude())) % 2 == 0
}

impl Views {
    fn read(folder: &Path, name: &str) -> Result<Views> {
        let path = folder.join(format!("{name}.npy"));
        let file = File::open(&path).with_context(|| path.display().to_string())?;
        let array = npyz::NpyFile::new(BufReader::new(file))?;
        let shape = array.shape().to_vec();
        ensure!(shape.len() == 2 && shape[1] as usize > LABELS, "{path:?} has the shape {shape:?}");
        let numbers: Vec<f32> = array.into_vec()?;
        let mut views = Views::default();
        for row in numbers.chunks_exact(shape[1] as usize) {
            views.places.push(LatLon::new(f64::from(row[0]), f64::from(row[1]))?);
            views.widths_km.push(row[2]);
            views.embeddings.extend_from_slice(&row[LABELS..]);
        }
        Ok(views)
    }

    fn select(&self, at_most: usize, wanted: impl Fn(LatLon) -> bool) -> Views {
        let width = self.embeddings.len() / self.places.len().max(1);
        let rows = (0..self.places.len()).filter(|row| wanted(self.places[*row])).take(at_most);
        let mut views = Views::default();
        for row in rows {
            views.places.push(self.places[row]);
            views.widths_km.push(self.widths_km[row]);
            views.embeddings.extend_from_slice(&self.embeddings[row * width..][..width]);
        }
        views
    }
}
