//! The program that `fuzz/run` builds: libFuzzer with the target that `LOCDIFF_FUZZ_TARGET` names.
//!
//! If `LOCDIFF_FUZZ_SEEDS` names a folder, the target's seeds are written there and the program ends.

#![no_main]
#![expect(clippy::print_stderr, reason = "whoever fuzzes reads this")]

use std::env;
use std::fs;
use std::path::Path;
use std::process;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use locdiff_fuzz::{TARGETS, Target, panics};

static TARGET: OnceLock<&'static Target> = OnceLock::new();

fn begin() {
    panics::watch(|message| {
        eprintln!("{message}");
        process::abort();
    });
    let name = env::var("LOCDIFF_FUZZ_TARGET").unwrap_or_default();
    let Some(target) = Target::named(&name) else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("LOCDIFF_FUZZ_TARGET must be one of {}", names.join(", "));
        process::exit(2);
    };
    if let Some(folder) = env::var_os("LOCDIFF_FUZZ_SEEDS") {
        for (number, seed) in (target.seeds)().into_iter().enumerate() {
            let path = Path::new(&folder).join(format!("seed-{number}"));
            fs::write(path, seed).expect("the folder can be written");
        }
        eprintln!("longest {}", target.longest);
        process::exit(0);
    }
    TARGET.get_or_init(|| target);
}

fuzz_target!(init: begin(), |input: &[u8]| {
    if let Some(target) = TARGET.get() {
        target.check(input);
    }
});
