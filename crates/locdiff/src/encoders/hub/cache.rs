//! The hub's cache on disk, as Python's `huggingface_hub` lays it out:
//!
//! ```text
//! models--owner--name/refs/main                      the commit that the branch was at
//! models--owner--name/snapshots/COMMIT/config.json   a link to
//! models--owner--name/blobs/ETAG                     the file
//! .locks/models--owner--name/ETAG.lock               held by whoever writes the file
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;

use super::error::HubError;
use super::remote::{RemoteFile, is_commit};
use super::repository::Repository;
use crate::checksum::sha256_of_file;

/// A model on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedModel {
    /// Directory of the files.
    pub directory: PathBuf,
    /// The commit that they are of.
    pub revision: String,
    /// The files: configuration, preprocessing, weights.
    pub files: Vec<FetchedFile>,
}

/// A file of a model on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedFile {
    /// Its name in the model's directory.
    pub name: String,
    /// Size of the file.
    pub size_bytes: u64,
    /// SHA-256 of the file's content.
    pub sha256: String,
}

/// One model's part of the cache.
pub(super) struct Shelf {
    directory: PathBuf,
    locks: PathBuf,
    revision: String,
}

impl Shelf {
    pub(super) fn new(cache: &Path, repository: &Repository) -> Shelf {
        let revision = repository.revision().to_owned();
        let folder = format!("models--{}", repository.name()).replace('/', "--");
        Shelf {
            directory: cache.join(&folder),
            locks: cache.join(".locks").join(&folder),
            revision,
        }
    }

