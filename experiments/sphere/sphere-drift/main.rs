//! How far off is a decoded place when its encoding is a little noisy?
//!
//! The paper's perturbation test (L = 47, noise of variance 0.01 on every coefficient) for
//! the continuous decoder and for the paper's decoders over evenly spaced anchors. The paper
//! reports a *drift*, between the decodings of the clean and of the noisy encoding, which
//! says nothing about the error to the truth: we report both. Like the paper's decoding
//! anchors, ours are evenly spaced (its loss redraws random ones).
//!
//! `--quick` takes 100 places instead of 2,000.

use std::f64::consts::PI;

use anyhow::Result;
use locdiff_experiments::{Dense, multiply, round, standard_normal};
use locdiff_sphere::{
    AnchorDecoder, Anchors, Basis, Decoder, EARTH_RADIUS_KM, LatLon, uniform_place,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

const MAX_DEGREE: usize = 47;
const VARIANCE: f64 = 0.01;
const SEED: u64 = 47;
/// Window of the mode-seeking decoder, besides 0: the best anchor.
const RADIUS_KM: f64 = 100.0;
/// Anchors this far below the best one (in nats, beyond ln N) change no sum.
const NEGLIGIBLE_NATS: f64 = 23.0;

/// One vector per place: first all clean encodings, then all noisy ones.
struct Vectors {
    places: Vec<LatLon>,
    /// `[2 · places, coefficients]`
    matrix: Vec<f32>,
}

fn main() -> Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let count = if quick { 100 } else { 2000 };
    let vectors = vectors(count);
    let bound_km = bound_km();
    println!("# Drift of decoded places under noise\n");
    println!(
        "L = {MAX_DEGREE}, variance {VARIANCE}, n = {count} places, uniform on the sphere. Mean distances in km. \
         Cramér-Rao bound on the mean error: {bound_km:.3} km.\n"
    );
    println!("| decoder | anchors | error, clean | error, noisy | drift clean → noisy |");
    println!("|---|---|---|---|---|");
    let decoder = Decoder::new(MAX_DEGREE);
    let decoded = decoder.modes_of_batch(&vectors.matrix, 1);
    let decoded: Vec<LatLon> = decoded.iter().map(|peaks| peaks[0].place).collect();
    let continuous = report("continuous (ours)", "none", &vectors.places, &decoded);
    let mut figures = json!({
        "n": count,
        "seed": SEED,
        "error_km": round(continuous.error_km),
        "drift_km": round(continuous.drift_km),
        "bound_km": round(bound_km),
    });
    for (anchors, name) in [(21_000, "21k"), (100_000, "100k"), (1_000_000, "1m")] {
        let [mode, windowed, kl] = paper_decodings(&vectors, anchors, &decoder);
        let mode = report("paper, mode-seeking, ρ → 0", name, &vectors.places, &mode);
        let window = format!("paper, mode-seeking, ρ = {RADIUS_KM} km");
        report(&window, name, &vectors.places, &windowed);
        report("paper, KL (closed form)", name, &vectors.places, &kl);
        figures[format!("anchors_{name}_error_km")] = json!(round(mode.error_km));
        figures[format!("anchors_{name}_drift_km")] = json!(round(mode.drift_km));
    }
    println!("\n{figures}");
    Ok(())
}

fn vectors(count: usize) -> Vectors {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let places: Vec<LatLon> = (0..count).map(|_| uniform_place(&mut rng)).collect();
    let basis = Basis::new(MAX_DEGREE);
    let mut matrix = vec![0.0; 2 * count * basis.len()];
    let (clean, noisy) = matrix.split_at_mut(count * basis.len());
    basis.encode_into(&places, clean);
    for (noisy, clean) in noisy.iter_mut().zip(clean) {
        *noisy = *clean + (VARIANCE.sqrt() * standard_normal(&mut rng)) as f32;
    }
    Vectors { places, matrix }
}

/// Mean error at the Cramér-Rao bound: the Fisher information per axis is
/// Σ_lm (∂Y_lm)² / variance = Σ_l l(l+1)(2l+1) / 8π / variance, which bounds the mean square;
/// the length of a two-dimensional normal error of that size has mean σ·√(π/2).
fn bound_km() -> f64 {
    let degrees = 1..=MAX_DEGREE;
    let slopes: f64 = degrees.map(|l| (l * (l + 1) * (2 * l + 1)) as f64 / (8.0 * PI)).sum();
    (VARIANCE / slopes).sqrt() * EARTH_RADIUS_KM * (PI / 2.0).sqrt()
}

