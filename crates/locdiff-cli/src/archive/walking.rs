//! Which files of a folder are pictures, and when they or their sidecars changed.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use locdiff_archive::tags::{is_raw, sidecars_of};
use walkdir::{DirEntry, WalkDir};

use crate::predict::{is_hidden, is_picture};
use crate::text::on_one_line;

/// A file that may be a picture.
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// As the library stores it.
    pub(super) name: String,
    pub(super) size: u64,
    /// The sum of the times of the file and its sidecars: changes with each of them.
    pub(super) modified_ns: i64,
}

/// The pictures below a folder in the order of their names, or why something could not be read. Hidden files are left out,
/// symbolic links, and the thumbnails that network drives make.
pub(super) fn pictures(folder: &Path) -> impl Iterator<Item = Result<Found, String>> {
    let shown = |entry: &DirEntry| entry.depth() == 0 || !is_hidden(entry.file_name());
    let entries = WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(shown);
    entries.filter_map(|entry| match entry {
        Err(error) => Some(Err(error.to_string())),
        Ok(entry) if entry.file_type().is_file() && is_wanted(entry.path()) => Some(found(entry)),
        Ok(_) => None,
    })
}

/// The pixels of raw files are not decoded, but their tags are read, and they can have sidecars.
fn is_wanted(path: &Path) -> bool {
    is_picture(path) || is_raw(path)
}

fn found(entry: DirEntry) -> Result<Found, String> {
    let metadata = entry.metadata().map_err(|error| error.to_string())?;
    let path = entry.into_path();
    let Some(name) = path.to_str().map(str::to_owned) else {
        let name = on_one_line(&path.display().to_string());
        return Err(format!("{name}: the name is not valid UTF-8, rename the file"));
    };
    let beside = sidecars_of(&path).into_iter().filter_map(|sidecar| sidecar.metadata().ok());
    let modified_ns =
        beside.fold(changed_ns(&metadata), |sum, sidecar| sum.wrapping_add(changed_ns(&sidecar)));
    Ok(Found { path, name, size: metadata.len(), modified_ns })
}

fn changed_ns(metadata: &Metadata) -> i64 {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    modified.map_or(0, |since| since.as_nanos() as i64)
}
