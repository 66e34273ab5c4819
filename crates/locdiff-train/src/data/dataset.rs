//! All shards of a data set, by their footers.

use std::fmt;
use std::sync::Arc;

use locdiff::checksum::Checksum;
use object_store::ObjectStore;
use object_store::path::Path as StorePath;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

use super::error::{DataError, Fault};
use super::layout::{CHECKSUMS_KEY, Layout};
use super::source::{Footer, ShardFile, Source};
use super::stream::{Position, Stream, StreamOptions};
use crate::store::Store;

/// Footers that are fetched at a time. They are small: what takes time is waiting for a store.
const OPENING_THREADS: usize = 8;

/// What to do with a shard that is damaged, or with rows in it that are of no use (numbers or
/// coordinates that aren't finite, latitudes beyond the poles, nulls).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnBadShard {
    /// Stop with an error that names it.
    #[default]
    Fail,
    /// Leave out what is bad, count it, and go on: a row, a row group, or a shard if its footer
    /// can't be read. Shards that don't belong together, and stores that don't answer, remain
    /// errors.
    Skip,
}

/// Something bad that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Name of the shard.
    pub shard: String,
    /// The row group in it; none if the shard's footer can't be read.
    pub group: Option<usize>,
    /// Rows that are lost; unknown if the shard's footer can't be read.
    pub rows: Option<u64>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shard)?;
        if let Some(group) = self.group {
            write!(f, ", row group {group}")?;
        }
        if let Some(rows) = self.rows {
            write!(f, ", {rows} rows")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// Embeddings with places in a directory, or an object store, of Parquet shards.
///
/// ```no_run
/// use locdiff_train::{Dataset, OnBadShard, StreamOptions};
///
/// let set = Dataset::open("embeddings/mp16", OnBadShard::Fail)?;
/// for batch in set.stream(StreamOptions { batch: 512, seed: 1, ..Default::default() })?.take(1000) {
///     let batch = batch?;
///     assert_eq!(batch.embeddings.len(), 512 * set.layout().width);
/// }
/// # Ok::<(), locdiff_train::DataError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dataset {
    pub(crate) shared: Arc<Shared>,
}

/// What the threads of streams read.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) source: Source,
    pub(crate) layout: Layout,
    pub(crate) shards: Vec<Shard>,
    /// Every row group: shard, and group in it.
    pub(crate) groups: Vec<(usize, usize)>,
    pub(crate) on_bad_shard: OnBadShard,
    rows: u64,
    skipped: Vec<Skipped>,
}

/// A shard whose footer has been read.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) file: ShardFile,
    pub(crate) footer: ArrowReaderMetadata,
    /// Of each row group, if the writer left them.
    pub(crate) checksums: Option<Vec<u32>>,
}

impl Dataset {
    /// Opens a directory, or `s3://bucket/prefix` if this is built with the feature `s3` (keys,
    /// region and endpoint are taken from the environment: `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT` …).
    pub fn open(location: &str, on_bad_shard: OnBadShard) -> Result<Dataset, DataError> {
        Dataset::of(Source::at(location)?, location, on_bad_shard)
    }

    /// Opens a prefix in any object store.
    pub fn open_in(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        on_bad_shard: OnBadShard,
    ) -> Result<Dataset, DataError> {
        let store = Store::of(store, StorePath::from(prefix), prefix);
        Dataset::of(Source::Store(store), prefix, on_bad_shard)
    }

