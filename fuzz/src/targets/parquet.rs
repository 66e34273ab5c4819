//! Parquet files: data sets of embeddings, and lists of images.

use std::path::Path;

use bytes::Bytes;
use locdiff::encoders::EncoderRecord;
use locdiff_sphere::LatLon;
use locdiff_train::images::visit_parquet;
use locdiff_train::{
    Dataset, EmbedError, Ids, Layout, Numbers, OnBadShard, ShardWriter, StreamOptions, WriteOptions,
};

use crate::{Target, contents, folder};

const LONGEST: usize = 16 << 10;
/// Batches of one pass; more are not read.
const MOST_BATCHES: usize = 64;
/// Rows of a list; more are not read.
const MOST_ROWS: usize = 10_000;

pub(super) const TARGET: Target = Target {
    name: "parquet",
    reads: "Parquet shards of embeddings, Parquet lists of images",
    longest: LONGEST,
    // The Parquet reader reserves as much as a page claims, up to 2 GiB. Memory that is reserved and not used costs nothing;
    // what is used is limited by `fuzz/run`.
    most_bytes: (2 << 30) + (256 << 20),
    run,
    seeds,
};

/// A list that is damaged, or long.
struct Ended;

impl From<EmbedError> for Ended {
    fn from(_: EmbedError) -> Ended {
        Ended
    }
}

fn run(input: &[u8]) {
    let mut rows = 0;
    let _ = visit_parquet(Path::new("list.parquet"), Bytes::copy_from_slice(input), &mut |_| {
        rows += 1;
        if rows < MOST_ROWS { Ok(()) } else { Err(Ended) }
    });
    let folder = folder::with_file("shard-00000.parquet", input);
    let location = folder.path().to_string_lossy();
    let Ok(set) = Dataset::open(&location, OnBadShard::Skip) else { return };
    let width = set.layout().width;
    let options = StreamOptions {
        batch: 16,
        buffer_groups: 2,
        ids: Ids::Include,
        epochs: Some(1),
        threads: 1,
        ready_batches: 1,
        ..StreamOptions::default()
    };
    let Ok(stream) = set.stream(options) else { return };
    for batch in stream.take(MOST_BATCHES) {
        let Ok(batch) = batch else { return };
        assert_eq!(batch.embeddings.len(), width * batch.places.len());
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for set in
        ["bad-rows", "default", "documented", "doubles", "no-metadata", "plain", "second-pages"]
    {
        seeds.extend(contents(&format!("parity/data/{set}"), LONGEST, |_| true));
    }
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let layout = Layout {
        encoder: EncoderRecord::of_identity("x"),
        width: 3,
        views: 2,
        numbers: Numbers::F16,
    };
    let mut writer = ShardWriter::create(folder.path(), layout, WriteOptions::default())
        .expect("the folder can be written");
    for row in 0..5 {
        let place = LatLon::new(f64::from(row), f64::from(row)).expect("a place");
        writer.write(&format!("{row}"), place, &[0.5; 6]).expect("a row");
    }
    writer.finish().expect("the folder can be written");
    seeds.extend(crate::files_in(folder.path()).iter().filter_map(|path| std::fs::read(path).ok()));
    seeds
}
