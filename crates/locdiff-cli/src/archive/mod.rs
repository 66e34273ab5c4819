//! Photo archives: `locdiff scan`, `review`, `tag` and `export`. docs/archive.md is the user's view.

mod context;
mod export;
mod facts;
mod predicting;
mod review;
mod scan;
mod table;
mod tag;
mod walking;

use std::path::Path;

use anyhow::ensure;
use locdiff_archive::library::{Entry, Library, UsedModel};

pub(crate) use export::{Arguments as ExportArguments, run as export};
pub(crate) use review::{Arguments as ReviewArguments, run as review};
pub(crate) use scan::{Arguments as ScanArguments, run as scan};
pub(crate) use tag::{Arguments as TagArguments, run as tag};

/// A library that a scan made.
fn open_library(path: &Path) -> anyhow::Result<Library> {
    let shown = path.display();
    ensure!(
        path.is_file(),
        "there is no library at {shown}: `locdiff scan FOLDER --library {shown}` makes one"
    );
    Ok(Library::open(path)?)
}

/// All pictures with the answers of a model; without any answers if there is no model yet.
fn entries(library: &Library, model: Option<&UsedModel>) -> anyhow::Result<Vec<Entry>> {
    let (name, version) =
        model.map_or(("", ""), |model| (model.name.as_str(), model.version.as_str()));
    Ok(library.entries(name, version)?)
}

/// The name of a file without its folders.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
