//! Lists of images with places: CSV or Parquet.
//!
//! Columns: `path` or `image` (below the manifest's folder, or absolute), `latitude` and `longitude`
//! (degrees; empty or null for none), and `id` (else the path is the id). Others are ignored.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

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
        let path = path.ok_or_else(|| format!("it has no column `path`, but {}", found()))?;
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

/// Fields are separated by commas, and may be quoted.
pub(super) fn read_csv(manifest: &Path) -> Result<Vec<Listed>, EmbedError> {
    let wrong = |error: csv::Error| EmbedError::input(manifest, error);
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_path(manifest).map_err(wrong)?;
    let names: Vec<String> = reader.headers().map_err(wrong)?.iter().map(str::to_owned).collect();
    let columns = Columns::find(&names).map_err(|reason| EmbedError::input(manifest, reason))?;
    let mut files = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let number = index as u64 + 1;
        files.push(match record {
            Ok(record) => {
                let field = |column: usize| record.get(column).unwrap_or_default();
                let place = columns.place.map_or(Stated::Nothing, |(latitude, longitude)| {
                    Stated::of_texts(field(latitude), field(longitude))
                });
                listed(number, field(columns.path), columns.id.map(field), place)
            }
            Err(error) if error.is_io_error() => return Err(wrong(error)),
            // Too many fields, or too few, or not UTF-8: the next row may be better.
            Err(error) => bad_row(number, None, error),
        });
    }
    Ok(files)
}

/// Texts in UTF-8, numbers of degrees as floats.
pub(super) fn read_parquet(manifest: &Path) -> Result<Vec<Listed>, EmbedError> {
    let wrong = |reason: String| EmbedError::input(manifest, reason);
    let file = File::open(manifest).map_err(EmbedError::file("open", manifest))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)
        .map_err(|error| EmbedError::input(manifest, error))?;
    let names: Vec<String> =
        builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let columns = Columns::find(&names).map_err(wrong)?;
    let places = columns.place.map(|(latitude, longitude)| [latitude, longitude]);
    let roots = [columns.path].into_iter().chain(columns.id).chain(places.into_iter().flatten());
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    let reader = builder
        .with_projection(mask)
        .build()
        .map_err(|error| EmbedError::input(manifest, error))?;
    let mut files = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| EmbedError::input(manifest, error))?;
        read_batch(&batch, &columns, &names, &mut files).map_err(wrong)?;
    }
    Ok(files)
}

fn read_batch(
    batch: &RecordBatch,
    columns: &Columns,
    names: &[String],
    files: &mut Vec<Listed>,
) -> Result<(), String> {
    let column = |index: usize| {
        batch.column_by_name(&names[index]).ok_or(format!("column `{}` is gone", names[index]))
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
    for (row, path) in paths.iter().enumerate() {
        let id = ids.as_ref().and_then(|ids| ids[row].as_deref());
        let place = places.as_ref().map_or(Stated::Nothing, |(latitudes, longitudes)| {
            Stated::of(latitudes[row], longitudes[row])
        });
        let number = files.len() as u64 + 1;
        files.push(listed(number, path.as_deref().unwrap_or_default(), id, place));
    }
    Ok(())
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
