//! One picture's answer, with everything that any output shows.

use std::fs::File;
use std::io::{self, Read, stdin};
use std::path::{Path, PathBuf};

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
pub struct ReadPicture {
    /// Its pixels.
    pub photo: Photo,
    /// What else is known of it.
    pub facts: ImageFacts,
    /// Where the camera says it was.
    pub gps: Option<LatLon>,
}

impl ReadPicture {
    /// A file.
    pub fn open(path: &Path) -> Result<ReadPicture, PhotoError> {
        let unreadable = |source| PhotoError::Unreadable { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let bytes = limited(file).map_err(unreadable)?;
        ReadPicture::decode(Some(path.display().to_string()), &bytes)
    }

    /// The bytes of a file, under a name if it has one.
    pub fn decode(name: Option<String>, bytes: &[u8]) -> Result<ReadPicture, PhotoError> {
        let photo = Photo::decode(bytes, &ReadOptions::default())?;
        let gps = gps_of(bytes).and_then(|(lat, lon)| LatLon::new(lat, lon).ok());
        let facts = ImageFacts::of_bytes(name, bytes).with_size(&photo);
        Ok(ReadPicture { photo, facts, gps })
    }
}

/// One byte more than a picture may have tells that it has too many.
fn limited(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = ReadOptions::default().max_bytes.saturating_add(1);
    source.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
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
        match self {
            Picture::Path(path, _) => ReadPicture::open(path),
            Picture::Stdin => {
                let unreadable =
                    |source| PhotoError::Unreadable { path: self.name().into(), source };
                let bytes = limited(stdin().lock()).map_err(unreadable)?;
                ReadPicture::decode(Some(self.name().to_owned()), &bytes)
            }
        }
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
pub struct Answered {
    /// What `--json` prints.
    pub record: Answer,
    /// What the record was made of.
    pub estimate: Estimate,
    /// Where the camera says it was.
    pub gps: Option<LatLon>,
}

impl Answered {
    /// What is said of a picture.
    pub fn new(
        estimate: Estimate,
        because: ChosenBecause,
        facts: ImageFacts,
        gps: Option<LatLon>,
        options: &AnswerOptions,
    ) -> Answered {
        let record = Answer::new(facts, &estimate, because, gps, options);
        Answered { record, estimate, gps }
    }

    /// As whoever asked named the picture.
    pub(super) fn name(&self) -> &str {
        self.record.image.name.as_deref().unwrap_or_default()
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
