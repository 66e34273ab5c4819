//! From row groups to batches: one thread asks others for the row groups of a window, permutes
//! their rows, and gathers batches while the next window is being read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::dataset::{Shared, Skipped};
use super::error::DataError;
use super::group::{Group, read_group};
use super::order::{Pick, epoch_order, window_order};
use super::stream::{Batch, Ids, Position, StoredViews, StreamOptions};

/// A batch, and the stream's state after it.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) batch: Batch,
    pub(crate) position: Position,
    /// What was left out on the way.
    pub(crate) skipped: Vec<Skipped>,
}

/// A row group to read: a running number, and which one.
type Job = (u64, usize);
type Outcome = (u64, Result<Group, DataError>);

pub(crate) struct Assembler {
    set: Arc<Shared>,
    options: StreamOptions,
    jobs: Sender<Job>,
    outcomes: Receiver<Outcome>,
    /// Groups that came before their turn.
    early: BTreeMap<u64, Result<Group, DataError>>,
    /// Running number of the next group that is asked for, and of the next that is used.
    asked: u64,
    used: u64,
    /// The next window that is asked for.
    ahead: Cursor,
    /// Order of the row groups in this epoch.
    order: Vec<u32>,
    current: Window,
    position: Position,
    /// Whether the first window has been asked for.
    started: bool,
    /// Whether this epoch has given a row.
    fruitful: bool,
    skipped: Vec<Skipped>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy)]
struct Cursor {
    epoch: u64,
    window: u64,
}

/// The row groups that rows are taken from.
#[derive(Default)]
struct Window {
    groups: Vec<Group>,
    picks: Vec<Pick>,
}

impl Assembler {
    /// Starts the threads that read, and asks for the first two windows. The threads end when
    /// the assembler is dropped, or soon after `stop`.
    pub(crate) fn start(
        set: Arc<Shared>,
        options: StreamOptions,
        position: Position,
        stop: Arc<AtomicBool>,
    ) -> (Assembler, Vec<JoinHandle<()>>) {
        // Neither channel grows beyond two windows: no more is asked for at a time.
        let (jobs, job_receiver) = channel();
        let (outcome_sender, outcomes) = channel();
        let job_receiver = Arc::new(Mutex::new(job_receiver));
        let threads = (0..options.threads).map(|_| {
            let (set, options) = (set.clone(), options.clone());
            let (jobs, outcomes, stop) =
                (job_receiver.clone(), outcome_sender.clone(), stop.clone());
            std::thread::spawn(move || work(&set, &options, &jobs, &outcomes, &stop))
        });
        let threads = threads.collect();
        let ahead = Cursor { epoch: position.epoch, window: position.window };
        let mut assembler = Assembler {
            order: epoch_order(set.groups.len(), options.seed, ahead.epoch),
            set,
            options,
            jobs,
            outcomes,
            early: BTreeMap::new(),
            asked: 0,
            used: 0,
            ahead,
            current: Window::default(),
            fruitful: position.row > 0,
            position,
            started: false,
            skipped: Vec::new(),
            stop,
        };
        assembler.ask_for_window();
        (assembler, threads)
    }

    /// The next batch, or nothing at the end of the last epoch.
    pub(crate) fn next_delivery(&mut self) -> Option<Result<Delivery, DataError>> {
        let (stored, each) = (self.set.layout.views, self.set.layout.width);
        // Numbers of a row in the batch.
        let width = match self.options.views {
            StoredViews::One => each,
            StoredViews::All => stored * each,
        };
        let mut batch = Batch {
            ids: Vec::new(),
            places: Vec::with_capacity(self.options.batch),
            embeddings: vec![0.0; self.options.batch * width],
        };
        while batch.places.len() < self.options.batch {
            let done = (self.position.row as usize).min(self.current.picks.len());
            let picks = &self.current.picks[done..];
            if picks.is_empty() {
                match self.next_window() {
                    Some(Ok(())) => continue,
                    Some(Err(error)) => return Some(Err(error)),
                    None => break,
                }
            }
            let count = picks.len().min(self.options.batch - batch.places.len());
            let start = batch.places.len() * width;
            let targets = batch.embeddings[start..].chunks_exact_mut(width);
            for (pick, target) in picks[..count].iter().zip(targets) {
                let (group, row) = (&self.current.groups[pick.group as usize], pick.row as usize);
                // [rows, views, width]
                let view = match self.options.views {
                    StoredViews::One => pick.view as usize,
                    StoredViews::All => 0,
                };
                let at = (row * stored + view) * each;
                group.embeddings.copy_into(at..at + width, target);
                batch.places.push(group.places[row]);
                if self.options.ids == Ids::Include {
                    batch.ids.push(group.ids[row].clone());
                }
            }
            self.position.row += count as u64;
            self.position.tally.delivered += count as u64;
            self.fruitful = true;
        }
        if batch.places.is_empty() {
            return None;
        }
        batch.embeddings.truncate(batch.places.len() * width);
        let skipped = std::mem::take(&mut self.skipped);
        Some(Ok(Delivery { batch, position: self.position.clone(), skipped }))
    }

