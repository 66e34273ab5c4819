//! A density model and a gallery: each alone, the paper's rule, and the product, on rendered views of an unseen source.
//!
//! ```text
//! hybrid answer MODEL REFERENCES TEST MP16 OUT   with references from a data set of embeddings; MP16 is GeoCLIP's wheel
//! hybrid report OUT                              the figures of what was answered
//! ```
//!
//! Of the test rows, 500 fit everything that is fitted: the likelihood of each gallery, the product with the model, and a
//! calibration of each method, by the code of `locdiff gallery fit`, `locdiff model hybrid --data` and `locdiff calibrate`. The others
//! are scored.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use burn::tensor::Device;
use locdiff::checksum::Checksum;
use locdiff::encoders::EncoderRecord;
use locdiff::locate::{Calibration, Coverage, calibrated};
use locdiff::models::geoclip::GeoClip;
use locdiff::models::{EncoderSource, HybridConfig, HybridModel, HybridRule};
use locdiff::{Geolocator, Inference, LocationModel, OpenOptions};
use locdiff_evaluate::fit_calibration;
use locdiff_experiments::{read_npy, round, write_npy};
use locdiff_gallery::{Fit, Fusion, Gallery, GalleryWriter, Likelihood};
use locdiff_sphere::{Area, Density, LatLon, PlaceIndex, Resampling, Score};
use locdiff_train::{Dataset, Ids, OnBadShard, StreamOptions};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde_json::{Value, json};

/// Rows that fit the likelihoods and the calibrations.
const FITTED: usize = 500;
/// References this near to the truth are removed in the third setting.
const REMOVED_KM: f64 = 500.0;
/// References count as photographed like MP16 by as many of its places within this distance.
const MP16_KM: f64 = 150.0;
/// The part of the references that a gallery like MP16 keeps.
const MP16_PART: f64 = 0.25;
/// Below this, a difference is one.
const LEVEL: f64 = 0.05;

/// Of what is kept over interruptions: raised when densities change.
const VERSION: u32 = 1;

const HELD_OUT: &str = "rendered views of an unseen mosaic";
const SETTINGS: [&str; 3] = ["even", "like MP16", "removed"];
const METHODS: [&str; 4] = ["density", "retrieval", "paper", "product"];
const PRODUCT: usize = 3;

struct Rows {
    encoder: EncoderRecord,
    width: usize,
    embeddings: Vec<f32>,
    places: Vec<LatLon>,
    ids: Vec<String>,
}

impl Rows {
    fn read(path: &str) -> Result<Rows> {
        let set = Dataset::open(path, OnBadShard::Fail)?;
        let layout = set.layout();
        let mut rows = Rows {
            encoder: layout.encoder.clone(),
            width: layout.width,
            embeddings: Vec::new(),
            places: Vec::new(),
            ids: Vec::new(),
        };
        let options =
            StreamOptions { epochs: Some(1), ids: Ids::Include, ..StreamOptions::default() };
        for batch in set.stream(options)? {
            let batch = batch?;
            rows.embeddings.extend(batch.embeddings);
            rows.places.extend(batch.places);
            rows.ids.extend(batch.ids);
        }
        Ok(rows)
    }

    fn embedding(&self, row: usize) -> &[f32] {
        &self.embeddings[row * self.width..][..self.width]
    }

    fn part(&self, rows: &[usize]) -> Rows {
        Rows {
            encoder: self.encoder.clone(),
            width: self.width,
            embeddings: rows.iter().flat_map(|row| self.embedding(*row)).copied().collect(),
            places: rows.iter().map(|row| self.places[*row]).collect(),
            ids: rows.iter().map(|row| self.ids[*row].clone()).collect(),
        }
    }

    fn gallery(&self, directory: &Path) -> Result<PathBuf> {
        let encoder = self.encoder.for_gallery(self.width);
        let mut writer = GalleryWriter::create(directory, &encoder)?;
        for (row, place) in self.places.iter().enumerate() {
            writer.push(self.embedding(row), *place, &self.ids[row])?;
        }
        writer.finish(|_| ())?;
        Ok(directory.to_owned())
    }
}

/// What is found for each row: distance of the place to the truth, NLL, and the level of the region that holds the truth.
#[derive(Clone)]
struct Found {
    distances_km: Vec<f64>,
    nll: Vec<f64>,
    levels: Vec<f64>,
}

impl Found {
    /// Of each row the distance, the NLL and the level.
    fn numbers(&self) -> impl Iterator<Item = f32> {
        let rows = self.distances_km.iter().zip(&self.nll).zip(&self.levels);
        rows.flat_map(|((km, nll), level)| [*km, *nll, *level]).map(|x| x as f32)
    }

