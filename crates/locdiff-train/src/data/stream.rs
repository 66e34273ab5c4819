//! Shuffled batches, without end, from any position.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use locdiff_sphere::LatLon;
use serde::{Deserialize, Serialize};

use super::assembler::{Assembler, Delivery};
use super::dataset::{Shared, Skipped};
use super::error::DataError;
use super::split::Part;

/// How to stream a data set.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamOptions {
    /// Rows in a batch.
    pub batch: usize,
    /// The same seed gives the same order.
    pub seed: u64,
    /// Row groups whose rows are shuffled together. Twice as many are held in memory.
    pub buffer_groups: usize,
    /// Rows of training, of validation, or all.
    pub part: Part,
    /// Whether batches have ids.
    pub ids: Ids,
    /// Which of the views of each row.
    pub views: StoredViews,
    /// After how many passes over the data the stream ends, with a smaller batch if need be;
    /// never if none.
    pub epochs: Option<u64>,
    /// Threads that read and decode; more of them help with an object store.
    pub threads: usize,
    /// Batches that are made in advance.
    pub ready_batches: usize,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        StreamOptions {
            batch: 512,
            seed: 0,
            buffer_groups: 16,
            part: Part::All,
            ids: Ids::Omit,
            views: StoredViews::One,
            epochs: None,
            threads: 2,
            ready_batches: 4,
        }
    }
}

/// Whether batches have ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ids {
    /// They have none: training needs none.
    #[default]
    Omit,
    /// Rows carry their ids.
    Include,
}

/// Which of the views of a row that were stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredViews {
    /// One at random, another one in each epoch: for training.
    #[default]
    One,
    /// All of them: for evaluation.
    All,
}

/// Rows for one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Of each row, or empty: see [`StreamOptions::ids`].
    pub ids: Vec<String>,
    /// True place of each row.
    pub places: Vec<LatLon>,
    /// `[rows, width]`, one view of each row; or `[rows, views, width]`: see [`StreamOptions::views`].
    pub embeddings: Vec<f32>,
}

/// What became of the rows so far, over all epochs. After whole epochs, the sum is the number of
/// epochs times [`Dataset::rows`](crate::Dataset::rows).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Rows that were delivered in batches.
    pub delivered: u64,
    /// Of the other part of the split. Counted, like the next, when their window begins.
    pub held_out: u64,
    /// Skipped, because they or their row group are bad.
    pub bad: u64,
}

/// A place in a stream: small, for a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Position {
    pub(crate) epoch: u64,
    /// Window in the epoch.
    pub(crate) window: u64,
    /// Rows of the window that were delivered.
    pub(crate) row: u64,
    pub(crate) tally: Tally,
    /// What decides about the order.
    seed: u64,
    buffer_groups: usize,
    part: Part,
    data: String,
}

impl Position {
    pub(crate) fn start(set: &Shared, options: &StreamOptions) -> Position {
        Position {
            epoch: 0,
            window: 0,
            row: 0,
            tally: Tally::default(),
            seed: options.seed,
            buffer_groups: options.buffer_groups,
            part: options.part,
            data: set.fingerprint(),
        }
    }

    /// Passes over the data that are complete.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What became of the rows so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Whether this position is one of a stream that starts there.
    pub(crate) fn check(&self, start: &Position) -> Result<(), DataError> {
        let facts = |position: &Position| {
            [
                ("seed", position.seed.to_string()),
                ("buffer_groups", position.buffer_groups.to_string()),
                ("part", format!("{:?}", position.part)),
                ("data of fingerprint", position.data.clone()),
            ]
        };
        for ((what, position), (_, here)) in facts(self).into_iter().zip(facts(start)) {
            if position != here {
                return Err(DataError::Position { what, position, here });
            }
        }
        Ok(())
    }
}

/// An iterator over shuffled batches: [`Dataset::stream`](crate::Dataset::stream).
///
/// Rows are shuffled in two steps: all row groups of the data set for each epoch, then the rows
/// of `buffer_groups` row groups at a time. Every row comes once per epoch; batches run on from
/// one epoch into the next. After an error the stream ends.
#[derive(Debug)]
pub struct Stream {
    deliveries: Option<Receiver<Result<Delivery, DataError>>>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    position: Position,
    skipped: Vec<Skipped>,
}

impl Stream {
    pub(crate) fn start(set: Arc<Shared>, options: StreamOptions, position: Position) -> Stream {
        let StreamOptions { batch, buffer_groups, threads, ready_batches, .. } = options;
        let counts = [batch, buffer_groups, threads, ready_batches];
        assert!(counts.iter().all(|count| *count > 0), "a stream with an option of 0: {options:?}");
        let stop = Arc::new(AtomicBool::new(false));
        let (mut assembler, mut handles) =
            Assembler::start(set, options, position.clone(), stop.clone());
        let (sender, deliveries) = sync_channel(ready_batches);
        handles.push(std::thread::spawn(move || {
            // Ends with the data, after an error, or when the receiver is gone.
            while let Some(delivery) = assembler.next_delivery() {
                let failed = delivery.is_err();
                if sender.send(delivery).is_err() || failed {
                    break;
                }
            }
        }));
        let deliveries = Some(deliveries);
        Stream { deliveries, threads: handles, stop, position, skipped: Vec::new() }
    }

    /// Just after the last batch that was given.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// What was left out since this stream started, each row group once; whatever is bad before
    /// [`Stream::position`] is among it.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }
}

impl Iterator for Stream {
    type Item = Result<Batch, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.deliveries.as_ref()?.recv() {
            Ok(Ok(delivery)) => {
                self.position = delivery.position;
                for skipped in delivery.skipped {
                    if !self.skipped.contains(&skipped) {
                        self.skipped.push(skipped);
                    }
                }
                Some(Ok(delivery.batch))
            }
            Ok(Err(error)) => {
                self.deliveries = None;
                Some(Err(error))
            }
            Err(_) => {
                self.deliveries = None;
                None
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.deliveries = None;
        for thread in self.threads.drain(..) {
            // A panic in there has been printed, and ended the stream.
            let _ = thread.join();
        }
    }
}
