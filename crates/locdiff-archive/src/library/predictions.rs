//! What models returned, and what the user decided.

use locdiff_sphere::{Density, DensityRecord, LatLon, RecordLimits};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::{ContentHash, Kind, Library, LibraryError, blob};
use crate::Moment;

/// A place that a picture may show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Degrees.
    pub latitude: f64,
    /// Degrees.
    pub longitude: f64,
    /// The probability of the peak, or a score if the model is not calibrated.
    pub mass: f64,
    /// A circle of this radius around the place contains half of the peak.
    pub radius_km: f64,
}

/// What a model returned for one content.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Content of the picture: the same for all its copies.
    pub hash: ContentHash,
    /// The model's name.
    pub model: String,
    /// Changes with whatever changes answers.
    pub version: String,
    /// Whether neighbors of the same outing were taken into account.
    pub fused: bool,
    /// Whether masses are probabilities.
    pub calibrated: bool,
    /// The best place; none if the model rejected the picture.
    pub place: Option<LatLon>,
    /// Mass of the best candidate.
    pub confidence: f64,
    /// Radius around the place that contains 68 % of everything.
    pub radius_68_km: f64,
    /// Radius that contains 90 %.
    pub radius_90_km: f64,
    /// Distinct places, the most probable first.
    pub candidates: Vec<Candidate>,
    /// What moved a fused density, each in a line.
    pub influences: Vec<String>,
    /// The whole density.
    pub density: Option<DensityRecord>,
    /// Why there is no place.
    pub error: Option<String>,
}

/// What the user decided about a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// The predicted place is right. The prediction that was accepted is stored with the decision: later ones, which nobody
    /// looked at, don't replace it.
    Accepted,
    /// It is wrong, and the right one is not known.
    Rejected,
    /// The user put the pin here.
    Moved(LatLon),
}

/// A picture that a model should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpredicted {
    /// One of its files.
    pub path: String,
    /// Content of the picture: the key of its prediction.
    pub hash: ContentHash,
}

/// All that is known of one picture, for review, tagging and export.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// One of its files.
    pub path: String,
    /// Content of the picture: the same for all its copies.
    pub hash: ContentHash,
    /// Where the camera, or a sidecar, places it.
    pub gps: Option<LatLon>,
    /// When it was taken.
    pub time: Option<Moment>,
    /// Make and model.
    pub camera: Option<String>,
    /// Photo or graphic.
    pub kind: Kind,
    /// Why it can't be read as a picture.
    pub error: Option<String>,
    /// What the user accepted; else what the model returned: the fused prediction if there is one. Without its density.
    pub prediction: Option<Prediction>,
    /// What the user decided.
    pub decision: Option<Decision>,
}

impl Entry {
    /// The place to write or export: the user's pin, or the prediction unless it was rejected.
    pub fn place(&self) -> Option<LatLon> {
        match self.decision {
            Some(Decision::Moved(place)) => Some(place),
            Some(Decision::Rejected) => None,
            Some(Decision::Accepted) | None => self.prediction.as_ref()?.place,
        }
    }
}

