//! `images-00000.parquet` …: the images of a folder or manifest, one row group per unit, so that a unit reads only its own.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use locdiff::checksum::{Checksum, sha256};
use locdiff_train::Store;
use locdiff_train::images::{Listed, Stated};
use parquet::arrow::ArrowWriter;

use crate::columns::text;
use crate::error::BatchError;
use crate::output::writer;
use crate::units::{Unit, UnitKind};

/// Units whose images are in one file: a unit reads the file's footer, which grows with them.
const UNITS_PER_FILE: usize = 256;

const TEXTS: [&str; 4] = ["id", "path", "problem", "wrong_place"];
const NUMBERS: [&str; 2] = ["latitude", "longitude"];

#[derive(Debug, PartialEq)]
pub(crate) struct ListedImage {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) place: Stated,
    /// Why it is of no use, if that was known when it was listed.
    pub(crate) problem: Option<String>,
}

fn schema() -> SchemaRef {
    let texts = TEXTS.map(|name| Field::new(name, DataType::Utf8, true));
    let numbers = NUMBERS.map(|name| Field::new(name, DataType::Float64, true));
    Arc::new(Schema::new(texts.into_iter().chain(numbers).collect::<Vec<_>>()))
}

/// Writes the list, and makes the units on the way.
pub(crate) struct ImagesWriter<'a> {
    /// Where files are written; nothing is written if there is a job already.
    store: Option<&'a Store>,
    rows_per_unit: usize,
    texts: [StringBuilder; TEXTS.len()],
    numbers: [Float64Builder; NUMBERS.len()],
    rows: usize,
    file: Option<ArrowWriter<Vec<u8>>>,
    units: Vec<Unit>,
    /// Units of files before this one.
    before: usize,
    checksum: Checksum,
}

impl<'a> ImagesWriter<'a> {
    pub(crate) fn new(store: Option<&'a Store>, rows_per_unit: usize) -> ImagesWriter<'a> {
        ImagesWriter {
            store,
            rows_per_unit,
            texts: Default::default(),
            numbers: Default::default(),
            rows: 0,
            file: None,
            units: Vec::new(),
            before: 0,
            checksum: Checksum::default(),
        }
    }

    pub(crate) fn push(&mut self, listed: &Listed, path: &str) -> Result<(), BatchError> {
        let (place, wrong) = match &listed.place {
            Stated::Nothing => (None, None),
            Stated::At(place) => (Some(*place), None),
            Stated::Wrong(reason) => (None, Some(reason.as_str())),
        };
        let problem = listed.bad.as_ref().map(|bad| bad.message.as_str());
        let texts = [Some(listed.id.as_deref().unwrap_or(path)), Some(path), problem, wrong];
        for (builder, text) in self.texts.iter_mut().zip(texts) {
            builder.append_option(text);
        }
        let numbers = [place.map(|place| place.latitude()), place.map(|place| place.longitude())];
        for (builder, number) in self.numbers.iter_mut().zip(numbers) {
            builder.append_option(number);
        }
        self.rows += 1;
        match self.rows == self.rows_per_unit {
            true => self.end_unit(),
            false => Ok(()),
        }
    }

    fn end_unit(&mut self) -> Result<(), BatchError> {
        if self.rows == 0 {
            return Ok(());
        }
        let texts = self.texts.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef);
        let numbers = self.numbers.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef);
        let batch = RecordBatch::try_new(schema(), texts.chain(numbers).collect());
        let batch = batch.expect("columns of equal length");
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(writer(Vec::new(), schema(), &[]).expect("in memory")),
        };
        // A row group of its own.
        file.write(&batch).and_then(|()| file.flush()).expect("in memory");
        let first = self.units[self.before..].iter().filter_map(|unit| unit.rows).sum();
        let number = self.before / UNITS_PER_FILE;
        self.units.push(Unit {
            kind: UnitKind::Images,
            location: format!("images-{number:05}.parquet"),
            first,
            rows: Some(self.rows as u64),
            bytes: 0,
        });
        self.rows = 0;
        match self.units.len() - self.before == UNITS_PER_FILE {
            true => self.end_file(),
            false => Ok(()),
        }
    }

    fn end_file(&mut self) -> Result<(), BatchError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let bytes = file.into_inner().expect("in memory");
        self.checksum.update(sha256(&bytes));
        for unit in &mut self.units[self.before..] {
            unit.bytes = bytes.len() as u64;
        }
        if let Some(store) = self.store {
            store.put(&self.units[self.before].location, bytes)?;
        }
        self.before = self.units.len();
        Ok(())
    }

    /// The units, and a checksum of all files.
    pub(crate) fn finish(mut self) -> Result<(Vec<Unit>, String), BatchError> {
        self.end_unit()?;
        self.end_file()?;
        Ok((self.units, self.checksum.finish()))
    }
}

/// The images of a batch of such a file.
pub(crate) fn listed_images(batch: &RecordBatch) -> Option<Vec<ListedImage>> {
    let [ids, paths, problems, wrong] = TEXTS.map(|name| batch.column_by_name(name));
    let [latitudes, longitudes] = NUMBERS.map(|name| batch.column_by_name(name));
    let (ids, paths, problems, wrong) = (ids?, paths?, problems?, wrong?);
    let latitudes = latitudes?.as_primitive_opt::<Float64Type>()?;
    let longitudes = longitudes?.as_primitive_opt::<Float64Type>()?;
    let image = |row: usize| {
        let latitude = (!latitudes.is_null(row)).then(|| latitudes.value(row));
        let longitude = (!longitudes.is_null(row)).then(|| longitudes.value(row));
        ListedImage {
            id: text(ids, row).unwrap_or_default().to_owned(),
            path: text(paths, row).unwrap_or_default().to_owned(),
            place: match text(wrong, row) {
                Some(reason) => Stated::Wrong(reason.to_owned()),
                None => Stated::of(latitude, longitude),
            },
            problem: text(problems, row).map(str::to_owned),
        }
    };
    Some((0..batch.num_rows()).map(image).collect())
}
