//! Every row once per epoch, in an order that depends on the seed alone.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use locdiff_sphere::LatLon;
use locdiff_train::{
    Dataset, Ids, Numbers, OnBadShard, Part, ShardWriter, Split, StreamOptions, Tally,
};
use object_store::memory::InMemory;
use object_store::path::Path as StorePath;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::sets::{checked_rows, id, layout, new_set, open, options, write};

fn sorted(mut rows: Vec<usize>) -> Vec<usize> {
    rows.sort_unstable();
    rows
}

#[test]
fn every_row_comes_once_per_epoch_whole() {
    for (numbers, views) in [(Numbers::F16, 1), (Numbers::F32, 1), (Numbers::F16, 3)] {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), 100, layout(numbers, views));
        let set = open(directory.path(), OnBadShard::Fail).unwrap();
        assert_eq!((set.rows(), set.shards()), (100, 4));
        assert_eq!(*set.layout(), layout(numbers, views));
        for buffer_groups in [1, 4, 100] {
            let epochs = Some(3);
            let options = StreamOptions { buffer_groups, epochs, ids: Ids::Include, ..options() };
            let mut stream = set.stream(options).unwrap();
            let rows = checked_rows(&mut stream);
            for epoch in rows.chunks(100) {
                assert_eq!(sorted(epoch.to_vec()), (0..100).collect::<Vec<_>>());
            }
            assert_eq!(rows.len(), 300);
            assert_ne!(rows[..100], rows[100..200]);
            let tally = Tally { delivered: 300, held_out: 0, bad: 0 };
            assert_eq!(stream.position().tally(), tally);
            assert!(stream.skipped().is_empty());
        }
    }
}

#[test]
fn an_endless_stream_gives_whole_batches_across_epochs() {
    let (_directory, set) = new_set(10);
    let batches = set.stream(StreamOptions { batch: 64, ..options() }).unwrap().take(20);
    assert!(batches.into_iter().all(|batch| batch.unwrap().places.len() == 64));
}

#[test]
fn the_seed_decides_about_the_order_and_the_threads_do_not() {
    let (_directory, set) = new_set(200);
    let rows = |seed, threads, batch| {
        let options = StreamOptions { seed, threads, batch, epochs: Some(2), ..options() };
        checked_rows(&mut set.stream(options).unwrap())
    };
    let first = rows(1, 1, 8);
    assert_eq!(first, rows(1, 3, 8));
    assert_eq!(first, rows(1, 2, 17));
    assert_ne!(first, rows(2, 1, 8));
    // Rows of one group lie apart.
    let neighbours = first.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
    assert!(neighbours < 80, "{neighbours} of 400 rows follow a neighbour");
}

#[test]
fn a_random_view_of_each_row_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 200, layout(Numbers::F16, 3));
    let set = open(directory.path(), OnBadShard::Fail).unwrap();
    let mut counts = [0; 3];
    for batch in set.stream(StreamOptions { epochs: Some(3), ..options() }).unwrap() {
        batch.unwrap().embeddings.chunks(5).for_each(|row| counts[row[1] as usize] += 1);
    }
    assert!(counts.iter().all(|count| (140..260).contains(count)), "{counts:?}");
}

#[test]
fn a_split_is_disjoint_and_complete() {
    let (_directory, set) = new_set(1000);
    let split = Split { share: 0.2, seed: 5 };
    let rows = |part| -> BTreeSet<usize> {
        let mut stream = set.stream(StreamOptions { part, epochs: Some(1), ..options() }).unwrap();
        let rows = checked_rows(&mut stream);
        let tally = stream.position().tally();
        assert_eq!(tally.delivered, rows.len() as u64);
        assert_eq!(tally.delivered + tally.held_out, 1000);
        rows.into_iter().collect()
    };
    let (train, validation) = (rows(Part::Train(split)), rows(Part::Validation(split)));
    assert!(train.is_disjoint(&validation));
    assert_eq!(train.len() + validation.len(), 1000);
    assert!((150..250).contains(&validation.len()), "{}", validation.len());
    assert!(validation.iter().all(|row| split.holds_out(&id(*row))));
    let other = Split { seed: 6, ..split };
    assert_ne!(validation, rows(Part::Validation(other)));
}

#[test]
fn a_part_without_rows_is_an_error_and_not_an_endless_search() {
    let (_directory, set) = new_set(50);
    let part = Part::Validation(Split { share: 0.0, seed: 0 });
    let mut stream = set.stream(StreamOptions { part, ..options() }).unwrap();
    let error = stream.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("50 rows are held out"), "{error}");
    assert!(stream.next().is_none());
}

