//! One picture of the command line.

use std::io::stdin;
use std::path::{Path, PathBuf};

use locdiff::locate::{ExifPlace, ImageFacts, ReadPicture};
use locdiff::photo::PhotoError;

/// A picture to be located.
pub(super) enum Picture {
    Path {
        path: PathBuf,
        name: String,
        /// Below the folder that was named.
        relative: PathBuf,
    },
    Stdin,
}

impl Picture {
    pub(super) fn from_path(path: PathBuf, relative: PathBuf) -> Picture {
        let name = path.display().to_string();
        Picture::Path { path, name, relative }
    }

    /// Where it is below the folder that was named.
    pub(super) fn relative(&self) -> &Path {
        match self {
            Picture::Path { relative, .. } => relative,
            Picture::Stdin => Path::new("stdin"),
        }
    }

    /// The name that the user gave.
    pub(super) fn name(&self) -> &str {
        match self {
            Picture::Path { name, .. } => name,
            Picture::Stdin => "stdin",
        }
    }

    /// Its pixels, and what its bytes tell.
    pub(super) fn read(&self) -> Result<ReadPicture, PhotoError> {
        match self {
            Picture::Path { path, .. } => ReadPicture::open(path),
            Picture::Stdin => ReadPicture::from_reader(self.name().as_ref(), stdin().lock()),
        }
    }
}

/// A picture that could not be located.
pub(super) struct Failure {
    pub(super) name: String,
    /// As far as it could be read.
    pub(super) facts: Box<ImageFacts>,
    /// The place that the camera recorded.
    pub(super) exif: Option<Box<ExifPlace>>,
    pub(super) reason: String,
    /// For want of a model.
    pub(super) no_model: bool,
}
