//! `locdiff batch`: a lake of images in units of work. docs/batch.md is the user's view.

mod plan;
mod results;
mod units;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Divide an input into units of work, and write them down as a job.
    Plan(Box<plan::Arguments>),
    /// Do all units that are open.
    Run(units::RunArguments),
    /// Do some units: what Slurm arrays and Kubernetes jobs call.
    RunUnit(units::RunUnitArguments),
    /// Count the units that are done.
    Status(results::StatusArguments),
    /// Check that all outputs are there, with every row once.
    Finish(results::FinishArguments),
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Run(arguments) => units::run(&arguments),
        Command::RunUnit(arguments) => units::run_unit(&arguments),
        Command::Status(arguments) => results::status(&arguments),
        Command::Finish(arguments) => results::finish(&arguments),
    }
}
