//! Between requests and workers: a queue that is never longer than can be served in time.
//!
//! A job is admitted if it can expect its answer within `max_wait`, or if the queue is empty; otherwise it is rejected at once,
//! which costs next to nothing. What was admitted is answered. How long it takes is estimated from the cost of what is ahead, and
//! from how many seconds a unit of cost took of late: images cost one each, densities what the library predicts. Costly jobs are
//! overtaken by cheap ones, for a while that grows with their cost; equal jobs never overtake each other. A batch is
//! what waits when a worker becomes free, so that a single request never waits for company; only while
//! others are just being received does a batch stay open, for `delay` at most.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clients::Bucket;

/// How much the newest batch changes the estimate of what a unit of cost takes.
const NEWEST: f64 = 0.2;
/// For how many seconds a job may be overtaken, per unit of cost.
pub(crate) const PATIENCE: f64 = 5.0;
/// How long others may overtake jobs of a client that has used its share.
const BEHIND: Duration = Duration::from_secs(10);

/// Something that can wait.
pub(crate) trait Job {
    /// How much work it is, in a unit that all jobs of a queue share; zero once its client has gone.
    fn cost(&self) -> f64;

    /// Of its client.
    fn bucket(&self) -> &Arc<Bucket>;
}

/// Jobs that wait, the next one first.
pub(crate) struct Queue<J> {
    state: Mutex<State<J>>,
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
    /// What may still join or overtake a job, as a multiple of its own cost.
    pub(crate) company: f64,
    /// What a unit of cost is taken to need before anything was measured, in seconds.
    pub(crate) first_guess: f64,
    /// And the most that it is ever taken to need.
    pub(crate) slowest: f64,
}

struct State<J> {
    waiting: VecDeque<Waiting<J>>,
    /// Jobs that workers have taken and not yet finished.
    running: usize,
    /// What they cost together.
    running_cost: f64,
    /// What all workers together need for one more unit of cost.
    seconds_per_cost: f64,
    closed: bool,
}

/// A job that waits.
struct Waiting<J> {
    /// Jobs that come later and are due earlier go first.
    due: Instant,
    job: J,
    /// Seconds that its client's bucket was charged for it.
    charged_s: f64,
}

/// Why jobs were not admitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Refusal {
    /// They would wait too long; so many seconds may help.
    Full { seconds: f64 },
    /// Their client has used its share, and others wait.
    Share { seconds: f64 },
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

impl<J: Job> Queue<J> {
    pub(crate) fn new(limits: Limits) -> Queue<J> {
        let state = State {
            waiting: VecDeque::new(),
            running: 0,
            running_cost: 0.0,
            seconds_per_cost: limits.first_guess,
            closed: false,
        };
        let receiving = AtomicUsize::new(0);
        Queue { state: Mutex::new(state), arrived: Condvar::new(), limits, receiving }
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that a request is being received.
    pub(crate) fn receiving(&self) -> Receiving<'_> {
        self.receiving.fetch_add(1, Ordering::Relaxed);
        Receiving(&self.receiving)
    }

    /// How many jobs wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Whether one more job of this cost would be admitted now; cheap, to be asked before a body is received.
    pub(crate) fn would_admit(&self, cost: f64, bucket: &Arc<Bucket>) -> Result<(), Refusal> {
        self.check(&self.lock(), 1, cost, bucket).map(drop)
    }

    /// When jobs that come now are due.
    fn check(
        &self,
        state: &State<J>,
        count: usize,
        cost: f64,
        bucket: &Arc<Bucket>,
    ) -> Result<Instant, Refusal> {
        if state.closed {
            return Err(Refusal::Closed);
        }
        let debt_s = bucket.debt_s();
        let is_other = |waiting: &Waiting<J>| !Arc::ptr_eq(waiting.job.bucket(), bucket);
        if let Some(seconds) = debt_s
            && state.waiting.iter().any(is_other)
        {
            return Err(Refusal::Share { seconds });
        }
        let due = due(cost / count as f64) + if debt_s.is_some() { BEHIND } else { Duration::ZERO };
        // Who comes to idle workers is always served, however slow they are.
        if state.waiting.is_empty() && state.running < self.limits.max_batch * self.limits.workers {
            return Ok(due);
        }
        let earlier = state.waiting.iter().take_while(|other| other.due <= due);
        let earlier: f64 = earlier.map(|other| other.job.cost()).sum();
        // So is the first one that comes while only clients without a share left use the server.
        let only_debts =
            state.waiting.iter().all(|waiting| waiting.job.bucket().debt_s().is_some());
        if debt_s.is_none() && only_debts && state.waiting.len() + count <= self.limits.max_queue {
            return Ok(due);
        }
        let company = self.limits.company * cost / count as f64;
        // Those that are being worked on may just have been begun.
        let seconds = (earlier + state.running_cost + cost + company) * state.seconds_per_cost;
        let too_long = seconds > self.limits.max_wait.as_secs_f64();
        if too_long || state.waiting.len() + count > self.limits.max_queue {
            return Err(Refusal::Full { seconds });
        }
        Ok(due)
    }