    fn of(numbers: &[f32]) -> Found {
        let column = |k: usize| numbers.iter().skip(k).step_by(3).map(|x| f64::from(*x)).collect();
        Found { distances_km: column(0), nll: column(1), levels: column(2) }
    }
}

/// Answers are made one at a time: thousands of densities would take gigabytes.
fn found(
    answer: impl Fn(usize) -> Density + Sync,
    truths: &[LatLon],
    (sharpness, background): (f64, f64),
) -> Found {
    let rows: Vec<(f64, f64, f64)> = truths
        .par_iter()
        .enumerate()
        .map(|(row, truth)| {
            let density = calibrated(&answer(row), sharpness, background);
            let survey = density.survey();
            let place = survey.modes().modes[0].place;
            let outcome = survey.outcome(*truth);
            (place.distance_km(*truth), outcome.nll_nats, outcome.level)
        })
        .collect();
    Found {
        distances_km: rows.iter().map(|row| row.0).collect(),
        nll: rows.iter().map(|row| row.1).collect(),
        levels: rows.iter().map(|row| row.2).collect(),
    }
}

/// One row of the table: a gallery, perhaps with references removed.
struct Setting {
    name: &'static str,
    /// In the order of [`METHODS`].
    found: Vec<Found>,
}

/// A gallery, fitted, and what is made with it.
struct Methods<'a> {
    gallery: Gallery,
    likelihood: Likelihood,
    paper: HybridModel,
    product: HybridModel,
    fusion: Fusion,
    inference: Inference,
    test: &'a Rows,
    fitted: &'a Rows,
    /// Where what was found is kept.
    keep: PathBuf,
}

