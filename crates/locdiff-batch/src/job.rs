//! A job: what is to be done, and where it is written down.
//!
//! | file | what is in it |
//! |---|---|
//! | `job.json` | the task, the input, how many units: [`Job`] |
//! | `units.parquet` | which unit reads what |
//! | `images-00000.parquet` … | the images of a folder or manifest, one row group per unit |
//! | `out/unit-00000.parquet` … | one file per unit that is done |
//! | `finished.json` | written when all are there and checked |

use locdiff::InferenceOptions;
use locdiff::photo::Crops;
use locdiff_train::Store;
use serde::{Deserialize, Serialize};

use crate::cells::Cells;
use crate::error::BatchError;
use crate::units::{self, Unit};

const FORMAT: &str = "locdiff-batch";
const VERSION: u32 = 1;
pub(crate) const JOB: &str = "job.json";
pub(crate) const UNITS: &str = "units.parquet";
pub(crate) const FINISHED: &str = "finished.json";
pub(crate) const OUT: &str = "out";

/// What is done with each image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Task {
    /// A model predicts where it was taken.
    Locate {
        /// The model's name or directory.
        model: String,
        /// The model's version. [`plan`](crate::plan) fills it in, and units are only run with the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// The name or directory of the model's image encoder, if it is not an installed one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encoder: Option<String>,
        /// How the model is asked.
        #[serde(default)]
        inference: InferenceOptions,
        /// Where images can only have been taken, as `--within` has it.
        #[serde(default)]
        within: Vec<String>,
        /// Candidates of an answer at most.
        top: usize,
    },
    /// An encoder turns it into numbers.
    Embed {
        /// The encoder's name or directory.
        encoder: String,
        /// The encoder's identity. [`plan`](crate::plan) fills it in, and units are only run with the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<String>,
        /// Crops of each image; each has an embedding.
        views: Crops,
    },
    /// It is read and decoded, and nothing else: a rehearsal of a plan and an engine, and a list of damaged images.
    Check,
}

impl Task {
    /// The default for candidates.
    pub const TOP: usize = 5;

    /// Name of the task with its model or encoder, for messages.
    pub fn name(&self) -> String {
        match self {
            Task::Locate { model, .. } => format!("locate with {model}"),
            Task::Embed { encoder, .. } => format!("embed with {encoder}"),
            Task::Check => "check".to_owned(),
        }
    }
}

/// Where images come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct InputRecord {
    /// A path or address.
    pub(crate) location: String,
    pub(crate) kind: String,
    /// What relative paths of images are relative to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<String>,
    /// The column with the bytes of images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<String>,
}

/// What was planned: the task, the input and the number of units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    format: String,
    version: u32,
    /// What is done with each image.
    pub task: Task,
    /// Cells of the Earth that are added to each row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<Cells>,
    pub(crate) input: InputRecord,
    /// Largest number of rows in a unit, as planned.
    pub rows_per_unit: u64,
    /// Number of units.
    pub units: u64,
    /// How many, unless there are tars, whose rows are not counted.
    pub rows: Option<u64>,
    /// Of the units and what they read: changes with the plan.
    pub digest: String,
}

impl Job {
    pub(crate) fn new(
        task: Task,
        cells: Option<Cells>,
        input: InputRecord,
        rows_per_unit: u64,
        units: &[Unit],
        digest: String,
    ) -> Job {
        Job {
            format: FORMAT.to_owned(),
            version: VERSION,
            task,
            cells,
            input,
            rows_per_unit,
            units: units.len() as u64,
            rows: units.iter().map(|unit| unit.rows).sum(),
            digest,
        }
    }

    /// Lines with the differences between two jobs.
    pub(crate) fn difference(&self, now: &Job) -> String {
        let [then, now] = [self, now].map(|job| serde_json::to_value(job).unwrap_or_default());
        let names = then.as_object().into_iter().flat_map(|fields| fields.keys());
        let mut names: Vec<&String> =
            names.chain(now.as_object().into_iter().flat_map(|fields| fields.keys())).collect();
        names.sort();
        names.dedup();
        let lines = names.into_iter().filter(|name| then[name.as_str()] != now[name.as_str()]);
        let line = |name: &String| {
            format!("  {name} was {}, is now {}\n", then[name.as_str()], now[name.as_str()])
        };
        lines.map(line).collect()
    }
}

/// A job that was planned.
#[derive(Debug, Clone)]
pub struct Batch {
    pub(crate) store: Store,
    pub(crate) job: Job,
}

impl Batch {
    /// A directory, or `s3://bucket/prefix`.
    pub fn open(location: &str) -> Result<Batch, BatchError> {
        Batch::open_in(Store::at(location)?)
    }

    /// Opens a job in a store.
    pub fn open_in(store: Store) -> Result<Batch, BatchError> {
        let none = "there is no job: make one with `locdiff batch plan`";
        let job = read_job(&store)?;
        let job = job.ok_or_else(|| BatchError::wrong(store.location_of(JOB), none))?;
        Ok(Batch { store, job })
    }

    /// The job's record.
    pub fn job(&self) -> &Job {
        &self.job
    }

    pub(crate) fn units(&self) -> Result<Vec<Unit>, BatchError> {
        let wrong = |reason: String| BatchError::wrong(self.store.location_of(UNITS), reason);
        let bytes =
            self.store.read(UNITS)?.ok_or_else(|| wrong("the file is missing".to_owned()))?;
        let units = units::from_parquet(bytes).map_err(wrong)?;
        match units.len() as u64 == self.job.units {
            true => Ok(units),
            false => {
                Err(wrong(format!("it has {} units, {JOB} has {}", units.len(), self.job.units)))
            }
        }
    }
}

pub(crate) fn read_job(store: &Store) -> Result<Option<Job>, BatchError> {
    let Some(bytes) = store.read(JOB)? else { return Ok(None) };
    let wrong = |reason: String| BatchError::wrong(store.location_of(JOB), reason);
    let head: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    if head["format"] != FORMAT || head["version"] != VERSION {
        return Err(wrong(format!(
            "it is of format {} version {}, this program reads \"{FORMAT}\" version {VERSION}",
            head["format"], head["version"]
        )));
    }
    serde_json::from_value(head).map(Some).map_err(|error| wrong(error.to_string()))
}

/// The name of a unit's output.
pub(crate) fn output_name(unit: u64) -> String {
    format!("{OUT}/unit-{unit:05}.parquet")
}

/// The unit of an output's name, unless it is something else, such as a file that was being written.
pub(crate) fn unit_of(name: &str) -> Option<u64> {
    let number = name.strip_prefix("out/unit-")?.strip_suffix(".parquet")?;
    let unit = number.parse().ok()?;
    (output_name(unit) == name).then_some(unit)
}
