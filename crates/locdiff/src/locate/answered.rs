//! From a picture's bytes to its answer: what every program that reads files does with a model.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use locdiff_sphere::LatLon;
use rayon::prelude::*;

use super::answer::{Answer, AnswerOptions, ImageFacts};
use super::estimate::Estimate;
use super::geolocator::Geolocator;
use super::in_turn::{ChosenBecause, NoAnswer, locate_because};
use crate::photo::{Photo, PhotoError, ReadOptions, gps_of};

/// A picture that was read.
#[derive(Debug)]
pub struct ReadPicture {
    /// Its pixels.
    pub photo: Photo,
    /// What else is known of it.
    pub facts: ImageFacts,
    /// The place that the camera recorded.
    pub gps: Option<LatLon>,
}

impl ReadPicture {
    /// Reads and decodes a file.
    pub fn open(path: &Path) -> Result<ReadPicture, PhotoError> {
        let unreadable = |source| PhotoError::Unreadable { path: path.to_owned(), source };
        ReadPicture::from_reader(path, File::open(path).map_err(unreadable)?)
    }

    /// All that a reader gives, under a name.
    pub fn from_reader(name: &Path, reader: impl Read) -> Result<ReadPicture, PhotoError> {
        let unreadable = |source| PhotoError::Unreadable { path: name.to_owned(), source };
        let mut bytes = Vec::new();
        // One byte more than a picture may have is read, to find that it has too many.
        let limit = ReadOptions::default().max_bytes.saturating_add(1);
        reader.take(limit).read_to_end(&mut bytes).map_err(unreadable)?;
        ReadPicture::decode(Some(name.display().to_string()), &bytes)
    }

    /// The bytes of a file, under a name if it has one.
    pub fn decode(name: Option<String>, bytes: &[u8]) -> Result<ReadPicture, PhotoError> {
        let photo = Photo::decode(bytes, &ReadOptions::default())?;
        let gps = gps_of(bytes).and_then(|(lat, lon)| LatLon::new(lat, lon).ok());
        let facts = ImageFacts::of_bytes(name, bytes).with_size(&photo);
        Ok(ReadPicture { photo, facts, gps })
    }
}

/// What one model makes of one picture: the record, and the estimate that maps and regions are drawn from.
#[derive(Debug)]
pub struct Answered {
    /// What `--json` prints.
    pub record: Answer,
    /// What the record was made of.
    pub estimate: Estimate,
    /// The place that the camera recorded.
    pub gps: Option<LatLon>,
}

impl Answered {
    /// The facts of a picture.
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
    pub fn name(&self) -> &str {
        self.record.image.name.as_deref().unwrap_or_default()
    }

    /// The answer's place.
    pub fn place(&self) -> LatLon {
        let place = &self.record.place;
        LatLon::new(place.latitude, place.longitude).expect("a place of an answer")
    }

    /// The candidates' places with their masses, without one that is anywhere.
    pub fn places(&self) -> impl Iterator<Item = (LatLon, f64)> {
        self.record.candidates.iter().filter(|candidate| !candidate.is_anywhere()).map(
            |candidate| {
                let place = &candidate.place;
                let place = LatLon::new(place.latitude, place.longitude).expect("a place");
                (place, candidate.mass)
            },
        )
    }
}

/// What a model makes of pictures that were read, in their order. A picture that could not be read keeps its error.
pub fn answer_all<E: From<NoAnswer> + Send>(
    model: &Geolocator,
    read: Vec<Result<ReadPicture, E>>,
    options: &AnswerOptions,
) -> Vec<Result<Answered, E>> {
    let mut photos = Vec::new();
    let facts: Vec<Result<_, E>> = read
        .into_iter()
        .map(|read| {
            let ReadPicture { photo, facts, gps } = read?;
            photos.push(photo);
            Ok((facts, gps))
        })
        .collect();
    let mut located = locate_because(model, ChosenBecause::Named, &photos).into_iter();
    let jobs: Vec<_> = facts
        .into_iter()
        .map(|facts| {
            let (facts, gps) = facts?;
            let (estimate, because) = located.next().expect("an answer for each photograph")?;
            Ok((estimate, because, facts, gps))
        })
        .collect();
    // Surveys are work for one thread each.
    let jobs = jobs.into_par_iter().map(|job: Result<_, E>| {
        let (estimate, because, facts, gps) = job?;
        Ok(Answered::new(estimate, because, facts, gps, options))
    });
    jobs.collect()
}
