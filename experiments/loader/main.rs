//! How fast, and in how much memory, does the loader stream ten million rows?
//!
//! Synthetic rows of 768 half-precision numbers, in 40 shards, are streamed once in shuffled
//! batches of 512, by two threads that decode and one that makes batches; the consumer looks at
//! one number of each row. Memory is the process's own peak while streaming; pages that the system keeps of
//! files are not in it. Memory is flat if the second half of the stream adds nothing to the peak.
//!
//! `--quick` takes 200,000 rows. `--keep` leaves the data set for the next run.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use locdiff_sphere::uniform_place;
use locdiff_train::{
    Dataset, Layout, Numbers, OnBadShard, Part, ShardWriter, Split, Stream, StreamOptions,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

const WIDTH: usize = 768;
const BATCH: usize = 512;
const SEED: u64 = 47;
/// Of 250,000 rows each, in the full run.
const SHARDS: u64 = 40;
const THREADS: usize = 2;
/// What the paper's training consumes on its GPU, at L = 23.
const PAPER_ROWS_PER_S: f64 = 3620.0;

fn main() -> Result<()> {
    let has = |name| std::env::args().any(|argument| argument == name);
    let rows: u64 = if has("--quick") { 200_000 } else { 10_000_000 };
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let directory = Path::new(&target).join("experiments/loader").join(rows.to_string());
    let written = Instant::now();
    if !directory.exists() {
        write(&directory, rows)?;
    }
    let write_s = written.elapsed().as_secs_f64();
    let figures = stream(&directory, rows);
    if !has("--keep") {
        fs::remove_dir_all(&directory)?;
    }
    let figures = figures?;
    println!("# The loader\n");
    println!(
        "{rows} rows of {WIDTH} × f16, {:.1} GB, batches of {BATCH} shuffled within 16 row groups of 4096; {THREADS} \
         threads decode, on {} cores. Making them took {write_s:.0} s.\n",
        (rows as usize * WIDTH * 2) as f64 / 1e9,
        std::thread::available_parallelism()?,
    );
    println!("| | rows/s |");
    println!("|---|---|");
    println!("| the loader, from start to end | {:.0} |", figures.rows_per_s);
    println!(
        "| the loader, training part of a 1 % hold-out, with the same data again | {:.0} |",
        figures.split_rows_per_s
    );
    println!("| the paper's training on its GPU, L = 23 | {PAPER_ROWS_PER_S:.0} |\n");
    println!(
        "First batch after {:.0} ms. Peak memory: {:.0} MB after a tenth of the rows, {:.0} MB after half, {:.0} MB at the end.\n",
        figures.first_batch_ms, figures.peak_mb[0], figures.peak_mb[1], figures.peak_mb[2]
    );
    let figures = json!({
        "rows": rows,
        "rows_per_s": figures.rows_per_s.round(),
        "split_rows_per_s": figures.split_rows_per_s.round(),
        "times_paper_gpu": (figures.rows_per_s / PAPER_ROWS_PER_S).round(),
        "peak_mb": figures.peak_mb[2].round(),
        "peak_mb_at_half": figures.peak_mb[1].round(),
        "first_batch_ms": figures.first_batch_ms.round(),
        "threads": THREADS,
        "seed": SEED,
    });
    println!("{figures}");
    Ok(())
}

/// One shard with embeddings of random numbers in [−1, 1), and copies of it: what a file holds
/// is all the same to the loader, and half-precision numbers take long to write. Copies are files
/// of their own, on the disk and in the system's memory.
fn write(directory: &Path, rows: u64) -> Result<()> {
    // Under another name until it is whole, so that `--keep` never leaves half a data set.
    let partial = directory.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let layout =
        Layout { encoder: "synthetic".to_owned(), width: WIDTH, views: 1, numbers: Numbers::F16 };
    let mut writer = ShardWriter::create(&partial, layout, Default::default())?;
    for row in 0..rows / SHARDS {
        let embedding: Vec<f32> =
            (0..WIDTH).map(|_| rng.next_u32() as f32 / (1_u32 << 31) as f32 - 1.0).collect();
        writer.write(&format!("synthetic/{row:09}"), uniform_place(&mut rng), &embedding)?;
    }
    ensure!(writer.finish()?.shards == 1, "one shard was to be written");
    for copy in 1..SHARDS {
        let name = |number| partial.join(format!("shard-{number:05}.parquet"));
        fs::copy(name(0), name(copy))?;
    }
    Ok(fs::rename(partial, directory)?)
}

struct Figures {
    rows_per_s: f64,
    split_rows_per_s: f64,
    first_batch_ms: f64,
    /// After a tenth of the rows, half, all.
    peak_mb: [f64; 3],
}

fn stream(directory: &Path, rows: u64) -> Result<Figures> {
    let set = Dataset::open(&directory.display().to_string(), OnBadShard::Fail)?;
    ensure!(set.rows() == rows, "{} rows were written, not {rows}", set.rows());
    let options = StreamOptions {
        batch: BATCH,
        seed: SEED,
        epochs: Some(1),
        threads: THREADS,
        ..Default::default()
    };
    // The peak so far is that of writing.
    fs::write("/proc/self/clear_refs", "5").context("cannot reset the peak of memory")?;
    let began = Instant::now();
    let mut stream = set.stream(options.clone())?;
    let (mut first_batch_ms, mut peak_mb) = (0.0, [0.0; 3]);
    while let Some(batch) = stream.next() {
        ensure!(batch?.embeddings.iter().step_by(WIDTH).all(|number| number.abs() <= 1.0));
        let delivered = stream.position().tally().delivered;
        if delivered <= BATCH as u64 {
            first_batch_ms = began.elapsed().as_secs_f64() * 1e3;
        }
        for (peak, share) in peak_mb.iter_mut().zip([10, 2, 1]) {
            if *peak == 0.0 && delivered >= rows / share {
                *peak = peak_memory_mb()?;
            }
        }
    }
    let rows_per_s = rows as f64 / began.elapsed().as_secs_f64();
    ensure!(stream.position().tally().delivered == rows, "rows are missing");
    // A stream that ends early, so that this takes not as long again.
    let part = Part::Train(Split { share: 0.01, seed: SEED });
    let some = set.stream(StreamOptions { part, ..options })?;
    let split_rows_per_s = speed_of(some, rows / 4)?;
    Ok(Figures { rows_per_s, split_rows_per_s, first_batch_ms, peak_mb })
}

fn speed_of(mut stream: Stream, rows: u64) -> Result<f64> {
    let began = Instant::now();
    while stream.position().tally().delivered < rows {
        stream.next().context("the stream ends early")??;
    }
    Ok(stream.position().tally().delivered as f64 / began.elapsed().as_secs_f64())
}

fn peak_memory_mb() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no VmHWM")?;
    Ok(kib.parse::<f64>()? * 1024.0 / 1e6)
}
