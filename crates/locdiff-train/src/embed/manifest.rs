//! Lists of images with places: CSV or Parquet.
//!
//! Columns: `path` or `image` (below the manifest's folder, or absolute), `latitude` and `longitude`
//! (degrees; empty or null for none), and `id` (else the path is the id). Others are ignored.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;

use super::error::EmbedError;
use super::input::Listed;
use super::item::{Bad, LATITUDE_NAMES, LONGITUDE_NAMES, Stated};

/// Which columns a manifest has, by their places in it.
struct Columns {
    path: usize,
    id: Option<usize>,
    place: Option<(usize, usize)>,
}

impl Columns {
    fn find(names: &[String]) -> Result<Columns, String> {
        let find = |wanted: &[&str]| {
            let is_it =
                |name: &String| wanted.iter().any(|it| name.trim().eq_ignore_ascii_case(it));
            names.iter().position(is_it)
        };
        let found = || names.join(", ");
        let path = find(&["path"]).or_else(|| find(&["image"]));
        let path =
            path.ok_or_else(|| format!("it has no column `path`; its columns are {}", found()))?;
        let place = match (find(LATITUDE_NAMES), find(LONGITUDE_NAMES)) {
            (Some(latitude), Some(longitude)) => Some((latitude, longitude)),
            (None, None) => None,
            _ => {
                return Err(format!(
                    "it has one of the columns `latitude` and `longitude`, but not both: {}",
                    found()
                ));
            }
        };
        Ok(Columns { path, id: find(&["id"]), place })
    }
}

/// A row, or why it is none; `number` is how people count it.
fn listed(number: u64, path: &str, id: Option<&str>, place: Stated) -> Listed {
    let id = id.filter(|id| !id.is_empty()).map(str::to_owned);
    match path {
        "" => bad_row(number, id, "its path is empty"),
        path => Listed { id, path: PathBuf::from(path), place, bad: None },
    }
}

fn bad_row(number: u64, id: Option<String>, reason: impl ToString) -> Listed {
    let name = format!("row {number}");
    let id = Some(id.unwrap_or_else(|| name.clone()));
    let bad = Some(Bad::new(Bad::BAD_ROW, reason));
    Listed { id, path: PathBuf::from(name), place: Stated::Nothing, bad }
}

/// What is done with each row of a manifest.
type EachRow<'a, E> = &'a mut dyn FnMut(Listed) -> Result<(), E>;

/// All rows of a manifest that fits into memory.
pub(super) fn read(
    manifest: &Path,
    visit: impl FnOnce(&Path, File, EachRow<'_, EmbedError>) -> Result<(), EmbedError>,
) -> Result<Vec<Listed>, EmbedError> {
    let file = File::open(manifest).map_err(EmbedError::file("open", manifest))?;
    let mut files = Vec::new();
    visit(manifest, file, &mut |listed| {
        files.push(listed);
        Ok(())
    })?;
    Ok(files)
}

/// The rows of a CSV manifest, one after the other. Fields are separated by commas, and may be quoted. The manifest's
/// path is for messages.
pub fn visit_csv<E: From<EmbedError>>(
    manifest: &Path,
    source: impl Read,
    each: EachRow<'_, E>,
) -> Result<(), E> {
    let wrong = |error: csv::Error| EmbedError::input(manifest, error);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(source);
    let names: Vec<String> = reader.headers().map_err(wrong)?.iter().map(str::to_owned).collect();
    let columns = Columns::find(&names).map_err(|reason| EmbedError::input(manifest, reason))?;
    for (index, record) in reader.records().enumerate() {
        let number = index as u64 + 1;
        each(match record {
            Ok(record) => {
                let field = |column: usize| record.get(column).unwrap_or_default();
                let place = columns.place.map_or(Stated::Nothing, |(latitude, longitude)| {
                    Stated::of_texts(field(latitude), field(longitude))
                });
                listed(number, field(columns.path), columns.id.map(field), place)
            }
            Err(error) if error.is_io_error() => return Err(wrong(error).into()),
            // Too many fields, or too few, or not UTF-8: the next row may be better.
            Err(error) => bad_row(number, None, error),
        })?;
    }
    Ok(())
}

/// The rows of a Parquet manifest, one after the other: texts in UTF-8, numbers of degrees as floats. The manifest's
/// path is for messages.
pub fn visit_parquet<E: From<EmbedError>>(
    manifest: &Path,
    source: impl ChunkReader + 'static,
    each: EachRow<'_, E>,
) -> Result<(), E> {
    let wrong = |reason: String| EmbedError::input(manifest, reason);
    let unreadable = |error: ParquetError| EmbedError::input(manifest, error);
    let builder = ParquetRecordBatchReaderBuilder::try_new(source).map_err(unreadable)?;
    let names: Vec<String> =
        builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let columns = Columns::find(&names).map_err(wrong)?;
    let places = columns.place.map(|(latitude, longitude)| [latitude, longitude]);
    let roots = [columns.path].into_iter().chain(columns.id).chain(places.into_iter().flatten());
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    let reader = builder.with_projection(mask).build().map_err(unreadable)?;
    let mut number = 0;
    for batch in reader {
        let batch = batch.map_err(|error| EmbedError::input(manifest, error))?;
        for file in read_batch(&batch, &columns, &names, &mut number).map_err(wrong)? {
            each(file)?;
        }
    }
    Ok(())
}

fn read_batch(
    batch: &RecordBatch,
    columns: &Columns,
    names: &[String],
    number: &mut u64,
) -> Result<Vec<Listed>, String> {
    let column = |index: usize| {
        batch.column_by_name(&names[index]).ok_or(format!("column `{}` is missing", names[index]))
    };
    let paths = texts(column(columns.path)?, "path")?;
    let ids = columns.id.map(|index| texts(column(index)?, "id")).transpose()?;
    let places = match columns.place {
        Some((latitude, longitude)) => Some((
            floats(column(latitude)?, &names[latitude])?,
            floats(column(longitude)?, &names[longitude])?,
        )),
        None => None,
    };
    let rows = paths.iter().enumerate().map(|(row, path)| {
        let id = ids.as_ref().and_then(|ids| ids[row].as_deref());
        let place = places.as_ref().map_or(Stated::Nothing, |(latitudes, longitudes)| {
            Stated::of(latitudes[row], longitudes[row])
        });
        *number += 1;
        listed(*number, path.as_deref().unwrap_or_default(), id, place)
    });
    Ok(rows.collect())
}

fn texts(array: &ArrayRef, name: &str) -> Result<Vec<Option<String>>, String> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Ok(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().map(owned).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(owned).collect(),
        DataType::Utf8View => array.as_string_view().iter().map(owned).collect(),
        // Ids are often numbers.
        DataType::Int64 => {
            let numbers = array.as_primitive::<Int64Type>().iter();
            numbers.map(|number| number.map(|number| number.to_string())).collect()
        }
        DataType::Int32 => {
            let numbers = array.as_primitive::<Int32Type>().iter();
            numbers.map(|number| number.map(|number| number.to_string())).collect()
        }
        other => return Err(format!("column `{name}` is {other}, it should be text")),
    })
}

fn floats(array: &ArrayRef, name: &str) -> Result<Vec<Option<f64>>, String> {
    Ok(match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().iter().collect(),
        DataType::Float32 => {
            array.as_primitive::<Float32Type>().iter().map(|value| value.map(f64::from)).collect()
        }
        // What some writers make of a column without a single number.
        DataType::Null => vec![None; array.len()],
        other => {
            return Err(format!("column `{name}` is {other}, it should be a 64- or 32-bit float"));
        }
    })
}
