//! How fast is the sphere, in ratios to what others would use, measured in the same run?
//!
//! One core, one thread. Each pair of things is measured in turns, and the ratio is that of
//! the medians, because these machines are shared. scipy is timed by `scipy_encode.py`, which
//! answers one line per request, so that it takes part in the turns.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use locdiff_experiments::{Dense, multiply, round, standard_normal};
use locdiff_sphere::{Anchors, Basis, Decoder, Grid, Transform, uniform_place};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

const MAX_DEGREE: usize = 47;

fn main() -> Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let turns = if quick { 5 } else { 15 };
    let mut figures = json!({ "n": turns });
    println!("# Speed of the sphere\n\nL = {MAX_DEGREE}, one core, medians of {turns} turns.\n");
    encoding(turns, &mut figures)?;
    synthesis(turns, &mut figures);
    decoding(turns, if quick { 200_000 } else { 1_000_000 }, &mut figures);
    println!("\n{figures}");
    Ok(())
}

fn encoding(turns: usize, figures: &mut serde_json::Value) -> Result<()> {
    // As for scipy, the best of a small and a large batch counts: the first stays in the
    // cache, the second must go to memory.
    const SIZES: [usize; 2] = [50, 2000];
    let basis = Basis::new(MAX_DEGREE);
    let anchors = Anchors::fibonacci(SIZES[1]);
    let mut wide = vec![0.0_f64; SIZES[1] * basis.len()];
    let mut narrow = vec![0.0_f32; SIZES[1] * basis.len()];
    let mut scipy = Scipy::start()?;
    let mut times = [const { Vec::new() }; 5];
    for _ in 0..turns {
        for (index, size) in SIZES.into_iter().enumerate() {
            let places = &anchors.places()[..size];
            let entries = size * basis.len();
            let repeats = SIZES[1] / size;
            let each = |work: &mut dyn FnMut()| {
                seconds(|| (0..repeats).for_each(|_| work())) / SIZES[1] as f64
            };
            times[index].push(each(&mut || basis.encode_into(places, &mut wide[..entries])));
            times[2 + index].push(each(&mut || basis.encode_into(places, &mut narrow[..entries])));
        }
        times[4].push(scipy.seconds()?);
    }
    let [small, large, small_f32, large_f32, scipy] = times.map(|times| median(times) * 1e6);
    println!("| encoding | µs per place, batch of {} | {} |\n|---|---|---|", SIZES[0], SIZES[1]);
    println!(
        "| ours, f64 | {small:.2} | {large:.2} |\n| ours, f32 | {small_f32:.2} | {large_f32:.2} |"
    );
    println!("| scipy `sph_harm_y_all`, vectorised, best of several batches | {scipy:.1} | |\n");
    figures["encode_us"] = json!(round(small.min(large)));
    figures["encode_f32_us"] = json!(round(small_f32.min(large_f32)));
    figures["encode_over_scipy"] = json!(round(scipy / small.min(large)));
    Ok(())
}

