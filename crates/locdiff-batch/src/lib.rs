//! Locates or embeds a lake of images in units of work that any engine can schedule.
//!
//! [`plan`] divides an input into units and writes a job: a directory, or a prefix in an S3-compatible store. A
//! [`Runner`] does one unit and writes one file, which is named after the unit and is there as a whole or not at all.
//! [`Batch`] counts the files and checks them at the end. Who runs which unit, how often and where is an engine's
//! business: a unit that is done is never done again, so that each input row has exactly one output row, whatever an
//! engine repeats. `docs/batch.md` is the user's view.
//!
//! The flow of a unit: `rows` lists its images → threads fetch their bytes → a thread pool decodes them and asks the
//! model (`work`) → `output` makes a Parquet file of the answers.

mod blob;
mod cells;
pub mod columns;
mod error;
mod finish;
mod images;
mod input;
mod job;
mod output;
mod plan;
mod rows;
mod run;
mod units;
mod work;

pub use cells::{Cells, InvalidCells};
pub use error::BatchError;
pub use finish::{Finished, Status};
pub use job::{Batch, Job, Task};
pub use plan::{PlanOptions, Planned, plan};
pub use run::{RunOptions, Runner, UnitReport, reserved_threads};
