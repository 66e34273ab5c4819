//! All files below a folder.

use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::input::Listed;
use super::item::{Bad, Stated};

/// What is in a folder.
#[derive(Debug, Default)]
pub struct Folder {
    /// Every file, sorted by its path as text with `/`, so that all systems agree on the order.
    pub files: Vec<Listed>,
    /// Names that begin with a dot; what is in such directories counts as one.
    pub hidden: u64,
}

/// Lists a folder and all folders below it, but nothing in `except`. Links are followed. What
/// can't be followed or listed is an item too, a bad one, so that nothing is lost in silence.
pub fn list(folder: &Path, except: &Path) -> Folder {
    let mut listing = Folder::default();
    let mut walk = WalkDir::new(folder).min_depth(1).follow_links(true).into_iter();
    let except = except.canonicalize().ok();
    while let Some(entry) = walk.next() {
        let (path, bad) = match entry {
            Ok(entry) => {
                let is_directory = entry.file_type().is_dir();
                if entry.file_name().as_encoded_bytes().starts_with(b".") {
                    listing.hidden += 1;
                    if is_directory {
                        walk.skip_current_dir();
                    }
                    continue;
                }
                if is_directory {
                    if except.is_some() && entry.path().canonicalize().ok() == except {
                        walk.skip_current_dir();
                    }
                    continue;
                }
                let irregular = !entry.file_type().is_file();
                let bad = irregular.then(|| Bad::new(Bad::UNREADABLE, "not a regular file"));
                (entry.into_path(), bad)
            }
            // A link into itself, a link to nothing, a directory that may not be listed.
            Err(error) => {
                let path = error.path().unwrap_or(folder).to_owned();
                let message = match (error.loop_ancestor(), error.io_error()) {
                    (Some(ancestor), _) => {
                        format!("the link leads back to {}", ancestor.display())
                    }
                    (None, Some(error)) => error.to_string(),
                    (None, None) => error.to_string(),
                };
                (path, Some(Bad::new(Bad::UNREADABLE, message)))
            }
        };
        let path = path.strip_prefix(folder).map(Path::to_owned).unwrap_or(path);
        listing.files.push(Listed { id: None, path, place: Stated::Nothing, bad });
    }
    listing.files.sort_by_cached_key(|file| (with_slashes(&file.path), file.path.clone()));
    listing
}

/// A relative path as text, the same on all systems.
pub fn with_slashes(path: &Path) -> String {
    let parts = path.components().map(|part| part.as_os_str().to_string_lossy());
    match path.is_absolute() {
        true => path.to_string_lossy().into_owned(),
        false => parts.collect::<Vec<_>>().join("/"),
    }
}

/// The tars of a folder that holds nothing else, or only what img2dataset writes next to them.
/// What is in the directory `out` doesn't count.
pub fn tars_in(folder: &Path, out: &Path) -> Option<Vec<PathBuf>> {
    let out = out.canonicalize().ok();
    let mut tars = Vec::new();
    for entry in WalkDir::new(folder).min_depth(1).max_depth(1).follow_links(true) {
        let entry = entry.ok()?;
        let is_out = || out.is_some() && entry.path().canonicalize().ok() == out;
        if entry.file_name().as_encoded_bytes().starts_with(b".") || is_out() {
            continue;
        }
        let extension = entry.path().extension().unwrap_or_default();
        if !entry.file_type().is_file() {
            return None;
        } else if extension == "tar" {
            tars.push(PathBuf::from(entry.file_name()));
        } else if extension != "json" && extension != "parquet" {
            return None;
        }
    }
    tars.sort();
    (!tars.is_empty()).then_some(tars)
}
