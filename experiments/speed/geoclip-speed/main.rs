//! GeoCLIP's places: encoding them, loading them, asking them; and logits of pictures for geoclip-parity.
//!
//! `geoclip speed WHEEL ROUNDS` prints times as JSON; `geoclip logits HOME OUT PICTURE…` writes the logits of all places
//! for each picture, f32, one picture after the other.

use std::path::Path;
use std::time::Instant;

use burn::tensor::Device;
use locdiff::locate::Decode;
use locdiff::models::geoclip::{EmbeddedPlaces, GeoClip, GeoClipLocator};
use locdiff::photo::Crops;
use locdiff::{ModelHome, OpenOptions, Photo, Summary};
use locdiff_sphere::{Kernel, PointMasses};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    locdiff_experiments::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["speed", wheel, rounds] => speed(Path::new(wheel), rounds.parse()?),
        ["logits", home, out, pictures @ ..] => logits(home, Path::new(out), pictures),
        _ => anyhow::bail!("see the head of main.rs"),
    }
}

fn logits(home: &str, out: &Path, pictures: &[&str]) -> anyhow::Result<()> {
    let home = ModelHome::at(home);
    let directory = home.model("geoclip");
    let options = OpenOptions { home: Some(home), ..OpenOptions::default() };
    let locator = GeoClipLocator::open(&directory, false, &options, &mut |_, _| {})?;
    let mut bytes = Vec::new();
    for picture in pictures {
        for logits in locator.logits(&[Photo::open(picture)?], &Crops::Single) {
            bytes.extend(logits.iter().flat_map(|logit| logit.to_le_bytes()));
        }
    }
    Ok(std::fs::write(out, bytes)?)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn speed(wheel: &Path, rounds: usize) -> anyhow::Result<()> {
    let geoclip = GeoClip::import(wheel, &Device::flex())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("places.bin");
    let began = Instant::now();
    let places = EmbeddedPlaces::encode(&geoclip.location_encoder, &geoclip.gallery, &mut |_| {});
    let encode_s = began.elapsed().as_secs_f64();
    places.write(&path, "speed")?;

    let load_ms = median(
        (0..rounds)
            .map(|_| {
                let began = Instant::now();
                let read = EmbeddedPlaces::read(&path, "speed", geoclip.gallery.len());
                let ms = began.elapsed().as_secs_f64() * 1e3;
                assert_eq!(read.as_ref(), Some(&places));
                ms
            })
            .collect(),
    );

    // Embeddings of places, turned away by noise, stand for those of pictures: a cosine of about 0.45 to the place, as
    // pictures and places have it at best.
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let queries = geoclip.location_encoder.embed(&geoclip.gallery[..rounds]);
    let queries: Vec<f32> = queries.into_data_as::<f32>().try_into_vec().unwrap();
    let scale = geoclip.logit_scale();
    let (mut query_ms, mut map_ms, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for query in queries.chunks_exact(512) {
        let noise: Vec<f32> = query.iter().map(|_| rng.random_range(-1.0..1.0)).collect();
        let length = |vector: &[f32]| vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        let times = 2.0 / length(&noise);
        let turned: Vec<f32> = query.iter().zip(&noise).map(|(a, b)| a + times * b).collect();
        let times = scale / length(&turned);
        let scaled: Vec<f32> = turned.iter().map(|number| times * number).collect();
        let began = Instant::now();
        let logits = places.products(&scaled);
        query_ms.push(began.elapsed().as_secs_f64() * 1e3);

        // From logits to candidates, radii and regions.
        let began = Instant::now();
        let logits: Vec<f64> = logits.into_iter().map(f64::from).collect();
        let masses = PointMasses::from_logits(geoclip.gallery.clone(), &logits)?;
        let density = masses.spread(Kernel::default());
        let survey = density.survey();
        let summary = Summary::of(&survey, 5, Decode::Mode);
        assert!(!summary.candidates.is_empty());
        map_ms.push(began.elapsed().as_secs_f64() * 1e3);
        cells.push(survey.cells() as f64);
    }
    let figures = json!({
        "places": places.len(),
        "encode_gallery_s": encode_s,
        "load_ms": load_ms,
        "query_ms": median(query_ms),
        "map_ms": median(map_ms),
        "map_cells": median(cells),
        "rounds": rounds,
    });
    println!("{figures}");
    Ok(())
}