    fn of(source: Source, location: &str, on_bad_shard: OnBadShard) -> Result<Dataset, DataError> {
        let files = source.list()?;
        let (mut shards, mut layouts, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
        for (file, opened) in files.iter().zip(open_all(&source, &files)) {
            match opened {
                Ok((shard, layout)) => {
                    shards.push(shard);
                    layouts.push(layout);
                }
                Err(Fault::Bad(reason)) if on_bad_shard == OnBadShard::Skip => {
                    let shard = source.path_of(&file.name);
                    skipped.push(Skipped { shard, group: None, rows: None, reason });
                }
                Err(Fault::Bad(reason)) => {
                    let shard = source.path_of(&file.name);
                    return Err(DataError::BadShard { shard, group: None, reason });
                }
                Err(Fault::Fatal(error)) => return Err(error),
            }
        }
        let Some(layout) = layouts.first().cloned() else {
            return Err(DataError::NoShards { location: location.to_owned() });
        };
        for (shard, other) in shards.iter().zip(&layouts) {
            let path = |shard: &Shard| source.path_of(&shard.file.name);
            agree(&layout, other, || (path(&shards[0]), path(shard)))?;
        }
        let mut groups = Vec::new();
        for (number, shard) in shards.iter().enumerate() {
            groups
                .extend((0..shard.footer.metadata().num_row_groups()).map(|group| (number, group)));
        }
        let rows = groups.iter().map(|(shard, group)| shards[*shard].rows(*group) as u64).sum();
        let shared = Shared { source, layout, shards, groups, on_bad_shard, rows, skipped };
        Ok(Dataset { shared: Arc::new(shared) })
    }

    /// What all shards have in common.
    pub fn layout(&self) -> &Layout {
        &self.shared.layout
    }

    /// Rows in all shards that could be opened.
    pub fn rows(&self) -> u64 {
        self.shared.rows
    }

    /// Number of shards that could be opened.
    pub fn shards(&self) -> usize {
        self.shared.shards.len()
    }

    /// Shards that could not be opened; empty unless [`OnBadShard::Skip`] is the policy.
    pub fn skipped(&self) -> &[Skipped] {
        &self.shared.skipped
    }

    /// An endless stream of shuffled batches from the beginning.
    ///
    /// # Panics
    /// If `batch`, `buffer_groups`, `threads` or `ready_batches` is 0.
    pub fn stream(&self, options: StreamOptions) -> Result<Stream, DataError> {
        let start = Position::start(&self.shared, &options);
        self.stream_from(options, &start)
    }

    /// Continues where [`Stream::position`] was, with the batches that the undisturbed stream
    /// would have given. Number of threads and batch size may change; what decides about the
    /// order may not, nor the data.
    ///
    /// # Panics
    /// As [`Dataset::stream`].
    pub fn stream_from(
        &self,
        options: StreamOptions,
        position: &Position,
    ) -> Result<Stream, DataError> {
        position.check(&Position::start(&self.shared, &options))?;
        Ok(Stream::start(self.shared.clone(), options, position.clone()))
    }
}

impl Shared {
    /// Changes when shards are added, removed or written anew with other rows.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash = Checksum::default();
        hash.update(format!("{}\n", self.layout.encoder));
        for shard in &self.shards {
            hash.update(format!("{}\n{}\n", shard.file.name, shard.file.bytes));
            for group in 0..shard.footer.metadata().num_row_groups() {
                hash.update(format!("{} ", shard.rows(group)));
            }
        }
        hash.finish_short()
    }
}

impl Shard {
    fn open(source: &Source, file: &ShardFile) -> Result<(Shard, Layout), Fault> {
        let reader = Footer::new(source, file);
        let footer = match ArrowReaderMetadata::load(&reader, ArrowReaderOptions::new()) {
            Ok(footer) => footer,
            Err(error) => return Err(reader.fault(error)),
        };
        let not_a_shard = |reason| {
            let shard = source.path_of(&file.name);
            Fault::Fatal(DataError::NotAShard { shard, reason })
        };
        let entries = footer.metadata().file_metadata().key_value_metadata();
        let entries = entries.map(Vec::as_slice).unwrap_or_default();
        let layout = Layout::of(footer.schema(), entries).map_err(not_a_shard)?;
        let checksums = entries.iter().find(|entry| entry.key == CHECKSUMS_KEY);
        let checksums = match checksums.and_then(|entry| entry.value.as_deref()) {
            Some(text) => Some(parse_checksums(text, footer.metadata().num_row_groups())?),
            None => None,
        };
        Ok((Shard { file: file.clone(), footer, checksums }, layout))
    }

    pub(crate) fn rows(&self, group: usize) -> usize {
        usize::try_from(self.footer.metadata().row_group(group).num_rows()).unwrap_or(0)
    }
}

fn parse_checksums(text: &str, groups: usize) -> Result<Vec<u32>, Fault> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    let checksums: Result<Vec<u32>, _> = parts.map(|part| u32::from_str_radix(part, 16)).collect();
    match checksums {
        Ok(checksums) if checksums.len() == groups => Ok(checksums),
        Ok(checksums) => Err(Fault::Bad(format!(
            "`{CHECKSUMS_KEY}` has {} checksums, the shard has {groups} row groups",
            checksums.len()
        ))),
        Err(error) => Err(Fault::Bad(format!("`{CHECKSUMS_KEY}`: {error}"))),
    }
}

/// Reads all footers, in the order of the files.
fn open_all(source: &Source, files: &[ShardFile]) -> Vec<Result<(Shard, Layout), Fault>> {
    let share = files.len().div_ceil(OPENING_THREADS).max(1);
    std::thread::scope(|scope| {
        let open = |files: &[ShardFile]| -> Vec<_> {
            files.iter().map(|file| Shard::open(source, file)).collect()
        };
        let threads: Vec<_> =
            files.chunks(share).map(|files| scope.spawn(move || open(files))).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("no panic in a footer"))
            .collect()
    })
}

/// Whether two layouts are the same; `paths` are those of the two shards.
fn agree(
    expected: &Layout,
    found: &Layout,
    paths: impl Fn() -> (String, String),
) -> Result<(), DataError> {
    let facts = |layout: &Layout| {
        [
            ("encoder", layout.encoder.to_string()),
            ("width", layout.width.to_string()),
            ("views", layout.views.to_string()),
            ("numbers of type", layout.numbers.to_string()),
        ]
    };
    // Other processors give other last digits of the same encoder.
    let same_encoder = expected.encoder.check(&found.encoder).is_ok();
    for ((what, expected), (_, found)) in facts(expected).into_iter().zip(facts(found)) {
        if expected != found && !(what == "encoder" && same_encoder) {
            let (other, shard) = paths();
            return Err(DataError::Mismatch { what, shard, found, other, expected });
        }
    }
    Ok(())
}
