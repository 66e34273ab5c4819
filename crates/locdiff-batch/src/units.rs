//! `units.parquet`: which unit reads what.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::output::parquet_file;

/// What kind of thing a unit reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// All samples of a WebDataset tar.
    Tar,
    /// Rows of a Parquet file that contains the bytes of images.
    Parquet,
    /// Rows of a list of images in the job itself.
    Images,
}

impl UnitKind {
    const ALL: [UnitKind; 3] = [UnitKind::Tar, UnitKind::Parquet, UnitKind::Images];

    fn name(self) -> &'static str {
        match self {
            UnitKind::Tar => "tar",
            UnitKind::Parquet => "parquet",
            UnitKind::Images => "images",
        }
    }
}

/// A part of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) kind: UnitKind,
    /// A path or address; of a list of images, its name in the job.
    pub(crate) location: String,
    /// The unit's first row in that object.
    pub(crate) first: u64,
    /// How many rows; none for a tar, whose rows are not counted.
    pub(crate) rows: Option<u64>,
    /// Size of the file or object when it was planned.
    pub(crate) bytes: u64,
}

/// The table as a Parquet file.
pub(crate) fn to_parquet(units: &[Unit]) -> Vec<u8> {
    let numbers = |number: fn(&Unit) -> Option<u64>| -> ArrayRef {
        Arc::new(units.iter().map(|unit| number(unit).map(|n| n as i64)).collect::<Int64Array>())
    };
    let texts = |text: fn(&Unit) -> &str| -> ArrayRef {
        Arc::new(units.iter().map(|unit| Some(text(unit))).collect::<StringArray>())
    };
    let unit: Int64Array = (0..units.len() as i64).map(Some).collect();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("unit", Arc::new(unit) as ArrayRef, false),
        ("kind", texts(|unit| unit.kind.name()), false),
        ("location", texts(|unit| &unit.location), false),
        ("first", numbers(|unit| Some(unit.first)), false),
        ("rows", numbers(|unit| unit.rows), true),
        ("bytes", numbers(|unit| Some(unit.bytes)), false),
    ]);
    let batch = batch.expect("columns of equal length");
    parquet_file(batch.schema(), [batch], &[]).expect("a file in memory")
}

/// The table of a Parquet file; or why it is none.
pub(crate) fn from_parquet(bytes: Bytes) -> Result<Vec<Unit>, String> {
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(bytes).and_then(|builder| builder.build());
    let mut units = Vec::new();
    for batch in reader.map_err(|error| error.to_string())? {
        let batch = batch.map_err(|error| error.to_string())?;
        let column = |name: &str| {
            batch.column_by_name(name).ok_or_else(|| format!("it has no column `{name}`"))
        };
        let (kinds, locations) = (column("kind")?, column("location")?);
        let numbers = |name: &str| {
            let column = column(name)?.as_primitive_opt::<Int64Type>().cloned();
            column.ok_or_else(|| format!("column `{name}` is not of 64-bit integers"))
        };
        let (first, rows, bytes) = (numbers("first")?, numbers("rows")?, numbers("bytes")?);
        for row in 0..batch.num_rows() {
            let kind = crate::columns::text(kinds, row).unwrap_or_default();
            let known = UnitKind::ALL.into_iter().find(|known| known.name() == kind);
            units.push(Unit {
                kind: known.ok_or_else(|| format!("it has a unit of unknown kind `{kind}`"))?,
                location: crate::columns::text(locations, row).unwrap_or_default().to_owned(),
                first: first.value(row) as u64,
                rows: (!rows.is_null(row)).then(|| rows.value(row) as u64),
                bytes: bytes.value(row) as u64,
            });
        }
    }
    Ok(units)
}
