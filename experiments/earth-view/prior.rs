//! A LocDiff over the same descriptors as a prior: is the answer better with it?
//!
//! `prior views` renders pictures with real clouds, in all headings, for `locdiff embed --encoder earth-view` and
//! `locdiff train`; `prior measure` asks the model that they made about the real views.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use image::RgbImage;
use locdiff::models::earth_view::{AtlasSettings, VIEW, density};
use locdiff::{Geolocator, Photo};
use locdiff_earth::Random;
use locdiff_experiments::round;
use locdiff_sphere::UNIFORM_NLL_NATS;
use rayon::prelude::*;
use serde_json::json;

use crate::aligned_train::open_pairs;
use crate::findings::{Line, Part, parts_of_real};
use crate::search::real_views;

const SEED: u64 = 6_000_101;
const TOGETHER: u64 = 1024;

/// Renders pictures and a manifest of their places.
pub fn views(folder: &Path, count: u64) -> Result<()> {
    fs::create_dir_all(folder)?;
    let pairs = open_pairs()?;
    let mut manifest = File::create(folder.join("manifest.csv"))?;
    writeln!(manifest, "image,latitude,longitude")?;
    for start in (0..count).step_by(TOGETHER as usize) {
        let end = (start + TOGETHER).min(count);
        let draw = |number: u64| {
            let (pixels, place) = pairs.picture(&mut Random::of_view(SEED, number));
            let name = format!("{number:06}.png");
            let picture =
                RgbImage::from_raw(VIEW as u32, VIEW as u32, pixels).context("a square")?;
            picture.save(folder.join(&name))?;
            Ok(format!("{name},{},{}", place.latitude(), place.longitude()))
        };
        let lines: Vec<Result<String>> = (start..end).into_par_iter().map(draw).collect();
        for line in lines {
            writeln!(manifest, "{}", line?)?;
        }
        eprintln!("{end} of {count} views");
    }
    Ok(())
}

/// A model's own answers to real views of tier A of the reporting half, and the product's without it, with it in place of
/// the uniform rest, and with places weighed by it too. The last line is JSON.
pub fn measure(folder: &Path, model: &str) -> Result<()> {
    let settings: AtlasSettings = serde_json::from_slice(&fs::read(folder.join("settings.json"))?)?;
    let model = Geolocator::open(model)?;
    let lines = Line::read(&folder.join("real.jsonl"))?;
    let parts = parts_of_real(&lines);
    let photos: HashMap<String, Photo> =
        real_views()?.into_iter().map(|view| (view.name, view.photo)).collect();
    let mut gains = [0.0; 4];
    let mut own_km = Vec::new();
    let lines = lines.iter().zip(parts);
    for (line, _) in lines.filter(|(line, part)| line.tier == "A" && *part == Part::Reports) {
        let photo = photos.get(&line.name).with_context(|| line.name.clone())?;
        let estimate = model.locate(photo)?;
        let prior = estimate.density();
        let truth = line.place();
        own_km.push(estimate.place().distance_km(truth));
        let without = line.findings(&settings.odds, true);
        let none = 1.0 - without.iter().map(|one| one.probability).sum::<f64>();
        let mut with = without.clone();
        for one in &mut with {
            one.probability *= (prior.log_density(one.middle()) + UNIFORM_NLL_NATS).exp();
        }
        let sum = none + with.iter().map(|one| one.probability).sum::<f64>();
        with.iter_mut().for_each(|one| one.probability /= sum);
        let product = density(&without, &settings.errors).log_density(truth);
        let uniform = -UNIFORM_NLL_NATS;
        // What is left for "none of them" lies as the model says.
        let rest = |product: f64, none: f64| {
            (product.exp() + none * (prior.log_density(truth).exp() - uniform.exp())).ln()
        };
        let weighed = density(&with, &settings.errors).log_density(truth);
        for (gain, log_density) in gains.iter_mut().zip([
            prior.log_density(truth),
            product,
            rest(product, none),
            rest(weighed, none / sum),
        ]) {
            *gain += log_density + UNIFORM_NLL_NATS;
        }
    }
    let n = own_km.len() as f64;
    let within = |km: f64| {
        round(100.0 * own_km.iter().filter(|distance| **distance <= km).count() as f64 / n)
    };
    let [own, without, rest, weighed] = gains.map(|gain| round(gain / n));
    println!(
        "{}",
        json!({
            "n": own_km.len(),
            "prior_own_nll_gain": own,
            "prior_own_within_200": within(200.0),
            "prior_own_within_750": within(750.0),
            "prior_own_within_2500": within(2500.0),
            "without_prior_nll_gain": without,
            "prior_as_rest_nll_gain": rest,
            "prior_nll_gain": weighed,
        })
    );
    Ok(())
}