    /// Admits all of them or none; they cost the same each, and are of one client.
    pub(crate) fn admit(&self, jobs: Vec<J>) -> Result<(), Refusal> {
        let cost: f64 = jobs.iter().map(J::cost).sum();
        let Some(bucket) = jobs.first().map(|job| Arc::clone(job.bucket())) else { return Ok(()) };
        let mut state = self.lock();
        let due = self.check(&state, jobs.len(), cost, &bucket)?;
        let at = state.waiting.partition_point(|other| other.due <= due);
        let charged_s =
            cost / jobs.len() as f64 * state.seconds_per_cost * self.limits.workers as f64;
        bucket.take(charged_s * jobs.len() as f64);
        for (index, job) in jobs.into_iter().enumerate() {
            state.waiting.insert(at + index, Waiting { due, job, charged_s });
        }
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// The next batch, when there is one; `None` once the queue is closed and empty.
    pub(crate) fn take(&self) -> Option<Batch<'_, J>> {
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
        let (charged, jobs): (Vec<_>, Vec<J>) = state
            .waiting
            .drain(..count)
            .map(|Waiting { job, charged_s, .. }| ((Arc::clone(job.bucket()), charged_s), job))
            .unzip();
        let cost = jobs.iter().map(J::cost).sum();
        state.running += count;
        state.running_cost += cost;
        let more = !state.waiting.is_empty();
        drop(state);
        if more {
            self.arrived.notify_one();
        }
        let began = Instant::now();
        Some(Batch { queue: self, count, cost, charged, began, jobs, is_typical: true })
    }

    /// Admits no more. What was admitted is still handed out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }
}

/// When a job that comes now is due.
fn due(cost: f64) -> Instant {
    Instant::now() + Duration::from_secs_f64((PATIENCE * cost).max(0.0))
}

/// Jobs that one worker does together; how long they took is noted when it is dropped.
pub(crate) struct Batch<'a, J: Job> {
    queue: &'a Queue<J>,
    count: usize,
    cost: f64,
    /// Buckets of its clients, with what they were charged.
    charged: Vec<(Arc<Bucket>, f64)>,
    began: Instant,
    pub(crate) jobs: Vec<J>,
    /// Whether its time tells something about others: not if it was stopped.
    pub(crate) is_typical: bool,
}

