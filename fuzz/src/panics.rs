//! Which panics are findings.
//!
//! The program catches panics of decoders that others wrote: these are errors of an image, not findings. A panic in our own
//! code is always a finding, caught or not.

use std::collections::BTreeSet;
use std::panic::{self, PanicHookInfo};
use std::path::Path;
use std::sync::Mutex;

/// Calls `found` with the message of each panic in our code, and prints the place of each other panic once.
pub fn watch(found: impl Fn(&str) + Send + Sync + 'static) {
    let seen = Mutex::new(BTreeSet::new());
    panic::set_hook(Box::new(move |info| {
        let message = info.to_string();
        if is_ours(info) {
            found(&message);
            return;
        }
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        if seen.lock().is_ok_and(|mut seen| seen.insert(place)) {
            print(&format!("a panic of another crate: {message}"));
        }
    }));
}

/// Cargo names the files of a workspace by paths relative to it, those of other crates by absolute ones.
fn is_ours(info: &PanicHookInfo<'_>) -> bool {
    info.location().is_none_or(|location| Path::new(location.file()).is_relative())
}

#[expect(clippy::print_stderr, reason = "whoever fuzzes reads this")]
fn print(message: &str) {
    eprintln!("{message}");
}