    /// Where a commit's files are.
    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.directory.join("snapshots").join(commit)
    }

    /// Path of a file's content.
    pub(super) fn blob(&self, etag: &str) -> PathBuf {
        self.directory.join("blobs").join(etag)
    }

    /// The file's beginning, while it is being downloaded.
    pub(super) fn part(&self, etag: &str) -> PathBuf {
        self.blob(&format!("{etag}.incomplete"))
    }

    /// Makes the directories for a file, and waits until nobody else writes it.
    pub(super) fn lock(&self, file: &RemoteFile) -> Result<File, HubError> {
        for directory in [&self.locks, &self.directory.join("blobs"), &self.snapshot(&file.commit)]
        {
            fs::create_dir_all(directory).map_err(HubError::at(directory))?;
        }
        let path = self.locks.join(format!("{}.lock", file.etag));
        let lock = File::create(&path).map_err(HubError::at(&path))?;
        loop {
            match lock.lock() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Some network file systems have no locks; sums are checked in any case.
                _ => return Ok(lock),
            }
        }
    }

    /// Refuses a file that was another one at the same commit: commits don't change, so that somebody else did something to it.
    /// What was there is kept.
    pub(super) fn expect_unchanged(&self, file: &RemoteFile) -> Result<(), HubError> {
        let linked = fs::read_link(self.snapshot(&file.commit).join(file.name)).ok();
        let before = linked.as_ref().and_then(|target| target.file_name()?.to_str());
        match before {
            // A link to nothing was left by somebody who removed the file.
            Some(before) if before != file.etag && self.blob(before).is_file() => {
                Err(HubError::Changed {
                    file: file.name.to_owned(),
                    revision: file.commit.clone(),
                    before: before.to_owned(),
                    now: file.etag.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Shows a file in its commit's snapshot.
    pub(super) fn link(&self, file: &RemoteFile) -> Result<(), HubError> {
        let pointer = self.snapshot(&file.commit).join(file.name);
        // Whoever held the lock before us may have made it, and may be reading it.
        if pointer.is_file() {
            return Ok(());
        }
        // A link to nothing, perhaps.
        remove(&pointer)?;
        link_or_copy(&file.etag, &self.blob(&file.etag), &pointer).map_err(HubError::at(&pointer))
    }

    /// Stores the commit of the revision.
    pub(super) fn remember(&self, commit: &str) -> Result<(), HubError> {
        if self.commit().as_deref() == Some(commit) {
            return Ok(());
        }
        let path = self.reference();
        // A branch may have slashes in its name.
        let folder = path.parent().unwrap_or(&self.directory);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, commit));
        written.map_err(HubError::at(&path))
    }

    fn reference(&self) -> PathBuf {
        self.directory.join("refs").join(&self.revision)
    }

    fn commit(&self) -> Option<String> {
        let commit = if is_commit(&self.revision) {
            self.revision.clone()
        } else {
            fs::read_to_string(self.reference()).ok()?.trim().to_owned()
        };
        is_commit(&commit).then_some(commit)
    }

    /// The model, if all its files are here.
    pub(super) fn model(&self, wanted: &[&[&str]]) -> Option<FetchedModel> {
        let revision = self.commit()?;
        let directory = self.snapshot(&revision);
        let file = |names: &&[&str]| {
            let name = names.iter().find(|name| directory.join(name).is_file())?;
            let path = directory.join(name);
            let size_bytes = fs::metadata(&path).ok()?.len();
            // A large file's name in the cache is its sum. Only the first link tells: blobs may be
            // links in turn, to a store that goes by sums of another kind.
            let linked = fs::read_link(&path).ok();
            let etag = linked.as_ref().and_then(|target| target.file_name()?.to_str());
            let sha256 = match etag {
                Some(etag) if is_sha256(etag) => etag.to_owned(),
                _ => sha256_of_file(&path).ok()?,
            };
            Some(FetchedFile { name: (*name).to_owned(), size_bytes, sha256 })
        };
        let files = wanted.iter().map(file).collect::<Option<Vec<FetchedFile>>>()?;
        Some(FetchedModel { directory, revision, files })
    }
}

/// The file's SHA-256, once all that is known about the file has been found true of it: size and
/// sum of large files; of small ones, whose sum is git's own, size and that they can be read.
pub(super) fn check(path: &Path, file: &RemoteFile) -> Result<String, HubError> {
    let name = || file.name.to_owned();
    let found = fs::metadata(path).map_err(HubError::at(path))?.len();
    if found != file.size {
        return Err(HubError::Size { file: name(), found, expected: file.size });
    }
    let sha256 = sha256_of_file(path).map_err(HubError::at(path))?;
    if is_sha256(&file.etag) {
        let expected = file.etag.to_ascii_lowercase();
        return if sha256 == expected {
            Ok(sha256)
        } else {
            Err(HubError::Checksum { file: name(), found: sha256, expected })
        };
    }
    let bytes = fs::read(path).map_err(HubError::at(path))?;
    let read = match file.name.rsplit('.').next() {
        Some("json") => serde_json::from_slice::<serde_json::Value>(&bytes)
            .map_or_else(|error| Err(error.into()), |_| Ok(())),
        Some("safetensors") => {
            SafeTensors::deserialize(&bytes).map_or_else(|error| Err(error.into()), |_| Ok(()))
        }
        _ => Ok(()),
    };
    read.map_err(|source| HubError::Contents { file: name(), source })?;
    Ok(sha256)
}

fn is_sha256(etag: &str) -> bool {
    etag.len() == 64 && etag.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Removes a file if it is there.
pub(super) fn remove(path: &Path) -> Result<(), HubError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(HubError::at(path)(error)),
        _ => Ok(()),
    }
}

/// Relative, so that the cache can be moved. Where links need rights that we lack, a copy.
fn link_or_copy(etag: &str, blob: &Path, pointer: &Path) -> io::Result<()> {
    let target: PathBuf = ["..", "..", "blobs", etag].iter().collect();
    #[cfg(unix)]
    let linked = std::os::unix::fs::symlink(target, pointer);
    #[cfg(windows)]
    let linked = std::os::windows::fs::symlink_file(target, pointer);
    #[cfg(not(any(unix, windows)))]
    let linked: io::Result<()> = Err(io::ErrorKind::Unsupported.into());
    linked.or_else(|_| fs::copy(blob, pointer).map(drop))
}
