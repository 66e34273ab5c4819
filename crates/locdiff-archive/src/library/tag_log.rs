//! The undo log of written tags.
//!
//! A row is committed as "planned", with all that undoing needs, before a file is touched, and as "written"
//! after it was. Whatever is still planned when a library is opened again was interrupted: the file's content
//! tells whether it was written. Files are replaced by renaming, so there is nothing in between.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{ContentHash, Library, LibraryError};

/// The number of a row in the log of tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagId(i64);

/// What a tag was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TagTarget {
    /// A file beside the picture.
    Sidecar,
    /// The picture itself.
    InPlace,
}

/// A write that was planned, done or undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedTag {
    /// Key in the undo log.
    pub id: TagId,
    /// The file that was written: a sidecar or a picture.
    pub path: String,
    /// Picture or sidecar.
    pub target: TagTarget,
    /// The picture's content before.
    pub content: ContentHash,
    /// The file's content before; none if there was no such file.
    pub hash_before: Option<ContentHash>,
    /// The bytes of a sidecar before.
    pub bytes_before: Option<Vec<u8>>,
    /// A copy of a picture as it was before.
    pub backup: Option<String>,
    /// The file's content after.
    pub hash_after: ContentHash,
}

const COLUMNS: &str = "id, path, target, content, hash_before, bytes_before, backup, hash_after";

impl Library {
    /// Writes down what is about to be done to a file. The id of `tag` is not used.
    pub fn plan_tag(&mut self, tag: &LoggedTag) -> Result<TagId, LibraryError> {
        self.connection.execute(
            "INSERT INTO tags (path, target, content, state, hash_before, bytes_before, backup, hash_after)
             VALUES (?1, ?2, ?3, 'planned', ?4, ?5, ?6, ?7)",
            params![
                tag.path,
                tag.target.name(),
                tag.content,
                tag.hash_before,
                tag.bytes_before,
                tag.backup,
                tag.hash_after,
            ],
        )?;
        Ok(TagId(self.connection.last_insert_rowid()))
    }

    /// The file was written. A picture that was written in place has a new content, which inherits what was known
    /// of the old one.
    pub fn tag_written(
        &mut self,
        id: TagId,
        size: u64,
        modified_ns: i64,
    ) -> Result<(), LibraryError> {
        let transaction = self.connection.transaction()?;
        let tag = transaction.query_row(
            &format!("SELECT {COLUMNS} FROM tags WHERE id = ?1"),
            [id.0],
            logged,
        )?;
        transaction.execute("UPDATE tags SET state = 'written' WHERE id = ?1", [id.0])?;
        if tag.target == TagTarget::InPlace {
            let (old, new) = (tag.content, tag.hash_after);
            transaction.execute(
                "INSERT OR IGNORE INTO contents
                 SELECT ?2, ?3, width, height, latitude, longitude, time_s, camera, kind, error
                 FROM contents WHERE hash = ?1",
                params![old, new, size as i64],
            )?;
            transaction.execute(
                "INSERT OR IGNORE INTO predictions
                 SELECT ?2, model, version, fused, calibrated, latitude, longitude, confidence, radius_68_km,
                        radius_90_km, candidates, influences, density, error
                 FROM predictions WHERE hash = ?1",
                params![old, new],
            )?;
            copy_decision(&transaction, old, new)?;
            transaction.execute(
                "UPDATE files SET hash = ?2, size = ?3, modified_ns = ?4 WHERE path = ?1",
                params![tag.path, new, size as i64, modified_ns],
            )?;
        }
        Ok(transaction.commit()?)
    }

    /// The write did not happen: the plan is forgotten.
    pub fn tag_abandoned(&mut self, id: TagId) -> Result<(), LibraryError> {
        self.connection.execute("DELETE FROM tags WHERE id = ?1 AND state = 'planned'", [id.0])?;
        Ok(())
    }

    /// The file has its old content again.
    pub fn tag_undone(
        &mut self,
        id: TagId,
        size: u64,
        modified_ns: i64,
    ) -> Result<(), LibraryError> {
        let transaction = self.connection.transaction()?;
        let tag = transaction.query_row(
            &format!("SELECT {COLUMNS} FROM tags WHERE id = ?1"),
            [id.0],
            logged,
        )?;
        transaction.execute("UPDATE tags SET state = 'undone' WHERE id = ?1", [id.0])?;
        if tag.target == TagTarget::InPlace {
            copy_decision(&transaction, tag.hash_after, tag.content)?;
            transaction.execute(
                "UPDATE files SET hash = ?2, size = ?3, modified_ns = ?4 WHERE path = ?1",
                params![tag.path, tag.content, size as i64, modified_ns],
            )?;
        }
        Ok(transaction.commit()?)
    }

    /// Writes that were planned and not finished, the oldest first.
    pub fn interrupted_tags(&self) -> Result<Vec<LoggedTag>, LibraryError> {
        self.tags_in("planned", "ASC")
    }

    /// Writes that can be undone, the newest first: the order in which to undo them.
    pub fn written_tags(&self) -> Result<Vec<LoggedTag>, LibraryError> {
        self.tags_in("written", "DESC")
    }

    /// The newest write to a file that was not undone.
    pub fn tag_of(&self, path: &str) -> Result<Option<LoggedTag>, LibraryError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM tags WHERE path = ?1 AND state = 'written' ORDER BY id DESC LIMIT 1"
        );
        Ok(self.connection.query_row(&sql, [path], logged).optional()?)
    }

    fn tags_in(&self, state: &str, order: &str) -> Result<Vec<LoggedTag>, LibraryError> {
        let sql = format!("SELECT {COLUMNS} FROM tags WHERE state = ?1 ORDER BY id {order}");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map([state], logged)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// The newer of the decisions about two contents of one picture becomes that of the second.
fn copy_decision(
    connection: &Connection,
    from: ContentHash,
    to: ContentHash,
) -> rusqlite::Result<usize> {
    connection.execute(
        "INSERT OR REPLACE INTO decisions
         SELECT ?2, number, decision, latitude, longitude, model, version, fused, calibrated, confidence,
                radius_68_km, radius_90_km, candidates, influences
         FROM decisions WHERE hash = ?1
             AND number > coalesce((SELECT number FROM decisions WHERE hash = ?2), -1)",
        params![from, to],
    )
}

impl TagTarget {
    fn name(self) -> &'static str {
        match self {
            TagTarget::Sidecar => "sidecar",
            TagTarget::InPlace => "in_place",
        }
    }
}

impl LoggedTag {
    /// A write that is to be planned.
    pub fn planned(
        path: &str,
        target: TagTarget,
        content: ContentHash,
        hash_after: ContentHash,
    ) -> LoggedTag {
        LoggedTag {
            id: TagId(0),
            path: path.to_owned(),
            target,
            content,
            hash_before: None,
            bytes_before: None,
            backup: None,
            hash_after,
        }
    }
}

fn logged(row: &Row<'_>) -> rusqlite::Result<LoggedTag> {
    let target = match row.get::<_, String>(2)?.as_str() {
        "in_place" => TagTarget::InPlace,
        _ => TagTarget::Sidecar,
    };
    Ok(LoggedTag {
        id: TagId(row.get(0)?),
        path: row.get(1)?,
        target,
        content: row.get(3)?,
        hash_before: row.get(4)?,
        bytes_before: row.get(5)?,
        backup: row.get(6)?,
        hash_after: row.get(7)?,
    })
}
