//! Fuzz targets: one for each kind of file, text or request that others can give to LocDiff.
//!
//! A target takes any bytes and hands them to the code that the program runs. It panics if the code breaks a promise. The
//! allocator panics of its own: one allocation of 4 GiB, or more memory than [`Target::most_bytes`], is a finding.
//!
//! `fuzz/run` mutates inputs for hours, guided by coverage. The tests mutate the kept inputs for seconds, without coverage.

pub mod allocation;
mod folder;
pub mod mutation;
pub mod panics;
mod targets;

use std::path::{Path, PathBuf};

pub use targets::TARGETS;

/// What is fuzzed.
pub struct Target {
    /// The name of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// What the bytes are.
    pub reads: &'static str,
    /// Longest input.
    pub longest: usize,
    /// The most memory that one input may take.
    pub most_bytes: usize,
    /// Hands an input to the shipped code.
    pub run: fn(&[u8]),
    /// Inputs to begin with that are not in `fuzz/corpus`.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

impl Target {
    /// The target of a name.
    pub fn named(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Runs an input.
    ///
    /// # Panics
    /// If the code breaks a promise, or takes too much memory.
    pub fn check(&self, input: &[u8]) {
        let ((), peak) = allocation::peak_of(|| (self.run)(input));
        assert!(
            peak <= self.most_bytes,
            "{}: an input of {} bytes took {peak} bytes of memory",
            self.name,
            input.len()
        );
    }

    /// Inputs to begin with: seeds, and what was kept of earlier runs.
    pub fn inputs(&self) -> Vec<Vec<u8>> {
        let kept = files_in(&repository("fuzz/corpus").join(self.name));
        let mut inputs = (self.seeds)();
        inputs.extend(kept.iter().filter_map(|path| std::fs::read(path).ok()));
        inputs
    }
}

/// A path of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The files of a folder, by name.
pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The contents of files of the repository that are short enough for a target.
pub(crate) fn contents(
    folder: &str,
    longest: usize,
    is_wanted: impl Fn(&Path) -> bool,
) -> Vec<Vec<u8>> {
    let files = files_in(&repository(folder)).into_iter().filter(|path| is_wanted(path));
    files.filter_map(|path| std::fs::read(path).ok()).filter(|file| file.len() <= longest).collect()
}
