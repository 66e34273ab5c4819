//! One image on its way from the input.

use std::path::PathBuf;

use locdiff_sphere::LatLon;
use serde_json::{Map, Value};

use super::pipeline::Waiting;

/// An image of the input, not yet read or decoded.
#[derive(Debug)]
pub struct Item {
    /// Id of the row.
    pub id: String,
    /// Where it is, for messages: a path, or a tar and the member in it.
    pub path: String,
    /// Where it was taken, by the input.
    pub place: Stated,
    /// The encoded picture.
    pub content: Content,
}

impl Item {
    pub(super) fn bad(id: String, path: String, bad: Bad) -> Item {
        Item { id, path, place: Stated::Nothing, content: Content::Bad(bad) }
    }
}

impl Waiting for Item {
    fn bytes(&self) -> usize {
        match &self.content {
            Content::Bytes(bytes) => bytes.len(),
            Content::File(_) | Content::Bad(_) => 0,
        }
    }
}

/// Where the encoded picture is.
#[derive(Debug)]
pub enum Content {
    /// In a file of its own.
    File(PathBuf),
    /// In memory, from a tar.
    Bytes(Vec<u8>),
    /// It was found to be of no use when it was listed.
    Bad(Bad),
}

/// Why an image is skipped.
#[derive(Debug, Clone)]
pub struct Bad {
    /// For counting: one of [`PhotoError::kind`](locdiff::photo::PhotoError::kind), or one of ours.
    pub kind: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Bad {
    pub(super) const DAMAGED: &str = "damaged";
    pub(super) const UNREADABLE: &str = "unreadable";
    pub(super) const TOO_LARGE: &str = "too-large";
    pub(super) const BAD_PLACE: &str = "bad-place";
    pub(super) const BAD_ROW: &str = "bad-row";
    pub(super) const NO_PICTURE: &str = "no-picture";
    pub(super) const SECOND_PICTURE: &str = "second-picture";
    pub(super) const PANIC: &str = "panic";
    pub(super) const NOT_FINITE: &str = "not-finite";

    /// An image that is skipped, with the kind of its problem.
    pub(crate) fn new(kind: &'static str, message: impl ToString) -> Bad {
        Bad { kind, message: message.to_string() }
    }
}

/// The place that the input states for an image.
#[derive(Debug, Clone, PartialEq)]
pub enum Stated {
    /// Nothing: Exif data may have a place.
    Nothing,
    /// A place was stated.
    At(LatLon),
    /// Something that is no place. Such an image is skipped: what the camera states may be as
    /// wrong, and a row in the wrong place is worse than none.
    Wrong(String),
}

impl Stated {
    /// Degrees, if there are any.
    pub fn of(latitude: Option<f64>, longitude: Option<f64>) -> Stated {
        match (latitude, longitude) {
            (None, None) => Stated::Nothing,
            (Some(latitude), Some(longitude)) => match LatLon::new(latitude, longitude) {
                Ok(place) => Stated::At(place),
                Err(error) => Stated::Wrong(error.to_string()),
            },
            (Some(_), None) => Stated::Wrong("it has a latitude but no longitude".to_owned()),
            (None, Some(_)) => Stated::Wrong("it has a longitude but no latitude".to_owned()),
        }
    }

    /// The place if there is one; an image with a wrong one is bad.
    pub fn checked(&self) -> Result<Option<LatLon>, Bad> {
        match self {
            Stated::Wrong(reason) => Err(Bad::new(Bad::BAD_PLACE, reason)),
            Stated::At(place) => Ok(Some(*place)),
            Stated::Nothing => Ok(None),
        }
    }

    /// Degrees as text; empty for none.
    pub(super) fn of_texts(latitude: &str, longitude: &str) -> Stated {
        match (degrees(latitude), degrees(longitude)) {
            (Ok(latitude), Ok(longitude)) => Stated::of(latitude, longitude),
            (Err(reason), _) | (_, Err(reason)) => Stated::Wrong(reason),
        }
    }

    /// A JSON object with the fields `latitude` and `longitude`, or `lat` and `lon`.
    pub(super) fn of_json(bytes: &[u8]) -> Stated {
        let fields: Map<String, Value> = match serde_json::from_slice(bytes) {
            Ok(fields) => fields,
            Err(error) => return Stated::Wrong(format!("its JSON cannot be read: {error}")),
        };
        let degrees = |names: &[&str]| match names.iter().find_map(|name| fields.get(*name)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(Value::String(text)) => degrees(text),
            Some(other) => Err(format!("`{other}` is not a number of degrees")),
        };
        match (degrees(LATITUDE_NAMES), degrees(LONGITUDE_NAMES)) {
            (Ok(latitude), Ok(longitude)) => Stated::of(latitude, longitude),
            (Err(reason), _) | (_, Err(reason)) => Stated::Wrong(reason),
        }
    }
}

pub(super) const LATITUDE_NAMES: &[&str] = &["latitude", "lat"];
pub(super) const LONGITUDE_NAMES: &[&str] = &["longitude", "lon", "lng"];

fn degrees(text: &str) -> Result<Option<f64>, String> {
    match text.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| format!("`{text}` is not a number of degrees")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(latitude: f64, longitude: f64) -> Stated {
        Stated::At(LatLon::new(latitude, longitude).unwrap())
    }

    #[test]
    fn places_are_read_or_refused_but_never_guessed() {
        assert_eq!(Stated::of_texts(" 90", "0"), at(90.0, 0.0));
        assert_eq!(Stated::of_texts("12.5", "180"), at(12.5, -180.0));
        assert_eq!(Stated::of_texts("", " "), Stated::Nothing);
        for (latitude, longitude) in
            [("91", "0"), ("NaN", "0"), ("1", "inf"), ("1", ""), ("48°51'", "2")]
        {
            let stated = Stated::of_texts(latitude, longitude);
            assert!(matches!(stated, Stated::Wrong(_)), "{latitude} {longitude}: {stated:?}");
        }
    }

    #[test]
    fn json_states_places_in_several_ways() {
        let json = |text: &str| Stated::of_json(text.as_bytes());
        assert_eq!(json(r#"{"latitude": -90, "longitude": 12, "url": "x"}"#), at(-90.0, 12.0));
        assert_eq!(json(r#"{"lat": "1.5", "lon": "-179.5"}"#), at(1.5, -179.5));
        assert_eq!(json(r#"{"lat": 1.5, "lng": 2}"#), at(1.5, 2.0));
        assert_eq!(json(r#"{"latitude": null, "longitude": null}"#), Stated::Nothing);
        assert_eq!(json(r#"{"caption": "a house"}"#), Stated::Nothing);
        for text in ["[1, 2]", "{", r#"{"lat": [1], "lon": 2}"#, r#"{"lat": 1}"#] {
            assert!(matches!(json(text), Stated::Wrong(_)), "{text}");
        }
    }
}