impl Library {
    /// Pictures that are present, can be read, have no place and no prediction of this model: one file for each
    /// content, in the order of paths.
    pub fn unpredicted(
        &self,
        model: &str,
        version: &str,
        limit: usize,
    ) -> Result<Vec<Unpredicted>, LibraryError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT min(path), f.hash FROM files f JOIN contents c ON c.hash = f.hash
             WHERE f.missing = 0 AND c.latitude IS NULL AND c.error IS NULL AND c.kind = 'photo'
               AND NOT EXISTS (SELECT 1 FROM predictions p WHERE p.hash = f.hash
                               AND p.model = ?1 AND p.version = ?2 AND p.fused = 0)
             GROUP BY f.hash ORDER BY 1 LIMIT ?3",
        )?;
        let rows = statement.query_map(params![model, version, limit as i64], |row| {
            Ok(Unpredicted { path: row.get(0)?, hash: row.get(1)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Stores predictions, all or none. A prediction of the same model and version is replaced.
    pub fn predict(&mut self, predictions: &[Prediction]) -> Result<(), LibraryError> {
        let transaction = self.connection.transaction()?;
        insert(&transaction, predictions)?;
        Ok(transaction.commit()?)
    }

    /// The density of a prediction.
    pub fn density(
        &self,
        hash: ContentHash,
        model: &str,
        version: &str,
        fused: bool,
    ) -> Result<Option<Density>, LibraryError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT density FROM predictions WHERE hash = ?1 AND model = ?2 AND version = ?3 AND fused = ?4",
        )?;
        let bytes = statement
            .query_row(params![hash, model, version, fused], |row| row.get::<_, Option<Vec<u8>>>(0))
            .optional()?
            .flatten();
        let Some(bytes) = bytes else { return Ok(None) };
        let damaged = || LibraryError::Density { hash: hash.to_string() };
        let record = blob::unpack(&bytes).ok_or_else(damaged)?;
        record.density_within(&RecordLimits::unlimited()).map(Some).map_err(|_| damaged())
    }

    /// Stores a decision at once, or takes it back.
    pub fn decide(
        &mut self,
        hash: ContentHash,
        decision: Option<Decision>,
    ) -> Result<(), LibraryError> {
        self.decide_all(&[(hash, decision, None)]).map(drop)
    }

    /// Stores decisions, or takes them back. What is accepted is the answer of the library's model, see [`Library::model`].
    /// The place is the one that was shown, if it matters: an acceptance is not stored if the answer is another by now, because a scan
    /// has replaced it. Returns those contents.
    pub fn decide_all(
        &mut self,
        decisions: &[(ContentHash, Option<Decision>, Option<LatLon>)],
    ) -> Result<Vec<ContentHash>, LibraryError> {
        let transaction = self.connection.transaction()?;
        let mut changed = Vec::new();
        {
            let mut is_shown = transaction.prepare_cached(
                "SELECT p.latitude IS ?2 AND p.longitude IS ?3
                 FROM predictions p JOIN model m ON p.model = m.name AND p.version = m.version
                 WHERE p.hash = ?1 AND p.latitude IS NOT NULL ORDER BY p.fused DESC LIMIT 1",
            )?;
            let mut store = transaction.prepare_cached(
                "INSERT OR REPLACE INTO decisions (hash, number, decision, latitude, longitude)
                 SELECT hash, (SELECT coalesce(max(number), 0) + 1 FROM decisions), ?2, ?3, ?4
                 FROM contents WHERE hash = ?1",
            )?;
            let mut accept = transaction.prepare_cached(
                "UPDATE decisions SET
                     (latitude, longitude, model, version, fused, calibrated, confidence, radius_68_km,
                      radius_90_km, candidates, influences) =
                     (SELECT p.latitude, p.longitude, p.model, p.version, p.fused, p.calibrated, p.confidence,
                             p.radius_68_km, p.radius_90_km, p.candidates, p.influences
                      FROM predictions p JOIN model m ON p.model = m.name AND p.version = m.version
                      WHERE p.hash = ?1 AND p.latitude IS NOT NULL ORDER BY p.fused DESC LIMIT 1)
                 WHERE hash = ?1",
            )?;
            for (hash, decision, shown) in decisions {
                if let (Some(Decision::Accepted), Some(shown)) = (decision, shown) {
                    let place = params![hash, shown.latitude(), shown.longitude()];
                    if is_shown.query_row(place, |row| row.get(0)).optional()? != Some(true) {
                        changed.push(*hash);
                        continue;
                    }
                }
                let (name, place) = match decision {
                    None => ("none", None),
                    Some(Decision::Accepted) => ("accepted", None),
                    Some(Decision::Rejected) => ("rejected", None),
                    Some(Decision::Moved(place)) => ("moved", Some(*place)),
                };
                let (latitude, longitude) =
                    (place.map(LatLon::latitude), place.map(LatLon::longitude));
                if store.execute(params![hash, name, latitude, longitude])? == 0 {
                    return Err(LibraryError::Unknown(hash.to_string()));
                }
                if name == "accepted" {
                    accept.execute([hash])?;
                }
            }
        }
        transaction.commit()?;
        Ok(changed)
    }

    /// All pictures that are present, one entry for each content, in the order of paths, with the predictions of a model.
    pub fn entries(&self, model: &str, version: &str) -> Result<Vec<Entry>, LibraryError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT min(f.path), c.hash, c.latitude, c.longitude, c.time_s, c.camera, c.kind,
                    d.decision, d.latitude, d.longitude, c.error,
                    p.model, p.version, p.fused, p.calibrated, p.latitude, p.longitude, p.confidence,
                    p.radius_68_km, p.radius_90_km, p.candidates, p.influences, p.error,
                    d.model, d.version, d.fused, d.calibrated, d.latitude, d.longitude, d.confidence,
                    d.radius_68_km, d.radius_90_km, d.candidates, d.influences, NULL
             FROM contents c JOIN files f ON f.hash = c.hash AND f.missing = 0
             LEFT JOIN decisions d ON d.hash = c.hash
             LEFT JOIN predictions p ON p.hash = c.hash AND p.model = ?1 AND p.version = ?2
                 AND p.fused = (SELECT max(fused) FROM predictions b
                                WHERE b.hash = c.hash AND b.model = ?1 AND b.version = ?2)
             GROUP BY c.hash ORDER BY 1",
        )?;
        let mut rows = statement.query(params![model, version])?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next()? {
            entries.push(entry(row)?);
        }
        Ok(entries)
    }
}

