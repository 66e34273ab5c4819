//! Our side of `experiments/speed/encoder-speed` and `experiments/parity/encoder-parity`; the Python scripts
//! there call it and put the others beside it. Each command prints one JSON object.
//!
//! - `encoders embed MODEL PIXELS.safetensors`: the embeddings of the tensor `pixels`
//!   `[n, 3, size, size]`;
//! - `encoders photos MODEL PHOTO...`: the embeddings of photographs, from the file on;
//! - `encoders time MODEL PIXELS.safetensors SECONDS`: milliseconds per picture, on rayon's
//!   threads (`RAYON_NUM_THREADS`);
//! - `encoders decode SECONDS MODEL PHOTO...`: milliseconds to read and prepare a photograph, exactly
//!   and by scaled decoding, on one thread, and how alike the model's embeddings of both are.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use burn::tensor::Device;
use locdiff::Photo;
use locdiff::encoders::{Embedder, ImageEncoder};
use locdiff::photo::{Preprocessing, ReadOptions};
use locdiff_experiments::keep_freed_memory;
use safetensors::SafeTensors;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    keep_freed_memory(); // as `locdiff embed` does
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = match arguments[..] {
        ["embed", model, pixels] => {
            let encoder = ImageEncoder::open(Path::new(model), &Device::flex())?;
            let embeddings = encoder.embed_pixels(read_pixels(pixels)?);
            json!({ "width": encoder.width(), "embeddings": embeddings })
        }
        ["photos", model, ref photos @ ..] => {
            let encoder = ImageEncoder::open(Path::new(model), &Device::flex())?;
            let mut embeddings = Vec::new();
            for photo in photos {
                embeddings.extend(encoder.embed_photo(&Photo::open(photo)?));
            }
            json!({ "width": encoder.width(), "embeddings": embeddings })
        }
        ["time", model, pixels, seconds] => {
            let encoder = ImageEncoder::open(Path::new(model), &Device::flex())?;
            let pixels = read_pixels(pixels)?;
            let each = encoder.preprocessing().len();
            let count = pixels.len() / each;
            let seconds: f64 = seconds.parse()?;
            let batch = time(seconds, || encoder.embed_pixels(pixels.clone())) / count as f64;
            let single = time(seconds, || encoder.embed_pixels(pixels[..each].to_vec()));
            json!({ "batch_ms": 1e3 * batch, "single_ms": 1e3 * single, "pictures": count })
        }
        ["decode", seconds, model, ref photos @ ..] => decode(seconds.parse()?, model, photos)?,
        _ => bail!("see the head of main.rs"),
    };
    println!("{answer}");
    Ok(())
}

fn read_pixels(path: &str) -> Result<Vec<f32>> {
    let bytes = std::fs::read(path).with_context(|| path.to_owned())?;
    let file = SafeTensors::deserialize(&bytes)?;
    let (numbers, _) = file.tensor("pixels")?.data().as_chunks();
    Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
}

/// Seconds, the median of repeated calls.
fn time<R>(seconds: f64, mut work: impl FnMut() -> R) -> f64 {
    work();
    let began = Instant::now();
    let mut laps = Vec::new();
    while laps.len() < 2 || began.elapsed().as_secs_f64() < seconds {
        let lap = Instant::now();
        std::hint::black_box(work());
        laps.push(lap.elapsed().as_secs_f64());
    }
    laps.sort_by(f64::total_cmp);
    laps[laps.len() / 2]
}

fn decode(seconds: f64, model: &str, photos: &[&str]) -> Result<serde_json::Value> {
    let encoder = ImageEncoder::open(Path::new(model), &Device::flex())?;
    let preprocessing = Preprocessing::CLIP;
    let exact = ReadOptions::default();
    let fast = ReadOptions { fast_decode: Some(preprocessing.shortest_side), ..exact.clone() };
    let mut rows = Vec::new();
    for path in photos {
        let bytes = std::fs::read(path).with_context(|| (*path).to_owned())?;
        let prepare = |options: &ReadOptions| -> Result<Vec<f32>> {
            Ok(preprocessing.apply(&Photo::decode(&bytes, options)?))
        };
        let embedding = |options: &ReadOptions| -> Result<Vec<f32>> {
            let least = encoder.preprocessing().shortest_side;
            let fast_decode = options.fast_decode.map(|_| least);
            let options = ReadOptions { fast_decode, ..options.clone() };
            Ok(encoder.embed_photo(&Photo::decode(&bytes, &options)?))
        };
        rows.push(json!({
            "exact_ms": 1e3 * time(seconds, || prepare(&exact)),
            "fast_ms": 1e3 * time(seconds, || prepare(&fast)),
            "fast_cosine": cosine(&embedding(&exact)?, &embedding(&fast)?),
        }));
    }
    Ok(json!({ "photos": rows }))
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
