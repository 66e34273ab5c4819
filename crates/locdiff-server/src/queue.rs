//! Between requests and the engine: a queue that is never longer than can be served in time.
//!
//! An image is admitted if it can expect its answer within `max_wait_ms`, by how long images took of late, or if
//! nobody waits; otherwise it is refused at once, which costs next to nothing. What was admitted is answered. A batch is
//! what waits when a worker becomes free, so that a single request never waits for company; only while
//! others are just being received does a batch stay open, for `batch_delay_ms` at most.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What one image is taken to cost before any has been seen.
const FIRST_GUESS: Duration = Duration::from_millis(30);
/// How much the newest batch changes the estimate of what an image costs.
const NEWEST: f64 = 0.2;

/// Images that wait, oldest first.
pub(crate) struct Queue<Job> {
    state: Mutex<State<Job>>,
    arrived: Condvar,
    limits: Limits,
    receiving: AtomicUsize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_batch: usize,
    pub(crate) delay: Duration,
    pub(crate) workers: usize,
    pub(crate) max_queue: usize,
    pub(crate) max_wait: Duration,
}

struct State<Job> {
    waiting: VecDeque<Job>,
    /// Images that workers have taken and not yet finished.
    running: usize,
    /// Seconds that the whole engine needs for one more image.
    seconds_each: f64,
    closed: bool,
}

/// Why jobs were not admitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Refusal {
    /// They would wait too long; so many seconds may help.
    Full { seconds: f64 },
    /// The server is stopping.
    Closed,
}

