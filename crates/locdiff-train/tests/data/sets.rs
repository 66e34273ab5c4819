//! Small data sets whose embeddings tell which row they are of.

use std::path::Path;

use locdiff::encoders::EncoderRecord;
use locdiff_sphere::LatLon;
use locdiff_train::{
    Batch, DataError, Dataset, Layout, Numbers, OnBadShard, ShardWriter, Stream, StreamOptions,
    WriteOptions,
};
use tempfile::TempDir;

pub(crate) const WIDTH: usize = 5;

pub(crate) fn layout(numbers: Numbers, views: usize) -> Layout {
    Layout { encoder: EncoderRecord::of_identity("test"), width: WIDTH, views, numbers }
}

/// `[view, number]`: row, view, and a few more; exact in half precision for row < 2048.
pub(crate) fn embedding(row: usize, views: usize) -> Vec<f32> {
    (0..views).flat_map(|view| [row as f32, view as f32, -0.5, 2.0, row as f32 / 2.0]).collect()
}

/// The poles, the antimeridian, and elsewhere.
pub(crate) fn place(row: usize) -> LatLon {
    match row % 5 {
        0 => Ok(LatLon::NORTH_POLE),
        1 => Ok(LatLon::SOUTH_POLE),
        2 => LatLon::new(12.5, -180.0),
        3 => LatLon::new(-45.25, 179.999),
        _ => LatLon::new(row as f64 / 100.0, row as f64 / 50.0),
    }
    .expect("a place")
}

pub(crate) fn id(row: usize) -> String {
    format!("row-{row}")
}

/// Rows 0, 1 … in groups of 7, shards of 30.
pub(crate) fn write(directory: &Path, rows: usize, layout: Layout) {
    let options = WriteOptions { rows_per_group: 7, rows_per_shard: 30 };
    let views = layout.views;
    let mut writer = ShardWriter::create(directory, layout, options).expect("a directory");
    for row in 0..rows {
        writer.write(&id(row), place(row), &embedding(row, views)).expect("a row");
    }
    assert_eq!(writer.finish().expect("shards").rows, rows as u64);
}

pub(crate) fn new_set(rows: usize) -> (TempDir, Dataset) {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), rows, layout(Numbers::F16, 1));
    let set = open(directory.path(), OnBadShard::Fail).expect("a data set");
    (directory, set)
}

pub(crate) fn open(directory: &Path, on_bad_shard: OnBadShard) -> Result<Dataset, DataError> {
    Dataset::open(&directory.display().to_string(), on_bad_shard)
}

pub(crate) fn options() -> StreamOptions {
    StreamOptions { batch: 8, seed: 3, buffer_groups: 4, ..Default::default() }
}

/// Which rows a batch has, by their embeddings.
pub(crate) fn rows_of(batch: &Batch) -> Vec<usize> {
    batch.embeddings.chunks(WIDTH).map(|row| row[0] as usize).collect()
}

/// The rows of all batches, after checking each against what was written.
pub(crate) fn checked_rows(stream: &mut Stream) -> Vec<usize> {
    let mut rows = Vec::new();
    for batch in stream {
        let batch = batch.expect("a batch");
        let of_batch = rows_of(&batch);
        assert_eq!(batch.places.len(), of_batch.len());
        for (index, row) in of_batch.iter().enumerate() {
            let view = batch.embeddings[index * WIDTH + 1] as usize;
            let expected = &embedding(*row, view + 1)[view * WIDTH..];
            assert_eq!(&batch.embeddings[index * WIDTH..][..WIDTH], expected);
            assert_eq!(batch.places[index], place(*row));
            if let Some(found) = batch.ids.get(index) {
                assert_eq!(*found, id(*row));
            }
        }
        rows.extend(of_batch);
    }
    rows
}