#[test]
fn an_object_store_gives_what_the_directory_gives() {
    let (directory, set) = new_set(100);
    let store = Arc::new(InMemory::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for file in fs::read_dir(directory.path()).unwrap() {
        let path = file.unwrap().path();
        let name = format!("sets/test/{}", path.file_name().unwrap().to_string_lossy());
        let bytes = fs::read(path).unwrap();
        runtime.block_on(store.put(&StorePath::from(name), bytes.into())).unwrap();
    }
    let store: Arc<dyn ObjectStore> = store;
    let remote = Dataset::open_in(store.clone(), "sets/test", OnBadShard::Fail).unwrap();
    assert_eq!(remote.rows(), 100);
    let options = StreamOptions { epochs: Some(2), threads: 3, ..options() };
    let rows = |set: &Dataset| checked_rows(&mut set.stream(options.clone()).unwrap());
    assert_eq!(rows(&remote), rows(&set));
    let error = Dataset::open_in(store, "sets/other", OnBadShard::Skip).unwrap_err();
    assert_eq!(error.to_string(), "sets/other contains no Parquet shard that can be read");
}

#[test]
fn rows_of_no_use_are_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer =
        ShardWriter::create(directory.path(), layout(Numbers::F16, 1), Default::default()).unwrap();
    let mut refused =
        |numbers: &[f32]| writer.write("a", LatLon::NORTH_POLE, numbers).unwrap_err().to_string();
    assert_eq!(
        refused(&[0.0, 1.0, f32::NAN, 3.0, 4.0]),
        "row `a` cannot be written: number 2 is NaN, which is not finite as f16"
    );
    assert_eq!(
        refused(&[0.0, 1.0, 2.0, 70000.0, 4.0]),
        "row `a` cannot be written: number 3 is 70000, which is not finite as f16"
    );
    assert_eq!(
        refused(&[0.0; 4]),
        "row `a` cannot be written: it has 4 numbers, the data set 1 views of 5"
    );
    writer.write("b", LatLon::SOUTH_POLE, &[1.0, 0.0, 0.0, 0.0, 0.0]).unwrap();
    assert_eq!(writer.finish().unwrap().rows, 1);
    let set = open(directory.path(), OnBadShard::Fail).unwrap();
    let batch = set.stream(StreamOptions { batch: 1, ..options() }).unwrap().next();
    assert_eq!(batch.unwrap().unwrap().embeddings, [1.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a_writer_shows_only_whole_shards_and_never_overwrites() {
    let directory = tempfile::tempdir().unwrap();
    let options = locdiff_train::WriteOptions { rows_per_group: 2, rows_per_shard: 4 };
    let layout = layout(Numbers::F32, 1);
    let mut writer =
        ShardWriter::create(directory.path(), layout.clone(), options.clone()).unwrap();
    for row in 0..7 {
        writer.write(&id(row), LatLon::NORTH_POLE, &[0.0; 5]).unwrap();
    }
    assert_eq!(open(directory.path(), OnBadShard::Fail).unwrap().rows(), 4);
    drop(writer);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let error = ShardWriter::create(directory.path(), layout, options).unwrap_err();
    assert!(error.to_string().contains("already there"), "{error}");
}

/// Row groups of several megabytes are several pages.
#[test]
fn rows_that_fill_many_pages_are_read_whole() {
    const WIDE: usize = 768;
    let directory = tempfile::tempdir().unwrap();
    let wide = locdiff_train::Layout { width: WIDE, ..layout(Numbers::F16, 1) };
    let mut writer = ShardWriter::create(directory.path(), wide, Default::default()).unwrap();
    // Exact in half precision, and different in every row and place.
    let number = |row: usize, place: usize| ((row * 7 + place * 13) % 2048) as f32;
    for row in 0..5000 {
        let embedding: Vec<f32> = (0..WIDE).map(|place| number(row, place)).collect();
        writer.write(&row.to_string(), LatLon::NORTH_POLE, &embedding).unwrap();
    }
    writer.finish().unwrap();
    let set = open(directory.path(), OnBadShard::Fail).unwrap();
    let options = StreamOptions { epochs: Some(1), ids: Ids::Include, ..Default::default() };
    let mut seen = BTreeSet::new();
    for batch in set.stream(options).unwrap() {
        let batch = batch.unwrap();
        for (id, embedding) in batch.ids.iter().zip(batch.embeddings.chunks(WIDE)) {
            let row: usize = id.parse().unwrap();
            assert!(embedding.iter().enumerate().all(|(at, found)| *found == number(row, at)));
            seen.insert(row);
        }
    }
    assert_eq!(seen.len(), 5000);
}
