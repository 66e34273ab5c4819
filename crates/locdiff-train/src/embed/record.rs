//! `embed.json`: with which settings a directory was begun, and how far it has come.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::error::EmbedError;

const FORMAT: &str = "locdiff-embed";
const VERSION: u32 = 1;
/// The one setting in which machines that share a directory differ.
pub(super) const SHARE: &str = "share";

pub(super) type Settings = Map<String, Value>;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    format: String,
    version: u32,
    pub(super) settings: Settings,
    pub(super) progress: Progress,
}

/// What is in whole parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Parts with at least one row.
    pub(super) parts: u64,
    /// Images that were looked at.
    pub(super) items: u64,
    pub(super) rows: u64,
    /// Rows without a place.
    pub(super) without_place: u64,
    /// Skipped images, by kind.
    pub(super) skipped: BTreeMap<String, u64>,
    /// Length of `skipped.csv`. What is after that belongs to the part in progress.
    pub(super) skipped_csv_bytes: u64,
    pub(super) finished: bool,
}

impl Record {
    pub(super) fn new(settings: Settings) -> Record {
        let (format, progress) = (FORMAT.to_owned(), Progress::default());
        Record { format, version: VERSION, settings, progress }
    }

    /// Nothing if there is no such file.
    pub(super) fn read(path: &Path) -> Result<Option<Record>, EmbedError> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(EmbedError::file("read", path)(error)),
        };
        let damaged = |reason| EmbedError::Damaged { path: path.to_owned(), reason };
        let record: Record =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if record.format != FORMAT || record.version != VERSION {
            let (format, version) = (&record.format, record.version);
            return Err(damaged(format!(
                "it is of format {format} version {version}, this program writes {FORMAT} version {VERSION}"
            )));
        }
        Ok(Some(record))
    }

    /// Writes it so that at any moment there is either the old or the new one.
    pub(super) fn write(&self, path: &Path) -> Result<(), EmbedError> {
        let hidden = hidden(path);
        let text = serde_json::to_vec_pretty(self).expect("a record is plain values");
        let written = File::create(&hidden)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&hidden, path));
        written.map_err(EmbedError::file("write", path))?;
        sync_directory(path)
    }

    /// Changes if any setting does.
    pub(super) fn digest(&self) -> u64 {
        let text = serde_json::to_vec(&self.settings).expect("settings are plain values");
        let hash: [u8; 32] = Sha256::digest(text).into();
        u64::from_le_bytes(*hash.first_chunk().expect("a digest has 32 bytes"))
    }

    /// Refuses settings that differ; `ignored` is a setting that may.
    pub(super) fn check(
        &self,
        path: &Path,
        now: &Settings,
        ignored: Option<&str>,
    ) -> Result<(), EmbedError> {
        let mut difference = String::new();
        let mut names: Vec<&String> = self.settings.keys().chain(now.keys()).collect();
        names.sort();
        names.dedup();
        for name in names.into_iter().filter(|name| Some(name.as_str()) != ignored) {
            let (then, now) = (self.settings.get(name), now.get(name));
            if then != now {
                let text = |value: Option<&Value>| value.map_or("none".into(), Value::to_string);
                difference += &format!("  {name} was {}, is now {}\n", text(then), text(now));
            }
        }
        match difference.is_empty() {
            true => Ok(()),
            false => Err(EmbedError::OtherSettings { path: path.to_owned(), difference }),
        }
    }
}

fn hidden(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial"))
}

/// Makes sure that the name of a file is on the disk, not only what is in it.
pub(super) fn sync_directory(path: &Path) -> Result<(), EmbedError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    // Other systems can't open directories, and need not.
    if cfg!(unix) {
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(EmbedError::file("write", directory))?;
    }
    Ok(())
}
