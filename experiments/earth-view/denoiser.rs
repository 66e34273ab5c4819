//! The denoiser on frozen embeddings, as the paper has it, and its samplers beside the head's one
//! pass, on some views of flightgear's.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use burn::tensor::{Device, Tensor};
use locdiff::diffusion::{Diffusion, Method, SampleOptions, coefficients_of};
use locdiff::models::earth_view::{EarthView, EarthViewSettings};
use locdiff_experiments::draws::{FIELDS, draw_all};
use locdiff_experiments::{read_npy, round, write_npy};
use locdiff_sphere::{Decoder, Density, LatLon, PointScores};
use locdiff_train::{Training, TrainingConfig};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::embeddings::Embedded;
use crate::predictions::open_model;

/// Views that are sampled, the first of those wide enough.
const COUNT: usize = 300;
const NARROWEST_KM: f64 = 500.0;
const REPORT_STEPS: u64 = 250;
const HEAD: &str = "the head, one pass";
/// With the numbers of draws that are made one answer.
const METHODS: [(&str, Method, &[usize]); 3] = [
    ("one pass", Method::OnePass, &[1]),
    ("DDIM 20", Method::Ddim(20), &[1, 16]),
    ("DDPM 200, the paper's", Method::Ddpm, &[1, 16]),
];
/// Rows of the table: those of the methods, and the head's.
const ROWS: usize = 6;

/// Trains on the embeddings of `embed`, adds the denoiser to the weights, samples, and writes what was
/// said.
pub fn train_and_sample(weights: &Path, folder: &Path) -> Result<()> {
    let model = open_model(weights)?;
    let size = model.settings().model.encoder.embedding;
    let (diffusion, about) = train(folder, size)?;
    let settings = EarthViewSettings {
        diffusion: Some(diffusion.config().clone()),
        ..model.settings().clone()
    };
    let denoiser = Some(diffusion.denoiser());
    let bytes = EarthView::to_bytes(model.network(), &settings, model.recogniser(), denoiser);
    eprintln!("{} bytes with the denoiser", bytes.len());
    std::fs::write(weights, bytes)?;
    // As it was rounded.
    let model = open_model(weights)?;
    let diffusion = model.diffusion().context("it was just written")?;
    let views = Embedded::open("flightgear", size)?;
    let wide = |k: &usize| views.widths_km[*k] >= NARROWEST_KM;
    let numbers: Vec<usize> = (0..views.places.len()).filter(wide).take(COUNT).collect();
    ensure!(numbers.len() == COUNT, "too few views are embedded");
    let condition = views.rows(&numbers, &Device::flex());
    let truths: Vec<LatLon> = numbers.iter().map(|k| views.places[*k]).collect();
    let mut values: Vec<f32> = Vec::new();
    for place in &truths {
        values.extend([place.latitude() as f32, place.longitude() as f32, 0.0, 0.0, 0.0]);
    }
    values.extend(of_head(&model, &condition, &truths));
    let mut milliseconds = Vec::new();
    for (name, method, numbers) in METHODS {
        let most = numbers[numbers.len() - 1];
        let sampled = draw_all(diffusion, method, &condition, &truths, [most, 0])?;
        for draws in numbers {
            let seconds = sampled.seconds_per_draw * *draws as f64 / COUNT as f64;
            milliseconds.push(round(1e3 * seconds));
            for k in 0..COUNT {
                values.extend(sampled.answer(k, *draws).map(|value| value as f32));
            }
        }
        eprintln!("{name}: {:.1} s per draw", sampled.seconds_per_draw);
    }
    let about = json!({ "training": about, "milliseconds": milliseconds });
    std::fs::write(folder.join("samplers.json"), format!("{about:#}\n"))?;
    write_npy(&folder.join("samplers.npy"), &[ROWS + 1, COUNT, FIELDS], &values)
}

