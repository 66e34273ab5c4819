//! Data sets and training of LocDiff models.
//!
//! What stands today is the data: shards of embeddings with places ([`ShardWriter`]), sets of
//! them ([`Dataset`]) and shuffled streams of batches ([`Stream`]).

mod data;

pub use data::*;
