//! What became of all pictures.

use std::collections::BTreeMap;
use std::io::{self, Write};

use locdiff::locate::Answered;

use super::answer::Failure;
use super::pictures::Found;

/// Reasons that are listed.
const REASONS: usize = 5;

#[derive(Default)]
pub(super) struct Tally {
    pictures: usize,
    others: usize,
    unreadable: usize,
    pub(super) located: usize,
    /// Pictures that models rejected, by reason.
    rejected: BTreeMap<String, usize>,
    /// Pictures that could not be read, by reason.
    failed: BTreeMap<String, usize>,
    pub(super) without_model: usize,
    pub(super) maps_failed: usize,
}

impl Tally {
    pub(super) fn new(found: &Found) -> Tally {
        Tally {
            pictures: found.pictures.len(),
            others: found.others,
            unreadable: found.unreadable.len(),
            ..Tally::default()
        }
    }

    pub(super) fn count(&mut self, answer: &Result<Answered, Failure>) {
        let failure = match answer {
            Ok(_) => {
                self.located += 1;
                return;
            }
            Err(failure) => failure,
        };
        self.without_model += usize::from(failure.no_model);
        // Without a size it could not be read.
        let kind = match failure.facts.width {
            None => &mut self.failed,
            Some(_) => &mut self.rejected,
        };
        *kind.entry(failure.reason.clone()).or_default() += 1;
    }

    fn count_of(kind: &BTreeMap<String, usize>) -> usize {
        kind.values().sum()
    }

    pub(super) fn failures(&self) -> usize {
        let pictures = Tally::count_of(&self.rejected) + Tally::count_of(&self.failed);
        pictures + self.unreadable + self.maps_failed
    }

    /// The summary for stderr: how many were located, rejected and not readable.
    pub(super) fn line(&self) -> String {
        let (rejected, failed) = (Tally::count_of(&self.rejected), Tally::count_of(&self.failed));
        let mut line = format!(
            "{} pictures: {} located, {rejected} rejected, {failed} failed",
            self.pictures, self.located
        );
        match self.others {
            0 => {}
            1 => line.push_str("; 1 file is not a picture"),
            others => line.push_str(&format!("; {others} files are not pictures")),
        }
        line
    }

    /// For more than one picture.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        if self.pictures < 2 {
            return Ok(());
        }
        writeln!(out, "{}", self.line())?;
        for (kind, reasons) in [("rejected", &self.rejected), ("failed", &self.failed)] {
            let mut reasons: Vec<_> = reasons.iter().collect();
            reasons.sort_by(|a, b| b.1.cmp(a.1));
            for (reason, count) in reasons.iter().take(REASONS) {
                writeln!(out, "  {count} {kind}: {reason}")?;
            }
            if reasons.len() > REASONS {
                let rest: usize = reasons[REASONS..].iter().map(|(_, count)| **count).sum();
                writeln!(out, "  {rest} {kind} for other reasons")?;
            }
        }
        Ok(())
    }
}
