//! A stream that was interrupted goes on as if nothing had happened.

use locdiff_train::{Batch, Ids, Numbers, OnBadShard, Part, Position, Split, StreamOptions};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::sets::{layout, new_set, open, options, write};

#[test]
fn resumed_streams_equal_undisturbed_ones() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 150, layout(Numbers::F16, 2));
    let set = open(directory.path(), OnBadShard::Fail).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for case in 0..60 {
        let split = Split { share: 0.3, seed: case };
        let options = StreamOptions {
            batch: rng.random_range(1..40),
            seed: case,
            buffer_groups: rng.random_range(1..30),
            part: if case % 2 == 0 { Part::All } else { Part::Train(split) },
            ids: Ids::Include,
            threads: rng.random_range(1..4),
            ..Default::default()
        };
        let mut undisturbed = set.stream(options.clone()).unwrap();
        let cut = rng.random_range(0..60);
        for _ in 0..cut {
            undisturbed.next().unwrap().unwrap();
        }
        let position = serde_json::to_string(undisturbed.position()).unwrap();
        let position: Position = serde_json::from_str(&position).unwrap();
        assert_eq!(position, *undisturbed.position());
        let threads = rng.random_range(1..4);
        let resumed_options = StreamOptions { threads, ..options };
        let mut resumed = set.stream_from(resumed_options, &position).unwrap();
        assert_eq!(resumed.position(), undisturbed.position());
        for _ in 0..40 {
            assert_eq!(resumed.next().unwrap().unwrap(), undisturbed.next().unwrap().unwrap());
            assert_eq!(resumed.position(), undisturbed.position());
        }
    }
}

/// Cut, resume, cut again, at every batch, over three epochs.
#[test]
fn a_stream_may_be_cut_after_every_batch() {
    let (_directory, set) = new_set(64);
    let options = StreamOptions { batch: 7, ids: Ids::Include, epochs: Some(3), ..options() };
    let whole: Vec<Batch> = set.stream(options.clone()).unwrap().map(Result::unwrap).collect();
    let mut pieces = Vec::new();
    let mut position = set.stream(options.clone()).unwrap().position().clone();
    loop {
        let mut stream = set.stream_from(options.clone(), &position).unwrap();
        let Some(batch) = stream.next() else { break };
        pieces.push(batch.unwrap());
        position = stream.position().clone();
    }
    assert_eq!(pieces, whole);
    // Another batch size continues in the same order.
    let mut stream = set.stream(options.clone()).unwrap();
    stream.next().unwrap().unwrap();
    let other = StreamOptions { batch: 14, ..options };
    let next = set.stream_from(other, stream.position()).unwrap().next().unwrap().unwrap();
    assert_eq!(next.ids, [whole[1].ids.as_slice(), whole[2].ids.as_slice()].concat());
}

#[test]
fn a_position_of_another_stream_is_refused() {
    let (_directory, set) = new_set(64);
    let position = set.stream(options()).unwrap().position().clone();
    let refused = |options| set.stream_from(options, &position).unwrap_err().to_string();
    assert_eq!(
        refused(StreamOptions { seed: 4, ..options() }),
        "the position is of a stream with seed 3, this stream has 4"
    );
    assert_eq!(
        refused(StreamOptions { buffer_groups: 5, ..options() }),
        "the position is of a stream with buffer_groups 4, this stream has 5"
    );
    let part = Part::Train(Split { share: 0.1, seed: 0 });
    assert!(refused(StreamOptions { part, ..options() }).contains("with part All"));
    let (_other_directory, other) = new_set(65);
    let error = other.stream_from(options(), &position).unwrap_err().to_string();
    assert!(error.contains("data of fingerprint"), "{error}");
}

/// A program that leaves in the middle waits for no more than the row groups at hand.
#[test]
fn a_stream_can_be_dropped_at_any_time() {
    let (_directory, set) = new_set(500);
    for batches in 0..30 {
        let mut stream = set.stream(StreamOptions { threads: 3, ..options() }).unwrap();
        for _ in 0..batches {
            stream.next().unwrap().unwrap();
        }
    }
}
