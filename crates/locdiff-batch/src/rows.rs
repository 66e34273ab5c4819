//! The images of a unit, one after the other.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use locdiff_train::Store;
use locdiff_train::images::{Content, Item, Stated, Waiting, read_file, visit_tar};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;

use crate::blob::{Blob, file_name, split_address};
use crate::columns::{bytes, text};
use crate::error::BatchError;
use crate::images::{ListedImage, listed_images};
use crate::job::Batch;
use crate::units::{Unit, UnitKind};

/// Rows of a Parquet file that are decoded at once: with images in them they are large.
const ROWS_AT_ONCE: usize = 64;

/// An image, not yet fetched.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) id: String,
    /// Where it is, for people.
    pub(crate) path: String,
    pub(crate) place: Stated,
    pub(crate) picture: Picture,
}

#[derive(Debug)]
pub(crate) enum Picture {
    File(PathBuf),
    /// An address in an object store.
    Object(String),
    Bytes(Vec<u8>),
    /// It is of no use, for a reason.
    Bad(String),
}

impl Waiting for Row {
    fn bytes(&self) -> usize {
        match &self.picture {
            Picture::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
    }
}

/// An image whose bytes were fetched, or why they could not be.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) place: Stated,
    pub(crate) bytes: Result<Vec<u8>, String>,
}

impl Batch {
    /// Shows the images of a unit in their order, until `visit` returns false. The error is one of the unit, not of an image.
    pub(crate) fn visit(
        &self,
        unit: &Unit,
        max_bytes: u64,
        visit: &mut dyn FnMut(Row) -> bool,
    ) -> Result<(), BatchError> {
        let blob = match unit.kind {
            UnitKind::Images => Blob::object(&self.store, &unit.location)?,
            _ => Blob::open(&unit.location)?,
        };
        if blob.length() != unit.bytes {
            let (planned, here) = (unit.bytes, blob.length());
            let reason = format!("it has changed: {planned} bytes were planned, it has {here}");
            return Err(BatchError::wrong(unit.location.clone(), reason));
        }
        let visited = match unit.kind {
            UnitKind::Tar => {
                let name = file_name(&unit.location);
                visit_tar(&name, Ok(blob.reader()), max_bytes, &mut |item| visit(of_item(item)));
                Ok(())
            }
            UnitKind::Parquet => self.visit_parquet(unit, &blob, visit),
            UnitKind::Images => self.visit_images(unit, &blob, visit),
        };
        match blob.fault() {
            Some(fault) => Err(fault.into()),
            None => visited,
        }
    }

