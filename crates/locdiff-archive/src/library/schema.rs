//! The tables, and how they came to be.

use std::path::Path;

use rusqlite::Connection;

use super::LibraryError;

/// `PRAGMA application_id`: "LocD".
const APPLICATION: i64 = 0x4c6f_6344;
/// `PRAGMA user_version`.
const VERSION: i64 = 1;

const TABLES: &str = "
CREATE TABLE scans (
    id INTEGER PRIMARY KEY,
    root TEXT NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0
);
-- What is known of a content before a model looks at it. Place and time are those of its first file that has any.
CREATE TABLE contents (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    size INTEGER NOT NULL,
    width INTEGER,
    height INTEGER,
    latitude REAL,
    longitude REAL,
    time_s REAL,
    camera TEXT,
    kind TEXT NOT NULL,
    error TEXT
) WITHOUT ROWID;
-- Where contents are. A file that a finished scan did not find is missing, not deleted.
CREATE TABLE files (
    path TEXT PRIMARY KEY,
    hash BLOB NOT NULL REFERENCES contents (hash),
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    -- What the file and its own sidecars tell.
    latitude REAL,
    longitude REAL,
    time_s REAL,
    first_scan INTEGER NOT NULL REFERENCES scans (id),
    last_scan INTEGER NOT NULL REFERENCES scans (id),
    missing INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX files_of_content ON files (hash);
CREATE TABLE predictions (
    hash BLOB NOT NULL REFERENCES contents (hash),
    model TEXT NOT NULL,
    version TEXT NOT NULL,
    fused INTEGER NOT NULL,
    calibrated INTEGER NOT NULL,
    latitude REAL,
    longitude REAL,
    confidence REAL,
    radius_68_km REAL,
    radius_90_km REAL,
    candidates TEXT NOT NULL,
    influences TEXT NOT NULL,
    density BLOB,
    error TEXT,
    PRIMARY KEY (hash, model, version, fused)
) WITHOUT ROWID;
-- The newest decision about a content has the highest number. 'none' was taken back. An accepted prediction is stored with it,
-- as it was when the user accepted it.
CREATE TABLE decisions (
    hash BLOB PRIMARY KEY REFERENCES contents (hash),
    number INTEGER NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('accepted', 'rejected', 'moved', 'none')),
    latitude REAL,
    longitude REAL,
    model TEXT,
    version TEXT,
    fused INTEGER,
    calibrated INTEGER,
    confidence REAL,
    radius_68_km REAL,
    radius_90_km REAL,
    candidates TEXT,
    influences TEXT
) WITHOUT ROWID;
-- From which inputs a fused prediction was made, or that there was nothing to fuse.
CREATE TABLE fusions (
    hash BLOB NOT NULL REFERENCES contents (hash),
    model TEXT NOT NULL,
    version TEXT NOT NULL,
    inputs BLOB NOT NULL,
    PRIMARY KEY (hash, model, version)
) WITHOUT ROWID;
-- The model of the last scan: one row.
CREATE TABLE model (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    calibrated INTEGER NOT NULL
);
-- What the user stated about the pictures of a folder, as the program wrote it.
CREATE TABLE stated (
    folder TEXT PRIMARY KEY,
    words TEXT NOT NULL
) WITHOUT ROWID;
-- The undo log. A row is planned before a file is touched, and written after.
CREATE TABLE tags (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    target TEXT NOT NULL CHECK (target IN ('sidecar', 'in_place')),
    content BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('planned', 'written', 'undone')),
    hash_before BLOB,
    bytes_before BLOB,
    backup TEXT,
    hash_after BLOB NOT NULL
);
CREATE INDEX tags_of_path ON tags (path);
";

/// Makes the tables in a new file, and checks those of an old one.
pub(super) fn prepare(connection: &Connection, path: &Path) -> Result<(), LibraryError> {
    let number = |name: &str| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, name, |row| row.get(0))
    };
    // Of two processes that make the same file, the second waits here and finds the tables.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let result = (|| {
        let (application, version) = (number("application_id")?, number("user_version")?);
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        if application == 0 && version == 0 && tables == 0 {
            connection.execute_batch(TABLES)?;
            connection.pragma_update(None, "application_id", APPLICATION)?;
            connection.pragma_update(None, "user_version", VERSION)?;
        } else if application != APPLICATION {
            return Err(LibraryError::Foreign(path.to_owned()));
        } else if version > VERSION {
            let path = path.to_owned();
            return Err(LibraryError::Newer { path, found: version, known: VERSION });
        }
        Ok(())
    })();
    connection.execute_batch(if result.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    result?;
    // Every commit is on the disk before it returns: "written" in the undo log must be true after a power cut.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    Ok(())
}
