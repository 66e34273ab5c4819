//! Planning: an input becomes a table of units.

use std::path::Path;

use locdiff::checksum::Checksum;
use locdiff_train::Store;
use locdiff_train::images::with_slashes;
use serde::Deserialize;

use crate::cells::Cells;
use crate::error::BatchError;
use crate::images::ImagesWriter;
use crate::input::{Images, Input, parquet_units, tar_units, visit_manifest};
use crate::job::{Batch, JOB, Job, Task, UNITS, read_job};
use crate::units::to_parquet;
use crate::work::checked;

/// How an input is divided, and what is done with it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanOptions {
    /// What is done with each image.
    pub task: Task,
    /// Rows of a unit at most, if a row group of the input has not more. A unit that is interrupted begins anew.
    #[serde(default = "PlanOptions::rows_per_unit")]
    pub rows_per_unit: usize,
    /// Cells of the Earth that are added to each row.
    #[serde(default)]
    pub cells: Option<Cells>,
    /// The column of Parquet files with the bytes of images, if it has an unusual name.
    #[serde(default)]
    pub column: Option<String>,
}

impl PlanOptions {
    /// Rows of a unit unless something else is said: minutes of work, and megabytes of output.
    pub const ROWS_PER_UNIT: usize = 4096;

    fn rows_per_unit() -> usize {
        Self::ROWS_PER_UNIT
    }

    /// With defaults.
    pub fn new(task: Task) -> PlanOptions {
        PlanOptions { task, rows_per_unit: Self::ROWS_PER_UNIT, cells: None, column: None }
    }
}

/// What planning came to.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The job.
    pub batch: Batch,
    /// Whether it was there already.
    pub already: bool,
}

/// Plans a job: an input (a folder, a manifest, tars or Parquet files with the bytes of images, on disk or in a store)
/// is divided into units. The same plan twice is no error and changes nothing; another plan in the same place is an error.
///
/// # Panics
/// If a unit should have no rows.
pub fn plan(input: &str, job: &str, options: &PlanOptions) -> Result<Planned, BatchError> {
    if Store::is_address(job) {
        return plan_in(input, Store::at(job)?, None, options);
    }
    let directory = Path::new(job.strip_prefix("file://").unwrap_or(job));
    std::fs::create_dir_all(directory).map_err(|error| BatchError::wrong(job, error))?;
    plan_in(input, Store::at(job)?, Some(directory), options)
}

/// [`plan`] in any store; `except` is a directory that isn't part of the input.
fn plan_in(
    input: &str,
    store: Store,
    except: Option<&Path>,
    options: &PlanOptions,
) -> Result<Planned, BatchError> {
    assert!(options.rows_per_unit > 0, "a unit needs rows");
    let task = checked(&options.task)?;
    let Input { mut record, images } = Input::find(input, options.column.as_deref(), except)?;
    let before = read_job(&store)?;
    let writes = before.is_none().then_some(&store);
    let mut writer = ImagesWriter::new(writes, options.rows_per_unit);
    let (units, images) = match &images {
        Images::Tars(tars) => (tar_units(tars)?, String::new()),
        Images::Parquet(files) => {
            let column = record.column.get_or_insert_default();
            (parquet_units(files, column, options.rows_per_unit)?, String::new())
        }
        Images::Manifest { location, is_csv } => {
            visit_manifest(location, *is_csv, &mut |listed| {
                // As it is written: the address of an object is no path.
                writer.push(&listed, &listed.path.to_string_lossy())
            })?;
            writer.finish()?
        }
        Images::Files(files) => {
            for listed in files {
                writer.push(listed, &with_slashes(&listed.path))?;
            }
            writer.finish()?
        }
    };
    if units.is_empty() {
        return Err(BatchError::wrong(input, "there are no images"));
    }
    let table = to_parquet(&units);
    let mut checksum = Checksum::default();
    checksum.update(&table);
    checksum.update(images);
    let digest = checksum.finish();
    let rows_per_unit = options.rows_per_unit as u64;
    let job = Job::new(task, options.cells, record, rows_per_unit, &units, digest);
    let unlike = |then: &Job| BatchError::OtherPlan {
        location: store.location_of(""),
        difference: then.difference(&job),
    };
    match before {
        Some(before) if before != job => return Err(unlike(&before)),
        Some(_) => return Ok(Planned { batch: Batch { store, job }, already: true }),
        None => {}
    }
    store.put(UNITS, table)?;
    let mut text = serde_json::to_vec_pretty(&job).expect("a job is plain values");
    text.push(b'\n');
    // Last: what has this file is a whole job.
    let is_first = store.put_new(JOB, text)?;
    if let (false, Some(then)) = (is_first, read_job(&store)?)
        && then != job
    {
        return Err(unlike(&then));
    }
    Ok(Planned { batch: Batch { store, job }, already: !is_first })
}