    /// Makes the next window the current one, or the first one. Nothing at the end of the last
    /// epoch, or after a stop.
    fn next_window(&mut self) -> Option<Result<(), DataError>> {
        // Room first: the old groups are of no use any more.
        self.current = Window::default();
        // The first window is the one that the position points into.
        if !self.is_past(self.position.epoch) && std::mem::replace(&mut self.started, true) {
            self.position.window += 1;
            self.position.row = 0;
            if self.position.window >= self.windows() {
                if !self.fruitful {
                    let (epoch, tally) = (self.position.epoch, self.position.tally);
                    let (held_out, bad) = (tally.held_out, tally.bad);
                    return Some(Err(DataError::Empty { epoch, held_out, bad }));
                }
                self.position.window = 0;
                self.position.epoch += 1;
                self.fruitful = false;
            }
        }
        if self.is_past(self.position.epoch) {
            return None;
        }
        self.ask_for_window();
        let mut groups = Vec::new();
        for _ in 0..self.groups_in(self.position.window) {
            match self.next_group()? {
                Ok(group) => groups.push(group),
                Err(error) => return Some(Err(error)),
            }
        }
        // What is left out was counted before a position within the window was taken.
        let counted = self.position.row > 0;
        for group in &mut groups {
            let skipped = group.skipped.take();
            if !counted {
                self.position.tally.held_out += group.held_out;
                self.position.tally.bad += skipped.as_ref().and_then(|skip| skip.rows).unwrap_or(0);
            }
            self.skipped.extend(skipped);
        }
        let Position { epoch, window, .. } = self.position;
        let kept = groups.iter().map(|group| group.kept.as_slice());
        let picks = window_order(kept, self.set.layout.views, self.options.seed, epoch, window);
        self.current = Window { groups, picks };
        Some(Ok(()))
    }

    /// Whether the stream ends before this epoch.
    fn is_past(&self, epoch: u64) -> bool {
        self.options.epochs.is_some_and(|epochs| epoch >= epochs)
    }

    fn windows(&self) -> u64 {
        self.set.groups.len().div_ceil(self.options.buffer_groups) as u64
    }

    fn groups_in(&self, window: u64) -> usize {
        let start = window as usize * self.options.buffer_groups;
        self.options.buffer_groups.min(self.set.groups.len().saturating_sub(start))
    }

    fn ask_for_window(&mut self) {
        if self.is_past(self.ahead.epoch) {
            return;
        }
        let start = self.ahead.window as usize * self.options.buffer_groups;
        for group in &self.order[start..start + self.groups_in(self.ahead.window)] {
            // Nobody listens after a stop; then nobody waits for an answer either.
            let _ = self.jobs.send((self.asked, *group as usize));
            self.asked += 1;
        }
        self.ahead.window += 1;
        if self.ahead.window >= self.windows() {
            self.ahead = Cursor { epoch: self.ahead.epoch + 1, window: 0 };
            self.order = epoch_order(self.set.groups.len(), self.options.seed, self.ahead.epoch);
        }
    }

    /// The next group in the order in which they were asked for, whichever came first. Nothing
    /// after a stop.
    fn next_group(&mut self) -> Option<Result<Group, DataError>> {
        loop {
            if let Some(outcome) = self.early.remove(&self.used) {
                self.used += 1;
                return Some(outcome);
            }
            let (number, outcome) = self.outcomes.recv().ok()?;
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            self.early.insert(number, outcome);
        }
    }
}

/// Reads row groups until there is nothing to do.
fn work(
    set: &Shared,
    options: &StreamOptions,
    jobs: &Mutex<Receiver<Job>>,
    outcomes: &Sender<Outcome>,
    stop: &AtomicBool,
) {
    loop {
        let job = jobs.lock().unwrap_or_else(|poison| poison.into_inner()).recv();
        let Ok((number, group)) = job else { return };
        let outcome = match stop.load(Ordering::Relaxed) {
            // Any message, so that the assembler wakes up and checks its state.
            true => Ok(Group::default()),
            false => read_group(set, group, &options.part, options.ids),
        };
        if outcomes.send((number, outcome)).is_err() {
            return;
        }
    }
}
