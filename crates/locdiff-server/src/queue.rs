//! Between requests and workers: a queue that is never longer than can be served in time.
//!
//! A job is admitted if it can expect its answer within `max_wait`, or if nothing that counts for its client is ahead of it and a
//! worker is free; otherwise it is rejected at once, which costs next to nothing. How long it takes is estimated from the cost of what
//! is ahead, and from how many seconds a unit of cost took of late: images cost one each, densities what the library predicts. Costly
//! jobs are overtaken by cheap ones, and those of a client that has much here by those of others, for a while; equal jobs of clients
//! with equal claims never overtake each other. A batch is
//! what waits when a worker becomes free, so that a single request never waits for company; only while
//! others are just being received does a batch stay open, for `delay` at most.
//!
//! If clients have shares, each has a claim: what it owes, and what it has in this queue. Only the work of clients that claim no
//! more than its own makes a client's job wait too long. Otherwise many jobs of one client that has not yet used its share would
//! fill the queue for everybody. For the same reason a client has at most half of the places in a queue. Work that has begun is not
//! interrupted, so jobs of clients in debt are done one by one while there are other clients, and join no batch of theirs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clients::{Bucket, Claim};

/// How much the newest batch changes the estimate of what a unit of cost takes.
const NEWEST: f64 = 0.2;
/// For how many seconds a job may be overtaken, per unit of cost.
pub(crate) const PATIENCE: f64 = 5.0;
/// How long others may overtake jobs of a client that has used its share, or has much in the queue.
const BEHIND: Duration = Duration::from_secs(10);
/// For so long after its last job, a client is expected to come again.
const EXPECTED: Duration = Duration::from_secs(10);

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
    /// What may still join or overtake a job, as a multiple of its own cost, if clients have no shares.
    pub(crate) company: f64,
    /// What a unit of cost is taken to need before anything was measured, in seconds.
    pub(crate) first_guess: f64,
    /// And the most that it is ever taken to need.
    pub(crate) slowest: f64,
}

struct State<J> {
    waiting: VecDeque<Waiting<J>>,
    /// Jobs that workers have taken and not yet finished: their clients, and what they cost.
    working: Vec<(Arc<Bucket>, f64)>,
    /// What all workers together need for one more unit of cost.
    seconds_per_cost: f64,
    /// The client that came last, and the last one before that was not it.
    came: [Option<(Arc<Bucket>, Instant)>; 2],
    closed: bool,
}

impl<J> State<J> {
    fn has_come(&mut self, bucket: &Arc<Bucket>, now: Instant) {
        let [last, before] = &mut self.came;
        if last.as_ref().is_some_and(|(other, _)| !Arc::ptr_eq(other, bucket)) {
            *before = last.take();
        }
        *last = Some((Arc::clone(bucket), now));
    }

    /// Whether clients other than the last one use this queue.
    fn has_others(&self, now: Instant) -> bool {
        let before = self.came[1].as_ref();
        before.is_some_and(|(_, came)| now.saturating_duration_since(*came) < EXPECTED)
    }
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
            came: [None, None],
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
            // What is due later may join its batch, if its client owes no more.
            true => {
                ahead.skip_while(|other| other.due <= due).take(max_batch - 1).map(cost_of).sum()
            }
            false => self.limits.company * each,
        };
        // Those that are being worked on may just have been begun.
        let seconds = (earlier + working + cost + company) * state.seconds_per_cost;
        let full = Err(Refusal::Full { seconds });
        // Half of the queue is left for others, even if they come later.
        let own_waiting = state.waiting.iter().filter(|other| is_own(other.job.bucket())).count();
        let is_limited = is_in_debt || own.here > 0.0;
        if is_limited && own_waiting > 0 && own_waiting + count > max_queue.div_ceil(2) {
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
        let expected_s = cost * state.seconds_per_cost * self.limits.workers as f64;
        let charged_s = bucket.take(expected_s) / count as f64;
        let admitted = Admitted { cost: cost / count as f64, charged_s };
        let now = Instant::now();
        state.has_come(&bucket, now);
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
        let in_debt = |waiting: &Waiting<J>| waiting.job.bucket().claim().debt_s > 0.0;
        let count = match in_debt(&state.waiting[0]) {
            true if state.has_others(Instant::now()) => 1,
            true => most,
            false => state.waiting.iter().take(most).take_while(|other| !in_debt(other)).count(),
        };
        let (parts, jobs): (Vec<Part>, Vec<J>) = state
            .waiting
            .drain(..count)
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
        let (began, waited) = (Instant::now(), Duration::ZERO);
        Some(Batch { queue: self, parts, began, waited, jobs, is_typical: true })
    }

    /// Admits no more. What was admitted is still handed out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }
}

