//! Files that appear whole, or not at all.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces a file, or makes a new one. Permissions stay.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let old = fs::metadata(path).ok();
    appear(path, bytes, |file| match &old {
        Some(old) => file.set_permissions(old.permissions()),
        None => Ok(()),
    })
}

/// Makes a copy of a file's bytes, with its permissions and its time.
pub(super) fn back_up(bytes: &[u8], original: &Metadata, backup: &Path) -> io::Result<()> {
    appear(backup, bytes, |file| {
        file.set_modified(original.modified()?)?;
        file.set_permissions(original.permissions())
    })
}

/// Written beside the file, flushed to the disk, then renamed.
fn appear(
    path: &Path,
    bytes: &[u8],
    finish: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = partial(path);
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        finish(&file)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // What is left of it is of no use; if it can't be removed either, the first error says more.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    flush_folder(path);
    Ok(())
}

/// What a file is called until it is whole.
pub(super) fn partial(path: &Path) -> PathBuf {
    beside(path, ".locdiff-partial")
}

/// A name beside a file that begins with its name.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(ending);
    PathBuf::from(name)
}

/// Renames and new names are on the disk after this, where folders can be flushed. Where they can't, the rename was done all
/// the same, so that is no error.
pub(super) fn flush_folder(path: &Path) {
    if cfg!(unix) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    }
}