fn train(folder: &Path, size: usize) -> Result<(Diffusion, Value)> {
    let config = TrainingConfig::read(&folder.join("denoiser.toml"))?;
    let (data, held_out) = (Embedded::open("train", size)?, Embedded::open("validation", size)?);
    let mut training = Training::begin(config.clone(), size, &Device::flex())?;
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let began = Instant::now();
    while training.steps() < config.run.steps {
        let batch = (0..config.run.batch).map(|_| rng.random_range(0..data.places.len()));
        let batch: Vec<usize> = batch.collect();
        let places: Vec<LatLon> = batch.iter().map(|k| data.places[*k]).collect();
        let embeddings = batch.iter().flat_map(|k| &data.embeddings[k * size..][..size]);
        let report = training.step(&places, embeddings.copied().collect());
        if report.step.is_multiple_of(REPORT_STEPS) {
            eprintln!("step {}: loss {:.3}", report.step, report.loss);
        }
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let diffusion = training.model()?;
    let numbers: Vec<usize> = (0..held_out.places.len().min(1000)).collect();
    let condition = held_out.rows(&numbers, &Device::flex());
    let output = diffusion.sample(Some(condition), numbers.len(), SampleOptions::default(), |_| ());
    let densities = diffusion.densities(&output).context("a likelihood gives densities")?;
    let nll = densities.iter().zip(&held_out.places).map(|(q, place)| -q.log_density(*place));
    let about = json!({
        "rows": data.places.len(),
        "steps": config.run.steps,
        "batch": config.run.batch,
        "minutes": round(minutes),
        "held_out_nll": round(nll.sum::<f64>() / numbers.len() as f64),
    });
    eprintln!("{about}");
    Ok((diffusion, about))
}

/// What the head says of the same embeddings, in one direction and not calibrated.
fn of_head(model: &EarthView, condition: &Tensor<2>, truths: &[LatLon]) -> Vec<f32> {
    let decoder = Decoder::new(model.settings().model.max_degree);
    let answers = coefficients_of(&model.network().answer(condition.clone()));
    let answer = |(e, truth): (_, &LatLon)| {
        let place = decoder.mode(e).place;
        let nll = -Density::exponential(e).log_density(*truth);
        let (latitude, longitude) = (place.latitude(), place.longitude());
        [latitude, longitude, latitude, longitude, nll].map(|value| value as f32)
    };
    answers.iter().zip(truths).flat_map(answer).collect()
}

/// The table.
pub fn report(folder: &Path) -> Result<()> {
    let values = read_npy(&folder.join("samplers.npy"))?;
    ensure!(values.len() == (ROWS + 1) * COUNT * FIELDS, "samplers of another version");
    let about = std::fs::read_to_string(folder.join("samplers.json"))?;
    let about: Value = serde_json::from_str(&about)?;
    let row = |k: usize| values[k * COUNT * FIELDS..][..COUNT * FIELDS].chunks_exact(FIELDS);
    let places = |k: usize, first: usize| -> Result<Vec<LatLon>> {
        let place = |v: &[f32]| Ok(LatLon::new(v[first].into(), v[first + 1].into())?);
        row(k).map(place).collect()
    };
    let truths = places(0, 0)?;
    let training = &about["training"];
    println!(
        "\nThe denoiser on the frozen embeddings ({} views, {} steps of {}, {} minutes), by its samplers, on the first {COUNT} of flightgear's views at least {NARROWEST_KM} km wide, in one direction. Several draws answer with the draw nearest to all others, or with their mean as the paper does. Not calibrated.\n",
        training["rows"], training["steps"], training["batch"], training["minutes"],
    );
    println!(
        "| | ≤ 200 km, % | ≤ 750 km | ≤ 2500 km | ≤ 200 by the mean | ≤ 750 by the mean | median km | NLL | processor ms per view, without the encoder |\n|---|---|---|---|---|---|---|---|---|"
    );
    let of_method = |(name, _, numbers): (&str, Method, &[usize])| -> Vec<String> {
        numbers.iter().map(|draws| format!("{name} × {draws}")).collect()
    };
    let mut names = vec![HEAD.to_owned()];
    names.extend(METHODS.into_iter().flat_map(of_method));
    for (k, name) in names.iter().enumerate() {
        let (nearest, mean) = (places(k + 1, 0)?, places(k + 1, 2)?);
        let (nearest, mean) =
            (PointScores::of(&nearest, &truths)?, PointScores::of(&mean, &truths)?);
        let share = |scores: &PointScores, km: f64| 100.0 * scores.accuracy(km).value();
        let nll = row(k + 1).map(|v| f64::from(v[4])).sum::<f64>() / COUNT as f64;
        let cost = match k {
            0 => "–".to_owned(),
            _ => about["milliseconds"][k - 1].to_string(),
        };
        println!(
            "| {name} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} | {nll:.2} | {cost} |",
            share(&nearest, 200.0),
            share(&nearest, 750.0),
            share(&nearest, 2500.0),
            share(&mean, 200.0),
            share(&mean, 750.0),
            nearest.median_km().value(),
        );
    }
    Ok(())
}
