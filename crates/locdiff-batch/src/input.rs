//! What an input is: tars, Parquet files with the bytes of images, or a list of images.

use std::path::{Path, PathBuf};

use locdiff_train::Store;
use locdiff_train::images::{
    Listed, Stated, list, tars_in, visit_csv, visit_parquet, with_slashes,
};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use crate::blob::{Blob, file_name};
use crate::columns::is_bytes;
use crate::error::BatchError;
use crate::job::InputRecord;
use crate::units::{Unit, UnitKind};

/// Columns that may contain the bytes of images, the likeliest first.
const IMAGE_COLUMNS: [&str; 5] = ["image", "jpg", "png", "bytes", "content"];

/// What an input was found to be.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) record: InputRecord,
    pub(crate) images: Images,
}

#[derive(Debug)]
pub(crate) enum Images {
    /// Each a unit, by location.
    Tars(Vec<String>),
    /// With the bytes of images.
    Parquet(Vec<String>),
    /// Rows of a CSV or Parquet file.
    Manifest { location: String, is_csv: bool },
    /// Files below a root.
    Files(Vec<Listed>),
}

impl Input {
    /// A path or address; `column` is the one with the bytes of images, and `except` a directory that isn't part of it.
    pub(crate) fn find(
        location: &str,
        column: Option<&str>,
        except: Option<&Path>,
    ) -> Result<Input, BatchError> {
        let is_address = Store::is_address(location);
        let location = match is_address {
            true => location.trim_end_matches('/').to_owned(),
            false => absolute(location.strip_prefix("file://").unwrap_or(location)),
        };
        let record = |kind: &str, root: Option<String>| InputRecord {
            location: location.clone(),
            kind: kind.to_owned(),
            root,
            column: None,
        };
        let ending = Path::new(&location).extension().unwrap_or_default().to_string_lossy();
        let is_folder = !is_address && Path::new(&location).is_dir();
        let parent = location.rsplit_once('/').map(|(parent, _)| parent.to_owned());
        let manifest = |is_csv| Input {
            record: record("manifest", parent.clone()),
            images: Images::Manifest { location: location.clone(), is_csv },
        };
        match ending.to_ascii_lowercase().as_str() {
            "tar" if !is_folder => {
                let images = Images::Tars(vec![location.clone()]);
                Ok(Input { record: record("tars", None), images })
            }
            "csv" if !is_folder => Ok(manifest(true)),
            "parquet" if !is_folder => match image_column(&location, column)? {
                Some(column) => {
                    let record = InputRecord { column: Some(column), ..record("parquet", None) };
                    Ok(Input { record, images: Images::Parquet(vec![location.clone()]) })
                }
                None => Ok(manifest(false)),
            },
            _ if is_folder || is_address => {
                let folder = match is_address {
                    true => Folder::in_store(&location)?,
                    false => Folder::on_disk(&location, except),
                };
                folder.input(column, record)
            }
            _ => {
                let reason = match Path::new(&location).exists() {
                    true => "it is neither a folder nor a .csv, .parquet or .tar file",
                    false => "it does not exist",
                };
                Err(BatchError::wrong(location.clone(), reason))
            }
        }
    }
}

/// All files of a folder or prefix.
struct Folder {
    location: String,
    /// Tars and nothing else, or what img2dataset writes beside them.
    tars: Vec<String>,
    /// Parquet files and nothing else.
    parquets: Vec<String>,
    files: Vec<Listed>,
}

impl Folder {
    fn on_disk(location: &str, except: Option<&Path>) -> Folder {
        let except = except.unwrap_or(Path::new(""));
        let tars = tars_in(location.as_ref(), except).unwrap_or_default();
        let join = |name: &PathBuf| format!("{location}/{}", with_slashes(name));
        let tars: Vec<String> = tars.iter().map(join).collect();
        let files = match tars.is_empty() {
            true => list(location.as_ref(), except).files,
            false => Vec::new(),
        };
        Folder { location: location.to_owned(), parquets: parquets(location, &files), tars, files }
    }

    fn in_store(location: &str) -> Result<Folder, BatchError> {
        let stored = Store::at(location)?.list("")?;
        let hidden = |name: &str| name.split('/').any(|part| part.starts_with('.'));
        let names = stored.into_iter().map(|stored| stored.name);
        let names: Vec<String> = names
            .filter(|name| !hidden(name) && !name.is_empty() && !name.ends_with('/'))
            .collect();
        let ends = |name: &&String, ending: &str| name.ends_with(ending);
        let tars: Vec<String> = names
            .iter()
            .filter(|name| ends(name, ".tar"))
            .map(|name| format!("{location}/{name}"))
            .collect();
        let beside = |name: &String| {
            [".tar", ".json", ".parquet"].iter().any(|ending| name.ends_with(ending))
        };
        let tars = if names.iter().all(beside) { tars } else { Vec::new() };
        let file = |name: String| Listed {
            id: None,
            path: PathBuf::from(name),
            place: Stated::Nothing,
            bad: None,
        };
        let files: Vec<Listed> = names.into_iter().map(file).collect();
        Ok(Folder {
            location: location.to_owned(),
            parquets: parquets(location, &files),
            tars,
            files,
        })
    }

