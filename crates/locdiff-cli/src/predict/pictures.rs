//! Which pictures were meant: files, folders, patterns, stdin.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use walkdir::WalkDir;

use super::answer::Picture;

/// Files in folders that are taken for pictures.
const ENDINGS: [&str; 14] = [
    "jpg", "jpeg", "jpe", "png", "webp", "gif", "tif", "tiff", "bmp", "heic", "heif", "avif",
    "jfif", "dib",
];

pub(super) fn find(names: &[String]) -> anyhow::Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    for name in names {
        let path = Path::new(name);
        if name == "-" {
            pictures.push(Picture::Stdin);
        } else if path.is_dir() {
            let found = in_folder(path)?;
            ensure!(!found.is_empty(), "there are no pictures in {name}");
            pictures.extend(found.into_iter().map(Picture::from_path));
        } else if !path.exists() && name.contains(['*', '?', '[']) {
            let found = matching(name)?;
            ensure!(!found.is_empty(), "no file matches {name}");
            pictures.extend(found.into_iter().map(Picture::from_path));
        } else {
            // Whether it can be read shows when its turn comes, and the others aren't kept waiting.
            pictures.push(Picture::from_path(path.to_owned()));
        }
    }
    Ok(pictures)
}

fn in_folder(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
        if is_picture(entry.path()) && entry.file_type().is_file() {
            found.push(entry.into_path());
        }
    }
    Ok(found)
}

/// Whether a file's name is that of a picture.
pub(crate) fn is_picture(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.to_lowercase().as_str()))
}

/// For shells that leave patterns to the program, and patterns in quotes.
fn matching(pattern: &str) -> anyhow::Result<Vec<PathBuf>> {
    let paths = match glob::glob(pattern) {
        Ok(paths) => paths,
        Err(error) => bail!("{pattern} is no pattern: {error}"),
    };
    let mut found = Vec::new();
    for path in paths {
        let path = path.with_context(|| format!("cannot read what {pattern} matches"))?;
        if path.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}
