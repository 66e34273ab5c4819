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
    /// Rows of a unit by default: minutes of work, and megabytes of output.
    pub const ROWS_PER_UNIT: usize = 4096;

    fn rows_per_unit() -> usize {
        Self::ROWS_PER_UNIT
    }

    /// Options for a task, with defaults.
    pub fn new(task: Task) -> PlanOptions {
        PlanOptions { task, rows_per_unit: Self::ROWS_PER_UNIT, cells: None, column: None }
    }
}

/// What planning came to.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The planned job, ready to run.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use object_store::path::Path as StorePath;

    use super::*;
    use crate::run::{RunOptions, Runner};

    #[test]
    fn a_job_may_be_in_an_object_store() {
        let directory = tempfile::tempdir().unwrap();
        let manifest = directory.path().join("images.csv");
        let rows: String = (0..700).map(|row| format!("{row},none-{row}.jpg\n")).collect();
        std::fs::write(&manifest, format!("id,path\n{rows}")).unwrap();
        let memory = Arc::new(InMemory::new());
        let store = || Store::of(Arc::clone(&memory) as _, StorePath::from("jobs/first"), "memory");
        let options = PlanOptions { rows_per_unit: 2, ..PlanOptions::new(Task::Check) };
        let plan = || plan_in(manifest.to_str().unwrap(), store(), None, &options).unwrap();
        // 350 units in two lists of images.
        let planned = plan();
        assert!(!planned.already && plan().already);
        assert!(store().size("images-00001.parquet").unwrap().is_some());
        let batch = Batch::open_in(store()).unwrap();
        let runner = Runner::new(batch.clone(), RunOptions::threads(2)).unwrap();
        for unit in [349, 255, 256, 0, 349] {
            runner.run_unit(unit).unwrap();
        }
        assert_eq!(batch.status().unwrap().done, 4);
        for unit in batch.open_units().unwrap() {
            assert_eq!(runner.run_unit(unit).unwrap().errors, 2);
        }
        let finished = batch.finish(false).unwrap();
        assert_eq!((finished.rows, finished.errors), (700, 700));
    }
}
