//! `gallery.json`: the encoder and the segments. It is replaced as a whole, so a gallery has either its old
//! segments or its new ones.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{EncoderIdentity, GalleryError};

const FORMAT: &str = "locdiff-gallery";
const VERSION: u32 = 1;
/// The file that makes a directory a gallery.
pub(crate) const MANIFEST: &str = "gallery.json";
/// Numbers in an embedding, at most, as in data sets. Sizes of files follow from it.
const MOST_NUMBERS: usize = 1 << 20;
/// What a writer locks; it contains nothing.
const LOCK: &str = "lock";

/// What `gallery.json` contains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    format: String,
    version: u32,
    written_by: String,
    pub encoder: EncoderIdentity,
    pub segments: Vec<SegmentEntry>,
}

/// A segment, and what the sizes of its files follow from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SegmentEntry {
    /// The name of its directory.
    pub name: String,
    pub rows: usize,
    pub id_bytes: u64,
}

pub(crate) fn check_files(directory: &Path) -> Result<(), GalleryError> {
    match special_file(directory) {
        None => Ok(()),
        Some(path) => {
            let reason = "it is a pipe or a device, not a file".to_owned();
            Err(GalleryError::Contents { path, reason })
        }
    }
}

/// What in a directory is neither a file nor a directory, if anything: whoever reads a pipe waits for ever, and a device need not
/// end.
pub fn special_file(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.find(|path| fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir()))
}

impl Manifest {
    pub(crate) fn new(encoder: EncoderIdentity, segments: Vec<SegmentEntry>) -> Manifest {
        Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            written_by: concat!("locdiff ", env!("CARGO_PKG_VERSION")).to_owned(),
            encoder,
            segments,
        }
    }

    pub(crate) fn read(directory: &Path) -> Result<Manifest, GalleryError> {
        let path = directory.join(MANIFEST);
        check_files(directory)?;
        let text = fs::read_to_string(&path).map_err(GalleryError::file("read", &path))?;
        let damaged = |error| GalleryError::Json { path: path.clone(), error };
        let value: Value = serde_json::from_str(&text).map_err(damaged)?;
        if value["format"] != FORMAT || value["version"] != VERSION {
            let found = match &value["format"] {
                Value::Null => "not the description of a gallery".to_owned(),
                format => format!("of format {format} version {}", value["version"]),
            };
            let expected = format!("{FORMAT} version {VERSION}");
            return Err(GalleryError::Version { path, found, expected });
        }
        let manifest: Manifest = serde_json::from_value(value).map_err(damaged)?;
        let is_plain = |name: &str| Path::new(name).file_name().is_some_and(|plain| plain == name);
        let reason = if manifest.segments.is_empty() {
            "there are no segments".to_owned()
        } else if let Some(entry) = manifest.segments.iter().find(|entry| !is_plain(&entry.name)) {
            format!("segment `{}` is not in the directory", entry.name)
        } else if !(1..=MOST_NUMBERS).contains(&manifest.encoder.dimension) {
            let found = manifest.encoder.dimension;
            format!("embeddings have {found} numbers, from 1 to {MOST_NUMBERS} are possible")
        } else {
            return Ok(manifest);
        };
        Err(GalleryError::Contents { path, reason })
    }

    pub(crate) fn write(&self, directory: &Path) -> Result<(), GalleryError> {
        replace_json(&directory.join(MANIFEST), self)
    }

    /// Names both encoders if they are not the same.
    pub(crate) fn check_encoder(
        &self,
        directory: &Path,
        encoder: &EncoderIdentity,
    ) -> Result<(), GalleryError> {
        if self.encoder.is_same(encoder) {
            return Ok(());
        }
        Err(GalleryError::OtherEncoder {
            path: directory.to_owned(),
            expected: Box::new(self.encoder.clone()),
            found: Box::new(encoder.clone()),
        })
    }
}

/// Writes a file beside the old one, and then takes the old one's place.
pub(crate) fn replace_json<T: Serialize>(path: &Path, value: &T) -> Result<(), GalleryError> {
    let text = serde_json::to_string_pretty(value).expect("a description is JSON") + "\n";
    let temporary = path.with_extension("json.new");
    let mut file = File::create(&temporary).map_err(GalleryError::file("create", &temporary))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(GalleryError::file("write", &temporary))?;
    fs::rename(&temporary, path).map_err(GalleryError::file("replace", path))?;
    path.parent().map_or(Ok(()), sync_directory)
}

/// Makes names that were created or changed in a directory survive a loss of power.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), GalleryError> {
    if cfg!(unix) {
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(GalleryError::file("write", directory))?;
    }
    Ok(())
}

/// Keeps other writers away from a directory until it is dropped, even if the process is killed. `gallery` is
/// what the error names.
pub(crate) fn lock(directory: &Path, gallery: &Path) -> Result<File, GalleryError> {
    let path = directory.join(LOCK);
    let file = File::create(&path).map_err(GalleryError::file("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(GalleryError::Busy { path: gallery.to_owned() }),
        Err(TryLockError::Error(error)) => Err(GalleryError::File { what: "lock", path, error }),
    }
}

/// Removes everything in a directory but the lock and what `keep` names.
pub(crate) fn clear(directory: &Path, keep: impl Fn(&str) -> bool) -> Result<(), GalleryError> {
    let read = GalleryError::file("read", directory);
    for entry in fs::read_dir(directory).map_err(read)?.flatten() {
        let name = entry.file_name();
        if name == LOCK || name.to_str().is_none_or(&keep) {
            continue;
        }
        let path = entry.path();
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(GalleryError::file("remove", &path))?;
    }
    Ok(())
}
