//! An archive's state in one SQLite file.
//!
//! What is known about a picture (facts, predictions, the user's decision) belongs to its content, by SHA-256. A path only
//! points to a content. So a moved or copied file keeps everything, and a changed file starts anew.
//!
//! Every write is one transaction in write-ahead mode: after a crash at any moment, a file is either recorded with
//! everything or not at all, and the next scan handles it again.
//!
//! ```
//! use locdiff_archive::library::{Facts, Known, Library, Scanned};
//! # let folder = tempfile::tempdir()?;
//! let mut library = Library::open(&folder.path().join("library.sqlite"))?;
//! let scan = library.begin_scan("photos")?;
//! let facts = Facts::of_bytes("photos/a.jpg", 1_700_000_000_000_000_000, b"bytes of the file");
//! assert_eq!(library.known(scan, &facts.path, facts.size, facts.modified_ns)?, Known::New);
//! library.record(scan, &[Scanned { facts, error: None }])?;
//! assert_eq!(library.unpredicted("earth-view", "1", 10)?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blob;
mod context;
mod error;
mod facts;
mod predictions;
mod scans;
mod schema;
mod tag_log;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

pub use context::UsedModel;
pub use error::LibraryError;
pub use facts::{ContentHash, Facts, Kind, Scanned};
pub use predictions::{Candidate, Decision, Entry, Prediction, Unpredicted};
pub use scans::{Known, ScanId, ScanSummary, is_below};
pub use tag_log::{LoggedTag, TagId, TagTarget};

/// One archive. Several processes may read it, one at a time writes.
#[derive(Debug)]
pub struct Library {
    connection: Connection,
}

/// See [`Library::lock_for_tags`].
#[derive(Debug)]
pub struct TagLock {
    _file: File,
}

impl Library {
    /// Opens a library, or makes a new one.
    pub fn open(path: &Path) -> Result<Library, LibraryError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(20))?;
        schema::prepare(&connection, path)?;
        Ok(Library { connection })
    }

    /// Keeps other processes from writing tags until the result is dropped. The lock is a file of its own beside the library,
    /// which stays: SQLite loses its locks if anybody else closes its file.
    pub fn lock_for_tags(&self) -> Result<TagLock, LibraryError> {
        let path = format!("{}-tags.lock", self.connection.path().unwrap_or("library"));
        let failed = |error: std::io::Error| LibraryError::Lock(format!("{path}: {error}"));
        let file = File::create(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(TagLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LibraryError::Lock(
                "another process writes tags of this library: wait until it has ended".to_owned(),
            )),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Whether the file is as it was written: SQLite's own check. An empty list is good.
    pub fn check(&self) -> Result<Vec<String>, LibraryError> {
        let mut statement = self.connection.prepare("PRAGMA integrity_check")?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
        let lines: Result<Vec<String>, _> = lines.collect();
        Ok(lines?.into_iter().filter(|line| line != "ok").collect())
    }
}
