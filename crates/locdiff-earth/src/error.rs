use std::path::PathBuf;

/// What can go wrong with imagery.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file that could not be read or written.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A picture could not be decoded.
    #[error("{}: {source}", path.display())]
    Picture {
        /// The picture that could not be decoded.
        path: PathBuf,
        /// The decoder's error.
        source: image::ImageError,
    },
    /// A tile database could not be read.
    #[cfg(feature = "tiles")]
    #[error("{}: {source}", path.display())]
    Tiles {
        /// The MBTiles file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {found}, expected {expected}", path.display())]
    Format {
        /// The file with other content than expected.
        path: PathBuf,
        /// What the file has.
        found: String,
        /// What should be there.
        expected: String,
    },
    /// Bytes are not packed imagery, or are damaged.
    #[error("packed imagery: {found}, expected {expected}")]
    Packed {
        /// What the bytes have.
        found: String,
        /// What should be there.
        expected: String,
    },
}

impl Error {
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    pub(crate) fn format(
        path: &std::path::Path,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Format { path: path.to_owned(), found: found.into(), expected: expected.into() }
    }

    pub(crate) fn packed(found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Packed { found: found.into(), expected: expected.into() }
    }
}
