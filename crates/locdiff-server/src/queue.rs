//! Between requests and workers: a queue that is never longer than can be served in time.
//!
//! A job is admitted if it can expect its answer within `max_wait`, or if nothing that counts for its client is ahead of it and a
//! worker is free; otherwise it is rejected at once, which costs next to nothing. How long it takes is estimated from the cost of what
//! is ahead, and from how many seconds a unit of cost took of late: images cost what those before took (`costs`), densities what the
//! library predicts. Costly jobs are overtaken by cheap ones, and those of a client that has much here by those of others, for a
//! while; equal jobs of clients with equal claims overtake each other only to join a batch. A batch is what waits and may be done
//! together when a worker becomes free, so that a single request never waits for company; only while others are just being received
//! does a batch stay open, for `delay` at most.
//!
//! If clients have shares, each has a claim: what it owes, and what it has in this queue. Only the work of clients that claim no
//! more than its own makes a client's job wait too long. Otherwise many jobs of one client that has not yet used its share would
//! fill the queue for everybody. For the same reason a client has at most half of the places in a queue.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clients::{Bucket, Claim};

/// How much the newest batch changes the estimate of what a unit of cost takes.
const NEWEST: f64 = 0.2;
/// For how many seconds a job may be overtaken, per unit of cost.
pub(crate) const PATIENCE: f64 = 5.0;
/// How long others may overtake jobs of a client that has much in the queue.
const BEHIND: Duration = Duration::from_secs(10);

/// Something that can wait.
pub(crate) trait Job {
    /// How much work it is, in a unit that all jobs of a queue share; zero once its client has gone.
    fn cost(&self) -> f64;

    /// Of its client.
    fn bucket(&self) -> &Arc<Bucket>;

    /// Whether it may be done in one batch with another.
    fn joins(&self, _: &Self) -> bool {
        true
    }

    /// Whether it has to wait in the second lane, whoever its client is.
    fn comes_second(&self) -> bool {
        false
    }
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
    /// What may still join or overtake a job, as a multiple of its own cost, if clients have no shares.
    pub(crate) company: f64,
    /// What a unit of cost is taken to need before anything was measured, in seconds.
    pub(crate) first_guess: f64,
    /// And the most that it is ever taken to need.
    pub(crate) slowest: f64,
    /// What costs more makes nobody wait who costs less (`lanes`).
    pub(crate) long: f64,
}

struct State<J> {
    waiting: VecDeque<Waiting<J>>,
    /// Jobs that workers have taken and not yet finished: their clients, and what they cost.
    working: Vec<(Arc<Bucket>, f64)>,
    /// What all workers together need for one more unit of cost.
    seconds_per_cost: f64,
    closed: bool,
}

/// A job that waits.
struct Waiting<J> {
    /// Jobs that come later and are due earlier go first.
    due: Instant,
    job: J,
    admitted: Admitted,
}

/// What the admission of a job changed in the bucket of its client.
#[derive(Clone, Copy)]
struct Admitted {
    cost: f64,
    /// Seconds that were taken, which may be less than was asked for.
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
            working: Vec::new(),
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

    pub(crate) fn long(&self) -> f64 {
        self.limits.long
    }

    /// Whether one more job of this cost would be admitted now; cheap, to be asked before a body is received.
    pub(crate) fn would_admit(&self, cost: f64, bucket: &Arc<Bucket>) -> Result<(), Refusal> {
        self.check(&self.lock(), 1, cost, bucket).map(drop)
    }

    /// What the client of jobs that may come now has already.
    fn check(
        &self,
        state: &State<J>,
        count: usize,
        cost: f64,
        bucket: &Arc<Bucket>,
    ) -> Result<Claim, Refusal> {
        if state.closed {
            return Err(Refusal::Closed);
        }
        let Limits { max_batch, workers, max_queue, .. } = self.limits;
        let (own, each) = (bucket.claim(), cost / count as f64);
        let is_own = |other: &Arc<Bucket>| Arc::ptr_eq(other, bucket);
        let is_in_debt = own.debt_s > 0.0;
        let owes_less = |waiting: &Waiting<J>| {
            let other = waiting.job.bucket();
            !is_own(other) && other.claim().debt_s < own.debt_s
        };
        if is_in_debt && state.waiting.iter().any(owes_less) {
            return Err(Refusal::Share { seconds: own.debt_s });
        }
        let due = due(each, own, Instant::now());
        let counts = |other: &Arc<Bucket>| {
            is_own(other) || {
                let theirs = other.claim();
                theirs.debt_s <= own.debt_s && theirs.here <= own.here + cost
            }
        };
        let ahead = state.waiting.iter().filter(|other| counts(other.job.bucket()));
        let none_ahead = ahead.clone().next().is_none();
        let cost_of = |waiting: &Waiting<J>| waiting.job.cost();
        let earlier: f64 = ahead.clone().take_while(|other| other.due <= due).map(cost_of).sum();
        let working = state.working.iter().filter(|(other, _)| counts(other));
        let is_idle = working.clone().count() < max_batch * workers;
        let working: f64 = working.map(|(_, cost)| cost).sum();
        let company = match bucket.is_limited() {
            // What is due later and costs about the same may join its batch, if its client owes no more.
            true => {
                let alike = |cost: &f64| (each / 2.0..=each * 2.0).contains(cost);
                let later = ahead.skip_while(|other| other.due <= due).map(cost_of);
                later.filter(alike).take(max_batch - 1).sum()
            }
            false => self.limits.company * each,
        };
        // Those that are being worked on may just have been begun.
        let seconds = (earlier + working + cost + company) * state.seconds_per_cost;
        let full = Err(Refusal::Full { seconds });
        // Half of the queue is left for others, even if they come later.
        let own_waiting = state.waiting.iter().filter(|other| is_own(other.job.bucket())).count();
        let too_many = own_waiting > 0 && own_waiting + count > max_queue.div_ceil(2);
        if bucket.is_limited() && too_many {
            return full;
        }
        let no_room = state.waiting.len() + count > max_queue;
        // Who comes to idle workers is always served, however slow they are and however much comes.
        if no_room && !(state.waiting.is_empty() && is_idle) {
            return full;
        }
        if none_ahead && is_idle {
            return Ok(own);
        }
        if seconds > self.limits.max_wait.as_secs_f64() { full } else { Ok(own) }
    }