/// While this lives, a batch may wait for what is being received.
pub(crate) struct Receiving<'a>(&'a AtomicUsize);

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<Job> Queue<Job> {
    pub(crate) fn new(limits: Limits) -> Queue<Job> {
        let state = State {
            waiting: VecDeque::new(),
            running: 0,
            seconds_each: FIRST_GUESS.as_secs_f64(),
            closed: false,
        };
        let receiving = AtomicUsize::new(0);
        Queue { state: Mutex::new(state), arrived: Condvar::new(), limits, receiving }
    }

    fn lock(&self) -> MutexGuard<'_, State<Job>> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that a request is being received.
    pub(crate) fn receiving(&self) -> Receiving<'_> {
        self.receiving.fetch_add(1, Ordering::Relaxed);
        Receiving(&self.receiving)
    }

    /// How many images wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Whether so many images would be admitted now; cheap, to be asked before a body is received.
    pub(crate) fn would_admit(&self, count: usize) -> Result<(), Refusal> {
        self.check(&self.lock(), count)
    }

    fn check(&self, state: &State<Job>, count: usize) -> Result<(), Refusal> {
        if state.closed {
            return Err(Refusal::Closed);
        }
        // Who comes to an idle engine is always served, however slow it is.
        if state.waiting.is_empty() && state.running < self.limits.max_batch * self.limits.workers {
            return Ok(());
        }
        // Those that are being worked on may just have been begun, and those that come later may share a batch.
        let ahead = state.waiting.len() + state.running + count + self.limits.max_batch;
        let seconds = ahead as f64 * state.seconds_each;
        let too_long = seconds > self.limits.max_wait.as_secs_f64();
        if too_long || state.waiting.len() + count > self.limits.max_queue {
            return Err(Refusal::Full { seconds });
        }
        Ok(())
    }

    /// Admits all of them or none.
    pub(crate) fn admit(&self, jobs: Vec<Job>) -> Result<(), Refusal> {
        let mut state = self.lock();
        self.check(&state, jobs.len())?;
        state.waiting.extend(jobs);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// The next batch, when there is one; `None` once the queue is closed and empty.
    pub(crate) fn take(&self) -> Option<Batch<'_, Job>> {
        let mut state = self.lock();
        while state.waiting.is_empty() {
            if state.closed {
                return None;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let until = Instant::now() + self.limits.delay;
        while state.waiting.len() < self.limits.max_batch
            && !state.closed
            && self.receiving.load(Ordering::Relaxed) > 0
        {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.arrived.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        // Another worker may have been quicker.
        if state.waiting.is_empty() {
            drop(state);
            return self.take();
        }
        // Fair shares: two workers with half a batch each are done before one with a whole.
        let share = state.waiting.len().div_ceil(self.limits.workers);
        let count = share.clamp(1, self.limits.max_batch).min(state.waiting.len());
        let jobs: Vec<Job> = state.waiting.drain(..count).collect();
        state.running += jobs.len();
        let more = !state.waiting.is_empty();
        drop(state);
        if more {
            self.arrived.notify_one();
        }
        Some(Batch { queue: self, count, began: Instant::now(), jobs })
    }

    /// Admits no more. What was admitted is still handed out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }
}

/// Jobs that one worker does together; what they cost is noted when it is dropped.
pub(crate) struct Batch<'a, Job> {
    queue: &'a Queue<Job>,
    count: usize,
    began: Instant,
    pub(crate) jobs: Vec<Job>,
}

impl<Job> Drop for Batch<'_, Job> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        // Workers share the machine: while one does a batch, so do the others, if all are busy.
        let sharing =
            (state.running as f64 / self.count as f64).clamp(1.0, self.queue.limits.workers as f64);
        let each = self.began.elapsed().as_secs_f64() / self.count as f64 / sharing;
        state.seconds_each += NEWEST * (each - state.seconds_each);
        state.running -= self.count;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    fn limits() -> Limits {
        Limits {
            max_batch: 4,
            delay: Duration::from_millis(200),
            workers: 1,
            max_queue: 10,
            max_wait: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_batch_is_what_waits_and_not_more_than_fits() {
        let queue = Queue::new(limits());
        queue.admit((0..6).collect()).expect("room");
        assert_eq!(queue.take().expect("a batch").jobs, [0, 1, 2, 3]);
        assert_eq!(queue.take().expect("a batch").jobs, [4, 5]);
        queue.close();
        assert!(queue.take().is_none());
        assert_eq!(queue.admit(vec![7]), Err(Refusal::Closed));
    }

    #[test]
    fn a_single_job_waits_for_company_only_if_some_is_coming() {
        let queue = Queue::new(limits());
        queue.admit(vec![1]).expect("room");
        let began = Instant::now();
        drop(queue.take());
        assert!(began.elapsed() < Duration::from_millis(100));
        let receiving = queue.receiving();
        queue.admit(vec![1]).expect("room");
        let began = Instant::now();
        drop(queue.take());
        assert!(began.elapsed() >= Duration::from_millis(190));
        drop(receiving);
    }

    #[test]
    fn what_would_wait_too_long_is_refused() {
        let queue = Queue::new(limits());
        queue.admit((0..8).collect()).expect("room");
        assert!(matches!(queue.admit(vec![8, 9, 10]), Err(Refusal::Full { .. })));
        // As if images took ten seconds each.
        queue.lock().seconds_each = 10.0;
        match queue.would_admit(1) {
            Err(Refusal::Full { seconds }) => assert_eq!(seconds, 130.0),
            other => panic!("{other:?}"),
        }
        // An idle engine takes anything.
        drop(queue.take());
        drop(queue.take());
        assert_eq!(queue.would_admit(1), Ok(()));
    }

    #[test]
    fn every_admitted_job_is_handed_out_once() {
        let queue = Arc::new(Queue::new(Limits { workers: 3, max_queue: 1000, ..limits() }));
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    let mut seen = Vec::new();
                    while let Some(batch) = queue.take() {
                        seen.extend(batch.jobs.iter().copied());
                    }
                    seen
                })
            })
            .collect();
        let mut admitted = Vec::new();
        for job in 0..500 {
            if queue.admit(vec![job]).is_ok() {
                admitted.push(job);
            }
        }
        queue.close();
        let mut seen: Vec<i32> =
            workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect();
        seen.sort_unstable();
        assert_eq!(seen, admitted);
    }
}
