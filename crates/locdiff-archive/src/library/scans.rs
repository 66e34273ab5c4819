//! Scanning a folder: which files are new, changed, moved or gone.

use rusqlite::{OptionalExtension, params};

use super::{ContentHash, Library, LibraryError, Scanned};

/// Place and time of contents: those of the first file that is present and has any. Copies may have different sidecars.
const SUMMARIZE: &str = "UPDATE contents SET
    (latitude, longitude) = (SELECT f.latitude, f.longitude FROM files f WHERE f.hash = contents.hash
        AND f.missing = 0 AND f.latitude IS NOT NULL ORDER BY f.path LIMIT 1),
    time_s = (SELECT f.time_s FROM files f WHERE f.hash = contents.hash
        AND f.missing = 0 AND f.time_s IS NOT NULL ORDER BY f.path LIMIT 1)";

/// One walk over a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanId(i64);

/// What the library has of a file, by its path, size and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Known {
    /// Not in the library: the file must be read.
    New,
    /// Another size or time: read it again.
    Changed,
    /// As in the library: nothing to do.
    Unchanged(ContentHash),
}

/// What a scan found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScanSummary {
    /// Files that the scan found.
    pub present: usize,
    /// Of them, those with new paths whose content was known under a path that is gone.
    pub moved: usize,
    /// Of them, the others with new paths.
    pub added: usize,
    /// Contents that are nowhere any more.
    pub missing: usize,
}

/// Whether a file is in a folder, or in one below it.
pub fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches(['/', '\\']));
    rest.is_some_and(|rest| rest.starts_with(['/', '\\']))
}

impl Library {
    /// Begins to walk a folder. Files below it that the scan doesn't meet are missing once it is finished.
    pub fn begin_scan(&mut self, root: &str) -> Result<ScanId, LibraryError> {
        self.connection.execute("INSERT INTO scans (root) VALUES (?1)", [root])?;
        Ok(ScanId(self.connection.last_insert_rowid()))
    }

    /// What is known of a file. A file that is unchanged counts as met.
    pub fn known(
        &mut self,
        scan: ScanId,
        path: &str,
        size: u64,
        modified_ns: i64,
    ) -> Result<Known, LibraryError> {
        let mut known = self.known_all(scan, &[(path, size, modified_ns)])?;
        Ok(known.pop().unwrap_or(Known::New))
    }

    /// [`Library::known`] for many files in one transaction: paths, sizes, times.
    pub fn known_all(
        &mut self,
        scan: ScanId,
        files: &[(&str, u64, i64)],
    ) -> Result<Vec<Known>, LibraryError> {
        let transaction = self.connection.transaction()?;
        let mut known = Vec::with_capacity(files.len());
        {
            let mut find = transaction
                .prepare_cached("SELECT hash, size, modified_ns FROM files WHERE path = ?1")?;
            let mut meet = transaction
                .prepare_cached("UPDATE files SET last_scan = ?2, missing = 0 WHERE path = ?1")?;
            for (path, size, modified_ns) in files {
                let row = find.query_row([path], |row| {
                    Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
                });
                known.push(match row.optional()? {
                    None => Known::New,
                    Some((hash, old_size, old_ns))
                        if old_size == *size as i64 && old_ns == *modified_ns =>
                    {
                        meet.execute(params![path, scan.0])?;
                        Known::Unchanged(hash)
                    }
                    Some(_) => Known::Changed,
                });
            }
        }
        transaction.commit()?;
        Ok(known)
    }

