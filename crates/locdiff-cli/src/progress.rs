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
            bar.set_position(self.done);
        }
    }

    /// A line above the bar if there is one to be seen, else plainly on stderr.
    #[cfg(feature = "models")]
    pub(crate) fn line(&self, text: &str) {
        let write = || {
            // Nobody may be listening there.
            let _ = writeln!(std::io::stderr(), "{text}");
        };
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// indicatif draws on stderr, and only if that is a terminal.
    fn new_bar(&self) -> ProgressBar {
        let (bar, template) = match self.total {
            Some(total) => {
                (ProgressBar::new(total), "{msg} {wide_bar} {pos}/{len} {per_sec} {eta}")
            }
            None => (ProgressBar::new_spinner(), "{msg} {spinner} {pos} {per_sec}"),
        };
        let style = ProgressStyle::with_template(template);
        let bar = bar.with_elapsed(self.began.elapsed()).with_message(self.what);
        style.map_or(bar.clone(), |style| bar.with_style(style))
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
