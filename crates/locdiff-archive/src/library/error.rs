//! What can go wrong with a library.

use std::path::PathBuf;

/// Why a library could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// SQLite could not open, read or write the library.
    #[error("the library could not be read or written: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The file is a database of another program.
    #[error("{0} is an SQLite file, but not a library of locdiff: choose another file")]
    Foreign(PathBuf),
    /// The file was written by a newer version.
    #[error("{path} has schema {found}, this program reads up to {known}: install a newer version")]
    Newer {
        /// The library's file.
        path: PathBuf,
        /// Version of its schema.
        found: i64,
        /// The newest version that this program can read.
        known: i64,
    },
    /// Another process writes tags, or the lock can't be made.
    #[error("the library can't be locked: {0}")]
    Lock(String),
    /// A stored density can't be read.
    #[error("the stored density of {hash} is damaged: predict this picture again")]
    Density {
        /// The picture's content.
        hash: String,
    },
    /// A place, hash or other value in the database is not valid.
    #[error("the library contains an invalid value: {0}")]
    Value(String),
    /// Something was stored for a picture that is not in the library.
    #[error("no picture with content {0} is in the library: scan it first")]
    Unknown(String),
}
