//! Places written into metadata: XMP sidecars, and Exif inside of JPEG and PNG files.
//!
//! Nothing that is there is overwritten: a picture with a place keeps it unless the user forces a new one, everything else in
//! a sidecar or in Exif data stays, and [`undo`] restores every byte. Each write is in the library's undo log before the
//! file is touched: see [`Library`].

mod containers;
mod place_tag;
mod sidecars;
mod tiff;
mod whole_file;
mod xmp;

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

pub use containers::{has_place, with_place};
pub use place_tag::{PlaceTag, Replace, is_ours};
pub use sidecars::{is_raw, sidecar_of, sidecar_to_write, sidecars_of};
pub use xmp::{XmpFacts, edited_sidecar, embedded_xmp, new_sidecar, place_in_sidecar};

use crate::library::{ContentHash, Library, LibraryError, LoggedTag, TagId, TagTarget};

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
    /// A file that was written is gone, and so is the picture beside it.
    #[error("{0} is not there any more: it was moved or deleted")]
    Missing(PathBuf),
    /// Replacing a link would cut it off from its file.
    #[error("{0} is a symbolic link: scan the folder of the file that it points to")]
    Link(PathBuf),
    /// Its permissions forbid writing.
    #[error("{0} is read-only: it is left as it is")]
    ReadOnly(PathBuf),
    /// A raw format whose tags can't be read.
    #[error("the tags of this raw format can't be read, so it may have a place: use --force")]
    UnreadTags,
    /// The backup of a picture is gone, or is not that picture.
    #[error("the backup {0} is missing or was changed: the picture is not restored")]
    Backup(PathBuf),
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    File {
        /// Picture or sidecar.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The undo log could not be read or written.
    #[error(transparent)]
    Library(#[from] LibraryError),
}

/// Writes a place into a picture's sidecar. The picture must have the content that the library has of it: a place that it got
/// since would be hidden.
pub fn write_sidecar(
    library: &mut Library,
    picture: &Path,
    content: ContentHash,
    tag: &PlaceTag,
    replace: Replace,
) -> Result<PathBuf, TagError> {
    let (bytes, _) = unchanged(picture, content)?;
    if replace != Replace::Everything && !sidecars::is_readable(picture, &bytes) {
        return Err(TagError::UnreadTags);
    }
    let path = sidecar_to_write(picture);
    let before = match fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(TagError::File { path, source }),
    };
    let after = match &before {
        None => new_sidecar(tag),
        Some(bytes) => {
            writable(&path)?;
            let text = std::str::from_utf8(bytes).map_err(|e| TagError::Xml(e.to_string()))?;
            edited_sidecar(text, tag, replace)?
        }
    };
    let hash_after = ContentHash::of(after.as_bytes());
    let name = path.to_string_lossy();
    let mut planned = LoggedTag::planned(&name, TagTarget::Sidecar, content, hash_after);
    planned.hash_before = before.as_deref().map(ContentHash::of);
    planned.bytes_before = before;
    logged(library, planned, || whole_file::replace(&path, after.as_bytes()))?;
    Ok(path)
}

/// Writes a place into a picture itself, after a copy of it was made beside it (`name.jpg_original`, as exiftool names
/// it). The picture must have the content that the library has of it.
pub fn write_in_place(
    library: &mut Library,
    picture: &Path,
    content: ContentHash,
    tag: &PlaceTag,
    replace: Replace,
) -> Result<PathBuf, TagError> {
    let (bytes, metadata) = unchanged(picture, content)?;
    writable(picture)?;
    let after = with_place(&bytes, tag, replace)?;
    let backup = free_backup(picture)?;
    let name = picture.to_string_lossy();
    let hash_after = ContentHash::of(&after);
    let mut planned = LoggedTag::planned(&name, TagTarget::InPlace, content, hash_after);
    planned.hash_before = Some(content);
    planned.backup = Some(backup.to_string_lossy().into_owned());
    logged(library, planned, || {
        whole_file::back_up(&bytes, &metadata, &backup)?;
        whole_file::replace(picture, &after)
    })?;
    Ok(backup)
}

/// The bytes of a picture, if they are those that the library has of it.
fn unchanged(picture: &Path, content: ContentHash) -> Result<(Vec<u8>, Metadata), TagError> {
    let failed = |source| file_error(picture, source);
    let metadata = fs::symlink_metadata(picture).map_err(failed)?;
    if metadata.is_symlink() {
        return Err(TagError::Link(picture.to_owned()));
    }
    let bytes = fs::read(picture).map_err(failed)?;
    if ContentHash::of(&bytes) != content {
        return Err(TagError::Changed(picture.to_owned()));
    }
    Ok((bytes, metadata))
}

/// A file is replaced by renaming, which asks neither links nor permissions.
fn writable(path: &Path) -> Result<(), TagError> {
    let metadata = fs::symlink_metadata(path).map_err(|source| file_error(path, source))?;
    if metadata.is_symlink() {
        return Err(TagError::Link(path.to_owned()));
    }
    if metadata.permissions().readonly() {
        return Err(TagError::ReadOnly(path.to_owned()));
    }
    Ok(())
}

