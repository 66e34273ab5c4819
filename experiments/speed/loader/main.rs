//! How fast, and in how much memory, does the loader stream ten million rows?
//!
//! Synthetic rows of 768 half-precision numbers, in 40 shards, are streamed in shuffled batches of
//! 512, by two threads that decode and one that makes batches. The consumer adds up the first
//! number of each row; the sum must be that of what was written.
//!
//! Files that have just been written are still in the system's memory, and reading them says
//! nothing about the disk. So the files (and no others) are dropped from it by `dd` before the
//! first pass, which gives `rows_per_s`; the second pass finds what the first left there. A virtual
//! disk may have a cache of its own outside of the machine, which nobody in here can drop.
//!
//! Memory is the process's own peak in the first pass, without what the system keeps of files. It
//! is flat if later passes add nothing. `--quick` takes 200,000 rows.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use locdiff::encoders::EncoderRecord;
use locdiff_sphere::LatLon;
use locdiff_train::{
    Dataset, Layout, Numbers, OnBadShard, Part, Plan, ShardWriter, Split, StreamOptions,
    TrainingConfig,
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
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    let began = Instant::now();
    let sum = write(&directory, rows)?;
    let write_s = began.elapsed().as_secs_f64();
    let set = Dataset::open(&directory.display().to_string(), OnBadShard::Fail)?;
    ensure!(set.rows() == rows, "{} rows were written, not {rows}", set.rows());
    let forgotten = forget(&directory)?;
    // The peak so far is that of writing.
    fs::write("/proc/self/clear_refs", "5").context("cannot reset the peak of memory")?;
    let first = stream(&set, Part::All, sum)?;
    let second = stream(&set, Part::All, sum)?;
    let split = Part::Train(Split { share: 0.01, seed: SEED });
    let train = stream(&set, split, f64::NAN)?;
    fs::remove_dir_all(&directory)?;
    let ours = training_rows_per_s("configs/likelihood-l23.toml")?;
    let paper = training_rows_per_s("configs/paper-l23.toml")?;
    println!("# The loader\n");
    println!(
        "{rows} rows of {WIDTH} × f16, {:.1} GB, batches of {BATCH} shuffled within 16 row groups; {THREADS} threads \
         decode, on {} cores. Making the files took {write_s:.0} s.\n",
        (rows as usize * WIDTH * 2) as f64 / 1e9,
        std::thread::available_parallelism()?,
    );
    println!("| | rows/s |");
    println!("|---|---|");
    let cold = if forgotten { "from the disk" } else { "NOT from the disk: dd is missing" };
    println!("| the loader, first pass, {cold} | {:.0} |", first.rows_per_s);
    println!(
        "| the loader, second pass, files in memory as far as they fit | {:.0} |",
        second.rows_per_s
    );
    println!("| the same, without the 1 % held out by a split | {:.0} |", train.rows_per_s);
    println!("| what training consumes here, L = 23, `configs/likelihood-l23.toml` | {ours:.0} |");
    println!("| the same, `configs/paper-l23.toml` | {paper:.0} |");
    println!("| the paper's training on its GPU, L = 23 | {PAPER_ROWS_PER_S:.0} |\n");
    println!(
        "First batch after {:.0} ms. Peak memory: {:.0} MB after a tenth of the rows, {:.0} MB after half, {:.0} MB at the end; {:.0} MB after \
         the second pass, {:.0} MB after the third.\n",
        first.first_batch_ms,
        first.peak_mb[0],
        first.peak_mb[1],
        first.peak_mb[2],
        second.end_peak_mb,
        train.end_peak_mb
    );
    let figures = json!({
        "rows": rows,
        "rows_per_s": first.rows_per_s.round(),
        "from_disk": forgotten,
        "second_pass_rows_per_s": second.rows_per_s.round(),
        "split_rows_per_s": train.rows_per_s.round(),
        "training_rows_per_s": ours.round(),
        "paper_training_rows_per_s": paper.round(),
        "times_paper_gpu": (first.rows_per_s / PAPER_ROWS_PER_S).round(),
        "peak_mb": first.peak_mb[2].round(),
        "peak_mb_after_three_passes": train.end_peak_mb.round(),
        "peak_mb_at_half": first.peak_mb[1].round(),
        "first_batch_ms": first.first_batch_ms.round(),
        "threads": THREADS,
        "seed": SEED,
    });
    println!("{figures}");
    Ok(())
}

