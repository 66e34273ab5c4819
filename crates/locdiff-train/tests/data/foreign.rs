//! Shards that pyarrow wrote (`parity/data/generate.py`).

use std::path::PathBuf;

use locdiff_train::{Ids, Numbers, OnBadShard, StreamOptions};

use crate::sets::{checked_rows, layout, open, options, write};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../parity/data").join(name)
}

fn one_epoch() -> StreamOptions {
    StreamOptions { epochs: Some(1), ids: Ids::Include, ..options() }
}

/// Snappy, dictionaries, nullable columns, lists without a fixed size;
/// and the ten lines of `docs/data-format.md`; and pages of the second kind with Zstandard.
#[test]
fn what_pyarrow_writes_is_read() {
    let kinds = [
        ("default", Numbers::F32, 1),
        ("documented", Numbers::F16, 1),
        ("second-pages", Numbers::F16, 2),
        ("plain", Numbers::F32, 1),
    ];
    for (name, numbers, views) in kinds {
        let set = open(&fixture(name), OnBadShard::Fail).unwrap();
        assert_eq!(set.layout().encoder.identity, "test");
        assert_eq!((set.layout().numbers, set.layout().views), (numbers, views), "{name}");
        let mut rows = checked_rows(&mut set.stream(one_epoch()).unwrap());
        rows.sort_unstable();
        assert_eq!(rows, (0..40).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn rows_of_no_use_are_named_skipped_and_counted() {
    let set = open(&fixture("bad-rows"), OnBadShard::Fail).unwrap();
    let error = set.stream(one_epoch()).unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("shard-00000.parquet, row group 0: 8 rows are not valid"), "{error}");
    assert!(error.ends_with("row 1: latitude 91 is not between -90 and 90 degrees"), "{error}");

    let set = open(&fixture("bad-rows"), OnBadShard::Skip).unwrap();
    let mut stream = set.stream(one_epoch()).unwrap();
    let mut rows = checked_rows(&mut stream);
    rows.sort_unstable();
    assert_eq!(rows, [0, 9, 10, 11]);
    assert_eq!((stream.position().tally().delivered, stream.position().tally().bad), (4, 8));
    assert_eq!(stream.skipped()[0].rows, Some(8));
}

#[test]
fn other_parquet_files_are_refused() {
    let error = open(&fixture("no-metadata"), OnBadShard::Skip).unwrap_err().to_string();
    assert!(
        error.ends_with("is not a shard of embeddings: its metadata lack `locdiff.format`"),
        "{error}"
    );
    let error = open(&fixture("doubles"), OnBadShard::Skip).unwrap_err().to_string();
    assert!(error.contains("it should be a list of 16- or 32-bit floats"), "{error}");
}

/// Half of the check that others read our shards: `parity/README.md` has the other half.
#[test]
#[ignore = "writes shards for parity/data/generate.py into the folder that LOCDIFF_KEEP_SHARDS names"]
fn shards_for_others() {
    let directory = std::env::var_os("LOCDIFF_KEEP_SHARDS").expect("LOCDIFF_KEEP_SHARDS");
    write(&PathBuf::from(directory), 100, layout(Numbers::F16, 1));
}
