//! What several experiments need.

#[path = "earth-view/baselines/methods/mod.rs"]
pub mod baselines;
pub mod draws;
pub mod earth_sources;
pub mod paper;
pub mod simulation;

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result};
use gemm::Parallelism;
use locdiff_sphere::LatLon;
use npyz::WriterBuilder;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// Lets mimalloc give memory back after half a minute: see `memory.rs` of the program.
/// Of use only where it is the allocator.
#[expect(unsafe_code, reason = "an option of the allocator, set through its C interface")]
pub fn keep_freed_memory() {
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: sets one number in the allocator's table of options.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, 30_000) };
}

/// A dense matrix [k, n] and its strides, from one row and from one column to the next.
#[derive(Debug, Clone, Copy)]
pub struct Dense<'a> {
    pub entries: &'a [f32],
    /// From one row to the next.
    pub row: usize,
    /// From one column to the next.
    pub column: usize,
}

/// out [m, n] = a [m, k] · b [k, n] on one thread; out and a are row-major.
pub fn multiply(out: &mut [f32], a: &[f32], b: Dense<'_>, [m, n, k]: [usize; 3]) {
    assert!(out.len() >= m * n && a.len() >= m * k && b.entries.len() >= n * k);
    #[expect(unsafe_code, reason = "gemm's only interface takes pointers")]
    // SAFETY: the strides stay inside the slices, by the assertion above.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            false,
            a.as_ptr(),
            1,
            k as isize,
            b.entries.as_ptr(),
            b.column as isize,
            b.row as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// A standard normal number.
pub fn standard_normal(rng: &mut ChaCha8Rng) -> f64 {
    rng.sample(StandardNormal)
}

/// Three decimals are enough for a table.
pub fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Latitudes and longitudes, row by row.
pub fn flat(places: &[LatLon]) -> Vec<f32> {
    let row = |place: &LatLon| [place.latitude() as f32, place.longitude() as f32];
    places.iter().flat_map(row).collect()
}

/// Places of such rows.
pub fn places_of(numbers: &[f32]) -> Result<Vec<LatLon>> {
    let place = |row: &[f32]| Ok(LatLon::new(f64::from(row[0]), f64::from(row[1]))?);
    numbers.chunks_exact(2).map(place).collect()
}

/// Writes numbers as a NumPy array.
pub fn write_npy(path: &Path, shape: &[usize], values: &[f32]) -> Result<()> {
    let shape: Vec<u64> = shape.iter().map(|size| *size as u64).collect();
    let file = BufWriter::new(File::create(path).with_context(|| path.display().to_string())?);
    let mut writer =
        npyz::WriteOptions::new().default_dtype().shape(&shape).writer(file).begin_nd()?;
    writer.extend(values.iter().copied())?;
    Ok(writer.finish()?)
}

/// Numbers of a NumPy array.
pub fn read_npy(path: &Path) -> Result<Vec<f32>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    Ok(npyz::NpyFile::new(&bytes[..])?.into_vec()?)
}

/// Processor time of this thread so far (Linux).
pub fn thread_seconds() -> f64 {
    seconds_of("/proc/thread-self/stat")
}

/// Processor time of this program so far, all threads together (Linux).
pub fn cpu_seconds() -> f64 {
    seconds_of("/proc/self/stat")
}

fn seconds_of(path: &str) -> f64 {
    let stat = std::fs::read_to_string(path).unwrap();
    // The name, in brackets, may contain spaces; utime and stime are fields 14 and 15, in
    // hundredths of a second.
    let after_name = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |field: usize| fields[field - 3].parse::<f64>().unwrap();
    (ticks(14) + ticks(15)) / 100.0
}
