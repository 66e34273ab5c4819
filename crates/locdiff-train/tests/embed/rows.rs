//! What a directory holds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) place: Option<(f64, f64)>,
    pub(crate) embedding: Vec<f32>,
}

/// Of all shards in the directory itself, by name.
pub(crate) fn rows_in(directory: &Path) -> Vec<Row> {
    let mut paths: Vec<_> = match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| entry.expect("an entry").path()).collect(),
        Err(_) => Vec::new(),
    };
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    paths.sort();
    paths.iter().flat_map(|path| rows_of(path)).collect()
}

fn rows_of(path: &Path) -> Vec<Row> {
    let file = File::open(path).expect("a shard");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
    let mut rows = Vec::new();
    for batch in reader.expect("a shard") {
        let batch = batch.expect("rows");
        let ids = batch.column(0).as_string::<i32>();
        let latitudes = batch.column(1).as_primitive::<Float64Type>();
        let longitudes = batch.column(2).as_primitive::<Float64Type>();
        let embeddings = batch.column(3).as_fixed_size_list();
        for row in 0..batch.num_rows() {
            let place = (!latitudes.is_null(row) && !longitudes.is_null(row))
                .then(|| (latitudes.value(row), longitudes.value(row)));
            let numbers = embeddings.value(row);
            let numbers = numbers.as_primitive::<Float16Type>().values();
            rows.push(Row {
                id: ids.value(row).to_owned(),
                place,
                embedding: numbers.iter().map(|number| number.to_f32()).collect(),
            });
        }
    }
    rows
}

/// Rows without a place.
pub(crate) fn unplaced_rows_in(directory: &Path) -> Vec<Row> {
    rows_in(&directory.join("without-place"))
}

pub(crate) fn ids(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.id.as_str()).collect()
}

/// Every file below a directory, hidden ones too.
pub(crate) fn files_in(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in walkdir::WalkDir::new(directory) {
        let entry = entry.expect("an entry");
        if entry.file_type().is_file() {
            let name = entry.path().strip_prefix(directory).expect("a prefix").display();
            files.insert(name.to_string(), fs::read(entry.path()).expect("a file"));
        }
    }
    files
}

/// Lines of `skipped.csv` without its head.
pub(crate) fn skipped_lines(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join("skipped.csv")).expect("a list");
    assert!(text.starts_with("id,path,kind,message\n"), "{text}");
    text.lines().skip(1).map(str::to_owned).collect()
}
