//! A progress bar on stderr for anything that takes longer than two seconds.

#[cfg(feature = "models")]
use std::io::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

const PATIENCE: Duration = Duration::from_secs(2);

/// Counts work done; shows itself only if the work takes a while and a person looks on.
pub(crate) struct Progress {
    began: Instant,
    done: u64,
    total: Option<u64>,
    what: &'static str,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(what: &'static str, total: Option<u64>) -> Progress {
        Progress { began: Instant::now(), done: 0, total, what, bar: None }
    }

    /// How much there is in all, once that is known.
    #[cfg(feature = "models")]
    pub(crate) fn of(&mut self, total: u64) {
        self.total = Some(total);
    }

    pub(crate) fn add(&mut self, count: u64) {
        self.done += count;
        if self.bar.is_none() && self.began.elapsed() > PATIENCE {
            self.bar = Some(self.new_bar());
        }
        if let Some(bar) = &self.bar {
            bar.set_message(rate(self.done, self.total, self.began.elapsed()));
            bar.set_position(self.done);
        }
    }

    /// A line above the bar if there is one to be seen, else plainly on stderr.
    #[cfg(feature = "models")]
    pub(crate) fn line(&self, text: &str) {
        let write = || {
            // Nobody may be listening there.
            let _ = writeln!(crate::text::stderr(), "{text}");
        };
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// indicatif draws on stderr, and only if that is a terminal.
    fn new_bar(&self) -> ProgressBar {
        let (bar, template) = match self.total {
            Some(total) => (ProgressBar::new(total), "{prefix} {wide_bar} {pos}/{len} {msg}"),
            None => (ProgressBar::new_spinner(), "{prefix} {spinner} {pos} {msg}"),
        };
        let style = ProgressStyle::with_template(template);
        let bar = bar.with_prefix(self.what);
        style.map_or(bar.clone(), |style| bar.with_style(style))
    }
}

/// How fast it goes since the beginning, and how long the rest takes at that rate: `4.2/s, 3 min left`.
fn rate(done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let per_s = done as f64 / elapsed.as_secs_f64().max(1e-9);
    if done == 0 {
        return String::new();
    }
    let rate = match per_s {
        r if r >= 9.95 => format!("{r:.0}/s"),
        r if r >= 0.995 => format!("{r:.1}/s"),
        r => format!("{:.1} s each", 1.0 / r),
    };
    let Some(left) = total.and_then(|total| total.checked_sub(done)).filter(|left| *left > 0)
    else {
        return rate;
    };
    let left = match left as f64 / per_s {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    };
    format!("{rate}, {left} left")
}

/// A spinner with some words, while nothing can be counted. Ends when it is dropped.
#[cfg(feature = "models")]
pub(crate) struct Waiting(ProgressBar);

#[cfg(feature = "models")]
impl Waiting {
    pub(crate) fn new(words: impl Into<String>) -> Waiting {
        let bar = ProgressBar::new_spinner().with_message(words.into());
        bar.enable_steady_tick(Duration::from_millis(120));
        Waiting(bar)
    }
}

#[cfg(feature = "models")]
impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Bytes that arrive; drawn at once, because a network may be slow to begin.
#[cfg(feature = "hub")]
pub(crate) fn bytes() -> ProgressBar {
    let template = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    let bar = ProgressBar::new(0);
    ProgressStyle::with_template(template).map_or(bar.clone(), |style| bar.with_style(style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_since_the_beginning() {
        for (done, total, seconds, text) in [
            (0, Some(60), 3.0, ""),
            (8, Some(60), 4.0, "2.0/s, 26 s left"),
            (8, Some(60), 40.0, "5.0 s each, 4 min left"),
            (60, Some(60), 4.0, "15/s"),
            (7_000, None, 10.0, "700/s"),
            (10, Some(100_000), 10.0, "1.0/s, 28 h left"),
        ] {
            assert_eq!(rate(done, total, Duration::from_secs_f64(seconds)), text);
        }
    }
}
