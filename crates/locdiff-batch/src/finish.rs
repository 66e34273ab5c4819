//! Counting what is done, and checking it at the end.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use locdiff_train::Store;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rayon::prelude::*;
use serde::Serialize;

use crate::blob::Blob;
use crate::columns::text;
use crate::error::BatchError;
use crate::job::{Batch, FINISHED, OUT, output_name, unit_of};
use crate::output::{ERROR, ID, JOB_KEY, UNIT_KEY};

/// Outputs that are checked at the same time: most of the time is waiting.
const CHECKED_TOGETHER: usize = 16;
/// What a message names; it counts the rest.
const NAMED: usize = 5;

/// How far a job has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Units of the job.
    pub units: u64,
    /// Units with an output.
    pub done: u64,
    /// Units without an output.
    pub open: u64,
    /// Rows of the input, unless there are tars, whose rows are not counted.
    pub rows: Option<u64>,
    /// Whether `finish` has checked it all.
    pub finished: bool,
}

/// What was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finished {
    /// Digest of the job.
    pub digest: String,
    /// Units of the job.
    pub units: u64,
    /// Rows of all outputs, those with errors included.
    pub rows: u64,
    /// Rows with an error.
    pub errors: u64,
    /// Rows whose id another row has too; an error unless they are allowed.
    pub repeated_ids: u64,
}

/// What is in an output.
struct Checked {
    rows: u64,
    errors: u64,
    /// Hashes of the ids, to find ids that occur twice.
    hashes: Vec<u64>,
}

impl Batch {
    /// The numbers of units without an output.
    pub fn open_units(&self) -> Result<Vec<u64>, BatchError> {
        let done = self.done()?;
        Ok((0..self.job.units).filter(|unit| !done.contains(unit)).collect())
    }

    fn done(&self) -> Result<HashSet<u64>, BatchError> {
        let listed = self.store.list(OUT)?;
        let units = listed.iter().filter_map(|stored| unit_of(&stored.name));
        Ok(units.filter(|unit| *unit < self.job.units).collect())
    }

    /// Counts the units that are done.
    pub fn status(&self) -> Result<Status, BatchError> {
        let done = self.done()?.len() as u64;
        Ok(Status {
            units: self.job.units,
            done,
            open: self.job.units - done,
            rows: self.job.rows,
            finished: self.store.size(FINISHED)?.is_some(),
        })
    }

    /// Checks that each unit has its output, with as many rows as were planned, and that no id occurs twice, unless that
    /// is allowed. Then writes `finished.json`.
    pub fn finish(&self, allow_repeated_ids: bool) -> Result<Finished, BatchError> {
        let open = self.open_units()?;
        if !open.is_empty() {
            let reason = format!("{} of {} units are open", open.len(), self.job.units);
            return Err(BatchError::Unfinished(reason));
        }
        let units = self.units()?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(CHECKED_TOGETHER).build();
        let pool = pool.map_err(|error| BatchError::wrong("threads", error))?;
        let checked: Vec<Result<Checked, BatchError>> = pool.install(|| {
            let units = units.par_iter().enumerate();
            units.map(|(number, unit)| self.checked(number as u64, unit.rows)).collect()
        });
        let mut wrong = Vec::new();
        let (mut rows, mut errors, mut hashes) = (0, 0, Vec::new());
        for (number, checked) in checked.into_iter().enumerate() {
            match checked {
                Ok(checked) => {
                    rows += checked.rows;
                    errors += checked.errors;
                    hashes.extend(checked.hashes);
                }
                Err(BatchError::Wrong { reason, .. }) => {
                    wrong.push(format!("{}: {reason}", output_name(number as u64)));
                }
                Err(error) => return Err(error),
            }
        }
        if !wrong.is_empty() {
            let remedy = "remove these outputs and run the job again";
            let reason = format!("{}; {remedy}", some(&wrong, "; "));
            return Err(BatchError::Unfinished(reason));
        }
        let repeated = self.repeated(hashes)?;
        let repeated_ids: u64 = repeated.values().sum();
        if repeated_ids > 0 && !allow_repeated_ids {
            let ids: Vec<String> = repeated.into_keys().collect();
            let reason = format!(
                "{repeated_ids} rows have ids that occur more than once: {}. If the input repeats \
                 ids, add --repeated-ids",
                some(&ids, ", ")
            );
            return Err(BatchError::Unfinished(reason));
        }
        let digest = self.job.digest.clone();
        let finished = Finished { digest, units: self.job.units, rows, errors, repeated_ids };
        let mut record = serde_json::to_vec_pretty(&finished).expect("plain values");
        record.push(b'\n');
        self.store.put(FINISHED, record)?;
        Ok(finished)
    }

