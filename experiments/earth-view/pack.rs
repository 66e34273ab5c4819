//! From a checkpoint to the file inside the program: weights in 8 bits, how sharp its answers may
//! be, and what it calls none of its kind.

use std::path::Path;

use anyhow::{Context, Result};
use burn::module::Module;
use burn::tensor::Device;
use locdiff::models::earth_view::{
    EarthView, EarthViewSettings, ViewNetwork, ViewNetworkConfig, ViewReading,
};
use locdiff_earth::{Renderer, View};
use locdiff_sphere::LatLon;
use locdiff_train::Checkpoints;
use rayon::prelude::*;

use crate::outcomes::{Outcomes, Values};
use crate::recogniser;
use crate::sets::{SETS, pixels, place};
use locdiff_experiments::earth_sources::Folders;

/// Not those of training or tests.
const SEED: u64 = 2_000_003;
const USUAL: usize = 4096;
const CALIBRATION: usize = 3000;
/// Shares of in-domain views that are turned away as other things, and as saying nothing.
const FALSE_ALARMS: [f64; 2] = [0.03, 0.015];
/// Levels that are made to hold what they say.
const LEVELS: [f64; 3] = [0.5, 0.8, 0.9];

/// Places are divided like a chess board: the calibration takes one colour, the test the other.
pub fn is_for_calibration(place: LatLon) -> bool {
    let square = |degrees: f64| (degrees / 15.0).floor() as i64;
    (square(place.latitude()) + square(place.longitude())) % 2 == 0
}

pub fn read(model: &EarthView, views: &[View]) -> Vec<ViewReading> {
    views.par_chunks(16).flat_map_iter(|part| model.read_squares(&pixels(part))).collect()
}

pub fn pack(run: &Path, out: &Path) -> Result<()> {
    let config: ViewNetworkConfig =
        serde_json::from_slice(&std::fs::read(run.join("config.json"))?)?;
    let device = Device::flex();
    let template = config.init(&device.clone().autodiff());
    let (checkpoint, _) = Checkpoints::new(run, 2)
        .newest::<ViewNetwork, ()>(&template)?
        .context("the run has no checkpoint yet")?;
    eprintln!("weights of step {}", checkpoint.step);
    let network = checkpoint.averaged.valid();
    let mut settings = EarthViewSettings {
        model: config.clone(),
        sharpness: 1.0,
        least_likeness: f64::MIN,
        least_nats: 0.0,
        // The sharpness is fitted on rendered views only; `real.rs` measures real ones.
        calibrated: false,
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
    views.extend(SETS[5].render(&folders, SEED, CALIBRATION / 15, side)?);
    let readings = read(&model, &views);
    let values = |of: fn(&ViewReading) -> f64| readings.iter().map(of).collect::<Vec<f64>>();
    settings.least_likeness = quantile(&mut values(|reading| reading.likeness), FALSE_ALARMS[0]);
    settings.least_nats = quantile(&mut values(|reading| reading.said_nats), FALSE_ALARMS[1]);
    eprintln!("{settings:#?}");
    let bytes = EarthView::to_bytes(&network, &settings, Some(&recogniser));
    eprintln!("{} bytes", bytes.len());
    // The card is written by hand, and stays.
    let card = std::fs::read_to_string(out.join("README.md")).unwrap_or_default();
    EarthView::save(&bytes, out, &card).with_context(|| out.display().to_string())
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

/// The sharpness with which regions hold what they say. A second number that lowered it for answers
/// that say much was tried: it came out as zero.
fn sharpness(readings: &[ViewReading], views: &[View], max_degree: usize) -> f64 {
    let outcomes = Outcomes::new(max_degree);
    let values: Vec<Values> = readings
        .par_iter()
        .zip(views)
        .map(|(reading, view)| outcomes.values(reading, place(view)))
        .collect();
    let misses = |sharpness: f64| {
        let level = |values: &Values| outcomes.outcome(values, sharpness).level;
        let levels: Vec<f64> = values.par_iter().map(level).collect();
        LEVELS.map(|wanted| {
            let held = levels.iter().filter(|level| **level <= wanted).count();
            held as f64 / levels.len() as f64 - wanted
        })
    };
    let mut best = (f64::MAX, 1.0);
    for candidate in (70..=120).map(|step| f64::from(step) / 100.0) {
        let worst = misses(candidate).iter().fold(0.0_f64, |a, b| a.max(b.abs()));
        if worst < best.0 {
            best = (worst, candidate);
        }
    }
    eprintln!("sharpness {:.2}, off by {:.3?}", best.1, misses(best.1));
    best.1
}
