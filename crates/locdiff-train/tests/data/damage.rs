//! Damaged shards and rows are named, skipped if so wished, and counted.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, ListArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field};
use locdiff_train::{DataError, Dataset, Numbers, OnBadShard, StreamOptions};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::sets::{checked_rows, layout, new_set, open, options, write};

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("a shard");
    bytes[at] ^= 0x10;
    fs::write(path, bytes).expect("a shard");
}

fn one_epoch() -> StreamOptions {
    StreamOptions { epochs: Some(1), ..options() }
}

fn first_error(set: &Dataset) -> DataError {
    set.stream(one_epoch()).expect("a stream").find_map(Result::err).expect("an error")
}

/// Whichever byte of the rows flips, its row group is found out.
#[test]
fn flipped_bytes_are_named_skipped_and_counted() {
    for at in (4..4 + 7 * 5 * 2).step_by(3) {
        let (directory, _) = new_set(100);
        let shard = directory.path().join("shard-00001.parquet");
        flip(&shard, at);
        let set = open(directory.path(), OnBadShard::Fail).unwrap();
        let error = first_error(&set).to_string();
        let beginning = format!("{}, row group 0: its bytes have the checksum", shard.display());
        assert!(error.starts_with(&beginning), "{error}");

        let set = open(directory.path(), OnBadShard::Skip).unwrap();
        let mut stream = set.stream(StreamOptions { epochs: Some(2), ..options() }).unwrap();
        let rows = checked_rows(&mut stream);
        // The first group of the second shard.
        let expected: BTreeSet<usize> = (0..100).filter(|row| !(30..37).contains(row)).collect();
        assert_eq!(rows.len(), 2 * 93);
        assert_eq!(rows.into_iter().collect::<BTreeSet<_>>(), expected);
        let tally = stream.position().tally();
        assert_eq!((tally.delivered, tally.bad), (186, 14));
        assert_eq!(stream.skipped().len(), 1, "once, however often it is met");
        let skipped = &stream.skipped()[0];
        assert_eq!((skipped.group, skipped.rows), (Some(0), Some(7)));
        assert_eq!(skipped.shard, shard.display().to_string());
    }
}

#[test]
fn a_truncated_shard_is_named_skipped_and_counted() {
    for keep in [0, 3, 100, 900] {
        let (directory, _) = new_set(100);
        let shard = directory.path().join("shard-00002.parquet");
        OpenOptions::new().write(true).open(&shard).unwrap().set_len(keep).unwrap();
        let error = open(directory.path(), OnBadShard::Fail).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: ", shard.display())), "{error}");

        let set = open(directory.path(), OnBadShard::Skip).unwrap();
        assert_eq!((set.shards(), set.rows(), set.skipped().len()), (3, 70, 1));
        let skipped = &set.skipped()[0];
        assert_eq!((skipped.group, skipped.rows), (None, None));
        assert_eq!(skipped.shard, shard.display().to_string());
        let rows: BTreeSet<usize> =
            checked_rows(&mut set.stream(one_epoch()).unwrap()).into_iter().collect();
        assert_eq!(rows, (0..100).filter(|row| !(60..90).contains(row)).collect());
    }
}

#[test]
fn a_shard_that_vanishes_or_shrinks_later_is_named_skipped_and_counted() {
    for vanish in [true, false] {
        let (directory, _) = new_set(100);
        let shard = directory.path().join("shard-00000.parquet");
        let fail = open(directory.path(), OnBadShard::Fail).unwrap();
        let skip = open(directory.path(), OnBadShard::Skip).unwrap();
        match vanish {
            true => fs::remove_file(&shard).unwrap(),
            false => OpenOptions::new().write(true).open(&shard).unwrap().set_len(200).unwrap(),
        }
        let error = first_error(&fail).to_string();
        assert!(error.starts_with(&shard.display().to_string()), "{error}");
        let mut stream = skip.stream(one_epoch()).unwrap();
        let rows = checked_rows(&mut stream);
        let tally = stream.position().tally();
        assert!(tally.bad >= 23, "{tally:?}");
        assert_eq!(rows.len() as u64, tally.delivered);
        assert_eq!(tally.delivered + tally.bad, 100);
        let lost: u64 = stream.skipped().iter().filter_map(|skipped| skipped.rows).sum();
        assert_eq!(lost, tally.bad);
    }
}

/// A position in a window with bad rows doesn't count them twice.
#[test]
fn bad_rows_are_counted_once_across_positions() {
    let (directory, _) = new_set(100);
    flip(&directory.path().join("shard-00001.parquet"), 10);
    let set = open(directory.path(), OnBadShard::Skip).unwrap();
    let mut position = set.stream(one_epoch()).unwrap().position().clone();
    loop {
        let mut stream = set.stream_from(one_epoch(), &position).unwrap();
        let Some(batch) = stream.next() else { break };
        batch.unwrap();
        position = stream.position().clone();
    }
    assert_eq!((position.tally().delivered, position.tally().bad), (93, 7));
}

#[test]
fn shards_that_do_not_belong_together_are_named_with_both_sides() {
    let base = layout(Numbers::F16, 1);
    let others = [
        ("encoder other", "encoder test", {
            let mut other = base.clone();
            other.encoder = locdiff::encoders::EncoderRecord::of_identity("other");
            other
        }),
        ("views 2", "views 1", layout(Numbers::F16, 2)),
        ("numbers of type f32", "f16", layout(Numbers::F32, 1)),
    ];
    for (found, expected, other) in others {
        let (directory, _) = new_set(10);
        let second = tempfile::tempdir().unwrap();
        write(second.path(), 10, other);
        let moved = directory.path().join("shard-00001.parquet");
        fs::copy(second.path().join("shard-00000.parquet"), &moved).unwrap();
        // Not even skipped: half of the data must not be lost silently.
        for policy in [OnBadShard::Fail, OnBadShard::Skip] {
            let error = open(directory.path(), policy).unwrap_err().to_string();
            let first = directory.path().join("shard-00000.parquet");
            assert!(error.starts_with(&format!("{} has {found}", moved.display())), "{error}");
            assert!(error.contains(&format!("{} has", first.display())), "{error}");
            assert!(error.ends_with(expected.rsplit(' ').next().unwrap()), "{error}");
        }
    }
}

/// A shard of a few kilobytes, whose equal rows are not repeated, must not ask for all memory.
#[test]
fn rows_that_few_bytes_stand_for_are_not_read() {
    const ROWS: usize = 50_000;
    let lists = ListArray::new_null(Arc::new(Field::new("element", DataType::Float32, true)), ROWS);
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(StringArray::from(vec!["a"; ROWS]))),
        ("latitude", Arc::new(Float64Array::from(vec![1.0; ROWS]))),
        ("longitude", Arc::new(Float64Array::from(vec![1.0; ROWS]))),
        ("embedding", Arc::new(lists)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let metadata = [
        ("locdiff.format", "locdiff-embeddings"),
        ("locdiff.version", "1"),
        ("locdiff.encoder", "test"),
        ("locdiff.width", "1048576"),
        ("locdiff.views", "1024"),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
    let properties =
        WriterProperties::builder().set_key_value_metadata(Some(metadata.to_vec())).build();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shard-00000.parquet");
    let file = fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 10_000);
    let error = first_error(&open(directory.path(), OnBadShard::Fail).unwrap()).to_string();
    assert!(error.contains("its footer has 50000 rows, its columns"), "{error}");
}