    fn visit_images(
        &self,
        unit: &Unit,
        blob: &Blob,
        visit: &mut dyn FnMut(Row) -> bool,
    ) -> Result<(), BatchError> {
        let wrong = |reason: String| BatchError::wrong(unit.location.clone(), reason);
        let root = self.job.input.root.as_deref().unwrap_or_default();
        let batches = record_batches(unit, blob, |_| ProjectionMask::all());
        for batch in batches.map_err(|error| wrong(error.to_string()))? {
            let batch = batch.map_err(|error| wrong(error.to_string()))?;
            let images = listed_images(&batch);
            for image in images.ok_or_else(|| wrong("it is not a list of images".to_owned()))? {
                if !visit(of_listed(image, root)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// What can't be read of a Parquet file are rows with errors: they have no ids of their own.
    fn visit_parquet(
        &self,
        unit: &Unit,
        blob: &Blob,
        visit: &mut dyn FnMut(Row) -> bool,
    ) -> Result<(), BatchError> {
        let column = self.job.input.column.clone().unwrap_or_default();
        let name = file_name(&unit.location);
        let numbered = |row: u64| format!("{name}#{}", unit.first + row);
        let planned = unit.rows.unwrap_or_default();
        let wanted = [column.as_str(), "id", "latitude", "longitude", "lat", "lon", "lng"];
        let batches = record_batches(unit, blob, |builder| {
            let fields = builder.schema().fields().iter().enumerate();
            let roots = fields.filter(|(_, field)| wanted.contains(&field.name().as_str()));
            ProjectionMask::roots(builder.parquet_schema(), roots.map(|(index, _)| index))
        });
        let (batches, mut trouble) = match batches {
            Ok(batches) => (Some(batches), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let mut count = 0;
        for batch in batches.into_iter().flatten() {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    trouble = Some(error.to_string());
                    break;
                }
            };
            for row in 0..batch.num_rows() {
                let number = numbered(count);
                count += 1;
                if !visit(of_record(&batch, row, &column, number)) {
                    return Ok(());
                }
            }
        }
        let reason = trouble.unwrap_or_else(|| "it has fewer rows than planned".to_owned());
        for row in count..planned {
            let bad = Picture::Bad(format!("the Parquet file: {reason}"));
            let (id, path, place) = (numbered(row), numbered(row), Stated::Nothing);
            if !visit(Row { id, path, place, picture: bad }) {
                break;
            }
        }
        Ok(())
    }
}

type Batches = parquet::arrow::arrow_reader::ParquetRecordBatchReader;

/// The record batches of a unit's row groups.
fn record_batches(
    unit: &Unit,
    blob: &Blob,
    mask: impl FnOnce(&ParquetRecordBatchReaderBuilder<Blob>) -> ProjectionMask,
) -> Result<Batches, ParquetError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(blob.clone())?;
    let end = unit.first + unit.rows.unwrap_or_default();
    let (mut first, mut groups) = (0, Vec::new());
    for (index, group) in builder.metadata().row_groups().iter().enumerate() {
        if (unit.first..end).contains(&first) {
            groups.push(index);
        }
        first += group.num_rows() as u64;
    }
    let mask = mask(&builder);
    builder.with_row_groups(groups).with_projection(mask).with_batch_size(ROWS_AT_ONCE).build()
}

fn of_item(item: Item) -> Row {
    let Item { id, path, place, content } = item;
    let picture = match content {
        Content::File(path) => Picture::File(path),
        Content::Bytes(bytes) => Picture::Bytes(bytes),
        Content::Bad(bad) => Picture::Bad(bad.message),
    };
    Row { id, path, place, picture }
}

fn of_listed(image: ListedImage, root: &str) -> Row {
    let ListedImage { id, path, place, problem } = image;
    let picture = match problem {
        Some(reason) => Picture::Bad(reason),
        None if Store::is_address(&path) => Picture::Object(path.clone()),
        None if Path::new(&path).is_absolute() => Picture::File(PathBuf::from(&path)),
        None if Store::is_address(root) => Picture::Object(format!("{root}/{path}")),
        None => Picture::File(Path::new(root).join(&path)),
    };
    Row { id, path, place, picture }
}

fn of_record(batch: &RecordBatch, row: usize, column: &str, number: String) -> Row {
    let get = |name: &str| batch.column_by_name(name);
    let images = get(column);
    let parts = images.and_then(|images| images.as_struct_opt());
    let (image, inner) = match parts {
        Some(parts) => {
            let path = parts.column_by_name("path").and_then(|column| text(column, row));
            (parts.column_by_name("bytes").and_then(|column| bytes(column, row)), path)
        }
        None => (images.and_then(|column| bytes(column, row)), None),
    };
    let degrees = |names: &[&str]| names.iter().find_map(|name| float(get(name)?, row));
    Row {
        id: get("id").and_then(|ids| id(ids, row)).unwrap_or_else(|| number.clone()),
        path: inner.map(str::to_owned).unwrap_or(number),
        place: Stated::of(degrees(&["latitude", "lat"]), degrees(&["longitude", "lon", "lng"])),
        picture: match image {
            Some(bytes) => Picture::Bytes(bytes.to_vec()),
            None => Picture::Bad("the row has no image".to_owned()),
        },
    }
}

fn float(column: &ArrayRef, row: usize) -> Option<f64> {
    use arrow_array::types::{Float32Type, Float64Type};
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Float64 => Some(column.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => Some(column.as_primitive::<Float32Type>().value(row).into()),
        _ => None,
    }
}

/// Ids are texts or numbers.
fn id(column: &ArrayRef, row: usize) -> Option<String> {
    use arrow_array::types::{Int32Type, Int64Type};
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Int64 => Some(column.as_primitive::<Int64Type>().value(row).to_string()),
        DataType::Int32 => Some(column.as_primitive::<Int32Type>().value(row).to_string()),
        _ => text(column, row).map(str::to_owned),
    }
}

/// Object stores that images are fetched from, opened once each.
#[derive(Debug, Default)]
pub(crate) struct Stores(Mutex<HashMap<String, Store>>);

impl Stores {
    fn get(&self, location: &str) -> Result<Store, BatchError> {
        let mut stores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.get(location) {
            return Ok(store.clone());
        }
        let store = Store::at(location)?;
        stores.insert(location.to_owned(), store.clone());
        Ok(store)
    }

    /// The bytes of an image. A store that doesn't answer is no fault of the image.
    pub(crate) fn fetch(&self, row: Row, max_bytes: u64) -> Result<Fetched, BatchError> {
        let Row { id, path, place, picture } = row;
        let too_large = |size: u64| format!("too large: {size} bytes, the limit is {max_bytes}");
        let bytes = match picture {
            Picture::Bad(reason) => Err(reason),
            Picture::Bytes(bytes) => Ok(bytes),
            Picture::File(path) => read_file(&path, max_bytes).map_err(|bad| bad.message),
            Picture::Object(address) => match split_address(&address) {
                None => Err(format!("{address} is not the address of an object")),
                Some((store, name)) => match self.get(store)?.read_at_most(name, max_bytes)? {
                    None => Err("there is no such object".to_owned()),
                    Some(Err(size)) => Err(too_large(size)),
                    Some(Ok(bytes)) => Ok(bytes.to_vec()),
                },
            },
        };
        Ok(Fetched { id, path, place, bytes })
    }
}