    /// Records files that were read, all or none. What is known of a content that was met before stays.
    pub fn record(&mut self, scan: ScanId, scanned: &[Scanned]) -> Result<(), LibraryError> {
        let transaction = self.connection.transaction()?;
        {
            let mut content = transaction.prepare_cached(
                "INSERT INTO contents (hash, size, width, height, camera, kind, error)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (hash) DO UPDATE SET
                     width = excluded.width, height = excluded.height, camera = excluded.camera,
                     kind = excluded.kind, error = excluded.error",
            )?;
            let mut file = transaction.prepare_cached(
                "INSERT INTO files (path, hash, size, modified_ns, first_scan, last_scan, latitude, longitude, time_s)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8)
                 ON CONFLICT (path) DO UPDATE SET
                     hash = excluded.hash, size = excluded.size, modified_ns = excluded.modified_ns,
                     latitude = excluded.latitude, longitude = excluded.longitude, time_s = excluded.time_s,
                     last_scan = excluded.last_scan, missing = 0",
            )?;
            let mut summarize =
                transaction.prepare_cached(&format!("{SUMMARIZE} WHERE hash = ?1"))?;
            for Scanned { facts, error } in scanned {
                content.execute(params![
                    facts.hash,
                    facts.size as i64,
                    facts.pixels.map(|(width, _)| width),
                    facts.pixels.map(|(_, height)| height),
                    facts.camera,
                    facts.kind.name(),
                    error,
                ])?;
                let (size, modified_ns) = (facts.size as i64, facts.modified_ns);
                file.execute(params![
                    facts.path,
                    facts.hash,
                    size,
                    modified_ns,
                    scan.0,
                    facts.gps.map(|place| place.latitude()),
                    facts.gps.map(|place| place.longitude()),
                    facts.time.map(|time| time.unix_s()),
                ])?;
                summarize.execute([facts.hash])?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// Ends a scan that walked the whole folder.
    pub fn finish_scan(&mut self, scan: ScanId) -> Result<ScanSummary, LibraryError> {
        let transaction = self.connection.transaction()?;
        let root: String =
            transaction
                .query_row("SELECT root FROM scans WHERE id = ?1", [scan.0], |r| r.get(0))?;
        // Paths are compared as bytes: `photos` contains `photos/a.jpg`, not `photos2/a.jpg`.
        let trimmed = root.trim_end_matches(['/', '\\']);
        transaction.execute(
            "UPDATE files SET missing = 1 WHERE last_scan < ?1
             AND (path = ?2 OR substr(path, 1, length(?2) + 1) IN (?2 || '/', ?2 || '\\') OR ?2 IN ('', '.'))",
            params![scan.0, trimmed],
        )?;
        // What only files told that are gone is not known any more, if there are others.
        transaction.execute(
            &format!(
                "{SUMMARIZE} WHERE hash IN (SELECT hash FROM files WHERE missing = 1)
                 AND hash IN (SELECT hash FROM files WHERE missing = 0)"
            ),
            [],
        )?;
        transaction.execute("UPDATE scans SET finished = 1 WHERE id = ?1", [scan.0])?;
        let count = |sql: &str| -> rusqlite::Result<usize> {
            transaction.query_row(sql, [scan.0], |row| row.get::<_, i64>(0)).map(|n| n as usize)
        };
        let present = count("SELECT count(*) FROM files WHERE last_scan = ?1 AND missing = 0")?;
        let moved = count(
            "SELECT count(*) FROM files new WHERE first_scan = ?1 AND EXISTS
             (SELECT 1 FROM files old WHERE old.hash = new.hash AND old.missing = 1)",
        )?;
        let new = count("SELECT count(*) FROM files WHERE first_scan = ?1")?;
        let missing = count(
            "SELECT count(DISTINCT hash) FROM files gone WHERE missing = 1 AND ?1 = ?1 AND NOT EXISTS
             (SELECT 1 FROM files other WHERE other.hash = gone.hash AND other.missing = 0)",
        )?;
        transaction.commit()?;
        Ok(ScanSummary { present, moved, added: new - moved, missing })
    }
}

#[cfg(test)]
mod tests {
    use super::is_below;

    #[test]
    fn folders_contain_what_is_below_them() {
        for (path, folder) in [("/a/b.jpg", "/a"), ("/a/c/b.jpg", "/a/"), ("/a", "/")] {
            assert!(is_below(path, folder), "{path} in {folder}");
        }
        for (path, folder) in [("/ab/b.jpg", "/a"), ("/a", "/a"), ("/b/a/c", "/a")] {
            assert!(!is_below(path, folder), "{path} in {folder}");
        }
    }
}
