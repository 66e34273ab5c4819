//! `locdiff batch plan`.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use locdiff::models::BUILT_IN;
use locdiff_batch::{BatchError, Cells, PlanOptions, Planned, Task, plan};

use crate::asking::{CannotAsk, InferenceArguments};
use crate::text::{json_stdout, stderr};
use crate::{NONSENSE, memory, refused};

#[derive(Args)]
pub(crate) struct Arguments {
    /// A folder of images, a manifest (.csv or .parquet with path, latitude, longitude), a WebDataset (.tar), a Parquet
    /// file with the bytes of images, or a folder of tars or of such Parquet files. A path, or an address such as
    /// s3://bucket/prefix
    input: String,
    /// Where the job is written: a directory, or an address such as s3://bucket/prefix
    #[arg(short, long, value_name = "JOB")]
    out: String,
    /// What is done with each image
    #[arg(long, value_enum, default_value_t = Kind::Locate)]
    task: Kind,
    /// For locate: which model answers [default: earth-view]
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,
    /// For embed: the encoder. For locate: the image encoder of a model that `locdiff train` made, if it is not an installed one
    #[arg(long, value_name = "NAME")]
    encoder: Option<String>,
    /// For locate: restrict answers to an area, as in `locdiff predict --within`
    #[arg(short, long, value_name = "AREA", allow_hyphen_values = true)]
    within: Vec<String>,
    /// For locate: how many candidates an answer has at most
    #[arg(short = 'k', long, value_name = "K", default_value_t = Task::TOP as u64, value_parser = clap::value_parser!(u64).range(1..=100))]
    top: u64,
    /// Rows per unit. An interrupted unit starts again at its first row
    #[arg(long, value_name = "N", default_value_t = PlanOptions::ROWS_PER_UNIT as u64, value_parser = clap::value_parser!(u64).range(1..))]
    rows_per_unit: u64,
    /// Add the ids of cells of the Earth, for example h3:7
    #[arg(long, value_name = "KIND")]
    cells: Option<Cells>,
    /// The column of Parquet files with the bytes of images [default: image, jpg, png, bytes or content]
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// The job on stdout as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    inference: InferenceArguments,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Predict where the image was taken.
    Locate,
    /// Turn the image into an embedding.
    Embed,
    /// Only read and decode the image: finds damaged images, and tests the plan and the engine.
    Check,
}

impl Arguments {
    /// What is done with each image; or what of the command line makes no sense.
    fn task(&self) -> Result<Task, String> {
        let options = self.inference.options();
        let only = |kind: &str, flags: &[(&str, bool)]| match flags.iter().find(|(_, given)| *given)
        {
            Some((flag, _)) => Err(format!("{flag} cannot be used with --task {kind}")),
            None => Ok(()),
        };
        match self.task {
            Kind::Locate => Ok(Task::Locate {
                model: self.model.clone().unwrap_or_else(|| BUILT_IN.to_owned()),
                version: None,
                encoder: self.encoder.clone(),
                inference: options,
                within: self.within.clone(),
                top: self.top as usize,
            }),
            Kind::Embed => {
                let flags =
                    [("--model", self.model.is_some()), ("--within", !self.within.is_empty())];
                only("embed", &flags)?;
                let encoder = self.encoder.as_ref().ok_or("--task embed needs --encoder")?;
                let views = u32::try_from(options.views.unwrap_or(1)).unwrap_or(u32::MAX);
                if views == 0 {
                    return Err("--views must be at least 1".to_owned());
                }
                Ok(Task::embed(encoder, views, options.seed.unwrap_or(0)))
            }
            Kind::Check => {
                let flags =
                    [("--model", self.model.is_some()), ("--encoder", self.encoder.is_some())];
                only("check", &flags)?;
                Ok(Task::Check)
            }
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    memory::keep_for_a_while();
    let task = match arguments.task() {
        Ok(task) => task,
        Err(reason) => return Ok(refused(&reason, NONSENSE)),
    };
    let options = PlanOptions {
        rows_per_unit: arguments.rows_per_unit as usize,
        cells: arguments.cells,
        column: arguments.column.clone(),
        ..PlanOptions::new(task)
    };
    let Planned { batch, already } = match plan(&arguments.input, &arguments.out, &options) {
        Ok(planned) => planned,
        Err(BatchError::Open(error)) => return Ok(cannot_ask(error.into())),
        Err(BatchError::Inference(error)) => return Ok(cannot_ask(error.into())),
        Err(error) => return Err(error.into()),
    };
    let job = batch.job();
    let rows =
        job.rows.map_or("rows of tars are counted later".to_owned(), |n| format!("{n} rows"));
    let planned = if already { "planned already" } else { "planned" };
    writeln!(stderr(), "{planned}: {}, {} units, {rows}", job.task.name(), job.units)?;
    if arguments.json {
        writeln!(json_stdout(), "{}", serde_json::to_string(job)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn cannot_ask(error: CannotAsk) -> ExitCode {
    refused(&error.to_string(), error.code())
}