/// The published decoders over evenly spaced anchors: mode with ρ → 0, mode with a window,
/// and KL, for every vector.
fn paper_decodings(vectors: &Vectors, anchors: usize, decoder: &Decoder) -> [Vec<LatLon>; 3] {
    let anchors = AnchorDecoder::new(MAX_DEGREE, Anchors::fibonacci(anchors));
    let hot = hot_anchors(vectors, anchors.anchors().places());
    let mut values = vec![f64::NEG_INFINITY; anchors.anchors().len()];
    let mut decodings = [const { Vec::new() }; 3];
    for hot in hot {
        for &(anchor, value) in &hot {
            values[anchor] = f64::from(value);
        }
        decodings[0].push(anchors.mode_from_values(&values, 0.0));
        decodings[1].push(anchors.mode_from_values(&values, RADIUS_KM));
        decodings[2].push(anchors.kl_from_values(&values, decoder));
        for (anchor, _) in hot {
            values[anchor] = f64::NEG_INFINITY;
        }
    }
    decodings
}

/// For each vector, the anchors whose value of F is high enough to matter: the whole dense
/// product is computed, on two threads, but only this part of it is kept.
fn hot_anchors(vectors: &Vectors, places: &[LatLon]) -> Vec<Vec<(usize, f32)>> {
    let margin = (places.len() as f64).ln() + NEGLIGIBLE_NATS;
    // A bound on the best value from below, so that few anchors are kept on the way to it.
    let mut best = vec![f32::NEG_INFINITY; 2 * vectors.places.len()];
    let some: Vec<LatLon> = places.iter().step_by(64).copied().collect();
    for_each_row(vectors, &some, |_, values| {
        best.iter_mut().zip(values).for_each(|(best, value)| *best = best.max(*value));
    });
    let hot_among = |places: &[LatLon], offset: usize| {
        let mut best = best.clone();
        let mut hot = vec![Vec::new(); best.len()];
        for_each_row(vectors, places, |row, values| {
            for ((hot, best), &value) in hot.iter_mut().zip(&mut best).zip(values) {
                if f64::from(*best - value) < margin {
                    hot.push((offset + row, value));
                    *best = best.max(value);
                }
            }
        });
        hot
    };
    let (first, second) = places.split_at(places.len() / 2);
    let (mut hot, rest) = std::thread::scope(|scope| {
        let hot = scope.spawn(|| hot_among(first, 0));
        let rest = hot_among(second, first.len());
        (hot.join().expect("no panic in the product"), rest)
    });
    for (hot, rest) in hot.iter_mut().zip(rest) {
        hot.extend(rest);
        let best = hot.iter().map(|entry| entry.1).fold(f32::NEG_INFINITY, f32::max);
        hot.retain(|entry| f64::from(best - entry.1) < margin);
    }
    hot
}

/// Calls `visit(anchor, values)` with the values of all vectors' F at each anchor.
fn for_each_row(vectors: &Vectors, places: &[LatLon], mut visit: impl FnMut(usize, &[f32])) {
    const BLOCK: usize = 512;
    let basis = Basis::new(MAX_DEGREE);
    let (size, columns) = (basis.len(), 2 * vectors.places.len());
    let mut harmonics = vec![0.0_f32; BLOCK * size];
    let mut product = vec![0.0_f32; BLOCK * columns];
    for (number, block) in places.chunks(BLOCK).enumerate() {
        basis.encode_into(block, &mut harmonics[..block.len() * size]);
        // product[anchor, vector] = harmonics[anchor, ·] · matrix[vector, ·]
        let matrix = Dense { entries: &vectors.matrix, row: 1, column: size };
        multiply(&mut product, &harmonics, matrix, [block.len(), columns, size]);
        for (row, values) in product.chunks_exact(columns).take(block.len()).enumerate() {
            visit(number * BLOCK + row, values);
        }
    }
}

struct Distances {
    error_km: f64,
    drift_km: f64,
}

fn report(name: &str, anchors: &str, truth: &[LatLon], decoded: &[LatLon]) -> Distances {
    let (clean, noisy) = decoded.split_at(truth.len());
    let mean = |a: &[LatLon], b: &[LatLon]| {
        a.iter().zip(b).map(|(a, b)| a.distance_km(*b)).sum::<f64>() / a.len() as f64
    };
    let (clean_error, error_km, drift_km) =
        (mean(clean, truth), mean(noisy, truth), mean(clean, noisy));
    println!("| {name} | {anchors} | {clean_error:.3} | {error_km:.3} | {drift_km:.3} |");
    Distances { error_km, drift_km }
}
