//! Embeddings with places, in Parquet shards.
//!
//! A data set is a directory, or a prefix in an object store, of Parquet files; the layout is
//! described in `docs/data-format.md`. It may be far larger than memory: only footers are read
//! when it is opened, and a [`Stream`] holds two windows of row groups at a time.
//!
//! The flow of a stream: a permutation of all row groups per epoch → windows of
//! `buffer_groups` of them → background threads read and decode ([`group`], [`plain_pages`])
//! → one thread permutes the rows of a window and gathers batches ([`assembler`]).

mod assembler;
mod dataset;
mod error;
mod group;
mod layout;
mod order;
mod plain_pages;
mod shard_writer;
mod source;
mod split;
mod stream;

pub(crate) use shard_writer::Places;

pub use dataset::{Dataset, OnBadShard, Skipped};
pub use error::DataError;
pub use layout::{Layout, Numbers};
pub use shard_writer::{ShardWriter, WriteOptions, Written};
pub use split::{Part, Split};
pub use stream::{Batch, Ids, Position, StoredViews, Stream, StreamOptions, Tally};