/// scipy in a process of its own, timed from within.
struct Scipy {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Scipy {
    fn start() -> Result<Scipy> {
        let python = std::env::var("LOCDIFF_PYTHON").context(
            "LOCDIFF_PYTHON names no Python with scipy: start this by experiments/run sphere-speed",
        )?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/speed/sphere-speed/scipy_encode.py");
        let mut process = Command::new(&python)
            .args([script, &MAX_DEGREE.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {python}"))?;
        let requests = process.stdin.take().context("no stdin")?;
        let answers = BufReader::new(process.stdout.take().context("no stdout")?);
        Ok(Scipy { process, requests, answers })
    }

    fn seconds(&mut self) -> Result<f64> {
        writeln!(self.requests, "go")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        line.trim().parse().with_context(|| format!("scipy answered `{line}`"))
    }
}

impl Drop for Scipy {
    fn drop(&mut self) {
        // Errors here change no figure.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn synthesis(turns: usize, figures: &mut serde_json::Value) {
    const BATCH: usize = 64;
    let grid = Grid::new(192, 192);
    let basis = Basis::new(MAX_DEGREE);
    let size = basis.len();
    let points: Vec<_> =
        (0..grid.len()).map(|point| grid.place(point / 192, point % 192)).collect();
    let mut harmonics = vec![0.0_f32; points.len() * size];
    basis.encode_into(&points, &mut harmonics);
    let coefficients = noise(BATCH * size);
    let transform = Transform::<f32>::new(grid, MAX_DEGREE);
    let mut values = vec![0.0_f32; BATCH * points.len()];
    let mut dense = vec![0.0_f32; BATCH * points.len()];
    let mut back = vec![0.0_f32; BATCH * size];
    // The dense matrix in both orders: [points, size] and [size, points].
    let transposed: Vec<f32> = (0..size * points.len())
        .map(|entry| harmonics[entry % points.len() * size + entry / points.len()])
        .collect();
    let rows = Dense { entries: &harmonics, row: 1, column: size };
    let columns = Dense { entries: &transposed, row: points.len(), column: 1 };
    let mut times = [const { Vec::new() }; 6];
    for _ in 0..turns {
        times[0].push(seconds(|| transform.synthesize_into(&coefficients, &mut values)));
        times[1].push(seconds(|| transform.analyze_into(&values, &mut back)));
        // [batch, points] = [batch, size] · [size, points], by both crates and in both orders.
        let shape = [BATCH, points.len(), size];
        times[2].push(seconds(|| multiply(&mut dense, &coefficients, rows, shape)));
        times[3].push(seconds(|| multiply(&mut dense, &coefficients, columns, shape)));
        times[4].push(seconds(|| by_matrixmultiply(&mut dense, &coefficients, rows, shape)));
        times[5].push(seconds(|| by_matrixmultiply(&mut dense, &coefficients, columns, shape)));
    }
    let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let difference = values.iter().zip(&dense).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(difference < 1e-4 * largest, "the two products differ by {difference} of {largest}");
    let [ours, analysis, dense @ ..] = times.map(|times| median(times) * 1e3);
    println!("| 192 × 192 grid, batch {BATCH}, f32 | ms |\n|---|---|");
    println!("| our synthesis | {ours:.2} |\n| our analysis | {analysis:.2} |");
    let names = [
        "gemm, by rows",
        "gemm, by columns",
        "matrixmultiply, by rows",
        "matrixmultiply, by columns",
    ];
    for (name, time) in names.iter().zip(dense) {
        println!("| dense product, crate {name} | {time:.1} |");
    }
    println!();
    figures["synthesis_ms"] = json!(round(ours));
    figures["synthesis_over_gemm"] =
        json!(round(dense.into_iter().fold(f64::INFINITY, f64::min) / ours));
}

fn decoding(turns: usize, anchor_count: usize, figures: &mut serde_json::Value) {
    const BATCH: usize = 512;
    const DENSE_BATCH: usize = 64;
    let basis = Basis::new(MAX_DEGREE);
    let size = basis.len();
    // Noisy encodings, as in sphere-drift: what a sampler hands to the decoder.
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let places: Vec<_> = (0..BATCH).map(|_| uniform_place(&mut rng)).collect();
    let mut encodings = vec![0.0_f32; BATCH * size];
    basis.encode_into(&places, &mut encodings);
    for (c, noise) in encodings.iter_mut().zip(noise(BATCH * size)) {
        *c += 0.1 * noise;
    }
    let anchors = Anchors::fibonacci(anchor_count);
    let mut harmonics = vec![0.0_f32; anchor_count * size];
    basis.encode_into(anchors.places(), &mut harmonics);
    let dense_anchors = Dense { entries: &harmonics, row: 1, column: size };
    let decoder = Decoder::new(MAX_DEGREE);
    let mut values = vec![0.0_f32; DENSE_BATCH * anchor_count];
    let mut times = [const { Vec::new() }; 4];
    for turn in 0..turns {
        let one = &encodings[turn * size..(turn + 1) * size];
        let mut peak = None;
        times[0].push(seconds(|| peak = decoder.modes_of_batch(one, 1).pop()));
        let mut best = 0;
        times[1].push(seconds(|| {
            multiply(&mut values, one, dense_anchors, [1, anchor_count, size]);
            best = argmax(&values[..anchor_count]);
        }));
        let apart = peak.unwrap()[0].place.distance_km(anchors.places()[best]);
        assert!(apart < 150.0, "the two decoders are {apart} km apart");
        times[2].push(seconds(|| {
            let peaks = decoder.modes_of_batch(&encodings, 1);
            assert_eq!(peaks.len(), BATCH);
        }));
        // The paper's decoder at its best: many vectors share one pass over the anchors.
        if turn < 3 {
            times[3].push(seconds(|| {
                let shape = [DENSE_BATCH, anchor_count, size];
                multiply(&mut values, &encodings[..DENSE_BATCH * size], dense_anchors, shape);
                for row in values.chunks_exact(anchor_count) {
                    std::hint::black_box(argmax(row));
                }
            }));
        }
    }
    // Smaller sets in --quick, extrapolated: the cost is proportional to the anchors.
    let per_million = 1e6 / anchor_count as f64;
    let [one, dense, batch, dense_batch] = times.map(|times| median(times) * 1e3);
    let (dense, dense_batch) =
        (dense * per_million, dense_batch * per_million / DENSE_BATCH as f64);
    let each = batch / BATCH as f64;
    println!("| decoding | ms per vector |\n|---|---|");
    println!("| ours, one vector | {one:.3} |\n| ours, batch {BATCH} | {each:.3} |");
    println!("| paper, 1M anchors, one vector (n = {anchor_count}) | {dense:.1} |");
    println!("| paper, 1M anchors, batch {DENSE_BATCH} (n = {anchor_count}) | {dense_batch:.1} |");
    figures["anchors_measured"] = json!(anchor_count);
    figures["decode_ms"] = json!(round(one));
    figures["decode_over_anchors"] = json!(round(dense / one));
    figures["decode_over_anchors_batched"] = json!(round(dense_batch / each));
    figures["decode_batch_512_ms"] = json!(round(batch));
}

fn argmax(values: &[f32]) -> usize {
    let indexed = values.iter().enumerate();
    let best =
        indexed.fold(
            (0, f32::NEG_INFINITY),
            |best, (index, &value)| {
                if value > best.1 { (index, value) } else { best }
            },
        );
    best.0
}

/// The same product by the other widely used crate.
fn by_matrixmultiply(out: &mut [f32], a: &[f32], b: Dense<'_>, [m, n, k]: [usize; 3]) {
    assert!(out.len() >= m * n && a.len() >= m * k && b.entries.len() >= n * k);
    #[expect(unsafe_code, reason = "matrixmultiply's only interface takes pointers")]
    // SAFETY: the strides stay inside the slices, by the assertion above.
    unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            a.as_ptr(),
            k as isize,
            1,
            b.entries.as_ptr(),
            b.row as isize,
            b.column as isize,
            0.0,
            out.as_mut_ptr(),
            n as isize,
            1,
        );
    }
}

fn noise(count: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    (0..count).map(|_| standard_normal(&mut rng) as f32).collect()
}

fn seconds(mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
