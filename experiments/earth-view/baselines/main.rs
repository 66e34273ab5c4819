//! Is ours the best way from an embedding to a place?
//!
//! Every method of `locdiff_experiments::baselines` gets the same embeddings of earth-view's frozen encoder,
//! the same processor time, the same choice of learning rates and the same fitting of sharpness,
//! uniform share and rule on views that no table shows. `--quick` makes the tables from the committed
//! predictions; the full run fits everything.

mod fits;
mod predictions;
mod report;
mod views;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "--quick, or --fit EMBEDDINGS SECONDS";

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let mut arguments = std::env::args().skip(1);
    let folder = Path::new("experiments/earth-view/baselines");
    match arguments.next().as_deref() {
        Some("--quick") => (),
        Some("--fit") => {
            let embeddings = PathBuf::from(arguments.next().context(USAGE)?);
            let seconds: f64 = arguments.next().context(USAGE)?.parse()?;
            fits::fit_all(&embeddings, seconds, folder)?;
        }
        _ => anyhow::bail!(USAGE),
    }
    report::report(folder)
}