    /// Admits all of them or none; they cost the same each, and are of one client.
    pub(crate) fn admit(&self, jobs: Vec<J>) -> Result<(), Refusal> {
        let (count, cost) = (jobs.len(), jobs.iter().map(J::cost).sum::<f64>());
        let Some(bucket) = jobs.first().map(|job| Arc::clone(job.bucket())) else { return Ok(()) };
        let mut state = self.lock();
        let mut own = self.check(&state, count, cost, &bucket)?;
        let charged_s = bucket.take(cost) / count as f64;
        let admitted = Admitted { cost: cost / count as f64, charged_s };
        let now = Instant::now();
        for job in jobs {
            let due = due(admitted.cost, own, now);
            let at = state.waiting.partition_point(|other| other.due <= due);
            state.waiting.insert(at, Waiting { due, job, admitted });
            bucket.enter(admitted.cost);
            own.here = bucket.claim().here;
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
        let most = share.clamp(1, self.limits.max_batch).min(state.waiting.len());
        let mut taken: Vec<Waiting<J>> = Vec::with_capacity(most);
        for waiting in mem::take(&mut state.waiting) {
            let joins = taken.first().is_none_or(|first| waiting.job.joins(&first.job));
            if joins && taken.len() < most {
                taken.push(waiting);
            } else {
                state.waiting.push_back(waiting);
            }
        }
        let (parts, jobs): (Vec<Part>, Vec<J>) = taken
            .into_iter()
            .map(|Waiting { job, admitted, .. }| {
                (Part { bucket: Arc::clone(job.bucket()), cost: job.cost(), admitted }, job)
            })
            .unzip();
        state.working.extend(parts.iter().map(|part| (Arc::clone(&part.bucket), part.cost)));
        let more = !state.waiting.is_empty();
        drop(state);
        if more {
            self.arrived.notify_one();
        }
        let (began, worked_s) = (Instant::now(), 0.0);
        Some(Batch { queue: self, parts, began, worked_s, jobs, is_typical: true })
    }

    /// Admits no more. What was admitted is still handed out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }
}

/// When a job that comes now is due: the later, the more its client has here.
fn due(cost: f64, own: Claim, now: Instant) -> Instant {
    let patience = |cost: f64| Duration::from_secs_f64((PATIENCE * cost).max(0.0));
    now + patience(cost) + patience(own.here).min(BEHIND)
}

/// Jobs that one worker does together; how long they took is noted when it is dropped.
pub(crate) struct Batch<'a, J: Job> {
    queue: &'a Queue<J>,
    parts: Vec<Part>,
    began: Instant,
    /// Seconds of processors.
    worked_s: f64,
    pub(crate) jobs: Vec<J>,
    /// Whether its time tells something about others: not if it was stopped, or if nobody waited for it any more.
    pub(crate) is_typical: bool,
}

/// One job's share of a batch; kept after its client has gone.
struct Part {
    bucket: Arc<Bucket>,
    /// When a worker took it: zero if its client had gone.
    cost: f64,
    admitted: Admitted,
}

impl<J: Job> Batch<'_, J> {
    /// What the clients of its jobs are charged for.
    pub(crate) fn worked(&mut self, seconds: f64) {
        self.worked_s += seconds;
    }
}

impl<J: Job> Drop for Batch<'_, J> {
    fn drop(&mut self) {
        let limits = &self.queue.limits;
        let took_s = self.began.elapsed().as_secs_f64();
        let cost: f64 = self.parts.iter().map(|part| part.cost).sum();
        let mut state = self.queue.lock();
        if self.is_typical && cost > 0.0 {
            // Workers share the machine: while one does a batch, so do the others, if all are busy.
            let sharing = state.working.len() as f64 / self.parts.len() as f64;
            let each = took_s / cost / sharing.clamp(1.0, limits.workers as f64);
            state.seconds_per_cost += NEWEST * (each.min(limits.slowest) - state.seconds_per_cost);
        }
        for part in &self.parts {
            let is_it = |(bucket, cost): &(Arc<Bucket>, f64)| {
                Arc::ptr_eq(bucket, &part.bucket) && cost.to_bits() == part.cost.to_bits()
            };
            if let Some(at) = state.working.iter().position(is_it) {
                state.working.swap_remove(at);
            }
            part.bucket.leave(part.admitted.cost);
        }
        drop(state);
        for Part { bucket, cost: own, admitted } in &self.parts {
            // Who has gone pays nothing.
            let share = if cost > 0.0 { own / cost } else { 0.0 };
            bucket.take(self.worked_s * share - admitted.charged_s);
        }
    }
}

#[cfg(test)]
mod tests;