/// When a job that comes now is due: the later, the more its client has here or owes.
fn due(cost: f64, own: Claim, now: Instant) -> Instant {
    let patience = |cost: f64| Duration::from_secs_f64((PATIENCE * cost).max(0.0));
    let debt = if own.debt_s > 0.0 { BEHIND } else { Duration::ZERO };
    now + patience(cost) + patience(own.here).min(BEHIND) + debt
}

/// Jobs that one worker does together; how long they took is noted when it is dropped.
pub(crate) struct Batch<'a, J: Job> {
    queue: &'a Queue<J>,
    parts: Vec<Part>,
    began: Instant,
    waited: Duration,
    pub(crate) jobs: Vec<J>,
    /// Whether its time tells something about others: not if it was stopped, or if nobody waited for it any more.
    pub(crate) is_typical: bool,
}

/// What a batch knows of one of its jobs, whatever became of it.
struct Part {
    bucket: Arc<Bucket>,
    /// When a worker took it: zero if its client had gone.
    cost: f64,
    admitted: Admitted,
}

impl<J: Job> Batch<'_, J> {
    /// Charges nobody for time in which nothing was done, such as that until there was memory. Others may have to wait as well.
    pub(crate) fn waited(&mut self, time: Duration) {
        self.waited += time;
    }
}

