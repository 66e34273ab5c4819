//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that the first ctrl-C raises, so that work can end in good order. The second ends the
/// program at once.
pub(crate) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    let raised = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&raised);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })?;
    Ok(raised)
}
