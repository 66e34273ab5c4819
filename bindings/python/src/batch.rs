//! Jobs of many images, unit by unit.

use std::sync::OnceLock;

use locdiff_batch::{Batch, BatchError, PlanOptions, RunOptions, Runner, plan};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::{BatchError as BatchException, OptionError, cannot_open, wrong_option};
use crate::process::expect_threads;

/// A job that was planned.
#[pyclass(frozen, module = "locdiff._native")]
pub(crate) struct BatchJob {
    batch: Batch,
    options: RunOptions,
    /// Made with the first unit; keeps the model open.
    runner: OnceLock<Runner>,
}

fn failed(error: BatchError) -> PyErr {
    match error {
        BatchError::Open(error) => cannot_open(error),
        BatchError::Inference(error) => wrong_option(error),
        error => BatchException::new_err(locdiff_cli::with_causes(&error)),
    }
}

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(wrong_option)
}

#[pymethods]
impl BatchJob {
    /// Plans a job; the job, and whether it was there already.
    #[staticmethod]
    fn plan(
        py: Python<'_>,
        input: &str,
        out: &str,
        options_json: &str,
    ) -> PyResult<(String, bool)> {
        expect_threads()?;
        let options: PlanOptions = serde_json::from_str(options_json).map_err(|error| {
            let text = error.to_string();
            OptionError::new_err(text.split(" at line ").next().unwrap_or_default().to_owned())
        })?;
        if options.rows_per_unit == 0 {
            return Err(wrong_option("rows_per_unit is 0: use at least 1"));
        }
        let planned = py.detach(|| plan(input, out, &options).map_err(failed))?;
        Ok((json(planned.batch.job())?, planned.already))
    }

    /// Opens the job at a path or address that `plan` has written.
    #[staticmethod]
    #[pyo3(signature = (job, threads, device))]
    fn open(
        py: Python<'_>,
        job: &str,
        threads: Option<usize>,
        device: String,
    ) -> PyResult<BatchJob> {
        expect_threads()?;
        let mut options = threads.map_or_else(RunOptions::default, RunOptions::threads);
        options.device = device;
        let batch = py.detach(|| Batch::open(job).map_err(failed))?;
        Ok(BatchJob { batch, options, runner: OnceLock::new() })
    }

    /// What is to be done, as JSON.
    fn describe(&self) -> PyResult<String> {
        json(self.batch.job())
    }

    /// Numbers of units without an output.
    fn open_units(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        expect_threads()?;
        py.detach(|| self.batch.open_units().map_err(failed))
    }

    /// Does a unit unless it is done; a report as JSON.
    fn run_unit(&self, py: Python<'_>, unit: u64) -> PyResult<String> {
        expect_threads()?;
        let report = py.detach(|| {
            locdiff_cli::keep_for_a_while();
            let runner = match self.runner.get() {
                Some(runner) => runner,
                None => {
                    let runner = Runner::new(self.batch.clone(), self.options.clone());
                    let runner = runner.map_err(failed)?;
                    self.runner.get_or_init(|| runner)
                }
            };
            runner.run_unit(unit).map_err(failed)
        });
        json(&report?)
    }

    /// How far it has come, as JSON.
    fn status(&self, py: Python<'_>) -> PyResult<String> {
        expect_threads()?;
        json(&py.detach(|| self.batch.status().map_err(failed))?)
    }

    /// Checks all outputs; what was checked, as JSON.
    fn finish(&self, py: Python<'_>, repeated_ids: bool) -> PyResult<String> {
        expect_threads()?;
        json(&py.detach(|| self.batch.finish(repeated_ids).map_err(failed))?)
    }
}
