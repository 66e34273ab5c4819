//! What the commands of `run` can't do themselves: pictures to begin with, the nearest neighbor to compare with, and
//! whether the same model gives the same answers by three ways.
//!
//! ```text
//! end-to-end render FOLDER TRAIN TEST       views of the Earth, and manifests of their places
//! end-to-end neighbor TRAIN TEST            within_750 of the nearest neighbor's place, over embeddings
//! end-to-end compare MODEL PICTURE CLI HTTP [ENCODER] the largest difference of log-density at 1,000 places
//! ```

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder};
use locdiff::models::EncoderSource;
use locdiff::{Geolocator, OpenOptions, Photo};
use locdiff_earth::{Renderer, View};
use locdiff_experiments::earth_sources::Folders;
use locdiff_experiments::{Dense, multiply, round};
use locdiff_sphere::{Density, DensityRecord, LatLon, PointScores, uniform_place};
use locdiff_train::{Dataset, OnBadShard, StreamOptions};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde_json::{Value, json};

/// Pixels along a side: twice what earth-view's encoder takes.
const SIDE: usize = 128;
const QUALITY: u8 = 92;
const PLACES: usize = 1000;

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["render", folder, train, test] => render(Path::new(folder), train.parse()?, test.parse()?),
        ["neighbor", train, test] => neighbor(train, test),
        ["compare", model, picture, cli, http] => compare(model, picture, cli, http, None),
        ["compare", model, picture, cli, http, encoder] => {
            compare(model, picture, cli, http, Some(encoder))
        }
        _ => bail!("see the head of main.rs"),
    }
}

/// Views to train on, of three mosaics, and to test on, of a fourth that neither this model nor its encoder has seen.
fn render(folder: &Path, train: usize, test: usize) -> Result<()> {
    let folders = Folders::from_environment()?;
    let mask = folders.mask()?;
    let open = |name: &str| folders.open(name, &mask);
    let day = vec![open("blue-marble")?, open("bmng")?, open("may")?];
    let renderer = Renderer::new(mask.clone(), day, Vec::new());
    write(&folder.join("train"), 7_000_003, train, &renderer)?;
    let mut renderer = Renderer::new(mask.clone(), vec![open("three-globe")?], Vec::new());
    // That mosaic has no finer detail.
    renderer.framing.width_km[0] = 630.0;
    write(&folder.join("test"), 8_000_009, test, &renderer)
}

fn write(folder: &Path, seed: u64, count: usize, renderer: &Renderer) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut manifest = File::create(folder.join("manifest.csv"))?;
    writeln!(manifest, "image,latitude,longitude")?;
    for start in (0..count as u64).step_by(2048) {
        let end = (start + 2048).min(count as u64);
        let views = renderer.render_range(seed, start..end, SIDE);
        let files: Vec<Result<String>> = views
            .par_iter()
            .enumerate()
            .map(|(offset, view)| {
                let number = start + offset as u64;
                let name = format!("{number:06}.jpg");
                let file = File::create(folder.join(&name))?;
                encode(view, file)?;
                Ok(format!("{name},{},{}", view.label.latitude, view.label.longitude))
            })
            .collect();
        for line in files {
            writeln!(manifest, "{}", line?)?;
        }
        eprintln!("{}: {end} of {count} views", folder.display());
    }
    Ok(())
}

fn encode(view: &View, file: File) -> Result<()> {
    let side = view.size_px as u32;
    let encoder = JpegEncoder::new_with_quality(file, QUALITY);
    Ok(encoder.write_image(&view.pixels, side, side, ExtendedColorType::Rgb8)?)
}

/// Embeddings of length one, and their places.
fn rows(path: &str) -> Result<(Vec<f32>, Vec<LatLon>, usize)> {
    let set = Dataset::open(path, OnBadShard::Fail)?;
    let width = set.layout().width;
    let options = StreamOptions { epochs: Some(1), ..StreamOptions::default() };
    let (mut numbers, mut places) = (Vec::new(), Vec::new());
    for batch in set.stream(options)? {
        let batch = batch?;
        for row in batch.embeddings.chunks_exact(width) {
            let length = row.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-12);
            numbers.extend(row.iter().map(|x| x / length));
        }
        places.extend(batch.places);
    }
    Ok((numbers, places, width))
}

fn neighbor(train: &str, test: &str) -> Result<()> {
    let (known, known_places, width) = rows(train)?;
    let (asked, truth, other) = rows(test)?;
    ensure!(width == other, "embeddings of {width} and of {other} numbers");
    let count = known_places.len();
    let answers: Vec<LatLon> = asked
        .par_chunks(64 * width)
        .flat_map_iter(|part| {
            let rows = part.len() / width;
            let mut products = vec![0.0_f32; rows * count];
            let transposed = Dense { entries: &known, row: 1, column: width };
            multiply(&mut products, part, transposed, [rows, count, width]);
            let nearest = |row: &[f32]| {
                let best = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
                known_places[best.map_or(0, |(number, _)| number)]
            };
            products.chunks_exact(count).map(nearest).collect::<Vec<_>>()
        })
        .collect();
    let scores = PointScores::of(&answers, &truth)?;
    let within = |km| round(100.0 * scores.accuracy(km).value());
    let figures = json!({
        "n": truth.len(),
        "training_rows": count,
        "within_200": within(200.0),
        "within_750": within(750.0),
        "within_2500": within(2500.0),
    });
    println!("{figures}");
    Ok(())
}

/// The same model's answer to the same picture: printed by the program, sent by the server, computed here.
fn compare(model: &str, picture: &str, cli: &str, http: &str, encoder: Option<&str>) -> Result<()> {
    let read = |path: &str| -> Result<Value> {
        let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
        Ok(serde_json::from_str(text.lines().next().context("nothing was printed")?)?)
    };
    let density = |answer: &Value| -> Result<Density> {
        let record: DensityRecord = serde_json::from_value(answer["density"].clone())?;
        Ok(record.density()?)
    };
    let (cli, http) = (read(cli)?, read(http)?);
    let encoder = encoder.map_or(EncoderSource::Installed, |path| EncoderSource::Path(path.into()));
    let options = OpenOptions { encoder, ..OpenOptions::default() };
    let rust =
        Geolocator::open_with(model, &options, &mut |_, _| {})?.locate(&Photo::open(picture)?)?;
    let ways = [density(&cli)?, density(&http["results"][0])?, rust.density().clone()];
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut largest = 0.0_f64;
    for _ in 0..PLACES {
        let place = uniform_place(&mut rng);
        let logs = ways.each_ref().map(|density| density.log_density(place));
        let (low, high) = (
            logs.iter().copied().fold(f64::MAX, f64::min),
            logs.iter().copied().fold(f64::MIN, f64::max),
        );
        // Where all are minus infinity they agree; a number that is none must show.
        let difference = if high == low { 0.0 } else { high - low };
        ensure!(!difference.is_nan(), "{logs:?} at {place}");
        largest = largest.max(difference);
    }
    println!("{}", json!({ "n": PLACES, "largest_difference_nats": largest }));
    Ok(())
}