impl<J: Job> Drop for Batch<'_, J> {
    fn drop(&mut self) {
        let limits = &self.queue.limits;
        let mut state = self.queue.lock();
        if self.is_typical && self.cost > 0.0 {
            // Workers share the machine: while one does a batch, so do the others, if all are busy.
            let sharing =
                (state.running as f64 / self.count as f64).clamp(1.0, limits.workers as f64);
            let each = self.began.elapsed().as_secs_f64() / self.cost / sharing;
            state.seconds_per_cost += NEWEST * (each.min(limits.slowest) - state.seconds_per_cost);
        }
        state.running -= self.count;
        state.running_cost -= self.cost;
        drop(state);
        let each_s = self.began.elapsed().as_secs_f64() / self.count as f64;
        for (bucket, charged_s) in &self.charged {
            bucket.take(each_s - charged_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    /// A number, for telling jobs apart, and its cost.
    struct Numbered(i32, f64, Arc<Bucket>);

    impl Job for Numbered {
        fn cost(&self) -> f64 {
            self.1
        }

        fn bucket(&self) -> &Arc<Bucket> {
            &self.2
        }
    }

    fn unlimited() -> Arc<Bucket> {
        Arc::new(Bucket::new(None))
    }

    fn of_client(numbers: std::ops::Range<i32>, bucket: &Arc<Bucket>) -> Vec<Numbered> {
        numbers.map(|number| Numbered(number, 1.0, Arc::clone(bucket))).collect()
    }

    fn images(numbers: std::ops::Range<i32>) -> Vec<Numbered> {
        of_client(numbers, &unlimited())
    }

    fn numbers(batch: Batch<'_, Numbered>) -> Vec<i32> {
        batch.jobs.iter().map(|job| job.0).collect()
    }

    fn limits() -> Limits {
        Limits {
            max_batch: 4,
            delay: Duration::from_millis(200),
            workers: 1,
            max_queue: 10,
            max_wait: Duration::from_secs(1),
            company: 4.0,
            first_guess: 0.03,
            slowest: f64::INFINITY,
        }
    }

    fn of_densities() -> Limits {
        Limits { max_batch: 1, company: PATIENCE, first_guess: 1.0, slowest: 3.0, ..limits() }
    }

    #[test]
    fn a_batch_is_what_waits_and_not_more_than_fits() {
        let queue = Queue::new(limits());
        queue.admit(images(0..6)).expect("room");
        assert_eq!(numbers(queue.take().expect("a batch")), [0, 1, 2, 3]);
        assert_eq!(numbers(queue.take().expect("a batch")), [4, 5]);
        queue.close();
        assert!(queue.take().is_none());
        assert_eq!(queue.admit(images(7..8)), Err(Refusal::Closed));
    }

    #[test]
    fn a_single_job_waits_for_company_only_if_some_is_coming() {
        let queue = Queue::new(limits());
        queue.admit(images(1..2)).expect("room");
        let began = Instant::now();
        drop(queue.take());
        assert!(began.elapsed() < Duration::from_millis(100));
        let receiving = queue.receiving();
        queue.admit(images(1..2)).expect("room");
        let began = Instant::now();
        drop(queue.take());
        assert!(began.elapsed() >= Duration::from_millis(190));
        drop(receiving);
    }

    #[test]
    fn what_would_wait_too_long_is_refused() {
        let queue = Queue::new(limits());
        queue.admit(images(0..8)).expect("room");
        assert!(matches!(queue.admit(images(8..11)), Err(Refusal::Full { .. })));
        // As if images took ten seconds each.
        queue.lock().seconds_per_cost = 10.0;
        match queue.would_admit(1.0, &unlimited()) {
            Err(Refusal::Full { seconds }) => assert_eq!(seconds, 130.0),
            other => panic!("{other:?}"),
        }
        // Idle workers take anything.
        drop(queue.take());
        drop(queue.take());
        assert_eq!(queue.would_admit(1.0, &unlimited()), Ok(()));
    }

    #[test]
    fn cheap_jobs_overtake_costly_ones_and_are_not_refused_because_of_them() {
        let queue = Queue::new(of_densities());
        for number in 0..2 {
            queue.admit(vec![Numbered(number, 0.1, unlimited())]).expect("room");
        }
        assert!(matches!(queue.would_admit(0.2, &unlimited()), Err(Refusal::Full { .. })));
        queue.admit(vec![Numbered(2, 0.01, unlimited())]).expect("ahead of the others");
        assert_eq!(numbers(queue.take().expect("the cheap one")), [2]);
        // Not for ever: what is due goes first.
        queue.lock().waiting[0].due = Instant::now();
        queue.admit(vec![Numbered(3, 0.01, unlimited())]).expect("room");
        assert_eq!(numbers(queue.take().expect("the first")), [0]);
        assert_eq!(numbers(queue.take().expect("the next")), [3]);
    }

    #[test]
    fn who_used_its_share_comes_after_others() {
        let queue = Queue::new(limits());
        let [greedy, honest] = [0, 1].map(|_| Arc::new(Bucket::new(Some(0.5))));
        greedy.take(100.0);
        let debt_s = greedy.debt_s();
        // Alone, it may use everything.
        queue.admit(of_client(0..4, &greedy)).expect("alone");
        queue.admit(of_client(4..8, &greedy)).expect("alone");
        // Even if images take ten seconds each, others are not rejected because of it, and come first.
        queue.lock().seconds_per_cost = 10.0;
        queue.admit(of_client(8..9, &honest)).expect("first");
        let refusal = queue.admit(of_client(9..10, &greedy));
        assert!(matches!(refusal, Err(Refusal::Share { .. })), "{refusal:?}");
        assert!(matches!(queue.would_admit(1.0, &greedy), Err(Refusal::Share { .. })));
        assert_eq!(numbers(queue.take().expect("a batch"))[0], 8);
        // What was expected is charged at once, and corrected by what it took: next to nothing here.
        drop((queue.take(), queue.take()));
        assert!(honest.debt_s().is_none(), "{:?}", honest.debt_s());
        assert!(greedy.debt_s().expect("a debt") - debt_s.expect("a debt") < 1.0);
    }

    #[test]
    fn time_is_learned_only_from_what_was_done() {
        let queue = Queue::new(of_densities());
        let take = |cost: f64, is_typical: bool| {
            queue.admit(vec![Numbered(0, cost, unlimited())]).expect("idle");
            let mut batch = queue.take().expect("a job");
            batch.is_typical = is_typical;
            thread::sleep(Duration::from_millis(5));
            drop(batch);
            queue.lock().seconds_per_cost
        };
        assert_eq!(take(1.0, false), 1.0);
        assert_eq!(take(0.0, true), 1.0);
        // A thousand times slower than expected counts as three times.
        assert_eq!(take(5e-6, true), 1.4);
        assert!(take(1.0, true) < 1.2);
        assert!(queue.lock().running_cost.abs() < 1e-9);
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
                        seen.extend(numbers(batch));
                    }
                    seen
                })
            })
            .collect();
        let mut admitted = Vec::new();
        for job in 0..500 {
            if queue.admit(images(job..job + 1)).is_ok() {
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
