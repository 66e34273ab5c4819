//! Threads for work, and the time of the processor that each piece of work took.
//!
//! Clients pay for that time, not for how long it took: otherwise who asks while others keep the machine busy would pay for them.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// A pool of threads. What is done in it at the same time shares what its threads use.
pub(crate) struct Threads {
    pool: ThreadPool,
    /// Where Linux states how long each of them has run.
    clocks: Vec<String>,
    account: Mutex<Account>,
}

#[derive(Default)]
struct Account {
    /// Seconds of all threads when somebody came or went, last.
    before_s: f64,
    /// What is being done, and its part of the seconds until then.
    running: Vec<(u64, f64)>,
    number: u64,
}

impl Threads {
    /// As many as there are processors, which let others go before as far as `nice` says.
    pub(crate) fn new(name: &'static str, nice: i32) -> io::Result<Threads> {
        let pool = ThreadPoolBuilder::new()
            .thread_name(move |number| format!("{name}-{number}"))
            .start_handler(move |_| lower_priority(nice))
            .build()
            .map_err(io::Error::other)?;
        let clocks = pool.broadcast(|_| clock());
        Ok(Threads { pool, clocks, account: Mutex::default() })
    }

    /// Does something on these threads, whatever it does in parallel included. Also returns the seconds of processors that it took, as far
    /// as that can be known: what else is done here has its part.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> (T, f64) {
        self.pool.install(|| {
            let began = Instant::now();
            let mut running = Running { of: self, number: self.begin(), ended: false };
            let made = work();
            // Somewhere else than on Linux nobody knows.
            (made, running.end().unwrap_or_else(|| began.elapsed().as_secs_f64()))
        })
    }

    /// Does something on one of these threads that counts its time itself.
    pub(crate) fn uncounted<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }

    fn seconds(&self) -> f64 {
        let read = |clock: &String| std::fs::read_to_string(clock).ok();
        let first = |text: String| text.split_ascii_whitespace().next()?.parse::<f64>().ok();
        self.clocks.iter().filter_map(read).filter_map(first).sum::<f64>() / 1e9
    }

    /// Shares what was used since somebody came or went among those that were there.
    fn settled(&self) -> MutexGuard<'_, Account> {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let now_s = self.seconds();
        let each = (now_s - account.before_s).max(0.0) / account.running.len().max(1) as f64;
        account.running.iter_mut().for_each(|(_, seconds)| *seconds += each);
        account.before_s = now_s;
        account
    }

    fn begin(&self) -> u64 {
        let mut account = self.settled();
        account.number += 1;
        let number = account.number;
        account.running.push((number, 0.0));
        number
    }
}

/// Something that is being done, until it is done or panicked.
struct Running<'a> {
    of: &'a Threads,
    number: u64,
    ended: bool,
}

impl Running<'_> {
    fn end(&mut self) -> Option<f64> {
        self.ended = true;
        let mut account = self.of.settled();
        let at = account.running.iter().position(|(number, _)| *number == self.number)?;
        let (_, seconds) = account.running.swap_remove(at);
        (!self.of.clocks.iter().all(String::is_empty)).then_some(seconds)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.end();
        }
    }
}

/// Processor time of a thread; wall-clock time on systems that do not report the other.
pub(crate) struct Stopwatch {
    own_s: Option<f64>,
    began: Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { own_s: own_seconds(), began: Instant::now() }
    }

    /// To be called on the thread that started it.
    pub(crate) fn seconds(&self) -> f64 {
        let took = self.own_s.zip(own_seconds()).map(|(before, now)| now - before);
        took.unwrap_or_else(|| self.began.elapsed().as_secs_f64())
    }
}

/// Processor seconds of the calling thread; `None` if the system does not report them.
fn own_seconds() -> Option<f64> {
    #[cfg(target_os = "linux")]
    {
        use rustix::time::{ClockId, clock_gettime};
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// The file with the time of the thread that calls it, empty if there is none.
fn clock() -> String {
    #[cfg(target_os = "linux")]
    {
        let thread = rustix::thread::gettid().as_raw_nonzero();
        let file = format!("/proc/self/task/{thread}/schedstat");
        if std::fs::exists(&file).unwrap_or(false) {
            return file;
        }
    }
    String::new()
}

/// Of the thread that calls it.
pub(crate) fn lower_priority(nice: i32) {
    #[cfg(target_os = "linux")]
    if nice > 0 {
        use rustix::process::{getpriority_process, setpriority_process};
        // Of a process with a low priority, no thread may have a higher one.
        let set = |own: i32| setpriority_process(None, nice.max(own));
        if let Err(error) = getpriority_process(None).and_then(set) {
            tracing::warn!("work that should come later has the priority of all other: {error}");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = nice;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    fn spin(seconds: f64) {
        let began = own_seconds().expect("Linux");
        while own_seconds().expect("Linux") - began < seconds {
            std::hint::spin_loop();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn time_of_the_processor_is_counted_and_shared() {
        use std::time::Duration;

        use rayon::prelude::*;

        let threads = Threads::new("test", 0).expect("threads");
        let ((), asleep) = threads.run(|| std::thread::sleep(Duration::from_millis(300)));
        assert!(asleep < 0.1, "{asleep}");
        // On as many threads as there are.
        let ((), busy) = threads.run(|| (0..4).into_par_iter().for_each(|_| spin(0.1)));
        assert!((0.4..0.6).contains(&busy), "{busy}");
        // Together, what both took.
        let both: f64 = std::thread::scope(|scope| {
            let run = || threads.run(|| (0..2).into_par_iter().for_each(|_| spin(0.1))).1;
            let started = [scope.spawn(run), scope.spawn(run)];
            started.map(|one| one.join().expect("no panic")).iter().sum()
        });
        assert!((0.4..0.6).contains(&both), "{both}");
        assert!(threads.account.lock().expect("no panic").running.is_empty());
    }

    #[test]
    fn what_panics_is_gone() {
        let threads = Threads::new("test", 0).expect("threads");
        let run = std::panic::AssertUnwindSafe(|| threads.run(|| panic!("as expected")));
        assert!(std::panic::catch_unwind(run).is_err());
        assert!(threads.account.lock().expect("no panic").running.is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn priorities_are_lowered_and_never_raised() {
        use rustix::process::getpriority_process;
        let priority = || getpriority_process(None).expect("known");
        let own = priority();
        let of = |nice| Threads::new("test", nice).expect("threads").run(priority).0;
        assert_eq!([0, 10, 19].map(of), [own, own.max(10), 19]);
        assert_eq!(priority(), own);
    }
}
