//! Files that appear whole, or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces a file, or makes a new one: written beside it, flushed to the disk, then renamed. Permissions stay.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = beside(path, ".locdiff-partial");
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // What is left of it is of no use; if it can't be removed either, the first error says more.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_folder(path)
}

/// Makes a copy that is on the disk when this returns.
pub(super) fn back_up(path: &Path, backup: &Path) -> io::Result<()> {
    fs::copy(path, backup)?;
    let modified = fs::metadata(path)?.modified()?;
    let copy = File::options().write(true).open(backup)?;
    copy.set_modified(modified)?;
    copy.sync_all()?;
    sync_folder(backup)
}

/// A name beside a file that begins with its name.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(ending);
    PathBuf::from(name)
}

/// Renames and new names are on the disk after this, where folders can be flushed.
#[cfg(unix)]
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
pub(super) fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}
