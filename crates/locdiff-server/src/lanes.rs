//! Clients that have used their share come second: their work has queues, threads and a part of the memory of its own.
//!
//! These threads have the lowest priority of the operating system (on Linux; elsewhere that of all others). So they take the time
//! that first ones leave, all of it if there are none.

use std::io;
use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::clients::Bucket;
use crate::queue::{Job, Limits, Queue, Receiving, Refusal};

/// Who comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    First,
    Second,
}

impl Lane {
    pub(crate) const ALL: [Lane; 2] = [Lane::First, Lane::Second];

    /// Of a client that has nothing to do yet.
    pub(crate) fn of(bucket: &Bucket) -> Lane {
        if bucket.claim().debt_s > 0.0 { Lane::Second } else { Lane::First }
    }
}

/// A queue for each lane.
pub(crate) struct Lanes<J>([Queue<J>; 2]);

impl<J: Job> Lanes<J> {
    pub(crate) fn new(limits: Limits) -> Lanes<J> {
        Lanes(Lane::ALL.map(|_| Queue::new(limits)))
    }

    /// What workers of a lane take from.
    pub(crate) fn queue(&self, lane: Lane) -> &Queue<J> {
        &self.0[lane as usize]
    }

    pub(crate) fn receiving(&self, bucket: &Bucket) -> Receiving<'_> {
        self.queue(Lane::of(bucket)).receiving()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.0.iter().map(Queue::waiting).sum()
    }

    /// Whether one more job would be admitted now.
    pub(crate) fn would_admit(&self, cost: f64, bucket: &Arc<Bucket>) -> Result<(), Refusal> {
        self.queue(Lane::of(bucket)).would_admit(cost, bucket)
    }

    /// Admits all of them or none; they cost the same each, and are of one client.
    pub(crate) fn admit(&self, jobs: Vec<J>) -> Result<(), Refusal> {
        let Some(bucket) = jobs.first().map(Job::bucket) else { return Ok(()) };
        // The last of many jobs may be more than the share, the others may not.
        let others: f64 = jobs[1..].iter().map(Job::cost).sum();
        let first = self.queue(Lane::First);
        let lane = match bucket.affords(first.expected_s(others)) {
            true => Lane::First,
            false => Lane::Second,
        };
        self.queue(lane).admit(jobs)
    }

    pub(crate) fn close(&self) {
        self.0.iter().for_each(Queue::close);
    }
}

/// The threads of the second lane, beside its workers.
pub(crate) struct Background(ThreadPool);

impl Background {
    pub(crate) fn new() -> io::Result<Background> {
        let threads = ThreadPoolBuilder::new()
            .thread_name(|number| format!("second-{number}"))
            .start_handler(|_| lower_priority())
            .build();
        threads.map(Background).map_err(io::Error::other)
    }

    /// Does something on the threads of this lane, whatever it does in parallel included.
    pub(crate) fn run<T: Send>(&self, lane: Lane, work: impl FnOnce() -> T + Send) -> T {
        match lane {
            Lane::First => work(),
            Lane::Second => self.0.install(work),
        }
    }
}

/// Of the thread that calls it.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        tracing::warn!(
            "clients that have used their share have the priority of all others: {error}"
        );
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
        });
        let jobs = |count: usize, bucket: &Arc<Bucket>| {
            lanes.admit((0..count).map(|_| Costing(1.0, Arc::clone(bucket))).collect())
        };
        let waiting = || Lane::ALL.map(|lane| lanes.queue(lane).waiting());
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
        assert_eq!(Lane::of(&single), Lane::Second);
        single.take(-2.5);
        assert_eq!(Lane::of(&single), Lane::First);
        lanes.close();
        assert_eq!(jobs(1, &free), Err(Refusal::Closed));
    }

    #[test]
    fn the_second_lane_has_threads_of_its_own() {
        let background = Background::new().expect("threads");
        let names = |lane| {
            background.run(lane, || {
                let name = |_| thread::current().name().unwrap_or_default().to_owned();
                (0..1000).into_par_iter().map(name).collect::<Vec<String>>()
            })
        };
        assert!(names(Lane::Second).iter().all(|name| name.starts_with("second-")));
        assert!(!names(Lane::First).iter().any(|name| name.starts_with("second-")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_second_lane_leaves_the_processor_to_the_first() {
        use rustix::process::getpriority_process;
        let background = Background::new().expect("threads");
        let priority = |lane| background.run(lane, || getpriority_process(None).expect("known"));
        let own = getpriority_process(None).expect("known");
        assert_eq!(priority(Lane::Second), 19);
        assert_eq!(priority(Lane::First), own);
        assert_eq!(getpriority_process(None).expect("known"), own);
    }
}
