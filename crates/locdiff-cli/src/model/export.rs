//! `locdiff model export`: a model from a checkpoint, so that a run that was stopped is a model too.

use std::io::Write;
use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use locdiff_train::export;
use serde_json::json;

use crate::text::{json_stdout, stderr};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The directory that `locdiff train --out` writes
    run: PathBuf,
    /// The checkpoint of this step [default: the newest undamaged checkpoint]
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// Where the model is written [default: RUN/model]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the model that is there
    #[arg(long)]
    force: bool,
    /// Print what was written on stdout, as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let directory = arguments.out.clone().unwrap_or_else(|| arguments.run.join("model"));
    ensure!(
        arguments.force || !directory.join("config.json").exists(),
        "there is a model in {} already: replace it with --force, or write elsewhere with --out DIR",
        directory.display()
    );
    let step = export(&arguments.run, arguments.step, &directory)?;
    writeln!(stderr(), "the model of step {step} is in {}", directory.display())?;
    if arguments.json {
        let directory = directory.display().to_string();
        writeln!(json_stdout(), "{}", json!({ "model": directory, "step": step }))?;
    }
    Ok(())
}
