//! The process that Python lives in: the program inside it, and copies of it by `fork`.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

use crate::errors::ForkError;

/// The process that started the threads which compute; 0 before.
static COMPUTES: AtomicU32 = AtomicU32::new(0);

/// Refuses to compute in a copy of the process that started the threads: `fork` copies memory, not threads, and work
/// for them would wait for ever.
pub(crate) fn expect_threads() -> PyResult<()> {
    let here = std::process::id();
    match COMPUTES.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(there) if there == here => Ok(()),
        Err(there) => Err(ForkError::new_err(format!(
            "locdiff was used in process {there} before it was forked into process {here}, and its threads are not copied: \
             start processes with `spawn` or `forkserver` (multiprocessing.get_context(\"spawn\")), or open models only \
             after the fork"
        ))),
    }
}

/// Runs the `locdiff` program; the exit code.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| {
        let code = locdiff_cli::run(arguments);
        // Rust's own end of a program would do this.
        let _ = std::io::stdout().flush();
        (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1)
    })
}
