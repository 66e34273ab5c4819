//! Why embedding can't begin or go on. Single bad images are no error: they are skipped.

use std::io;
use std::path::{Path, PathBuf};

use crate::data::DataError;

/// Why images could not be embedded. What was embedded before is kept: embedding into the same
/// directory again goes on there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// A file can't be read or written; a full disk, for example.
    #[error("cannot {what} {path}", path = path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A shard can't be written.
    #[error(transparent)]
    Shard(#[from] DataError),
    /// The input is nothing that images can be taken from.
    #[error("{path} cannot be embedded: {reason}", path = path.display())]
    Input {
        /// File or folder of the input.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The directory was begun with other settings.
    #[error(
        "{path} was begun with other settings:\n{difference}use those settings, or choose another directory",
        path = path.display()
    )]
    OtherSettings {
        /// What records the settings.
        path: PathBuf,
        /// Lines with the earlier and the present values.
        difference: String,
    },
    /// The directory holds shards that were not made by embedding.
    #[error("{path} exists: choose another directory", path = .0.display())]
    NotOurs(PathBuf),
    /// Another process embeds the same images into the same directory.
    #[error("another process is writing into {path}", path = .0.display())]
    Busy(PathBuf),
    /// The directory's own records contradict themselves.
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged {
        /// The record that is damaged.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The encoder broke its contract.
    #[error(
        "the encoder made {found} numbers of {pictures} pictures, {width} per picture were expected"
    )]
    Encoder {
        /// Numbers that the encoder returned.
        found: usize,
        /// Pictures that the encoder was given.
        pictures: usize,
        /// Length of an embedding by the encoder's own description.
        width: usize,
    },
}

impl EmbedError {
    pub(super) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> EmbedError {
        let path = path.to_owned();
        move |source| EmbedError::File { what, path, source }
    }

    pub(super) fn input(path: &Path, reason: impl ToString) -> EmbedError {
        EmbedError::Input { path: path.to_owned(), reason: reason.to_string() }
    }
}