impl<'a> Methods<'a> {
    fn new(
        directory: &Path,
        model: &Geolocator,
        test: &'a Rows,
        fitted: &'a Rows,
        keep: &Path,
    ) -> Result<Methods<'a>> {
        let gallery = Gallery::open(directory)?;
        let mut fit = Fit::new(&gallery);
        for (row, place) in fitted.places.iter().enumerate() {
            fit.push(fitted.embedding(row), *place, &fitted.ids[row])?;
        }
        let likelihood = fit.finish(HELD_OUT)?;
        likelihood.write(&gallery)?;
        let hybrid = |rule| -> Result<HybridModel> {
            let config = HybridConfig::new("model", "gallery", rule);
            Ok(HybridModel::new(model.clone(), Gallery::open(directory)?, config, "hybrid")?)
        };
        let (paper, product) = (hybrid(HybridRule::Paper)?, hybrid(HybridRule::Product)?);
        let rows: Vec<(Vec<f32>, LatLon, String)> = (0..fitted.places.len())
            .map(|row| {
                (fitted.embedding(row).to_vec(), fitted.places[row], fitted.ids[row].clone())
            })
            .collect();
        let fusion = product.fit(&rows, HELD_OUT)?;
        eprintln!("{fusion:?}");
        let (product, inference) = (product.with_fusion(fusion.clone()), paper.inference());
        let keep = keep.to_owned();
        Ok(Methods { gallery, likelihood, paper, product, fusion, inference, test, fitted, keep })
    }

    /// What was found before an interruption, with the same numbers, or is found now.
    fn kept(&self, what: &str, find: impl FnOnce() -> Found) -> Found {
        let fits = format!("{VERSION} {what} {:?} {:?}", self.likelihood, self.fusion);
        let mut digest = Checksum::default();
        digest.update(fits);
        let path = self.keep.join(format!("{}.npy", digest.finish_short()));
        if let Ok(numbers) = read_npy(&path) {
            return Found::of(&numbers);
        }
        let found = find();
        let numbers: Vec<f32> = found.numbers().collect();
        write_npy(&path, &[found.nll.len(), 3], &numbers).unwrap();
        found
    }

    fn answer(&self, method: &str, rows: &Rows, row: usize, remove: bool) -> Density {
        let (embedding, removed) = (rows.embedding(row), remove.then(|| circle(rows.places[row])));
        let model = match method {
            "retrieval" => return self.retrieval(embedding, removed.as_ref()),
            "paper" => &self.paper,
            _ => &self.product,
        };
        match removed {
            Some(area) => model.locate_without(embedding, &self.inference, &area).unwrap().density,
            None => {
                model.locate_embeddings(embedding, 1, &self.inference).unwrap().remove(0).density
            }
        }
    }

    /// The gallery's own density, as the model kind `gallery` answers.
    fn retrieval(&self, embedding: &[f32], removed: Option<&Area>) -> Density {
        let count = if removed.is_some() { 4096 } else { Likelihood::HITS };
        let mut hits = self.gallery.search(embedding, count).unwrap();
        hits.retain(|hit| !removed.is_some_and(|area| area.contains(self.gallery.place(hit.row))));
        self.likelihood.evidence(&self.gallery, &hits).unwrap().density().unwrap()
    }

    /// All methods. Calibrations are those of the whole gallery: nobody knows beforehand that references are missing.
    fn settings(&self, names: &[(&'static str, bool)], density: &Found) -> Vec<Setting> {
        let mut settings: Vec<Setting> =
            names.iter().map(|(name, _)| Setting { name, found: vec![density.clone()] }).collect();
        for method in &METHODS[1..] {
            let held_out: Vec<(Density, LatLon)> = (0..self.fitted.places.len())
                .into_par_iter()
                .map(|row| self.answer(method, self.fitted, row, false))
                .zip(self.fitted.places.clone())
                .collect();
            let calibration = fit_calibration(&held_out.iter().collect::<Vec<_>>());
            eprintln!("{method}: sharpness and background {calibration:?}");
            for (setting, (name, remove)) in settings.iter_mut().zip(names) {
                let answer = |row: usize| self.answer(method, self.test, row, *remove);
                setting.found.push(self.kept(&format!("{name} {method} {calibration:?}"), || {
                    found(answer, &self.test.places, calibration)
                }));
                eprintln!("{name}, {method}: {:.3} nats", mean(&setting.found.last().unwrap().nll));
            }
        }
        settings
    }
}

fn circle(place: LatLon) -> Area {
    Area::circle(place, REMOVED_KM).unwrap()
}

/// References where MP16 has photographs: drawn in proportion to its places nearby.
fn like_mp16(references: &Rows, wheel: &str) -> Result<Vec<usize>> {
    let mp16 = GeoClip::import(wheel.as_ref(), &Device::flex())?.gallery;
    let index = PlaceIndex::new(&references.places);
    let mut counts = vec![0.05_f64; references.places.len()];
    for place in mp16 {
        if let Some((nearest, km)) = index.nearest(place)
            && km < MP16_KM
        {
            counts[nearest] += 1.0;
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    // The largest of u^(1/w): without replacement, in proportion to w (Efraimidis and Spirakis 2006).
    let mut keys: Vec<(f64, usize)> = counts
        .iter()
        .enumerate()
        .map(|(row, weight)| (rng.random::<f64>().ln() / weight, row))
        .collect();
    keys.sort_by(|a, b| b.0.total_cmp(&a.0));
    let keep = (MP16_PART * keys.len() as f64) as usize;
    Ok(keys[..keep].iter().map(|(_, row)| *row).collect())
}

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["answer", model, references, test, wheel, out] => {
            let out = Path::new(out);
            let keep = out.with_extension("kept");
            std::fs::create_dir_all(&keep)?;
            let (references, test) = (Rows::read(references)?, Rows::read(test)?);
            let settings = answer(model, &references, &test, wheel, &keep)?;
            write(&settings, out)?;
            report(&settings)
        }
        ["report", out] => report(&read(Path::new(out))?),
        _ => bail!("see the head of main.rs"),
    }
}

fn answer(
    model: &str,
    references: &Rows,
    all: &Rows,
    wheel: &str,
    keep: &Path,
) -> Result<Vec<Setting>> {
    let scratch = tempfile::tempdir()?;
    let at = |name: &str| scratch.path().join(name);
    ensure!(all.width == references.width, "embeddings of one encoder");
    let mut order: Vec<usize> = (0..all.places.len()).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
    let (fitted, test) = order.split_at(FITTED);
    let (fitted, test) = (all.part(fitted), all.part(test));

    let options = OpenOptions { encoder: EncoderSource::NotNeeded, ..OpenOptions::default() };
    let bare = Geolocator::open_with(model, &options, &mut |_, _| {})?;
    let answers = |rows: &Rows| -> Result<Vec<(Density, LatLon)>> {
        let estimates = bare.locate_embeddings(&rows.embeddings, 1).context("embeddings")?;
        Ok(estimates
            .iter()
            .map(|estimate| estimate.density().clone())
            .zip(rows.places.clone())
            .collect())
    };
    let (sharpness, background) = fit_calibration(&answers(&fitted)?.iter().collect::<Vec<_>>());
    eprintln!("density: sharpness {sharpness:.3}, background {background:.5}");
    let alone = answers(&test)?;
    let density = found(|row| alone[row].0.clone(), &test.places, (sharpness, background));
    let none = Coverage { within_50: 0.0, within_90: 0.0, nll_nats: 0.0 };
    let model = bare.with_calibration(Calibration {
        sharpness,
        background,
        model_version: bare.identity().version.clone(),
        inference: *bare.inference(),
        data: HELD_OUT.to_owned(),
        places_sha256: String::new(),
        fitted_rows: FITTED,
        checked_rows: 0,
        before: none,
        after: none,
    })?;

    let even = references.gallery(&at("even"))?;
    let even = Methods::new(&even, &model, &test, &fitted, keep)?;
    let mut settings = even.settings(&[("even", false), ("removed", true)], &density);
    let like = references.part(&like_mp16(references, wheel)?).gallery(&at("mp16"))?;
    let like = Methods::new(&like, &model, &test, &fitted, keep)?;
    settings.splice(1..1, like.settings(&[("like MP16", false)], &density));
    Ok(settings)
}

/// Settings, methods, rows, and of each the distance, the NLL and the level.
fn write(settings: &[Setting], path: &Path) -> Result<()> {
    let numbers: Vec<f32> =
        settings.iter().flat_map(|setting| &setting.found).flat_map(Found::numbers).collect();
    let rows = settings[0].found[0].nll.len();
    write_npy(path, &[settings.len(), METHODS.len(), rows, 3], &numbers)
}

fn read(path: &Path) -> Result<Vec<Setting>> {
    let (numbers, methods) = (read_npy(path)?, METHODS.len());
    let rows = numbers.len() / (SETTINGS.len() * methods * 3);
    let settings = numbers.chunks_exact(methods * rows * 3).zip(SETTINGS);
    let setting = |(numbers, name): (&[f32], &'static str)| Setting {
        name,
        found: numbers.chunks_exact(rows * 3).map(Found::of).collect(),
    };
    Ok(settings.map(setting).collect())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The table, and the last line.
fn report(settings: &[Setting]) -> Result<()> {
    let rows = settings[0].found[0].nll.len();
    println!(
        "| gallery | method | ≤ 200 km, % | ≤ 750 km, % | NLL, nats | truth in 90 % region, % |"
    );
    println!("|---|---|---|---|---|---|");
    let within = |found: &Found, km: f64| -> Vec<f64> {
        found.distances_km.iter().map(|d| f64::from(u8::from(*d <= km))).collect()
    };
    let coverage = |found: &Found| {
        mean(
            &found
                .levels
                .iter()
                .map(|level| f64::from(u8::from(*level <= 0.9)))
                .collect::<Vec<_>>(),
        )
    };
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let resampling = Resampling { resamples: 200, permutations: 1999, ..Resampling::default() };
    let (mut columns, mut good) = (0, Vec::new());
    for Setting { name, found } in settings {
        for (method, found) in METHODS.iter().zip(found) {
            println!(
                "| {name} | {method} | {:.1} | {:.1} | {:.3} | {:.1} |",
                100.0 * mean(&within(found, 200.0)),
                100.0 * mean(&within(found, 750.0)),
                mean(&found.nll),
                100.0 * coverage(found),
            );
        }
        // Higher is better.
        let columns_of = |found: &Found| {
            let nll = found.nll.iter().map(|nll| -nll).collect();
            [("200 km", within(found, 200.0)), ("750 km", within(found, 750.0)), ("NLL", nll)]
        };
        let all: Vec<_> = found.iter().map(columns_of).collect();
        for column in 0..3 {
            let scores: Vec<Score> = all
                .iter()
                .map(|columns| Score::mean(columns[column].1.clone()))
                .collect::<Result<_, _>>()?;
            let best = scores.iter().max_by(|a, b| a.value().total_cmp(&b.value())).unwrap();
            let comparison = scores[PRODUCT].compared_with(best, &resampling, &mut rng)?;
            let ahead = scores[PRODUCT].value() >= best.value() || comparison.p_value > LEVEL;
            columns += 1;
            if ahead {
                good.push(format!("{name}, {}", all[0][column].0));
            }
        }
    }
    println!();
    let (even, removed) = (&settings[0], settings.last().context("settings")?);
    let at_200 = |method: usize| round(100.0 * mean(&within(&even.found[method], 200.0)));
    let nll = |setting: &Setting, method: usize| round(mean(&setting.found[method].nll));
    let figures: Value = json!({
        "n": rows,
        "columns": columns,
        "first_or_level": good.len(),
        "where": good,
        "product_within_200": at_200(PRODUCT),
        "density_within_200": at_200(0),
        "retrieval_within_200": at_200(1),
        "paper_within_200": at_200(2),
        "product_nll": nll(even, PRODUCT),
        "density_nll": nll(even, 0),
        "retrieval_nll": nll(even, 1),
        "removed_nll_loss": round(mean(&removed.found[PRODUCT].nll) - mean(&removed.found[0].nll)),
        "coverage_90": round(100.0 * coverage(&even.found[PRODUCT])),
    });
    println!("{figures}");
    Ok(())
}
