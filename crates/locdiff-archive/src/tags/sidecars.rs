//! Which file beside a picture has its tags.

use std::path::{Path, PathBuf};

use super::whole_file::beside;

/// Raw files of cameras, by the ends of their names. Their pixels are not decoded.
const RAW: [&str; 12] =
    ["arw", "cr2", "cr3", "dng", "nef", "nrw", "orf", "pef", "raf", "raw", "rw2", "srw"];

/// The sidecar of a picture: `name.jpg.xmp`, as Immich, digiKam and darktable name it.
pub fn sidecar_of(picture: &Path) -> PathBuf {
    beside(picture, ".xmp")
}

/// The sidecars that a picture may have: `name.jpg.xmp`, and Adobe's `name.xmp`.
pub fn sidecars_of(picture: &Path) -> [PathBuf; 2] {
    [sidecar_of(picture), picture.with_extension("xmp")]
}

/// The sidecar to write: Adobe's, if a raw file has no other.
pub fn sidecar_to_write(picture: &Path) -> PathBuf {
    let [own, adobe] = sidecars_of(picture);
    if is_raw(picture) && !own.exists() && adobe.exists() { adobe } else { own }
}

/// Whether a file is a camera's raw file, by its name.
pub fn is_raw(picture: &Path) -> bool {
    let ending = picture.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| RAW.contains(&ending.to_lowercase().as_str()))
}

/// Whether the tags of a picture can be read. Of raw files, those that are TIFF files: not CR3, RAF, ORF and RW2.
pub(super) fn is_readable(picture: &Path, bytes: &[u8]) -> bool {
    !is_raw(picture) || bytes.starts_with(b"II*\0") || bytes.starts_with(b"MM\0*")
}
