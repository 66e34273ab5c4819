//! From a checkpoint to the file inside the program: weights in 8 bits, how sharp its answers may
//! be, and what it calls none of its kind.

use std::path::Path;

use anyhow::{Context, Result};
use burn::module::Module;
use burn::tensor::Device;
use locdiff::{EarthView, EarthViewSettings, ViewModel, ViewModelConfig, ViewReading};
use locdiff_earth::{Renderer, View};
use locdiff_sphere::LatLon;
use locdiff_train::Checkpoints;
use rayon::prelude::*;

use crate::outcomes::Outcomes;
use crate::recogniser;
use crate::sets::SETS;
use crate::sources::Folders;
use crate::train::place;

/// Not those of training or tests.
const SEED: u64 = 2_000_003;
const USUAL: usize = 4096;
const CALIBRATION: usize = 1000;
/// Shares of in-domain views that are turned away as other things, and as saying nothing.
const FALSE_ALARMS: [f64; 2] = [0.03, 0.015];
/// Levels that are made to hold what they say.
const LEVELS: [f64; 3] = [0.5, 0.8, 0.9];

/// Places are divided like a chess board: the calibration takes one colour, the test the other.
pub fn is_for_calibration(place: LatLon) -> bool {
    let square = |degrees: f64| (degrees / 15.0).floor() as i64;
    (square(place.latitude()) + square(place.longitude())) % 2 == 0
}

pub fn pixels(views: &[View]) -> Vec<u8> {
    views.iter().flat_map(|view| view.pixels.iter().copied()).collect()
}

pub fn read(model: &EarthView, views: &[View]) -> Vec<ViewReading> {
    views.par_chunks(16).flat_map_iter(|part| model.read_squares(&pixels(part))).collect()
}

pub fn pack(run: &Path, out: &Path) -> Result<()> {
    let config: ViewModelConfig = serde_json::from_slice(&std::fs::read(run.join("config.json"))?)?;
    let device = Device::flex();
    let template = config.init(&device.clone().autodiff());
    let (checkpoint, _) = Checkpoints::new(run, 2)
        .newest::<ViewModel, ()>(&template)?
        .context("the run has no checkpoint yet")?;
    eprintln!("weights of step {}", checkpoint.step);
    let network = checkpoint.averaged.valid();
    let mut settings = EarthViewSettings {
        model: config.clone(),
        sharpness: 1.0,
        least_likeness: f64::MIN,
        least_nats: 0.0,
        calibrated: true,
    };
    let bytes = EarthView::to_bytes(&network, &settings, None);
    let model = EarthView::from_bytes(&bytes, &device)?;
    let folders = Folders::from_environment()?;
    let side = config.encoder.side;
    let usual = {
        let mask = folders.mask()?;
        let day = vec![folders.open("blue-marble", &mask)?, folders.open("bmng", &mask)?];
        let night = vec![folders.open("black-marble", &mask)?];
        let mut renderer = Renderer::new(mask, day, night);
        renderer.framing.open_sea_share = 0.1;
        renderer.render_batch(SEED, USUAL, side)
    };
    let recogniser = recogniser::fit(&model, &read(&model, &usual))?;

    let views = SETS[1].render(&folders, SEED, 2 * CALIBRATION, side)?;
    let views: Vec<View> =
        views.into_iter().filter(|view| is_for_calibration(place(view))).collect();
    let readings = read(&model, &views);
    settings.sharpness = sharpness(&readings, &views, config.max_degree);
    let bytes = EarthView::to_bytes(&network, &settings, Some(&recogniser));
    let model = EarthView::from_bytes(&bytes, &device)?;
    // Some by night, which look unlike the others.
    let mut views = views;
    views.extend(SETS[5].render(&folders, SEED, CALIBRATION / 5, side)?);
    let readings = read(&model, &views);
    let values = |of: fn(&EarthView, &ViewReading) -> f64| -> Vec<f64> {
        readings.iter().map(|reading| of(&model, reading)).collect()
    };
    settings.least_likeness = quantile(&mut values(|_, reading| reading.likeness), FALSE_ALARMS[0]);
    settings.least_nats = quantile(&mut values(EarthView::said_nats), FALSE_ALARMS[1]);
    eprintln!("{settings:#?}");
    let bytes = EarthView::to_bytes(&network, &settings, Some(&recogniser));
    eprintln!("{} bytes", bytes.len());
    std::fs::write(out, bytes).with_context(|| out.display().to_string())
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

/// The sharpness with which regions hold what they say.
fn sharpness(readings: &[ViewReading], views: &[View], max_degree: usize) -> f64 {
    let outcomes = Outcomes::new(max_degree);
    let candidates: Vec<f64> = (70..=110).map(|step| f64::from(step) / 100.0).collect();
    // By view, then by candidate.
    let levels: Vec<Vec<(f64, f64)>> = readings
        .par_iter()
        .zip(views)
        .map(|(reading, view)| {
            let values = outcomes.values(reading, place(view));
            let outcome = |sharpness: &f64| {
                let (outcome, _) = outcomes.outcome(&values, *sharpness);
                (outcome.level, outcome.nll_nats)
            };
            candidates.iter().map(outcome).collect()
        })
        .collect();
    let count = levels.len() as f64;
    let mut best = (f64::MAX, 1.0);
    for (at, sharpness) in candidates.iter().enumerate() {
        let held =
            |level: f64| levels.iter().filter(|row| row[at].0 <= level).count() as f64 / count;
        let nll = levels.iter().map(|row| row[at].1).sum::<f64>() / count;
        let [half, most, nearly] = LEVELS.map(held);
        eprintln!("sharpness {sharpness:.2}: {half:.3} {most:.3} {nearly:.3}, NLL {nll:.3}");
        let error = LEVELS.iter().map(|level| (held(*level) - level).abs()).fold(0.0, f64::max);
        if error < best.0 {
            best = (error, *sharpness);
        }
    }
    best.1
}
