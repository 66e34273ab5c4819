//! Each target for a moment: all inputs that are kept, and changes of them that are the same in every run.

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a finding is shown where it happens"
)]

use std::env;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use locdiff_fuzz::{Target, mutation, panics};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How many changed inputs, unless `LOCDIFF_FUZZ_SECONDS` says how long. A number, not a time, so that every machine runs the same.
const CHANGES: usize = 2000;

static FOUND: AtomicUsize = AtomicUsize::new(0);

/// Memory is counted for the process: targets take turns, unless each has a process as under nextest.
static TURN: Mutex<()> = Mutex::new(());

fn replay(name: &str) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    FOUND.store(0, Ordering::Relaxed);
    // Panics that somebody catches are findings, too.
    panics::watch(|message| {
        eprintln!("{message}");
        FOUND.fetch_add(1, Ordering::Relaxed);
    });
    let target = Target::named(name).expect("a target");
    let inputs = target.inputs();
    assert!(!inputs.is_empty(), "nothing to begin with");
    let check = |input: &[u8]| {
        let checked = panic::catch_unwind(AssertUnwindSafe(|| target.check(input)));
        if checked.is_err() || FOUND.load(Ordering::Relaxed) > 0 {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("finding-{name}"));
            fs::write(&path, input).expect("the folder can be written");
            panic!("a finding, kept in {}", path.display());
        }
    };
    check(&[]);
    inputs.iter().for_each(|input| check(input));
    let set = |name: &str| env::var(name).ok().and_then(|number| number.parse().ok());
    let seconds = set("LOCDIFF_FUZZ_SECONDS");
    let mut rng = ChaCha8Rng::seed_from_u64(set("LOCDIFF_FUZZ_SEED").unwrap_or(33));
    let began = Instant::now();
    let mut count: usize = 0;
    while seconds.map_or(count < CHANGES, |seconds| began.elapsed().as_secs() < seconds) {
        let input = &inputs[rng.random_range(0..inputs.len())];
        let other = &inputs[rng.random_range(0..inputs.len())];
        check(&mutation::mutated(input, other, target.longest, &mut rng));
        count += 1;
    }
    println!("{name}: {count} changed inputs");
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_is_replayed() {
            let names = [$(stringify!($name)),*];
            for target in locdiff_fuzz::TARGETS {
                assert!(names.contains(&target.name), "{} is missing here", target.name);
            }
        }
    };
}

targets! {
    image
    exif_xmp
    safetensors
    pickle
    model_directory
    gallery_directory
    parquet
    manifest_csv
    toml
    geojson
    density_record
    library
    http_query
    http_body
}
