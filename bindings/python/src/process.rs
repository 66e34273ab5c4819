//! The process that Python lives in: the program inside it, and copies of it by `fork`.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{ForkError, wrong_option};

thread_local! {
    /// Threads that compute for one Python thread only.
    static OWN: RefCell<Option<(usize, Rc<ThreadPool>)>> = const { RefCell::new(None) };
}

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

/// Computes without the interpreter's lock: on the threads that all calls share, or on so many that belong to the Python
/// thread which calls.
pub(crate) fn compute<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    expect_threads()?;
    let Some(threads) = threads else { return Ok(py.detach(work)) };
    let own = OWN.with_borrow_mut(|own| match own {
        Some((count, pool)) if *count == threads => Ok(Rc::clone(pool)),
        _ => {
            let pool = Rc::new(ThreadPoolBuilder::new().num_threads(threads).build()?);
            *own = Some((threads, Rc::clone(&pool)));
            Ok(pool)
        }
    });
    let own = own.map_err(|error: rayon::ThreadPoolBuildError| {
        wrong_option(format!("threads {threads}: {error}"))
    })?;
    let pool: &ThreadPool = &own;
    Ok(py.detach(|| pool.install(work)))
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