pub(super) fn insert(
    connection: &Connection,
    predictions: &[Prediction],
) -> Result<(), LibraryError> {
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO predictions (hash, model, version, fused, calibrated, latitude, longitude,
             confidence, radius_68_km, radius_90_km, candidates, influences, density, error)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    for prediction in predictions {
        let json = |value: serde_json::Result<String>| {
            value.map_err(|error| LibraryError::Value(error.to_string()))
        };
        let stored = insert.execute(params![
            prediction.hash,
            prediction.model,
            prediction.version,
            prediction.fused,
            prediction.calibrated,
            prediction.place.map(|place| place.latitude()),
            prediction.place.map(|place| place.longitude()),
            prediction.confidence,
            prediction.radius_68_km,
            prediction.radius_90_km,
            json(serde_json::to_string(&prediction.candidates))?,
            json(serde_json::to_string(&prediction.influences))?,
            prediction.density.as_ref().map(blob::pack),
            prediction.error,
        ]);
        known(stored, prediction.hash)?;
    }
    Ok(())
}

fn entry(row: &Row<'_>) -> Result<Entry, LibraryError> {
    let hash: ContentHash = row.get(1)?;
    let (predicted, accepted) = (prediction(row, 11, hash)?, prediction(row, 23, hash)?);
    let decision = match row.get::<_, Option<String>>(7)?.as_deref() {
        // Accepted before there was anything to accept.
        Some("accepted") if accepted.is_none() && predicted.is_some() => None,
        Some("accepted") => Some(Decision::Accepted),
        Some("rejected") => Some(Decision::Rejected),
        Some("moved") => place(row, 8)?.map(Decision::Moved),
        _ => None,
    };
    Ok(Entry {
        path: row.get(0)?,
        hash,
        gps: place(row, 2)?,
        time: row.get::<_, Option<f64>>(4)?.map(Moment::from_unix_s),
        camera: row.get(5)?,
        kind: Kind::named(&row.get::<_, String>(6)?),
        error: row.get(10)?,
        prediction: accepted.or(predicted),
        decision,
    })
}

/// The prediction whose twelve columns begin at one of a row; none if they are empty.
fn prediction(
    row: &Row<'_>,
    first: usize,
    hash: ContentHash,
) -> Result<Option<Prediction>, LibraryError> {
    let Some(model) = row.get::<_, Option<String>>(first)? else { return Ok(None) };
    let number = |column: usize| -> rusqlite::Result<f64> {
        Ok(row.get::<_, Option<f64>>(column)?.unwrap_or(0.0))
    };
    Ok(Some(Prediction {
        hash,
        model,
        version: row.get(first + 1)?,
        fused: row.get(first + 2)?,
        calibrated: row.get(first + 3)?,
        place: place(row, first + 4)?,
        confidence: number(first + 6)?,
        radius_68_km: number(first + 7)?,
        radius_90_km: number(first + 8)?,
        candidates: parsed(&row.get::<_, String>(first + 9)?)?,
        influences: parsed(&row.get::<_, String>(first + 10)?)?,
        density: None,
        error: row.get(first + 11)?,
    }))
}

fn place(row: &Row<'_>, column: usize) -> Result<Option<LatLon>, LibraryError> {
    let pair: (Option<f64>, Option<f64>) = (row.get(column)?, row.get(column + 1)?);
    let (Some(latitude), Some(longitude)) = pair else { return Ok(None) };
    LatLon::new(latitude, longitude).map(Some).map_err(|e| LibraryError::Value(e.to_string()))
}

fn parsed<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, LibraryError> {
    serde_json::from_str(text).map_err(|error| LibraryError::Value(error.to_string()))
}

/// Names the picture that a foreign key missed.
fn known(stored: rusqlite::Result<usize>, hash: ContentHash) -> Result<(), LibraryError> {
    match stored {
        Ok(_) => Ok(()),
        Err(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
        {
            Err(LibraryError::Unknown(hash.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}
