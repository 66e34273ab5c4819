//! The one manifest for any set of images, and how public sets become one.
//!
//! A manifest is a CSV file with the columns `image` (a path below its folder, or absolute), `latitude`
//! and `longitude` (degrees). `locdiff embed` reads it too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use locdiff::checksum::Checksum;
use walkdir::WalkDir;

use super::benchmarks::Benchmark;
use super::error::EvaluationError;
use super::table::{PlaceRow, PlaceTable, Role, Units};

/// What is in a manifest, and what should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completeness {
    /// Rows with a place.
    pub images: usize,
    /// Rows that the whole set has, if that is known.
    pub expected: Option<usize>,
    /// Images whose file isn't there.
    pub files_missing: Vec<String>,
    /// SHA-256 of the lines `stem latitude longitude` (six digits after the point, sorted): equal for equal
    /// names and places, in whatever order and folder.
    pub digest: String,
    /// The digest of the whole set, if that is known.
    pub expected_digest: Option<&'static str>,
}

impl Completeness {
    /// Looks at a manifest; for a known set, with its numbers.
    pub fn of(
        manifest: &Path,
        benchmark: Option<&Benchmark>,
    ) -> Result<Completeness, EvaluationError> {
        let table = read_manifest(manifest)?;
        let folder = manifest.parent().unwrap_or(Path::new(""));
        let names = table.rows.iter().filter_map(|row| row.image.clone());
        Ok(Completeness {
            images: table.rows.iter().filter(|row| row.place.is_some()).count(),
            expected: benchmark.and_then(|benchmark| benchmark.images),
            files_missing: names.filter(|name| !folder.join(name).is_file()).collect(),
            digest: digest(&table.rows),
            expected_digest: benchmark.and_then(|benchmark| benchmark.digest),
        })
    }

    /// Whether nothing is known to be missing or different.
    pub fn is_complete(&self) -> bool {
        self.files_missing.is_empty()
            && self.expected.is_none_or(|expected| expected == self.images)
            && self.expected_digest.is_none_or(|expected| expected == self.digest)
    }
}

/// The manifest that is meant by a path: the file itself, or in a folder `manifest.csv`.
pub fn manifest_path(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("manifest.csv") } else { path.to_owned() }
}

/// Reads a manifest, which names its images.
pub fn read_manifest(path: &Path) -> Result<PlaceTable, EvaluationError> {
    let table = PlaceTable::read(path, Role::Truth, Units::Degrees)?;
    if !table.has_images() {
        let reason = "it has no column `image`, so it is not a manifest";
        return Err(EvaluationError::table(path, reason));
    }
    Ok(table)
}

/// The manifest of a public set: its file of places and its folder of images, however these were unpacked,
/// as CSV. With a folder of images, paths are below it, and images whose file isn't there are left out: the second
/// value is their number.
pub fn make_manifest(
    benchmark: &Benchmark,
    places: &Path,
    images: Option<&Path>,
) -> Result<(String, usize), EvaluationError> {
    let table = PlaceTable::read(places, Role::Truth, Units::Degrees)?;
    let files = images.map(Files::below);
    let (mut text, mut missing) = (String::from("image,latitude,longitude\n"), 0);
    for PlaceRow { image, place, .. } in &table.rows {
        let (Some(image), Some(place)) = (image, place) else {
            missing += 1;
            continue;
        };
        let named = Path::new(image);
        let name = if benchmark.names_lack_ending && named.extension().is_none() {
            format!("{image}.jpg")
        } else {
            image.clone()
        };
        let path = match &files {
            None => Some(name),
            Some(files) => files.find(&name),
        };
        match path {
            None => missing += 1,
            Some(path) => {
                let quoted = if path.contains([',', '"']) {
                    format!("\"{}\"", path.replace('"', "\"\""))
                } else {
                    path
                };
                text.push_str(&format!("{quoted},{},{}\n", place.latitude(), place.longitude()));
            }
        }
    }
    Ok((text, missing))
}

/// Files below a folder, by path and by name.
struct Files {
    folder: PathBuf,
    by_name: HashMap<String, Vec<PathBuf>>,
}

impl Files {
    fn below(folder: &Path) -> Files {
        let mut by_name: HashMap<String, Vec<PathBuf>> = HashMap::new();
        for entry in WalkDir::new(folder).sort_by_file_name().into_iter().flatten() {
            if entry.file_type().is_file() {
                let name = entry.file_name().to_string_lossy().into_owned();
                by_name.entry(name).or_default().push(entry.into_path());
            }
        }
        Files { folder: folder.to_owned(), by_name }
    }

    /// The stated path, or the one file of that name.
    fn find(&self, name: &str) -> Option<String> {
        let as_said = self.folder.join(name);
        if as_said.is_file() {
            return Some(name.to_owned());
        }
        let file_name = Path::new(name).file_name()?.to_string_lossy().into_owned();
        match self.by_name.get(&file_name)?.as_slice() {
            [only] => Some(only.strip_prefix(&self.folder).ok()?.to_string_lossy().into_owned()),
            _ => None,
        }
    }
}

fn digest(rows: &[PlaceRow]) -> String {
    let mut lines: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let (image, place) = (row.image.as_deref()?, row.place?);
            let stem = Path::new(image).file_stem()?.to_string_lossy().into_owned();
            Some(format!("{stem} {:.6} {:.6}\n", place.latitude(), place.longitude()))
        })
        .collect();
    lines.sort_unstable();
    let mut hash = Checksum::default();
    for line in lines {
        hash.update(line);
    }
    hash.finish()
}
