//! Which model the library's answers are of, and what its fused predictions were made from.

use std::collections::{HashMap, HashSet};

use rusqlite::{OptionalExtension, params};

use super::predictions::insert;
use super::{ContentHash, Library, LibraryError, Prediction};

/// The model of the last scan. Review, tags and exports show its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedModel {
    /// Name of the model, as `--model` takes it.
    pub name: String,
    /// Changes with whatever changes answers.
    pub version: String,
    /// Whether its masses are probabilities.
    pub calibrated: bool,
}

impl Library {
    /// The model of the last scan; none if nothing was predicted yet.
    pub fn model(&self) -> Result<Option<UsedModel>, LibraryError> {
        let sql = "SELECT name, version, calibrated FROM model";
        let row = self.connection.query_row(sql, [], |row| {
            Ok(UsedModel { name: row.get(0)?, version: row.get(1)?, calibrated: row.get(2)? })
        });
        Ok(row.optional()?)
    }

    /// From now on this is the model.
    pub fn use_model(&mut self, model: &UsedModel) -> Result<(), LibraryError> {
        self.connection.execute(
            "INSERT OR REPLACE INTO model (id, name, version, calibrated) VALUES (1, ?1, ?2, ?3)",
            params![model.name, model.version, model.calibrated],
        )?;
        Ok(())
    }

    /// Keeps what the user states about the pictures of a folder, instead of what was stated before.
    pub fn state(&mut self, folder: &str, words: &str) -> Result<(), LibraryError> {
        let sql = "INSERT OR REPLACE INTO stated (folder, words) VALUES (?1, ?2)";
        self.connection.execute(sql, [folder, words])?;
        Ok(())
    }

    /// What was stated: folders with words, the innermost folders first.
    pub fn stated(&self) -> Result<Vec<(String, String)>, LibraryError> {
        let sql = "SELECT folder, words FROM stated ORDER BY length(folder) DESC, folder";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// From which inputs each picture was fused last.
    pub fn fused_from(
        &self,
        model: &UsedModel,
    ) -> Result<HashMap<ContentHash, ContentHash>, LibraryError> {
        let sql = "SELECT hash, inputs FROM fusions WHERE model = ?1 AND version = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement
            .query_map([&model.name, &model.version], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The pictures that the model returned a density for.
    pub fn with_density(&self, model: &UsedModel) -> Result<HashSet<ContentHash>, LibraryError> {
        let sql = "SELECT hash FROM predictions
                   WHERE model = ?1 AND version = ?2 AND fused = 0 AND density IS NOT NULL";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([&model.name, &model.version], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Replaces the fused predictions of some pictures, all or none. Pictures without a new one lose theirs.
    /// `inputs` is the digest of all that they were made from.
    pub fn fuse(
        &mut self,
        model: &UsedModel,
        pictures: &[ContentHash],
        inputs: ContentHash,
        predictions: &[Prediction],
    ) -> Result<(), LibraryError> {
        let transaction = self.connection.transaction()?;
        {
            let mut forget = transaction.prepare_cached(
                "DELETE FROM predictions WHERE hash = ?1 AND model = ?2 AND version = ?3 AND fused = 1",
            )?;
            let mut remember = transaction.prepare_cached(
                "INSERT OR REPLACE INTO fusions (hash, model, version, inputs) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for hash in pictures {
                forget.execute(params![hash, model.name, model.version])?;
                remember.execute(params![hash, model.name, model.version, inputs])?;
            }
        }
        insert(&transaction, predictions)?;
        Ok(transaction.commit()?)
    }

    /// The files of a content that are present, in the order of paths.
    pub fn paths(&self, hash: ContentHash) -> Result<Vec<String>, LibraryError> {
        let sql = "SELECT path FROM files WHERE hash = ?1 AND missing = 0 ORDER BY path";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([hash], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