/// Undoes one write, so that the file has the bytes it had before, or is gone if it was not there. A file that was
/// changed since is left alone.
pub fn undo(library: &mut Library, tag: &LoggedTag) -> Result<(), TagError> {
    let path = Path::new(&tag.path);
    let now = hash_of(path).map_err(|source| file_error(path, source))?;
    if now.is_none() && !is_beside_its_picture(path) {
        return Err(TagError::Missing(path.to_owned()));
    }
    // Also if an earlier attempt was interrupted.
    if now != tag.hash_before {
        if now != Some(tag.hash_after) {
            return Err(TagError::Changed(path.to_owned()));
        }
        writable(path)?;
        restore(tag, path)?;
    }
    remove_backup(tag);
    let (size, modified_ns) = stamp(path).unwrap_or((0, 0));
    Ok(library.tag_undone(tag.id, size, modified_ns)?)
}

/// Whether the picture of a sidecar is there; a picture that is gone has none.
fn is_beside_its_picture(sidecar: &Path) -> bool {
    sidecar.extension().is_some_and(|ending| ending == "xmp") && sidecar.with_extension("").exists()
}

fn restore(tag: &LoggedTag, path: &Path) -> Result<(), TagError> {
    let done = match (tag.target, &tag.bytes_before, &tag.backup) {
        (TagTarget::InPlace, _, Some(backup)) => {
            let backup = Path::new(backup);
            if hash_of(backup).ok().flatten() != tag.hash_before {
                return Err(TagError::Backup(backup.to_owned()));
            }
            // The time of the last change comes back with it.
            fs::rename(backup, path)
        }
        (_, Some(bytes), _) => whole_file::replace(path, bytes),
        (_, None, _) => fs::remove_file(path),
    };
    done.map_err(|source| file_error(path, source))?;
    whole_file::flush_folder(path);
    Ok(())
}

/// Removes the backup of a picture that has its old content again, if it is still that.
fn remove_backup(tag: &LoggedTag) {
    if let Some(backup) = tag.backup.as_deref().map(Path::new)
        && matches!(hash_of(backup), Ok(Some(hash)) if Some(hash) == tag.hash_before)
    {
        let _ = fs::remove_file(backup);
    }
}

/// What became of writes that were interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// They had reached the disk.
    pub written: usize,
    /// They had not reached the disk.
    pub forgotten: usize,
    /// Their files can't be read now: they stay in the log.
    pub unsettled: usize,
}

/// Settles writes that were interrupted. To be called before the first write, by whoever has
/// [`Library::lock_for_tags`].
pub fn recover(library: &mut Library) -> Result<Recovered, TagError> {
    let mut recovered = Recovered::default();
    for tag in library.interrupted_tags()? {
        match settle(library, &tag)? {
            Some(true) => recovered.written += 1,
            Some(false) => recovered.forgotten += 1,
            None => recovered.unsettled += 1,
        }
    }
    Ok(recovered)
}

/// Finds out from a file whether a planned write was done; none if the file can't be read. What is left of one that was not is
/// removed.
fn settle(library: &mut Library, tag: &LoggedTag) -> Result<Option<bool>, TagError> {
    let path = Path::new(&tag.path);
    let Ok(now) = hash_of(path) else { return Ok(None) };
    if now == Some(tag.hash_after) {
        let (size, modified_ns) = stamp(path)?;
        library.tag_written(tag.id, size, modified_ns)?;
        return Ok(Some(true));
    }
    for whole in [Some(path), tag.backup.as_deref().map(Path::new)].into_iter().flatten() {
        let _ = fs::remove_file(whole_file::partial(whole));
    }
    // If somebody changed the picture meanwhile, the backup may be all that is left of it.
    if now == tag.hash_before {
        remove_backup(tag);
    }
    library.tag_abandoned(tag.id)?;
    Ok(Some(false))
}

/// Plans a write, does it, and notes what became of it.
fn logged(
    library: &mut Library,
    tag: LoggedTag,
    write: impl FnOnce() -> io::Result<()>,
) -> Result<(), TagError> {
    let id: TagId = library.plan_tag(&tag)?;
    let tag = LoggedTag { id, ..tag };
    let written = write();
    // After an error the file tells whether it was written.
    match (settle(library, &tag)?, written) {
        (Some(true), _) | (None, Ok(())) => Ok(()),
        (Some(false), Ok(())) => Err(TagError::Changed(tag.path.into())),
        (_, Err(source)) => Err(file_error(Path::new(&tag.path), source)),
    }
}

/// A backup's name that is free. Backups of others are not touched, even if they are the same.
fn free_backup(picture: &Path) -> Result<PathBuf, TagError> {
    for number in 1..1000 {
        let ending =
            if number == 1 { "_original".to_owned() } else { format!("_original{number}") };
        let backup = whole_file::beside(picture, &ending);
        match fs::symlink_metadata(&backup) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(backup),
            _ => {}
        }
    }
    Err(TagError::Backup(whole_file::beside(picture, "_original")))
}

/// The content of a file; none if there is no such file.
fn hash_of(path: &Path) -> io::Result<Option<ContentHash>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(ContentHash::of(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Size and time of the last change.
fn stamp(path: &Path) -> Result<(u64, i64), TagError> {
    let metadata = fs::metadata(path).map_err(|source| file_error(path, source))?;
    let modified = metadata.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = modified.map_or(0, |since| since.as_nanos() as i64);
    Ok((metadata.len(), nanoseconds))
}

fn file_error(path: &Path, source: io::Error) -> TagError {
    TagError::File { path: path.to_owned(), source }
}
