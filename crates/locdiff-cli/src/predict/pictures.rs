//! Which pictures were meant: files, folders, patterns, stdin.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use locdiff::photo::PhotoFormat;
use walkdir::{DirEntry, WalkDir};

use super::answer::Picture;

/// Files with these endings are pictures, or damaged ones.
const ENDINGS: [&str; 14] = [
    "jpg", "jpeg", "jpe", "png", "webp", "gif", "tif", "tiff", "bmp", "heic", "heif", "avif",
    "jfif", "dib",
];
/// More than the first box of a HEIC file.
const BEGINNING: u64 = 256;

#[derive(Default)]
pub(super) struct Found {
    pub(super) pictures: Vec<Picture>,
    /// Files in folders that are no pictures.
    pub(super) others: usize,
    /// Files and folders that could not be read, and why.
    pub(super) unreadable: Vec<String>,
    /// Names of maps that are taken.
    names: HashSet<PathBuf>,
}

pub(super) fn find(names: &[OsString], hidden: bool) -> anyhow::Result<Found> {
    let mut found = Found::default();
    for name in names {
        let path = Path::new(name);
        let shown = path.display();
        if name == "-" {
            found.pictures.push(Picture::Stdin);
        } else if path.is_dir() {
            let before = found.pictures.len();
            found.add_folder(path, hidden);
            let is_empty = found.pictures.len() == before && found.unreadable.is_empty();
            ensure!(!is_empty, "there are no pictures in {shown}");
        } else if let Some(pattern) = pattern_of(path) {
            let paths = matching(pattern)?;
            ensure!(!paths.is_empty(), "no file matches {shown}");
            paths.into_iter().for_each(|path| found.add_file(path));
        } else {
            // Whether it can be read shows when its turn comes, and the others aren't kept waiting.
            found.add_file(path.to_owned());
        }
    }
    Ok(found)
}

impl Found {
    fn add_file(&mut self, path: PathBuf) {
        let name = path.file_name().unwrap_or(path.as_os_str()).into();
        self.add(path, name);
    }

    /// A picture, and the path that its map has below a folder of maps.
    fn add(&mut self, path: PathBuf, mut relative: PathBuf) {
        // Two folders may contain an IMG_0001.jpg each.
        let mut number = 2;
        while !self.names.insert(relative.clone()) {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(format!("-{number}"));
            relative.set_file_name(name);
            number += 1;
        }
        self.pictures.push(Picture::from_path(path, relative));
    }

    /// As `locdiff embed` chooses: everything that isn't hidden, and content decides.
    fn add_folder(&mut self, folder: &Path, hidden: bool) {
        let shown =
            |entry: &DirEntry| hidden || entry.depth() == 0 || !is_hidden(entry.file_name());
        let entries = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
        for entry in entries.filter_entry(shown) {
            match entry {
                Err(error) => self.unreadable.push(error.to_string()),
                Ok(entry) if !entry.file_type().is_file() => {}
                Ok(entry) if is_picture(entry.path()) => {
                    let path = entry.into_path();
                    let relative = path.strip_prefix(folder).unwrap_or(&path).to_owned();
                    self.add(path, relative);
                }
                Ok(_) => self.others += 1,
            }
        }
    }
}

/// Names that begin with a dot, the thumbnails that network drives make, and copies that exiftool and `locdiff tag` make of
/// files before they write to them.
pub(crate) fn is_hidden(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    let is_copy = text.trim_end_matches(|last: char| last.is_ascii_digit()).ends_with("_original");
    text.starts_with('.') || text == "@eaDir" || is_copy
}

/// Whether a file's content or, if it is damaged, its name is that of a picture.
pub(crate) fn is_picture(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    if ending.is_some_and(|ending| ENDINGS.contains(&ending.to_lowercase().as_str())) {
        return true;
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut bytes));
    read.is_ok() && PhotoFormat::begins(&bytes)
}

/// For shells that leave patterns to the program, and patterns in quotes.
fn pattern_of(path: &Path) -> Option<&str> {
    path.to_str().filter(|name| !path.exists() && name.contains(['*', '?', '[']))
}

fn matching(pattern: &str) -> anyhow::Result<Vec<PathBuf>> {
    let paths = match glob::glob(pattern) {
        Ok(paths) => paths,
        Err(error) => bail!("{pattern} is not a valid pattern: {error}"),
    };
    let mut found = Vec::new();
    for path in paths {
        let path = path.with_context(|| format!("cannot read a file that matches {pattern}"))?;
        if path.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}
