//! Places written into metadata: XMP sidecars, and Exif inside of JPEG and PNG files.
//!
//! Nothing that is there is overwritten: a picture with a place keeps it unless the user forces a new one, everything else in
//! a sidecar or in Exif data stays, and [`undo`] restores every byte. Each write is in the library's undo log before the
//! file is touched: see [`Library`].

mod containers;
mod place_tag;
mod tiff;
mod whole_file;
mod xmp;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

pub use containers::{has_place, with_place};
pub use place_tag::{PlaceTag, is_our_method};
pub use xmp::{XmpFacts, edited_sidecar, embedded_xmp, new_sidecar, place_in_sidecar};

use crate::library::{ContentHash, Library, LibraryError, LoggedTag, TagTarget};

/// Why a place was not written, or a write not undone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TagError {
    /// There is a place already.
    #[error("the picture has a place already: use --force to replace it")]
    HasPlace,
    /// Neither a JPEG nor a PNG file.
    #[error("only JPEG and PNG files can contain a place: write a sidecar, without --in-place")]
    Format,
    /// The file is not what its first bytes promise.
    #[error("the file is damaged: {0}")]
    Damaged(&'static str),
    /// The Exif data of a JPEG is limited to 64 KB.
    #[error(
        "the Exif data of this JPEG has no room for a place: write a sidecar, without --in-place"
    )]
    Full,
    /// A sidecar is not XML.
    #[error("the sidecar is not valid XML: {0}")]
    Xml(String),
    /// A file has changed since it was read or written.
    #[error("{0} was changed by another program: this file is not restored")]
    Changed(PathBuf),
    /// The backup of a picture is gone, or is not that picture.
    #[error("the backup {0} is missing or was changed: the picture is not restored")]
    Backup(PathBuf),
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The library failed.
    #[error(transparent)]
    Library(#[from] LibraryError),
}

/// The sidecar of a picture: `name.jpg.xmp`, as Immich, digiKam and darktable name it.
pub fn sidecar_of(picture: &Path) -> PathBuf {
    whole_file::beside(picture, ".xmp")
}

/// Writes a place into a picture's sidecar. `content` is the picture's content in the library.
pub fn write_sidecar(
    library: &mut Library,
    picture: &Path,
    content: ContentHash,
    tag: &PlaceTag,
    force: bool,
) -> Result<PathBuf, TagError> {
    let path = sidecar_of(picture);
    let before = match fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(TagError::File { path, source }),
    };
    let after = match &before {
        None => new_sidecar(tag),
        Some(bytes) => {
            let text = std::str::from_utf8(bytes).map_err(|e| TagError::Xml(e.to_string()))?;
            edited_sidecar(text, tag, force)?
        }
    };
    let hash_after = ContentHash::of(after.as_bytes());
    let name = path.to_string_lossy();
    let mut planned = LoggedTag::planned(&name, TagTarget::Sidecar, content, hash_after);
    planned.hash_before = before.as_deref().map(ContentHash::of);
    planned.bytes_before = before;
    write_logged(library, &planned, after.as_bytes())?;
    Ok(path)
}

/// Writes a place into a picture itself, after a copy of it was made beside it (`name.jpg_original`, as exiftool names
/// it). The picture must have the content that the library has of it.
pub fn write_in_place(
    library: &mut Library,
    picture: &Path,
    content: ContentHash,
    tag: &PlaceTag,
    force: bool,
) -> Result<PathBuf, TagError> {
    let bytes = read(picture)?;
    if ContentHash::of(&bytes) != content {
        return Err(TagError::Changed(picture.to_owned()));
    }
    let after = with_place(&bytes, tag, force)?;
    let backup = free_backup(picture, content)?;
    if !backup.exists() {
        whole_file::back_up(picture, &backup).map_err(|source| file_error(&backup, source))?;
    }
    let name = picture.to_string_lossy();
    let hash_after = ContentHash::of(&after);
    let mut planned = LoggedTag::planned(&name, TagTarget::InPlace, content, hash_after);
    planned.hash_before = Some(content);
    planned.backup = Some(backup.to_string_lossy().into_owned());
    write_logged(library, &planned, &after)?;
    Ok(backup)
}

