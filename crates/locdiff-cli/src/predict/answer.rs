//! One picture's answer, with everything that any output shows.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::PathBuf;

use locdiff::photo::{PhotoError, ReadOptions, gps_of};
use locdiff::{Estimate, Photo, Summary};
use locdiff_sphere::{Density, LatLon};

/// A picture to be located.
pub(super) enum Picture {
    Path(PathBuf, String),
    Stdin,
}

impl Picture {
    pub(super) fn from_path(path: PathBuf) -> Picture {
        let name = path.display().to_string();
        Picture::Path(path, name)
    }

    /// As the user knows it.
    pub(super) fn name(&self) -> &str {
        match self {
            Picture::Path(_, name) => name,
            Picture::Stdin => "stdin",
        }
    }

    /// Its pixels, and where the camera says it was.
    pub(super) fn read(&self) -> Result<(Photo, Option<LatLon>), PhotoError> {
        let options = ReadOptions::default();
        let limit = options.max_bytes.saturating_add(1);
        let mut bytes = Vec::new();
        let path = match self {
            Picture::Path(path, _) => path.clone(),
            Picture::Stdin => PathBuf::from("stdin"),
        };
        let read = match self {
            Picture::Path(path, _) => {
                File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
            }
            Picture::Stdin => stdin().lock().take(limit).read_to_end(&mut bytes),
        };
        read.map_err(|source| PhotoError::Unreadable { path, source })?;
        let photo = Photo::decode(&bytes, &options)?;
        let gps = gps_of(&bytes).and_then(|(lat, lon)| LatLon::new(lat, lon).ok());
        Ok((photo, gps))
    }
}

/// A picture that could not be located.
pub(super) struct Failure {
    pub(super) name: String,
    pub(super) reason: String,
    /// For want of a model.
    pub(super) no_model: bool,
}

/// What one model says of one picture.
pub(super) struct Answer<'a> {
    pub(super) name: &'a str,
    pub(super) estimate: Estimate,
    pub(super) summary: Summary,
    /// Where the camera says it was.
    pub(super) gps: Option<LatLon>,
    /// Why this model was asked.
    pub(super) because: &'static str,
    /// The best rows of a model that chooses among places.
    pub(super) rows: Vec<Row>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(
        name: &'a str,
        estimate: Estimate,
        gps: Option<LatLon>,
        top: usize,
        because: &'static str,
    ) -> Answer<'a> {
        let summary = estimate.summary(top);
        let rows = best_rows(estimate.density(), top);
        Answer { name, summary, gps, because, rows, estimate }
    }

    /// How far the best candidate is from where the camera says it was.
    pub(super) fn distance_km(&self) -> Option<f64> {
        self.gps.map(|gps| gps.distance_km(self.summary.best().place))
    }

    /// What the numbers may be called.
    pub(super) fn measure(&self) -> &'static str {
        if self.estimate.model().calibrated { "probability" } else { "score" }
    }
}

/// The best rows of a model that chooses among places, as its authors list them: distinct places, by the
/// score of one row.
fn best_rows(density: &Density, count: usize) -> Vec<Row> {
    let Density::PointMasses(spread) = density else { return Vec::new() };
    let points = spread.points();
    let pairs = points.places().iter().copied().zip(points.weights());
    let mut rows: Vec<Row> = pairs.map(|(place, score)| Row { place, score, times: 1 }).collect();
    let coordinates = |row: &Row| (row.place.latitude(), row.place.longitude());
    rows.sort_by(|a, b| coordinates(a).partial_cmp(&coordinates(b)).expect("places are numbers"));
    rows.dedup_by(|next, row| {
        let same = next.place == row.place;
        row.times += usize::from(same);
        same
    });
    rows.sort_by(|a, b| b.score.total_cmp(&a.score));
    rows.truncate(count);
    rows
}

/// A place of the model's list.
pub(super) struct Row {
    pub(super) place: LatLon,
    /// Softmax over all rows.
    pub(super) score: f64,
    /// How often it stands in the list.
    pub(super) times: usize,
}
