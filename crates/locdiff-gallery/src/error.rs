//! What can be wrong with a gallery, or with what it is asked.

use std::path::{Path, PathBuf};

use locdiff_sphere::InvalidDensity;

use crate::EncoderIdentity;

/// Why a gallery cannot be opened, written or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GalleryError {
    /// A file cannot be read or written.
    #[error("cannot {what} {}: {error}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file that could not be read or written.
        path: PathBuf,
        /// What the system reports.
        error: std::io::Error,
    },
    /// A description in JSON cannot be parsed.
    #[error("{} is damaged: {error}", path.display())]
    Json {
        /// The file that is not JSON.
        path: PathBuf,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// The directory is something else, or of another version.
    #[error("{} is {found}, this program reads {expected}", path.display())]
    Version {
        /// `gallery.json` of the directory.
        path: PathBuf,
        /// What the file states.
        found: String,
        /// What this program reads.
        expected: String,
    },
    /// A file does not have the size that `gallery.json` implies.
    #[error(
        "{} has {found} bytes, gallery.json implies {expected}: the gallery is damaged, build it again or restore \
         this file",
        path.display()
    )]
    Size {
        /// The file of the wrong size.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// The size that it should have.
        expected: u64,
    },
    /// Offsets or other contents contradict each other.
    #[error("{} is damaged: {reason}", path.display())]
    Contents {
        /// The damaged file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Embeddings of two encoders would be compared.
    #[error("the gallery {} was made with the encoder {expected}, these embeddings with {found}", path.display())]
    OtherEncoder {
        /// Directory of the gallery.
        path: PathBuf,
        /// The gallery's encoder.
        expected: Box<EncoderIdentity>,
        /// The encoder of the rows or of the query.
        found: Box<EncoderIdentity>,
    },
    /// There is something at the place of the new gallery.
    #[error("{} exists: append to it, delete it, or choose another directory", path.display())]
    Exists {
        /// The directory that exists.
        path: PathBuf,
    },
    /// Another process is writing.
    #[error("another process is writing {}: wait until it has finished", path.display())]
    Busy {
        /// Directory of the gallery.
        path: PathBuf,
    },
    /// No row was given.
    #[error("a gallery needs at least one row, none was given for {}", path.display())]
    Empty {
        /// Directory of the gallery.
        path: PathBuf,
    },
    /// An embedding is of no use.
    #[error("{what} {reason}")]
    Embedding {
        /// Whose embedding: a row's or the query's.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Too little data to fit a likelihood.
    #[error(
        "a fit needs at least {needed} held-out rows, {left} are left of {given} ({inside} are in the gallery itself): \
         give more photographs that are not in the gallery"
    )]
    FewRows {
        /// Photographs that a fit needs.
        needed: usize,
        /// Photographs that could be used.
        left: usize,
        /// Photographs that were given.
        given: usize,
        /// How many were left out because the gallery contains them.
        inside: usize,
    },
    /// A density was asked for before a fit.
    #[error(
        "the gallery {} has no fitted likelihood: it returns candidates, and a density after `locdiff gallery fit` \
         with held-out photographs",
        path.display()
    )]
    NotFitted {
        /// Directory of the gallery.
        path: PathBuf,
    },
    /// A density cannot be made.
    #[error(transparent)]
    Density(#[from] InvalidDensity),
}

impl GalleryError {
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |error| GalleryError::File { what, path: path.to_owned(), error }
    }
}
