//! An S3-compatible store. Run by `experiments/run s3-store`, which starts one and names a bucket
//! in it; without that the test is skipped with a note.

use std::fs;

use locdiff_train::{Dataset, OnBadShard, Store, StreamOptions};

use super::sets::{checked_rows, new_set, options};

const BUCKET: &str = "LOCDIFF_TEST_BUCKET";

#[test]
fn a_bucket_gives_what_the_directory_gives() {
    let Ok(bucket) = std::env::var(BUCKET) else {
        eprintln!("skipped: {BUCKET} is not set; run experiments/run s3-store");
        return;
    };
    let (directory, local) = new_set(100);
    let address = format!("s3://{bucket}/sets/test");
    let store = Store::at(&address).unwrap();
    let put = |name: &str, bytes: Vec<u8>| store.put(name, bytes).unwrap();
    let mut names = Vec::new();
    for entry in fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        put(&name, fs::read(entry.path()).unwrap());
        names.push(name);
    }
    names.sort();
    assert!(names.len() > 1, "several shards make a better test");

    let remote = Dataset::open(&address, OnBadShard::Fail).unwrap();
    assert_eq!(remote.rows(), local.rows());
    let options = StreamOptions { epochs: Some(2), threads: 3, ..options() };
    let rows = |set: &Dataset| checked_rows(&mut set.stream(options.clone()).unwrap());
    assert_eq!(rows(&remote), rows(&local));

    // A shard that was cut short on the way is named, skipped and counted.
    let whole = fs::read(directory.path().join(&names[0])).unwrap();
    put(&names[0], whole[..whole.len() / 2].to_vec());
    let error = Dataset::open(&address, OnBadShard::Fail).unwrap_err().to_string();
    assert!(error.contains(&names[0]), "{error}");
    let rest = Dataset::open(&address, OnBadShard::Skip).unwrap();
    assert!(rest.rows() < local.rows() && rest.rows() > 0);

    let error = Dataset::open("s3://no-such-bucket/sets", OnBadShard::Skip).unwrap_err();
    assert!(error.to_string().contains("sets"), "{error}");
}