    /// Reads an output; [`BatchError::Wrong`] if it is not what was planned.
    fn checked(&self, number: u64, planned: Option<u64>) -> Result<Checked, BatchError> {
        let name = output_name(number);
        let wrong = |reason: String| BatchError::wrong(name.clone(), reason);
        let mut checked = Checked { rows: 0, errors: 0, hashes: Vec::new() };
        let facts = visit(&self.store, &name, &mut |id, is_error| {
            checked.rows += 1;
            checked.errors += u64::from(is_error);
            checked.hashes.push(hash(id));
        })?;
        let expected = [(JOB_KEY, self.job.digest.clone()), (UNIT_KEY, number.to_string())];
        if expected.iter().any(|(key, value)| facts.get(*key) != Some(value)) {
            return Err(wrong("it is not of this job and unit".to_owned()));
        }
        match planned {
            Some(planned) if planned != checked.rows => {
                Err(wrong(format!("it has {} rows, {planned} were planned", checked.rows)))
            }
            _ => Ok(checked),
        }
    }

    /// Ids that occur more than once, and in how many rows. Hashes are compared first, so that not all ids are in memory.
    fn repeated(&self, mut hashes: Vec<u64>) -> Result<BTreeMap<String, u64>, BatchError> {
        hashes.par_sort_unstable();
        let suspects: HashSet<u64> =
            hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        let mut ids: BTreeMap<String, u64> = BTreeMap::new();
        if suspects.is_empty() {
            return Ok(ids);
        }
        for number in 0..self.job.units {
            visit(&self.store, &output_name(number), &mut |id, _| {
                if suspects.contains(&hash(id)) {
                    *ids.entry(id.to_owned()).or_default() += 1;
                }
            })?;
        }
        ids.retain(|_, count| *count > 1);
        Ok(ids)
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// Shows the id of each row of an output, and whether it has an error; returns the output's metadata.
fn visit(
    store: &Store,
    name: &str,
    each: &mut dyn FnMut(&str, bool),
) -> Result<BTreeMap<String, String>, BatchError> {
    let blob = Blob::object(store, name)?;
    let mut read = || -> Result<BTreeMap<String, String>, String> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(blob.clone());
        let builder = builder.map_err(|error| error.to_string())?;
        let facts = builder.metadata().file_metadata().key_value_metadata().into_iter().flatten();
        let facts = facts.filter_map(|fact| Some((fact.key.clone(), fact.value.clone()?)));
        let facts = facts.collect();
        let fields = builder.schema().fields().iter().enumerate();
        let roots = fields.filter(|(_, field)| [ID, ERROR].contains(&field.name().as_str()));
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots.map(|(index, _)| index));
        let reader = builder.with_projection(mask).build().map_err(|error| error.to_string())?;
        for batch in reader {
            let batch = batch.map_err(|error| error.to_string())?;
            let column = |name: &str| {
                batch.column_by_name(name).ok_or_else(|| format!("it has no column `{name}`"))
            };
            let (ids, errors) = (column(ID)?, column(ERROR)?);
            for row in 0..batch.num_rows() {
                each(text(ids, row).unwrap_or_default(), !errors.is_null(row));
            }
        }
        Ok(facts)
    };
    let read = read();
    match blob.fault() {
        Some(fault) => Err(fault.into()),
        None => read.map_err(|reason| BatchError::wrong(name, reason)),
    }
}

/// Lists the first few entries, for a message.
fn some(all: &[String], between: &str) -> String {
    let named = all[..all.len().min(NAMED)].join(between);
    match all.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