impl<J: Job> Drop for Batch<'_, J> {
    fn drop(&mut self) {
        let limits = &self.queue.limits;
        let took_s = self.began.elapsed().as_secs_f64();
        let worked_s = (took_s - self.waited.as_secs_f64()).max(0.0);
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
            bucket.take(worked_s * share - admitted.charged_s);
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

    fn with_share<const CLIENTS: usize>(share: f64) -> [Arc<Bucket>; CLIENTS] {
        [(); CLIENTS].map(|()| Arc::new(Bucket::new(Some(share))))
    }

    #[test]
    fn who_used_its_share_comes_after_others() {
        let queue = Queue::new(Limits { max_queue: 16, ..limits() });
        let [greedy, honest] = with_share(0.5);
        greedy.take(100.0);
        let debt_s = greedy.claim().debt_s;
        // Alone, it may use everything.
        queue.admit(of_client(0..4, &greedy)).expect("alone");
        queue.admit(of_client(4..8, &greedy)).expect("alone");
        assert!(matches!(queue.would_admit(1.0, &greedy), Err(Refusal::Full { .. })), "half");
        // Even if images take ten seconds each, others are not rejected because of it, and come first.
        queue.lock().seconds_per_cost = 10.0;
        queue.admit(of_client(8..9, &honest)).expect("first");
        let refusal = queue.admit(of_client(9..10, &greedy));
        assert!(matches!(refusal, Err(Refusal::Share { .. })), "{refusal:?}");
        assert!(matches!(queue.would_admit(1.0, &greedy), Err(Refusal::Share { .. })));
        assert_eq!(numbers(queue.take().expect("a batch"))[0], 8);
        // What was expected is charged at once, and corrected by what it took: next to nothing here.
        drop((queue.take(), queue.take()));
        assert_eq!(honest.claim().debt_s, 0.0);
        assert!(greedy.claim().debt_s - debt_s < 1.0);
    }

    #[test]
    fn many_jobs_of_one_client_are_no_reason_to_reject_another() {
        let queue = Queue::new(Limits { max_queue: 20, ..limits() });
        // Shares so large that nobody is in debt.
        let [flood, newcomer, third] = with_share(1e6);
        queue.admit(of_client(0..4, &flood)).expect("idle");
        let working = queue.take().expect("a batch");
        queue.admit(of_client(4..8, &flood)).expect("room");
        queue.admit(of_client(8..12, &flood)).expect("room");
        queue.lock().seconds_per_cost = 0.1;
        assert!(matches!(queue.would_admit(1.0, &flood), Err(Refusal::Full { .. })));
        queue.admit(of_client(20..21, &newcomer)).expect("the flood claims more");
        queue.admit(of_client(21..22, &newcomer)).expect("also its second request");
        queue.admit(of_client(30..31, &third)).expect("so does the newcomer");
        // It comes first, too, and of what it has here the last comes after the third's.
        assert_eq!(numbers(queue.take().expect("a batch")), [20, 30, 21, 4]);
        drop(working);
        while queue.waiting() > 0 {
            drop(queue.take());
        }
        assert_eq!([&flood, &newcomer, &third].map(|bucket| bucket.claim().here), [0.0; 3]);
        assert!(queue.lock().working.is_empty());
        // However fast its jobs are done, it leaves half of the queue.
        queue.lock().seconds_per_cost = 0.0;
        queue.admit(of_client(0..10, &flood)).expect("half");
        assert!(matches!(queue.would_admit(1.0, &flood), Err(Refusal::Full { .. })));
        queue.admit(of_client(10..20, &newcomer)).expect("the other half");
    }

    #[test]
    fn parts_of_a_form_take_turns_with_others_but_not_for_ever() {
        let queue = Queue::new(Limits { max_queue: 40, ..limits() });
        let [form, single, late] = with_share(1e6);
        queue.admit(of_client(0..6, &form)).expect("idle");
        queue.admit(of_client(20..21, &single)).expect("small");
        assert_eq!(numbers(queue.take().expect("a batch")), [0, 20, 1, 2]);
        // What is here longer than others may overtake goes first, however much its client has here.
        for waiting in &mut queue.lock().waiting {
            waiting.due -= BEHIND + Duration::from_secs(5);
        }
        queue.admit(of_client(30..31, &late)).expect("small");
        assert_eq!(numbers(queue.take().expect("a batch")), [3, 4, 5, 30]);
    }

    #[test]
    fn jobs_of_clients_in_debt_are_done_one_by_one_while_there_are_others() {
        let queue = Queue::new(Limits { max_queue: 40, ..limits() });
        let [greedy, honest] = with_share(0.5);
        greedy.take(1e9);
        queue.admit(of_client(0..8, &greedy)).expect("idle");
        assert_eq!(numbers(queue.take().expect("a batch")), [0, 1, 2, 3]);
        queue.admit(of_client(20..22, &honest)).expect("the other owes");
        assert_eq!(numbers(queue.take().expect("a batch")), [20, 21]);
        assert_eq!(numbers(queue.take().expect("one")), [4]);
        // Also if the other one just sits there.
        queue.admit(of_client(8..9, &greedy)).expect("nobody waits who owes less");
        assert_eq!(numbers(queue.take().expect("one")), [5]);
        for (_, came) in queue.lock().came.iter_mut().flatten() {
            *came -= EXPECTED;
        }
        assert_eq!(numbers(queue.take().expect("a batch")), [6, 7, 8]);
    }

    #[test]
    fn an_idle_server_takes_more_than_half_of_a_queue_from_one_client() {
        let queue = Queue::new(limits());
        let [greedy] = with_share(0.5);
        greedy.take(100.0);
        queue.admit(of_client(0..9, &greedy)).expect("idle");
    }

    #[test]
    fn a_small_debt_comes_before_a_large_one() {
        let queue = Queue::new(limits());
        let [small, large] = with_share(0.5);
        small.take(12.0);
        large.take(100.0);
        queue.admit(of_client(0..4, &large)).expect("alone");
        let working = queue.take().expect("a batch");
        queue.admit(of_client(4..8, &large)).expect("alone");
        assert!(small.claim().debt_s > 0.0 && small.claim().debt_s + 20.0 < large.claim().debt_s);
        // As if images took ten seconds each.
        queue.lock().seconds_per_cost = 10.0;
        queue.admit(of_client(8..9, &small)).expect("the other owes more");
        let refusal = queue.would_admit(1.0, &large);
        assert!(matches!(refusal, Err(Refusal::Share { .. })), "{refusal:?}");
        drop(working);
    }

    #[test]
    fn nobody_gets_back_more_than_was_charged() {
        let queue = Queue::new(limits());
        let [bucket] = with_share(0.5);
        bucket.take(1e9);
        let (began, debt_s) = (Instant::now(), bucket.claim().debt_s);
        for number in 0..50 {
            // As if images took ten seconds each: much more is expected than it will take.
            queue.lock().seconds_per_cost = 10.0;
            queue.admit(of_client(number..number + 1, &bucket)).expect("alone");
            drop(queue.take());
        }
        let found_s = bucket.claim().debt_s;
        let least_s = debt_s - began.elapsed().as_secs_f64();
        assert!(found_s >= least_s - 1e-6, "{found_s} s, and time alone gives {least_s} s");
    }

    #[test]
    fn time_is_billed_by_cost_and_only_while_something_is_done() {
        let queue = Queue::new(limits());
        let [light, heavy] = with_share(0.5);
        // Debts show what is taken.
        light.take(12.0);
        heavy.take(12.0);
        queue.admit(vec![Numbered(0, 3.0, Arc::clone(&heavy))]).expect("idle");
        queue.admit(vec![Numbered(1, 1.0, Arc::clone(&light))]).expect("room");
        let before_s = heavy.claim().debt_s - light.claim().debt_s;
        // Otherwise they are done one by one.
        queue.lock().came = [None, None];
        let mut batch = queue.take().expect("both");
        assert_eq!(batch.jobs.len(), 2);
        let began = Instant::now();
        thread::sleep(Duration::from_millis(400));
        batch.waited(Duration::from_millis(200));
        drop(batch);
        // They were charged by their costs before. Three quarters and a quarter, at half a second in a second.
        let more_s = heavy.claim().debt_s - light.claim().debt_s - before_s;
        let took_s = began.elapsed().as_secs_f64() - 0.2;
        let charged_s = 2.0 * 2.0 * 0.03;
        assert!((more_s + charged_s - took_s).abs() < 0.15, "{more_s} s more of {took_s} s");
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
        assert!(take(1.0, true) < 1.4);
        assert!(queue.lock().working.is_empty());
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
