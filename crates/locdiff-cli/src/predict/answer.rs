//! One picture's answer, with everything that any output shows.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::PathBuf;

use locdiff::locate::{AnswerOptions, ChosenBecause, ImageFacts};
use locdiff::photo::{PhotoError, ReadOptions, gps_of};
use locdiff::{Answer, Estimate, Photo};
use locdiff_sphere::LatLon;

/// A picture to be located.
pub(super) enum Picture {
    Path(PathBuf, String),
    Stdin,
}

/// A picture that was read.
pub(super) struct ReadPicture {
    pub(super) photo: Photo,
    pub(super) facts: ImageFacts,
    /// Where the camera says it was.
    pub(super) gps: Option<LatLon>,
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

    /// Its pixels, and what its bytes tell.
    pub(super) fn read(&self) -> Result<ReadPicture, PhotoError> {
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
        let facts = ImageFacts::of_bytes(Some(self.name().to_owned()), &bytes).with_size(&photo);
        Ok(ReadPicture { photo, facts, gps })
    }
}

/// A picture that could not be located.
pub(super) struct Failure {
    pub(super) name: String,
    /// As far as it could be read.
    pub(super) facts: Box<ImageFacts>,
    pub(super) reason: String,
    /// For want of a model.
    pub(super) no_model: bool,
}

/// What one model makes of one picture: the record, and the estimate that maps and regions are drawn from.
pub(super) struct Answered<'a> {
    pub(super) name: &'a str,
    pub(super) estimate: Estimate,
    pub(super) record: Answer,
    /// Where the camera says it was.
    pub(super) gps: Option<LatLon>,
}

impl<'a> Answered<'a> {
    pub(super) fn new(
        name: &'a str,
        estimate: Estimate,
        because: ChosenBecause,
        read: &ReadPicture,
        options: &AnswerOptions,
    ) -> Answered<'a> {
        let record = Answer::new(read.facts.clone(), &estimate, because, read.gps, options);
        Answered { name, estimate, record, gps: read.gps }
    }

    /// The answer's place.
    pub(super) fn place(&self) -> LatLon {
        let place = &self.record.place;
        LatLon::new(place.latitude, place.longitude).expect("a place of an answer")
    }

    /// The candidates' places.
    pub(super) fn places(&self) -> impl Iterator<Item = (LatLon, f64)> {
        self.record.candidates.iter().map(|candidate| {
            let place = &candidate.place;
            let place = LatLon::new(place.latitude, place.longitude).expect("a place");
            (place, candidate.mass)
        })
    }
}
