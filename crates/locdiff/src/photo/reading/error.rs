//! What can be wrong with a photograph.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::format::{PhotoFormat, UnknownFormat};

/// Why a photograph could not be read. [`PhotoError::kind`] sorts them for counting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PhotoError {
    /// The operating system refused.
    #[error("{}", .path.display())]
    Unreadable {
        /// The file that could not be opened or read.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The bytes are no picture of any known kind.
    #[error(
        "not a picture: the file begins with {beginning}; use JPEG, PNG, WebP, GIF, TIFF or BMP"
    )]
    NotAnImage {
        /// The first bytes, as text where they are text.
        beginning: String,
    },
    /// A picture, but of a kind that this build doesn't read.
    #[error("{format} is not supported: {remedy}")]
    Unsupported {
        /// Name of the format.
        format: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The picture ends early or contradicts itself.
    #[error("damaged {format}: {reason}; fetch or export the picture again")]
    Damaged {
        /// The format by its first bytes.
        format: PhotoFormat,
        /// What is wrong.
        reason: String,
    },
    /// Reading it would take more than the caller allows.
    #[error(
        "too large: {found}, the limit is {limit}; make the picture smaller or raise `{option}`"
    )]
    TooLarge {
        /// What the picture has.
        found: String,
        /// Largest number that is allowed.
        limit: u64,
        /// Which of the [`ReadOptions`](super::ReadOptions), or the limit's name if it is fixed.
        option: &'static str,
    },
    /// Decoding took longer than the caller allows.
    #[error(
        "too slow: {format} was not decoded within {max_time:?}; make the picture smaller or raise `max_time`"
    )]
    TooSlow {
        /// Format of the picture.
        format: PhotoFormat,
        /// The time it was given.
        max_time: Duration,
    },
}

impl From<UnknownFormat> for PhotoError {
    fn from(unknown: UnknownFormat) -> PhotoError {
        match unknown {
            UnknownFormat::NotRead(format) => PhotoError::Unsupported {
                format: format.to_owned(),
                remedy: "convert the picture to JPEG or PNG",
            },
            UnknownFormat::NotAnImage { beginning } => PhotoError::NotAnImage { beginning },
        }
    }
}

impl PhotoError {
    /// A short name for counters and logs, the same for ever: `unreadable`, `not-an-image`,
    /// `unsupported`, `damaged`, `too-large` or `too-slow`.
    pub fn kind(&self) -> &'static str {
        match self {
            PhotoError::Unreadable { .. } => "unreadable",
            PhotoError::NotAnImage { .. } => "not-an-image",
            PhotoError::Unsupported { .. } => "unsupported",
            PhotoError::Damaged { .. } => "damaged",
            PhotoError::TooLarge { .. } => "too-large",
            PhotoError::TooSlow { .. } => "too-slow",
        }
    }

    /// What is wrong, for somebody who knows which picture it is about.
    pub fn reason(&self) -> String {
        match self {
            PhotoError::Unreadable { source, .. } => source.to_string(),
            error => error.to_string(),
        }
    }

    pub(in crate::photo) fn damaged(format: PhotoFormat, reason: impl ToString) -> PhotoError {
        let reason = reason.to_string();
        PhotoError::Damaged { format, reason: reason.trim().trim_end_matches('.').to_owned() }
    }
}