/// What a step of training takes, as `locdiff train --plan` measures it.
fn training_rows_per_s(config: &str) -> Result<f64> {
    let config = TrainingConfig::read(Path::new(config))?;
    Ok(Plan::measure(&config, WIDTH, None, &Device::flex(), None)?.rows_per_s)
}

/// One shard with embeddings of random numbers in [−1, 1), and copies of it: what a file holds
/// is all the same to the loader, and half-precision numbers take long to write. Copies are files
/// of their own. Gives the sum of the first numbers of all rows.
fn write(directory: &Path, rows: u64) -> Result<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let layout = Layout {
        encoder: EncoderRecord::of_identity("synthetic"),
        width: WIDTH,
        views: 1,
        numbers: Numbers::F16,
    };
    let mut writer = ShardWriter::create(directory, layout, Default::default())?;
    // Multiples of 2⁻¹⁰, which half precision holds exactly.
    let mut number = || f32::from((rng.next_u32() >> 21) as i16 - 1024) / 1024.0;
    let mut sum = 0.0;
    let mut embedding = [0.0; WIDTH];
    for row in 0..rows / SHARDS {
        embedding.fill_with(&mut number);
        sum += f64::from(embedding[0]);
        let place = LatLon::new(90.0 * f64::from(number()), 180.0 * f64::from(number()))?;
        writer.write(&format!("synthetic/{row:09}"), place, &embedding)?;
    }
    ensure!(writer.finish()?.shards == 1, "one shard was to be written");
    let name = |number| directory.join(format!("shard-{number:05}.parquet"));
    for copy in 1..SHARDS {
        fs::copy(name(0), name(copy))?;
    }
    Ok(sum * SHARDS as f64)
}

/// Makes the system drop the files from its memory; false where there is no `dd` that can.
fn forget(directory: &Path) -> Result<bool> {
    let mut forgotten = true;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // Only what is on the disk can be dropped.
        File::open(&path)?.sync_all()?;
        let input = format!("if={}", path.display());
        let status =
            Command::new("dd").args([&input, "iflag=nocache", "count=0", "status=none"]).status();
        forgotten &= status.is_ok_and(|status| status.success());
    }
    Ok(forgotten)
}

struct Figures {
    rows_per_s: f64,
    first_batch_ms: f64,
    /// After a tenth of the rows, half, all.
    peak_mb: [f64; 3],
    /// Of all passes so far.
    end_peak_mb: f64,
}

/// One epoch. All rows must be accounted for; their first numbers add up to `sum`, if it is known.
fn stream(set: &Dataset, part: Part, sum: f64) -> Result<Figures> {
    let epochs = Some(1);
    let options = StreamOptions {
        batch: BATCH,
        seed: SEED,
        epochs,
        threads: THREADS,
        part,
        ..Default::default()
    };
    let began = Instant::now();
    let mut stream = set.stream(options)?;
    let (mut first_batch_ms, mut peak_mb, mut found) = (0.0, [0.0; 3], 0.0);
    while let Some(batch) = stream.next() {
        found += batch?.embeddings.iter().step_by(WIDTH).map(|x| f64::from(*x)).sum::<f64>();
        let delivered = stream.position().tally().delivered;
        if delivered <= BATCH as u64 {
            first_batch_ms = began.elapsed().as_secs_f64() * 1e3;
        }
        for (peak, share) in peak_mb.iter_mut().zip([10, 2, 1]) {
            if *peak == 0.0 && delivered >= set.rows() / share {
                *peak = peak_memory_mb()?;
            }
        }
    }
    let tally = stream.position().tally();
    let rows_per_s = tally.delivered as f64 / began.elapsed().as_secs_f64();
    ensure!(tally.delivered + tally.held_out == set.rows(), "rows are missing: {tally:?}");
    ensure!(sum.is_nan() || (found - sum).abs() < 1e-6, "numbers add up to {found}, not {sum}");
    Ok(Figures { rows_per_s, first_batch_ms, peak_mb, end_peak_mb: peak_memory_mb()? })
}

fn peak_memory_mb() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no VmHWM")?;
    Ok(kib.parse::<f64>()? * 1024.0 / 1e6)
}
