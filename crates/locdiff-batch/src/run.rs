//! Doing units.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use locdiff::photo::ReadOptions;
use locdiff_train::images::run_ahead;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;

use crate::error::BatchError;
use crate::job::{Batch, output_name};
use crate::output::Output;
use crate::rows::{Fetched, Stores};
use crate::units::Unit;
use crate::work::Worker;

/// Threads that wait for disks and object stores; they don't compute.
const FETCHING: usize = 8;
/// Images that are fetched ahead, beyond those that are computed together.
const AHEAD: usize = 16;

/// Where and with how many threads units are done.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOptions {
    /// Threads that compute.
    pub threads: usize,
    /// `cpu`, or another device that this was built for.
    pub device: String,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { threads: reserved_threads(), device: "cpu".to_owned() }
    }
}

impl RunOptions {
    /// So many threads on the CPU.
    pub fn threads(threads: usize) -> RunOptions {
        RunOptions { threads: threads.max(1), ..RunOptions::default() }
    }
}

/// The processors that were reserved for this process: by Slurm (`SLURM_CPUS_PER_TASK`), else as the system limits it
/// (its affinity and its control group, which is how Kubernetes does).
pub fn reserved_threads() -> usize {
    let slurm = std::env::var("SLURM_CPUS_PER_TASK").ok().and_then(|text| text.parse().ok());
    let system = || std::thread::available_parallelism().map_or(1, usize::from);
    slurm.filter(|count| *count > 0).unwrap_or_else(system)
}

/// Counts of one unit that was run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnitReport {
    /// Number of the unit, from 0.
    pub unit: u64,
    /// Whether it was done before, by somebody else or at the same time; then nothing else is known.
    pub already: bool,
    /// Rows that were written.
    pub rows: u64,
    /// Rows of those with an error.
    pub errors: u64,
    /// Without opening the model.
    pub seconds: f64,
}

/// Does units of a job. The model is opened with the first one, and kept.
pub struct Runner {
    batch: Batch,
    units: Vec<Unit>,
    options: RunOptions,
    pool: ThreadPool,
    worker: OnceLock<Worker>,
    opening: Mutex<()>,
    stores: Stores,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Runner({:?})", self.batch)
    }
}

impl Runner {
    /// Opens the model or encoder of a job.
    pub fn new(batch: Batch, options: RunOptions) -> Result<Runner, BatchError> {
        let pool = ThreadPoolBuilder::new().num_threads(options.threads);
        let pool = pool.thread_name(|number| format!("locdiff-{number}")).build();
        let pool = pool.map_err(|error| BatchError::wrong("threads", error))?;
        let (units, worker) = (batch.units()?, OnceLock::new());
        let (opening, stores) = (Mutex::new(()), Stores::default());
        Ok(Runner { batch, units, options, pool, worker, opening, stores })
    }

    /// The job whose units this runs.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    fn worker(&self) -> Result<&Worker, BatchError> {
        let _one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(worker) = self.worker.get() {
            return Ok(worker);
        }
        let task = &self.batch.job.task;
        let worker = self.pool.install(|| Worker::open(task, &self.options.device))?;
        Ok(self.worker.get_or_init(|| worker))
    }

    /// Does a unit, unless its output is there. The output is written as a whole at the end, and never over another one.
    pub fn run_unit(&self, number: u64) -> Result<UnitReport, BatchError> {
        let units = self.units.len() as u64;
        let none = BatchError::NoUnit { unit: number, units };
        let unit = self.units.get(number as usize).ok_or(none)?;
        let name = output_name(number);
        let already =
            || UnitReport { unit: number, already: true, rows: 0, errors: 0, seconds: 0.0 };
        if self.batch.store.size(&name)?.is_some() {
            return Ok(already());
        }
        let worker = self.worker()?;
        let began = Instant::now();
        let output = self.make(number, unit, worker)?;
        let (rows, errors) = (output.rows, output.errors);
        if let Some(planned) = unit.rows.filter(|planned| *planned != rows) {
            let reason = format!("it has {rows} rows, {planned} were planned");
            return Err(BatchError::wrong(unit.location.clone(), reason));
        }
        let failed = |error| BatchError::wrong(name.clone(), error);
        let bytes = output.finish().map_err(failed)?;
        match self.batch.store.put_new(&name, bytes)? {
            true => {
                let seconds = began.elapsed().as_secs_f64();
                Ok(UnitReport { unit: number, already: false, rows, errors, seconds })
            }
            false => Ok(already()),
        }
    }

    fn make(&self, number: u64, unit: &Unit, worker: &Worker) -> Result<Output, BatchError> {
        let Batch { job, .. } = &self.batch;
        let failed = |error| BatchError::wrong(output_name(number), error);
        let mut output = Output::new(&job.task, job.cells, &job.digest, number).map_err(failed)?;
        let max_bytes = ReadOptions::default().max_bytes;
        let walked = Mutex::new(Ok(()));
        let together = worker.together();
        run_ahead(
            |visit| {
                let outcome = self.batch.visit(unit, max_bytes, visit);
                *walked.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
            },
            &|row| self.stores.fetch(row, max_bytes),
            FETCHING,
            together + AHEAD,
            |fetched| loop {
                let images: Result<Vec<Fetched>, BatchError> =
                    fetched.by_ref().take(together).collect();
                let images = images?;
                if images.is_empty() {
                    return Ok::<(), BatchError>(());
                }
                let made = self.pool.install(|| worker.work(&images));
                for (image, made) in images.iter().zip(&made) {
                    output.push(&image.id, &image.path, made).map_err(failed)?;
                }
            },
        )?;
        walked.into_inner().unwrap_or_else(PoisonError::into_inner)?;
        Ok(output)
    }
}
