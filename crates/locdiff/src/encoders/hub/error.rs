//! What can go wrong between here and the hub, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Why an encoder could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// Neither a short name nor `owner/name`.
    #[error(
        "no encoder is named `{name}`: use {known}, or any model of the hub as owner/name \
         or owner/name@revision"
    )]
    UnknownEncoder {
        /// The name that is unknown.
        name: String,
        /// The short names that exist.
        known: String,
    },
    /// No directory for files is set.
    #[error("there is no home directory to keep files in: set HF_HOME to a directory")]
    NoHome,
    /// The endpoint isn't an address.
    #[error("the hub's endpoint is `{0}`: HF_ENDPOINT should begin with https:// or http://")]
    Endpoint(String),
    /// The network may not be used, and the files aren't here.
    #[error(
        "{repository} at {revision} is not in {}, and HF_HUB_OFFLINE is set: unset it, or fetch \
         the model on another machine and copy the directory", .cache.display()
    )]
    Offline {
        /// `owner/name`.
        repository: String,
        /// The branch, tag or commit.
        revision: String,
        /// The directory that was searched.
        cache: PathBuf,
    },
    /// The hub requires a token.
    #[error(
        "the hub denied access to {repository} (status {status}{}): accept the terms on the model's \
         page, if there are any, and set HF_TOKEN to a token of your account that may read it", said(.message)
    )]
    Refused {
        /// `owner/name`.
        repository: String,
        /// The status of the answer.
        status: u16,
        /// The hub's message, if it sent one.
        message: String,
    },
    /// There is no such model, or none that we may see.
    #[error(
        "the hub has no model {repository}{}: check the spelling; if the model is private, set \
         HF_TOKEN", said(.message)
    )]
    NoRepository {
        /// `owner/name`.
        repository: String,
        /// The hub's message, if it sent one.
        message: String,
    },
    /// The model has no such branch, tag or commit.
    #[error("{repository} has no revision {revision}: name a branch, a tag or a whole commit")]
    NoRevision {
        /// `owner/name`.
        repository: String,
        /// The revision that does not exist.
        revision: String,
    },
    /// The model lacks a file that every encoder needs.
    #[error(
        "{repository} at {revision} contains no {file}: choose a model in the layout of the \
         transformers library"
    )]
    NoFile {
        /// `owner/name`.
        repository: String,
        /// The branch, tag or commit.
        revision: String,
        /// The file, or the files of which one is wanted.
        file: String,
    },
    /// The answer isn't one that a hub gives.
    #[error("{url} is not the address of a hub: {problem}; check HF_ENDPOINT")]
    NotAHub {
        /// Address of the request.
        url: String,
        /// What is odd about the answer.
        problem: String,
    },
    /// No answer, or only errors.
    #[error(
        "{url} cannot be reached, tried {attempts} times: check the network, or try again later"
    )]
    Unreachable {
        /// Address of the request.
        url: String,
        /// Number of attempts.
        attempts: u32,
        /// How it failed the last time.
        source: Failure,
    },
    /// The download stopped, and trying again didn't help.
    #[error(
        "{file} stopped after {received} of {size} bytes, tried {attempts} times: fetch again to \
         resume"
    )]
    Interrupted {
        /// Name of the file in the repository.
        file: String,
        /// Bytes that were received.
        received: u64,
        /// Size of the file on the hub.
        size: u64,
        /// How often it was tried without getting further.
        attempts: u32,
        /// How it failed the last time.
        source: Failure,
    },
    /// The file isn't the one that the hub has.
    #[error(
        "{file} has SHA-256 {found}, the hub has {expected}: the copy was removed; fetch again. If \
         the error remains, a proxy may change files"
    )]
    Checksum {
        /// Name of the file in the repository.
        file: String,
        /// SHA-256 of the bytes that were received.
        found: String,
        /// SHA-256 of what should have come.
        expected: String,
    },
    /// The hub has another file at the same commit.
    #[error(
        "{file} at {revision} has the checksum {now}, an earlier download had {before}. The files of a commit never \
         change: a proxy may change files. The earlier download is kept"
    )]
    Changed {
        /// Name of the file in the repository.
        file: String,
        /// The commit at which the file changed.
        revision: String,
        /// The checksum that the hub stated before.
        before: String,
        /// The checksum that the hub states now.
        now: String,
    },
    /// The file isn't as long as the one that the hub has.
    #[error("{file} has {found} bytes, the hub has {expected}: the copy was removed; fetch again")]
    Size {
        /// Name of the file in the repository.
        file: String,
        /// Size of the file in the cache.
        found: u64,
        /// Size of the file on the hub.
        expected: u64,
    },
    /// The content of the file does not fit its name.
    #[error(
        "{file} is damaged: the copy was removed; fetch again. If the error remains, the model \
         itself is damaged"
    )]
    Contents {
        /// Name of the file in the repository.
        file: String,
        /// The reader's error.
        source: Failure,
    },
    /// A file in the cache could not be read or written.
    #[error("{}", .path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// The error beneath ours.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

impl HubError {
    /// For `map_err`: an input or output error at a path.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> HubError {
        move |source| HubError::File { path: path.to_owned(), source }
    }

    /// Whether a file is here, but not as it should be.
    pub(super) fn is_damage(&self) -> bool {
        matches!(
            self,
            HubError::Checksum { .. } | HubError::Size { .. } | HubError::Contents { .. }
        )
    }
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(", message: {message}") }
}
