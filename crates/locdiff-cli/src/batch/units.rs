//! `locdiff batch run` and `locdiff batch run-unit`.

use std::io::Write;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::Ordering;

use anyhow::bail;
use clap::{Args, ValueEnum};
use locdiff_batch::{Batch, RunOptions, Runner, UnitReport, reserved_threads};

use crate::progress::Progress;
use crate::text::{json_stdout, stderr};
use crate::{NONSENSE, interruption, memory, refused};

#[derive(Args)]
pub(crate) struct RunArguments {
    /// The job: a directory, or an address such as s3://bucket/prefix
    job: String,
    /// Engine that schedules the units
    #[arg(long, value_enum, default_value_t = Engine::Local)]
    engine: Engine,
    #[command(flatten)]
    computing: ComputingArguments,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// This process, one unit after the other.
    Local,
    /// A Ray cluster.
    Ray,
    /// A Spark cluster.
    Spark,
}

#[derive(Args)]
pub(crate) struct RunUnitArguments {
    /// The job: a directory, or an address such as s3://bucket/prefix
    job: String,
    /// Numbers of units, from 0, or ranges such as 100-199. A range may end after the last unit
    #[arg(required = true, value_name = "UNIT")]
    units: Vec<Units>,
    #[command(flatten)]
    computing: ComputingArguments,
}

#[derive(Args)]
struct ComputingArguments {
    /// Threads that compute [default: the processors that were reserved for this process]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    threads: Option<u64>,
    /// Device to compute on: cpu, cuda:N, wgpu or metal, if this program was built with it
    #[arg(long, default_value = "cpu")]
    device: String,
    /// One JSON object per unit on stdout
    #[arg(long)]
    json: bool,
}

impl ComputingArguments {
    fn runner(&self, job: &str) -> anyhow::Result<Runner> {
        memory::keep_for_a_while();
        let threads = self.threads.map_or_else(reserved_threads, |threads| threads as usize);
        let mut options = RunOptions::threads(threads);
        options.device.clone_from(&self.device);
        Ok(Runner::new(Batch::open(job)?, options)?)
    }

    fn report(&self, report: &UnitReport) -> anyhow::Result<()> {
        if self.json {
            writeln!(json_stdout(), "{}", serde_json::to_string(report)?)?;
        }
        Ok(())
    }
}

/// A number or a range.
#[derive(Debug, Clone, PartialEq)]
struct Units(RangeInclusive<u64>);

impl FromStr for Units {
    type Err = String;

    fn from_str(text: &str) -> Result<Units, String> {
        let wrong = || format!("`{text}` is neither a number nor a range such as 100-199");
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        match text.split_once('-') {
            None => number(text).map(|unit| Units(unit..=unit)),
            Some((first, last)) => match (number(first)?, number(last)?) {
                (first, last) if first <= last => Ok(Units(first..=last)),
                _ => Err(wrong()),
            },
        }
    }
}

pub(crate) fn run_unit(arguments: &RunUnitArguments) -> anyhow::Result<ExitCode> {
    let runner = arguments.computing.runner(&arguments.job)?;
    let count = runner.batch().job().units;
    for Units(range) in &arguments.units {
        // A single one that is not there is a mistake.
        let last = match range.start() == range.end() {
            true => *range.end(),
            false => (*range.end()).min(count.saturating_sub(1)),
        };
        for unit in *range.start()..=last {
            let report = runner.run_unit(unit)?;
            let UnitReport { already, rows, errors, seconds, .. } = report;
            match already {
                true => writeln!(stderr(), "unit {unit} is done already")?,
                false => writeln!(
                    stderr(),
                    "unit {unit}: {rows} rows, {errors} with an error, {seconds:.1} s"
                )?,
            }
            arguments.computing.report(&report)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let package = match arguments.engine {
        Engine::Local => None,
        Engine::Ray => Some("ray"),
        Engine::Spark => Some("spark"),
    };
    if let Some(package) = package {
        let reason = format!(
            "--engine {package} needs the Python package: pip install 'locdiff[{package}]', then run its `locdiff`"
        );
        return Ok(refused(&reason, NONSENSE));
    }
    let runner = arguments.computing.runner(&arguments.job)?;
    let open = runner.batch().open_units()?;
    // Lets the unit end; it would begin anew.
    let interrupted = interruption::flag()?;
    let mut progress = Progress::new("units", Some(open.len() as u64));
    let (mut rows, mut errors, mut done) = (0, 0, 0);
    for unit in &open {
        let report = runner.run_unit(*unit)?;
        rows += report.rows;
        errors += report.errors;
        done += 1;
        arguments.computing.report(&report)?;
        progress.add(1);
        if interrupted.load(Ordering::Relaxed) && done < open.len() {
            bail!("stopped after {done} of {} units; the same command does the rest", open.len());
        }
    }
    drop(progress);
    match open.is_empty() {
        true => writeln!(stderr(), "all units are done already")?,
        false => writeln!(stderr(), "{done} units: {rows} rows, {errors} with an error")?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_numbers_or_ranges() {
        assert_eq!("7".parse(), Ok(Units(7..=7)));
        assert_eq!("0-99".parse(), Ok(Units(0..=99)));
        for wrong in ["", "-1", "3-2", "a", "1-2-3"] {
            assert!(wrong.parse::<Units>().is_err(), "{wrong}");
        }
    }
}
