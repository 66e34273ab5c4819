//! What can be wrong with a data set.

use crate::store::StoreError;

/// Why a data set can't be written, opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file can't be read or written.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file or directory.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The location is none that this build reads, or the store doesn't answer. Never skipped: the data may be whole.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no shard.
    #[error("{location} contains no Parquet shard that can be read")]
    NoShards {
        /// The directory or prefix.
        location: String,
    },
    /// A shard, or one of its row groups, is damaged, or a row in it is of no use.
    #[error("{shard}{}: {reason}", group.map(|group| format!(", row group {group}")).unwrap_or_default())]
    BadShard {
        /// Name of the shard.
        shard: String,
        /// The row group, unless the whole shard is bad.
        group: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// A readable Parquet file that is not a shard of embeddings.
    #[error("{shard} is not a shard of embeddings: {reason}")]
    NotAShard {
        /// Name of the file.
        shard: String,
        /// What is missing or different.
        reason: String,
    },
    /// Two shards don't belong together.
    #[error("{shard} has {what} {found}, {other} has {expected}")]
    Mismatch {
        /// In what they differ.
        what: &'static str,
        /// The shard that differs.
        shard: String,
        /// Value of that shard.
        found: String,
        /// The other shard.
        other: String,
        /// Value of the other shard.
        expected: String,
    },
    /// A row can't be written.
    #[error("row `{id}` cannot be written: {reason}")]
    Row {
        /// Id of the row.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A position belongs to another stream.
    #[error("the position is of a stream with {what} {position}, this stream has {here}")]
    Position {
        /// In what they differ.
        what: &'static str,
        /// The value in the position.
        position: String,
        /// Value of this stream.
        here: String,
    },
    /// A whole epoch went by without a row: all were held out or bad.
    #[error(
        "no row to stream in epoch {epoch}: {held_out} rows are held out by the split, {bad} rows are bad"
    )]
    Empty {
        /// The epoch without rows, from 0.
        epoch: u64,
        /// Rows of the other part of the split so far.
        held_out: u64,
        /// Rows that were skipped so far.
        bad: u64,
    },
}

/// Why bytes could not be had.
#[derive(Debug)]
pub(crate) enum Fault {
    /// They are damaged or missing: the policy for bad shards decides.
    Bad(String),
    /// Something else that no policy excuses.
    Fatal(DataError),
}

impl From<parquet::errors::ParquetError> for Fault {
    fn from(error: parquet::errors::ParquetError) -> Fault {
        Fault::Bad(error.to_string())
    }
}

impl From<arrow_schema::ArrowError> for Fault {
    fn from(error: arrow_schema::ArrowError) -> Fault {
        Fault::Bad(error.to_string())
    }
}
