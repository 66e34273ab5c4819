//! Who comes first: short work of clients that have not used their share. Long work and what is more than a share have queues and
//! threads of their own, and what is more than a share has a half of the memory for work of its own (`memory`).
//!
//! On Linux these threads have lower priorities of the operating system; elsewhere that of all others. So they take the time that the
//! first ones leave, all of it if there are none, and short work waits in no pool of threads behind long work.

use std::io;
use std::sync::Arc;

use crate::clients::Bucket;
use crate::queue::{Job, Limits, Queue, Receiving, Refusal};
use crate::threads::Threads;

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    First,
    /// What takes long, and would make others wait.
    Long,
    /// What is more than the share of its client, and images that need much memory.
    Second,
}

impl Lane {
    pub(crate) const ALL: [Lane; 3] = [Lane::First, Lane::Long, Lane::Second];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Lane::First => "first",
            Lane::Long => "long",
            Lane::Second => "second",
        }
    }

    /// How far its threads let those of the first lane go before.
    pub(crate) fn nice(self) -> i32 {
        match self {
            Lane::First => 0,
            Lane::Long => 10,
            Lane::Second => 19,
        }
    }

    /// Of a client that has nothing to do yet.
    pub(crate) fn of(bucket: &Bucket) -> Lane {
        if bucket.comes_first(0.0) { Lane::First } else { Lane::Second }
    }
}

/// A queue for each lane.
pub(crate) struct Lanes<J>([Queue<J>; 3]);

impl<J: Job> Lanes<J> {
    pub(crate) fn new(limits: Limits) -> Lanes<J> {
        Lanes(Lane::ALL.map(|lane| {
            // What comes second may take many times longer than the work on it.
            let slowest = if lane == Lane::Second { f64::INFINITY } else { limits.slowest };
            Queue::new(Limits { slowest, ..limits })
        }))
    }

    /// What workers of a lane take from.
    pub(crate) fn queue(&self, lane: Lane) -> &Queue<J> {
        &self.0[lane as usize]
    }

    /// For jobs that cost so much each, and `before` together without the last one: that may be more than the share.
    fn queue_for(&self, cost: f64, before: f64, bucket: &Bucket) -> &Queue<J> {
        let lane = if !bucket.comes_first(before) {
            Lane::Second
        } else if cost > self.queue(Lane::First).long() {
            Lane::Long
        } else {
            Lane::First
        };
        self.queue(lane)
    }

    pub(crate) fn receiving(&self, cost: f64, bucket: &Bucket) -> Receiving<'_> {
        self.queue_for(cost, 0.0, bucket).receiving()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.0.iter().map(Queue::waiting).sum()
    }

    /// Whether one more job would be admitted now.
    pub(crate) fn would_admit(&self, cost: f64, bucket: &Arc<Bucket>) -> Result<(), Refusal> {
        self.queue_for(cost, 0.0, bucket).would_admit(cost, bucket)
    }

    /// Admits all of them or none; they cost the same each, and are of one client.
    pub(crate) fn admit(&self, jobs: Vec<J>) -> Result<(), Refusal> {
        let Some(first) = jobs.first() else { return Ok(()) };
        let before: f64 = jobs[1..].iter().map(Job::cost).sum();
        let queue = match jobs.iter().any(Job::comes_second) {
            true => self.queue(Lane::Second),
            false => self.queue_for(first.cost(), before, first.bucket()),
        };
        queue.admit(jobs)
    }

    pub(crate) fn close(&self) {
        self.0.iter().for_each(Queue::close);
    }
}

/// The threads of each lane, beside its workers.
pub(crate) struct Pools {
    lanes: [Threads; 3],
    /// For what comes second and takes no worker.
    aside: Threads,
}

impl Pools {
    pub(crate) fn new() -> io::Result<Pools> {
        let [first, long, second] = Lane::ALL.map(|lane| Threads::new(lane.name(), lane.nice()));
        let aside = Threads::new("aside", Lane::Second.nice())?;
        Ok(Pools { lanes: [first?, long?, second?], aside })
    }

    /// Does something on the threads of this lane, whatever it does in parallel included. Also returns the seconds of processors that it
    /// took.
    pub(crate) fn run<T: Send>(&self, lane: Lane, work: impl FnOnce() -> T + Send) -> (T, f64) {
        self.lanes[lane as usize].run(work)
    }

    /// The same for what one thread does, and counts itself: of the first lane, the thread that calls it.
    pub(crate) fn aside<T: Send>(&self, lane: Lane, work: impl FnOnce() -> T + Send) -> T {
        match lane {
            Lane::First => work(),
            Lane::Long | Lane::Second => self.aside.uncounted(work),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use rayon::prelude::*;

    use super::*;

    struct Costing(f64, Arc<Bucket>);

    impl Job for Costing {
        fn cost(&self) -> f64 {
            self.0
        }

        fn bucket(&self) -> &Arc<Bucket> {
            &self.1
        }
    }

    #[test]
    fn a_client_that_used_its_share_comes_second_until_it_has_some_again() {
        // Each job is expected to take a second; two seconds at once are four seconds' share.
        let lanes = Lanes::new(Limits {
            max_batch: 4,
            delay: Duration::ZERO,
            workers: 1,
            max_queue: 100,
            max_wait: Duration::from_secs(1000),
            company: 0.0,
            first_guess: 1.0,
            slowest: f64::INFINITY,
            long: 2.0,
        });
        let jobs = |count: usize, bucket: &Arc<Bucket>| {
            lanes.admit((0..count).map(|_| Costing(1.0, Arc::clone(bucket))).collect())
        };
        let waiting = || [Lane::First, Lane::Second].map(|lane| lanes.queue(lane).waiting());
        let [single, form, free] =
            [Some(0.5), Some(0.5), None].map(|share| Arc::new(Bucket::new(share)));
        for number in 1..=4 {
            jobs(1, &single).expect("room");
            assert_eq!(waiting(), if number < 4 { [number, 0] } else { [3, 1] });
        }
        jobs(4, &form).expect("room");
        assert_eq!(waiting(), [3, 5], "four are more than the share, and one more");
        assert_eq!(Lane::of(&form), Lane::Second);
        jobs(50, &free).expect("room");
        assert_eq!(waiting(), [53, 5]);
        assert_eq!(lanes.waiting(), 58);
        lanes.admit(vec![Costing(2.5, Arc::clone(&free))]).expect("room");
        assert_eq!((waiting(), lanes.queue(Lane::Long).waiting()), ([53, 5], 1));
        assert_eq!(Lane::of(&single), Lane::Second);
        single.take(-2.5);
        assert_eq!(Lane::of(&single), Lane::Second, "has owed something not long ago");
        single.take(-10.0);
        assert_eq!(Lane::of(&single), Lane::First);
        lanes.close();
        assert_eq!(jobs(1, &free), Err(Refusal::Closed));
    }

    #[test]
    fn lanes_have_threads_of_their_own() {
        let pools = Pools::new().expect("threads");
        let names = |lane| {
            pools
                .run(lane, || {
                    let name = |_| thread::current().name().unwrap_or_default().to_owned();
                    (0..1000).into_par_iter().map(name).collect::<Vec<String>>()
                })
                .0
        };
        for lane in Lane::ALL {
            assert!(names(lane).iter().all(|name| name.starts_with(lane.name())));
        }
    }
}
