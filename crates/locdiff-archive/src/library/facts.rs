//! What is known of a file without a model.

use std::fmt;

use locdiff_sphere::LatLon;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use sha2::{Digest, Sha256};

use crate::Moment;

/// The SHA-256 of a file's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Takes a SHA-256 that is known already.
    pub fn from_bytes(bytes: [u8; 32]) -> ContentHash {
        ContentHash(bytes)
    }

    /// The hash of a file with these bytes.
    pub fn of(bytes: &[u8]) -> ContentHash {
        ContentHash(Sha256::digest(bytes).into())
    }

    /// From 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<ContentHash> {
        let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
        let digits = digits.filter(|digits| digits.len() == 64)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (16 * pair[0] + pair[1]) as u8;
        }
        Some(ContentHash(bytes))
    }
}

/// 64 hexadecimal digits.
impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl ToSql for ContentHash {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(&self.0)))
    }
}

impl FromSql for ContentHash {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<ContentHash> {
        let bytes = value.as_blob()?;
        bytes.try_into().map(ContentHash).map_err(|_| FromSqlError::InvalidBlobSize {
            expected_size: 32,
            blob_size: bytes.len(),
        })
    }
}

/// What a picture is: see [`crate::graphics`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Kind {
    /// Taken by a camera: worth locating.
    #[default]
    Photo,
    /// A screenshot, a document or a drawing: not located.
    Graphic,
}

impl Kind {
    /// As it is stored: `photo` or `graphic`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Photo => "photo",
            Kind::Graphic => "graphic",
        }
    }

    pub(super) fn named(name: &str) -> Kind {
        if name == "graphic" { Kind::Graphic } else { Kind::Photo }
    }
}

/// What the program read from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The file's path, as the user gave it.
    pub path: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// SHA-256 of the whole file.
    pub hash: ContentHash,
    /// Pixels: width and height, upright.
    pub pixels: Option<(u32, u32)>,
    /// Where the camera, or a sidecar, places the picture.
    pub gps: Option<LatLon>,
    /// When it was taken.
    pub time: Option<Moment>,
    /// Make and model of the camera.
    pub camera: Option<String>,
    /// Whether the picture is a photo or a graphic.
    pub kind: Kind,
}

impl Facts {
    /// Facts of a file of which only the bytes are known.
    pub fn of_bytes(path: &str, modified_ns: i64, bytes: &[u8]) -> Facts {
        Facts {
            path: path.to_owned(),
            size: bytes.len() as u64,
            modified_ns,
            hash: ContentHash::of(bytes),
            pixels: None,
            gps: None,
            time: None,
            camera: None,
            kind: Kind::Photo,
        }
    }
}

/// A file that was read, or could not be.
#[derive(Debug, Clone, PartialEq)]
pub struct Scanned {
    /// What is known of it.
    pub facts: Facts,
    /// Why it is not a picture that can be read; it is not tried again until it changes.
    pub error: Option<String>,
}
