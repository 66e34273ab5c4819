//! Arrow tables in and out, through the C data interface that everybody shares.

use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::{ArrowError, FieldRef, Schema, SchemaRef};
use locdiff::Geolocator;
use locdiff::locate::{AnswerOptions, Answered, ReadPicture, answer_all};
use locdiff_batch::columns::{AnswerColumns, bytes, is_images, text};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use rayon::prelude::*;

use crate::errors::{Problem, wrong_option};
use crate::images::{decode, together};
use crate::process::compute;

/// Rows of a batch of answers; images are read and encoded by [`together`].
const ROWS: usize = 64;

/// Answers, made a few rows at a time from a stream of images.
#[pyclass(frozen, module = "locdiff._native")]
pub(crate) struct Batches {
    model: Geolocator,
    threads: Option<usize>,
    options: AnswerOptions,
    column: usize,
    schema: SchemaRef,
    source: Mutex<Source>,
}

struct Source {
    reader: RecordBatchStreamReader,
    /// What is left of the last batch.
    rest: Option<RecordBatch>,
}

impl Batches {
    pub(crate) fn new(
        model: Geolocator,
        threads: Option<usize>,
        table: &Bound<'_, PyAny>,
        column: &str,
        prefix: &str,
        top: usize,
    ) -> PyResult<Batches> {
        let reader = RecordBatchStreamReader::from_pyarrow_bound(table)?;
        let given = reader.schema();
        let names: Vec<&str> = given.fields().iter().map(|field| field.name().as_str()).collect();
        let index = names.iter().position(|name| *name == column).ok_or_else(|| {
            wrong_option(format!(
                "the table has no column `{column}`: name the column of images with `column`; the columns are {}",
                names.join(", ")
            ))
        })?;
        if !is_images(given.field(index).data_type()) {
            return Err(wrong_option(format!(
                "column `{column}` contains {}: images are binary (the bytes of a file), text (a path), or a struct of `bytes` and `path`",
                given.field(index).data_type()
            )));
        }
        let kept = given.fields().iter().enumerate().filter(|(number, _)| *number != index);
        let mut fields: Vec<FieldRef> = kept.map(|(_, field)| Arc::clone(field)).collect();
        for field in AnswerColumns::fields() {
            let name = format!("{prefix}{}", field.name());
            if fields.iter().any(|field| *field.name() == name) {
                return Err(wrong_option(format!(
                    "the table has a column `{name}` already: give the columns of answers another name with `prefix`"
                )));
            }
            fields.push(Arc::new(field.with_name(name)));
        }
        Ok(Batches {
            model,
            threads,
            options: AnswerOptions { top, ..AnswerOptions::default() },
            column: index,
            schema: Arc::new(Schema::new(fields)),
            source: Mutex::new(Source { reader, rest: None }),
        })
    }

    /// Images of up to so many rows.
    fn next_rows(&self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut source = self.source.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        loop {
            if let Some(rest) = source.rest.take() {
                let count = rest.num_rows().min(ROWS);
                if count < rest.num_rows() {
                    source.rest = Some(rest.slice(count, rest.num_rows() - count));
                }
                if count > 0 {
                    return Ok(Some(rest.slice(0, count)));
                }
            }
            match source.reader.next().transpose()? {
                Some(batch) => source.rest = Some(batch),
                None => return Ok(None),
            }
        }
    }

    /// Answers to some rows from the first on.
    fn answers(&self, images: &ArrayRef) -> Vec<Result<Answered, Problem>> {
        let rows: Vec<usize> = (0..images.len()).collect();
        let read = rows.par_iter().map(|row| read_row(images, *row)).collect();
        answer_all(&self.model, read, &self.options)
    }
}

#[pymethods]
impl Batches {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let failed = |error: ArrowError| wrong_option(format!("the table: {error}"));
        // The stream may be Python's.
        let Some(rows) = py.detach(|| self.next_rows()).map_err(failed)? else { return Ok(None) };
        let images = rows.column(self.column);
        let mut columns = AnswerColumns::default();
        for start in (0..images.len()).step_by(together()) {
            let some = images.slice(start, together().min(images.len() - start));
            compute(py, self.threads, || {
                for answered in self.answers(&some) {
                    let answered = answered.as_ref().map(|answered| &answered.record);
                    columns.push(answered.map_err(|problem| problem.reason.as_str()));
                }
            })?;
            py.check_signals()?;
        }
        let mut arrays: Vec<ArrayRef> = rows.columns().to_vec();
        arrays.remove(self.column);
        arrays.extend(columns.finish());
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(failed)?;
        Ok(Some(Table { schema: Arc::clone(&self.schema), batches: vec![batch] }))
    }

    /// All that are left, as one table.
    fn collect(&self, py: Python<'_>) -> PyResult<Table> {
        let mut batches = Vec::new();
        while let Some(table) = self.__next__(py)? {
            batches.extend(table.batches);
        }
        Ok(Table { schema: Arc::clone(&self.schema), batches })
    }
}

/// A table of answers that other libraries can take.
#[pyclass(frozen, module = "locdiff._native")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    /// The stream of the Arrow PyCapsule interface. No other schema is made of it.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }
}

/// The image of a row.
fn read_row(images: &ArrayRef, row: usize) -> Result<ReadPicture, Problem> {
    if let Some(parts) = images.as_struct_opt() {
        let path = parts.column_by_name("path").and_then(|column| text(column, row));
        let bytes = parts.column_by_name("bytes").and_then(|column| bytes(column, row));
        return match (bytes, path) {
            (Some(bytes), path) => decode(path.map(str::to_owned), bytes),
            (None, Some(path)) => open(path),
            (None, None) => Err(Problem::image("the row has no image")),
        };
    }
    match (bytes(images, row), text(images, row)) {
        (Some(bytes), _) => decode(None, bytes),
        (None, Some(path)) => open(path),
        (None, None) => Err(Problem::image("the row has no image")),
    }
}

fn open(path: &str) -> Result<ReadPicture, Problem> {
    ReadPicture::open(path.as_ref()).map_err(|error| Problem::unreadable(&error))
}