/// Undoes one write, so that the file has the bytes it had before, or is gone if it was not there. A file that was
/// changed since is left alone.
pub fn undo(library: &mut Library, tag: &LoggedTag) -> Result<(), TagError> {
    let path = Path::new(&tag.path);
    let now = match fs::read(path) {
        Ok(bytes) => Some(ContentHash::of(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(file_error(path, source)),
    };
    // Also if an earlier attempt was interrupted.
    if now != tag.hash_before {
        if now != Some(tag.hash_after) {
            return Err(TagError::Changed(path.to_owned()));
        }
        restore(tag, path)?;
    }
    if let (TagTarget::InPlace, Some(backup)) = (tag.target, &tag.backup) {
        // Still there if the restoring was interrupted; it is what the picture is now.
        let _ = fs::remove_file(backup);
    }
    let (size, modified_ns) = stamp(path).unwrap_or((0, 0));
    Ok(library.tag_undone(tag.id, size, modified_ns)?)
}

fn restore(tag: &LoggedTag, path: &Path) -> Result<(), TagError> {
    let failed = |source| file_error(path, source);
    match (tag.target, &tag.bytes_before, &tag.backup) {
        (TagTarget::InPlace, _, Some(backup)) => {
            let backup = Path::new(backup);
            let damaged = || TagError::Backup(backup.to_owned());
            let bytes = fs::read(backup).map_err(|_| damaged())?;
            if Some(ContentHash::of(&bytes)) != tag.hash_before {
                return Err(damaged());
            }
            // The time of the last change comes back with it.
            fs::rename(backup, path).and_then(|()| whole_file::sync_folder(path)).map_err(failed)
        }
        (_, Some(bytes), _) => whole_file::replace(path, bytes).map_err(failed),
        (_, None, _) => {
            fs::remove_file(path).and_then(|()| whole_file::sync_folder(path)).map_err(failed)
        }
    }
}

/// Settles writes that were interrupted: those that reached the disk are written, the others are forgotten. Returns how
/// many of each there were. To be called before the first write.
pub fn recover(library: &mut Library) -> Result<(usize, usize), TagError> {
    let (mut written, mut forgotten) = (0, 0);
    for tag in library.interrupted_tags()? {
        let path = Path::new(&tag.path);
        let now = fs::read(path).ok().map(|bytes| ContentHash::of(&bytes));
        if now == Some(tag.hash_after) {
            let (size, modified_ns) = stamp(path)?;
            library.tag_written(tag.id, size, modified_ns)?;
            written += 1;
        } else {
            library.tag_abandoned(tag.id)?;
            forgotten += 1;
        }
    }
    Ok((written, forgotten))
}

fn write_logged(library: &mut Library, tag: &LoggedTag, bytes: &[u8]) -> Result<(), TagError> {
    let path = Path::new(&tag.path);
    let id = library.plan_tag(tag)?;
    if let Err(source) = whole_file::replace(path, bytes) {
        library.tag_abandoned(id)?;
        return Err(file_error(path, source));
    }
    let (size, modified_ns) = stamp(path)?;
    Ok(library.tag_written(id, size, modified_ns)?)
}

/// A backup's name that is free, or the backup of this very content from an interrupted attempt.
fn free_backup(picture: &Path, content: ContentHash) -> Result<PathBuf, TagError> {
    for number in 1..1000 {
        let ending =
            if number == 1 { "_original".to_owned() } else { format!("_original{number}") };
        let backup = whole_file::beside(picture, &ending);
        match fs::read(&backup) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(backup),
            Ok(bytes) if ContentHash::of(&bytes) == content => return Ok(backup),
            _ => {}
        }
    }
    Err(TagError::Backup(whole_file::beside(picture, "_original")))
}

/// Size and time of the last change.
fn stamp(path: &Path) -> Result<(u64, i64), TagError> {
    let metadata = fs::metadata(path).map_err(|source| file_error(path, source))?;
    let modified = metadata.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = modified.map_or(0, |since| since.as_nanos() as i64);
    Ok((metadata.len(), nanoseconds))
}

fn read(path: &Path) -> Result<Vec<u8>, TagError> {
    fs::read(path).map_err(|source| file_error(path, source))
}

fn file_error(path: &Path, source: io::Error) -> TagError {
    TagError::File { path: path.to_owned(), source }
}
