//! `locdiff batch status` and `locdiff batch finish`.

use std::io::{Write, stdout};
use std::process::ExitCode;

use clap::Args;
use locdiff_batch::{Batch, Finished, Status};

#[derive(Args)]
pub(crate) struct StatusArguments {
    /// The job: a directory, or an address such as s3://bucket/prefix
    job: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct FinishArguments {
    /// The job: a directory, or an address such as s3://bucket/prefix
    job: String,
    /// Accept ids that occur more than once, because the input repeats them
    #[arg(long)]
    repeated_ids: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn status(arguments: &StatusArguments) -> anyhow::Result<ExitCode> {
    let status = Batch::open(&arguments.job)?.status()?;
    if arguments.json {
        writeln!(crate::text::json_stdout(), "{}", serde_json::to_string(&status)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Status { units, done, open, finished, .. } = status;
    let checked = if finished { ", checked" } else { "" };
    writeln!(stdout(), "{done} of {units} units are done, {open} are open{checked}")?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn finish(arguments: &FinishArguments) -> anyhow::Result<ExitCode> {
    let finished = Batch::open(&arguments.job)?.finish(arguments.repeated_ids)?;
    if arguments.json {
        writeln!(crate::text::json_stdout(), "{}", serde_json::to_string(&finished)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Finished { units, rows, errors, .. } = finished;
    writeln!(stdout(), "finished: {units} units, {rows} rows, {errors} with an error")?;
    Ok(ExitCode::SUCCESS)
}
