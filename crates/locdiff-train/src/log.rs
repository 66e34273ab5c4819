//! The log of a run: one JSON object per line, and a picture of it at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use locdiff_map::{Chart, Panels};
use serde::{Deserialize, Serialize};

use crate::validation::Validation;

/// A line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Steps that were taken.
    pub step: u64,
    /// Mean loss since the last line.
    pub loss: f64,
    /// Length of the last gradient.
    pub gradient_norm: f64,
    /// The learning rate.
    pub rate: f64,
    /// Rows per second since the last line.
    pub rows_per_s: f64,
    /// How many replicas took the steps, in a run with replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<usize>,
    /// Scores on held-out rows, if they were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
}

/// A log that is being written.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Opens a log to go on after a step: lines of later steps, which the run will take
    /// again, are dropped.
    pub fn open(path: &Path, step: u64) -> io::Result<Log> {
        let kept: String = read(path)
            .into_iter()
            .filter(|record| record.step <= step)
            .map(|record| line(&record))
            .collect();
        let partial = path.with_extension("partial");
        fs::write(&partial, kept)?;
        fs::rename(&partial, path)?;
        Ok(Log { path: path.into(), file: OpenOptions::new().append(true).open(path)? })
    }

    /// Adds a line.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        self.file.write_all(line(record).as_bytes())
    }

    /// Draws loss and scores over the steps.
    pub fn plot(&self, path: &Path) -> io::Result<()> {
        let records = read(&self.path);
        let loss = records.iter().map(|record| (record.step as f64, record.loss));
        let loss = Chart::new("steps", "loss").line("loss", loss).title("Loss in training");
        let share = |of: fn(&Validation) -> f64| -> Vec<(f64, f64)> {
            let scored = records.iter().filter_map(|r| Some((r.step as f64, of(&r.validation?))));
            scored.collect()
        };
        let scores = Chart::new("steps", "held-out rows, %")
            .line("≤ 25 km", share(|v| v.within_25))
            .line("≤ 200 km", share(|v| v.within_200))
            .line("≤ 750 km", share(|v| v.within_750))
            .line("≤ 2500 km", share(|v| v.within_2500))
            .y_range(0.0..=100.0)
            .title("Answers of one pass");
        let both = Panels::new().columns(1).panel("", loss.draw()).panel("", scores.draw());
        fs::write(path, both.draw().png())
    }
}

/// The lines of a log; one that a kill cut short is left out.
pub(crate) fn read(path: &Path) -> Vec<Record> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn line(record: &Record) -> String {
    let mut line = serde_json::to_string(record).expect("numbers and names");
    line.push('\n');
    line
}