    fn input(
        self,
        column: Option<&str>,
        record: impl Fn(&str, Option<String>) -> InputRecord,
    ) -> Result<Input, BatchError> {
        if !self.tars.is_empty() {
            return Ok(Input { record: record("tars", None), images: Images::Tars(self.tars) });
        }
        if let Some(first) = self.parquets.first() {
            let none = "it has no column with the bytes of images: give --column, or plan each manifest by itself";
            let column = image_column(first, column)?;
            let column = column.ok_or_else(|| BatchError::wrong(first.clone(), none))?;
            let record = InputRecord { column: Some(column), ..record("parquet", None) };
            return Ok(Input { record, images: Images::Parquet(self.parquets) });
        }
        if self.files.is_empty() {
            return Err(BatchError::wrong(self.location, "there are no files"));
        }
        let record = record("folder", Some(self.location));
        Ok(Input { record, images: Images::Files(self.files) })
    }
}

/// The Parquet files of a folder that has nothing else.
fn parquets(location: &str, files: &[Listed]) -> Vec<String> {
    let is_parquet = |file: &Listed| file.path.extension().is_some_and(|it| it == "parquet");
    match files.iter().all(is_parquet) {
        true => files.iter().map(|it| format!("{location}/{}", with_slashes(&it.path))).collect(),
        false => Vec::new(),
    }
}

/// The column of a Parquet file that contains the bytes of images, if there is one.
fn image_column(location: &str, wanted: Option<&str>) -> Result<Option<String>, BatchError> {
    let metadata = footer(location)?.1;
    let fields = metadata.schema().fields();
    let has =
        |name: &str| fields.iter().any(|field| field.name() == name && is_bytes(field.data_type()));
    match wanted {
        Some(name) if has(name) => Ok(Some(name.to_owned())),
        Some(name) => {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            let reason = format!(
                "it has no column `{name}` of bytes, or of structs with `bytes`; its columns are {}",
                names.join(", ")
            );
            Err(BatchError::wrong(location, reason))
        }
        None => Ok(IMAGE_COLUMNS.into_iter().find(|name| has(name)).map(str::to_owned)),
    }
}

fn footer(location: &str) -> Result<(Blob, ArrowReaderMetadata), BatchError> {
    let blob = Blob::open(location)?;
    match ArrowReaderMetadata::load(&blob, Default::default()) {
        Ok(metadata) => Ok((blob, metadata)),
        Err(error) => Err(match blob.fault() {
            Some(fault) => fault.into(),
            None => BatchError::wrong(location, error),
        }),
    }
}

/// A unit per tar.
pub(crate) fn tar_units(tars: &[String]) -> Result<Vec<Unit>, BatchError> {
    let unit = |location: &String| {
        let bytes = Blob::open(location)?.length();
        let (kind, location) = (UnitKind::Tar, location.clone());
        Ok(Unit { kind, location, first: 0, rows: None, bytes })
    };
    tars.iter().map(unit).collect()
}

/// Units of row groups, which can't be divided, of up to so many rows if the row groups let them.
pub(crate) fn parquet_units(
    files: &[String],
    column: &str,
    rows_per_unit: usize,
) -> Result<Vec<Unit>, BatchError> {
    let mut units: Vec<Unit> = Vec::new();
    for location in files {
        let (blob, footer) = footer(location)?;
        if image_column(location, Some(column))?.is_none() {
            return Err(BatchError::wrong(
                location.clone(),
                format!("it has no column `{column}`"),
            ));
        }
        let (mut first, begin) = (0, units.len());
        for group in footer.metadata().row_groups() {
            let rows = group.num_rows() as u64;
            match units[begin..].last_mut() {
                Some(Unit { rows: Some(before), .. }) if *before + rows <= rows_per_unit as u64 => {
                    *before += rows;
                }
                _ if rows > 0 => units.push(Unit {
                    kind: UnitKind::Parquet,
                    location: location.clone(),
                    first,
                    rows: Some(rows),
                    bytes: blob.length(),
                }),
                _ => {}
            }
            first += rows;
        }
    }
    Ok(units)
}

/// The rows of a manifest, one after the other.
pub(crate) fn visit_manifest(
    location: &str,
    is_csv: bool,
    each: &mut dyn FnMut(Listed) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    let (blob, name) = (Blob::open(location)?, file_name(location));
    let visited = match is_csv {
        true => visit_csv(name.as_ref(), blob.reader(), each),
        false => visit_parquet(name.as_ref(), blob.clone(), each),
    };
    match blob.fault() {
        Some(fault) => Err(fault.into()),
        None => visited,
    }
}

fn absolute(path: &str) -> String {
    let absolute = std::path::absolute(path).map(|path| path.to_string_lossy().into_owned());
    absolute.unwrap_or_else(|_| path.to_owned()).trim_end_matches('/').to_owned()
}
