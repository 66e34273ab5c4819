//! Where images come from, in an order that is always the same.

use std::path::{Path, PathBuf};

use locdiff::checksum::Checksum;
use serde_json::{Value, json};

use super::error::EmbedError;
use super::folder::{self, with_slashes};
use super::item::{Bad, Content, Item, Stated};
use super::{Share, manifest, tars};

/// A file in a list.
#[derive(Debug)]
pub struct Listed {
    /// Id, if it differs from the path.
    pub id: Option<String>,
    /// Below the input's root, or absolute.
    pub path: PathBuf,
    /// Where it was taken, by the list.
    pub place: Stated,
    /// Why it is of no use, if that is known already.
    pub bad: Option<Bad>,
}

/// Images, by where they are.
#[derive(Debug)]
pub(super) struct Input {
    /// What relative paths are relative to.
    root: PathBuf,
    images: Images,
    /// Hidden files that were left out.
    pub(super) hidden: u64,
}

#[derive(Debug)]
enum Images {
    /// Files that are listed beforehand.
    Files { kind: &'static str, files: Vec<Listed> },
    /// Tars, which are read from their beginning to their end.
    Tars(Vec<PathBuf>),
}

impl Input {
    /// A folder, a manifest or a tar. What is in the directory `out` isn't part of it.
    pub(super) fn open(path: &Path, out: &Path) -> Result<Input, EmbedError> {
        let metadata = path.metadata().map_err(EmbedError::file("read", path))?;
        if path.canonicalize().ok().is_some_and(|path| out.canonicalize().ok() == Some(path)) {
            return Err(EmbedError::input(
                path,
                "it is the output directory: choose another with --out",
            ));
        }
        let mut hidden = 0;
        let parent = || path.parent().unwrap_or(Path::new("")).to_owned();
        let (root, images) = if metadata.is_dir() {
            match folder::tars_in(path, out) {
                Some(tars) => (path.to_owned(), Images::Tars(tars)),
                None => {
                    let listing = folder::list(path, out);
                    hidden = listing.hidden;
                    (path.to_owned(), Images::Files { kind: "folder", files: listing.files })
                }
            }
        } else {
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            match extension.to_ascii_lowercase().as_str() {
                "csv" => {
                    let files = manifest::read(path, manifest::visit_csv)?;
                    (parent(), Images::Files { kind: "manifest", files })
                }
                "parquet" => {
                    let files = manifest::read(path, manifest::visit_parquet)?;
                    (parent(), Images::Files { kind: "manifest", files })
                }
                "tar" => {
                    let name = path.file_name().map(PathBuf::from).unwrap_or_default();
                    (parent(), Images::Tars(vec![name]))
                }
                _ => {
                    let reason = "it is neither a folder nor a .csv, .parquet or .tar file";
                    return Err(EmbedError::input(path, reason));
                }
            }
        };
        if matches!(&images, Images::Files { files, .. } if files.is_empty()) {
            return Err(EmbedError::input(path, "it has no files"));
        }
        Ok(Input { root, images, hidden })
    }

    /// What must not change between an interruption and the continuation: which images, in which
    /// order, and where they were taken by the input. Not where the input is: it may be moved.
    pub(super) fn identity(&self) -> Result<Value, EmbedError> {
        let mut hash = Checksum::default();
        let mut update = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        let (kind, count) = match &self.images {
            Images::Files { kind, files } => {
                for file in files {
                    update(&with_slashes(&file.path));
                    update(file.id.as_deref().unwrap_or_default());
                    update(&format!("{:?}", file.place));
                }
                (*kind, files.len())
            }
            Images::Tars(tars) => {
                for tar in tars {
                    let path = self.root.join(tar);
                    let metadata = path.metadata().map_err(EmbedError::file("read", &path))?;
                    update(&with_slashes(tar));
                    update(&metadata.len().to_string());
                }
                ("tars", tars.len())
            }
        };
        Ok(json!({ "kind": kind, "count": count, "fingerprint": hash.finish_short() }))
    }

    /// Images of a share, unless they are in tars, which are not counted.
    pub(super) fn total(&self, share: Share) -> Option<u64> {
        match &self.images {
            Images::Files { files, .. } => {
                let (number, of) = (u64::from(share.number()), u64::from(share.of()));
                Some((files.len() as u64 + of - number) / of)
            }
            Images::Tars(_) => None,
        }
    }

    /// Shows the images of a share in their order, but not the first `done` ones, until `visit`
    /// says no. Members of tars that are larger than `max_bytes` aren't read.
    pub(super) fn visit(
        &self,
        share: Share,
        done: u64,
        max_bytes: u64,
        visit: &mut dyn FnMut(Item) -> bool,
    ) {
        let first = done * u64::from(share.of());
        let is_wanted = |index: u64| index >= first && share.has(index);
        match &self.images {
            Images::Files { files, .. } => {
                for (index, file) in files.iter().enumerate() {
                    if is_wanted(index as u64) && !visit(self.item(file)) {
                        return;
                    }
                }
            }
            Images::Tars(files) => tars::visit(&self.root, files, &is_wanted, max_bytes, visit),
        }
    }

    fn item(&self, file: &Listed) -> Item {
        let path = with_slashes(&file.path);
        let content = match &file.bad {
            Some(bad) => Content::Bad(bad.clone()),
            None => Content::File(self.root.join(&file.path)),
        };
        let id = file.id.clone().unwrap_or_else(|| path.clone());
        Item { id, path, place: file.place.clone(), content }
    }
}
