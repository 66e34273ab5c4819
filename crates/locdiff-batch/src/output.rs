//! A unit's output: one Parquet file, one row per row of the input, in its order.

use std::sync::Arc;

use arrow_array::builder::{
    Float32Builder, Float64Builder, Int32Builder, Int64Builder, ListBuilder, StringBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use locdiff_sphere::LatLon;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::cells::Cells;
use crate::columns::AnswerColumns;
use crate::job::Task;
use crate::work::Made;

/// In the metadata of an output: the digest of the job.
pub(crate) const JOB_KEY: &str = "locdiff.job";
/// In the metadata of an output: the number of the unit.
pub(crate) const UNIT_KEY: &str = "locdiff.unit";
pub(crate) const ID: &str = "id";
pub(crate) const ERROR: &str = "error";

/// Rows after which columns are encoded.
const ROWS_AT_ONCE: usize = 256;

/// The same bytes for the same batches.
pub(crate) fn writer(
    bytes: Vec<u8>,
    schema: SchemaRef,
    facts: &[(&str, String)],
) -> Result<ArrowWriter<Vec<u8>>, ParquetError> {
    let facts = facts.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
    let level = ZstdLevel::try_new(3)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_key_value_metadata(Some(facts.collect()))
        .build();
    ArrowWriter::try_new(bytes, schema, Some(properties))
}

/// The bytes of a Parquet file with these rows.
pub(crate) fn parquet_file(
    schema: SchemaRef,
    batches: impl IntoIterator<Item = RecordBatch>,
    facts: &[(&str, String)],
) -> Result<Vec<u8>, ParquetError> {
    let mut writer = writer(Vec::new(), schema, facts)?;
    for batch in batches {
        writer.write(&batch)?;
    }
    writer.into_inner()
}

/// Columns of a task between `path` and the end.
enum Columns {
    Locate(Box<AnswerColumns>),
    Embed(Box<EmbedColumns>),
    Check(Box<CheckColumns>),
}

#[derive(Default)]
struct PlaceColumns {
    latitude: Float64Builder,
    longitude: Float64Builder,
}

struct EmbedColumns {
    embedding: ListBuilder<Float32Builder>,
    place: PlaceColumns,
    error: StringBuilder,
}

#[derive(Default)]
struct CheckColumns {
    width: Int32Builder,
    height: Int32Builder,
    bytes: Int64Builder,
    sha256: StringBuilder,
    place: PlaceColumns,
    error: StringBuilder,
}

impl PlaceColumns {
    fn fields() -> [Field; 2] {
        ["latitude", "longitude"].map(|name| Field::new(name, DataType::Float64, true))
    }

    fn push(&mut self, place: Option<LatLon>) {
        self.latitude.append_option(place.map(|place| place.latitude()));
        self.longitude.append_option(place.map(|place| place.longitude()));
    }

    fn finish(&mut self) -> [ArrayRef; 2] {
        [Arc::new(self.latitude.finish()), Arc::new(self.longitude.finish())]
    }
}

/// A unit's output in the making.
pub(crate) struct Output {
    schema: SchemaRef,
    writer: ArrowWriter<Vec<u8>>,
    id: StringBuilder,
    path: StringBuilder,
    columns: Columns,
    cells: Option<(Cells, StringBuilder)>,
    waiting: usize,
    pub(crate) rows: u64,
    pub(crate) errors: u64,
}

/// What the list's elements are called by Arrow's own builders.
const ELEMENT: &str = "item";

fn fields(task: &Task) -> Vec<Field> {
    let error = || Field::new(ERROR, DataType::Utf8, true);
    let [latitude, longitude] = PlaceColumns::fields();
    match task {
        Task::Locate { .. } => AnswerColumns::fields().collect(),
        // Not of fixed size, which Spark does not read.
        Task::Embed { .. } => {
            let element = Arc::new(Field::new(ELEMENT, DataType::Float32, true));
            let embedding = Field::new("embedding", DataType::List(element), true);
            vec![embedding, latitude, longitude, error()]
        }
        Task::Check => vec![
            Field::new("width", DataType::Int32, true),
            Field::new("height", DataType::Int32, true),
            Field::new("bytes", DataType::Int64, true),
            Field::new("sha256", DataType::Utf8, true),
            latitude,
            longitude,
            error(),
        ],
    }
}

impl Output {
    pub(crate) fn new(
        task: &Task,
        cells: Option<Cells>,
        digest: &str,
        unit: u64,
    ) -> Result<Output, ParquetError> {
        let mut all =
            vec![Field::new(ID, DataType::Utf8, false), Field::new("path", DataType::Utf8, false)];
        all.extend(fields(task));
        if cells.is_some() {
            all.push(Field::new("cell", DataType::Utf8, true));
        }
        let schema = Arc::new(Schema::new(all));
        let facts = [(JOB_KEY, digest.to_owned()), (UNIT_KEY, unit.to_string())];
        Ok(Output {
            writer: writer(Vec::new(), Arc::clone(&schema), &facts)?,
            schema,
            id: StringBuilder::new(),
            path: StringBuilder::new(),
            columns: match task {
                Task::Locate { .. } => Columns::Locate(Box::default()),
                Task::Embed { .. } => Columns::Embed(Box::new(EmbedColumns {
                    embedding: ListBuilder::new(Float32Builder::new()),
                    place: PlaceColumns::default(),
                    error: StringBuilder::new(),
                })),
                Task::Check => Columns::Check(Box::default()),
            },
            cells: cells.map(|cells| (cells, StringBuilder::new())),
            waiting: 0,
            rows: 0,
            errors: 0,
        })
    }

    pub(crate) fn push(
        &mut self,
        id: &str,
        path: &str,
        made: &Result<Made, String>,
    ) -> Result<(), ParquetError> {
        self.id.append_value(id);
        self.path.append_value(path);
        let reason = made.as_ref().err().map(String::as_str);
        let mut at = None;
        match &mut self.columns {
            Columns::Locate(columns) => match made {
                Ok(Made::Answer(answer)) => {
                    columns.push(Ok(answer));
                    at = LatLon::new(answer.place.latitude, answer.place.longitude).ok();
                }
                _ => columns.push(Err(reason.unwrap_or_default())),
            },
            Columns::Embed(columns) => {
                let EmbedColumns { embedding, place, error } = &mut **columns;
                if let Ok(Made::Embedding { numbers, place }) = made {
                    embedding.values().append_slice(numbers);
                    at = *place;
                }
                embedding.append(reason.is_none());
                place.push(at);
                error.append_option(reason);
            }
            Columns::Check(columns) => {
                let CheckColumns { width, height, bytes, sha256, place, error } = &mut **columns;
                if let Ok(Made::Checked { width: w, height: h, bytes: b, sha256: s, place }) = made
                {
                    width.append_value(*w as i32);
                    height.append_value(*h as i32);
                    bytes.append_value(*b as i64);
                    sha256.append_value(s);
                    at = *place;
                } else {
                    width.append_null();
                    height.append_null();
                    bytes.append_null();
                    sha256.append_null();
                }
                place.push(at);
                error.append_option(reason);
            }
        }
        if let Some((cells, ids)) = &mut self.cells {
            ids.append_option(at.map(|place| cells.at(place)));
        }
        self.rows += 1;
        self.errors += u64::from(reason.is_some());
        self.waiting += 1;
        if self.waiting == ROWS_AT_ONCE {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.waiting == 0 {
            return Ok(());
        }
        self.waiting = 0;
        let mut arrays: Vec<ArrayRef> =
            vec![Arc::new(self.id.finish()), Arc::new(self.path.finish())];
        match &mut self.columns {
            Columns::Locate(columns) => arrays.extend(columns.finish()),
            Columns::Embed(columns) => {
                let EmbedColumns { embedding, place, error } = &mut **columns;
                arrays.push(Arc::new(embedding.finish()));
                arrays.extend(place.finish());
                arrays.push(Arc::new(error.finish()));
            }
            Columns::Check(columns) => {
                let CheckColumns { width, height, bytes, sha256, place, error } = &mut **columns;
                arrays.push(Arc::new(width.finish()));
                arrays.push(Arc::new(height.finish()));
                arrays.push(Arc::new(bytes.finish()));
                arrays.push(Arc::new(sha256.finish()));
                arrays.extend(place.finish());
                arrays.push(Arc::new(error.finish()));
            }
        }
        if let Some((_, ids)) = &mut self.cells {
            arrays.push(Arc::new(ids.finish()));
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)?;
        self.writer.write(&batch)
    }

    /// Ends the file and returns its bytes.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, ParquetError> {
        self.flush()?;
        self.writer.into_inner()
    }
}
