//! A density model and a gallery: each alone, the paper's rule, and the product, on rendered views of an unseen source.
//!
//! ```text
//! hybrid MODEL REFERENCES TEST MP16   with references from a data set of embeddings; MP16 is GeoCLIP's wheel
//! hybrid MODEL TEST                   --quick: references are a part of the test rows, and none are like MP16
//! ```
//!
//! Of the test rows, some fit everything that is fitted: the likelihood of each gallery and a calibration of each method
//! (the power or the kernel's width that is most likely, and the share of the uniform density). The others are scored.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use burn::tensor::Device;
use locdiff::encoders::EncoderRecord;
use locdiff::locate::InvalidInference;
use locdiff::models::geoclip::GeoClip;
use locdiff::models::{EncoderSource, HybridConfig, HybridModel, HybridRule};
use locdiff::{
    Geolocator, Inference, Located, LocationModel, ModelIdentity, NotItsKind, OpenOptions, Photo,
};
use locdiff_experiments::round;
use locdiff_gallery::{Fit, Gallery, GalleryWriter, Likelihood};
use locdiff_sphere::{
    Area, Density, Kernel, LatLon, PlaceIndex, PointMasses, Resampling, Score, UNIFORM_NLL_NATS,
};
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
/// Powers, widths and shares that calibrations try.
const POWERS: [f64; 12] = [0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
const WIDTHS_KM: [f64; 10] = [30.0, 50.0, 80.0, 120.0, 180.0, 260.0, 380.0, 550.0, 800.0, 1200.0];
const SHARES: [f64; 12] = [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.15, 0.25, 0.4, 0.6];
/// Below this, a difference is one.
const LEVEL: f64 = 0.05;

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

/// A model whose densities are raised to a power and mixed with the uniform one.
struct Calibrated {
    model: Geolocator,
    power: f64,
    share: f64,
}

impl Calibrated {
    fn density(&self, density: &Density) -> Density {
        calibrated(density, self.power, self.share)
    }
}

fn calibrated(density: &Density, power: f64, share: f64) -> Density {
    let powered = match power {
        1.0 => density.clone(),
        power => Density::product(vec![(power, density.clone())]).unwrap(),
    };
    with_uniform(powered, share)
}

fn with_uniform(density: Density, share: f64) -> Density {
    Density::mixture(vec![(1.0 - share, density), (share, Density::uniform())]).unwrap()
}

impl LocationModel for Calibrated {
    fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }

    fn check(&self, _inference: &Inference) -> Result<Vec<String>, InvalidInference> {
        Ok(Vec::new())
    }

    fn locate(&self, photos: &[Photo], _inference: &Inference) -> Vec<Result<Located, NotItsKind>> {
        let restricted = |estimate: locdiff::Estimate| self.density(estimate.density()).into();
        self.model.locate_all(photos).into_iter().map(|answer| answer.map(restricted)).collect()
    }

    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        self.model.embed(photos)
    }

    fn locate_embeddings(
        &self,
        embeddings: &[f32],
        views: usize,
        _inference: &Inference,
    ) -> Option<Vec<Density>> {
        let estimates = self.model.locate_embeddings(embeddings, views)?;
        Some(estimates.par_iter().map(|estimate| self.density(estimate.density())).collect())
    }

    fn takes_embeddings_of(&self) -> Option<(&EncoderRecord, usize)> {
        self.model.takes_embeddings_of()
    }
}

/// The share of the uniform density under which these log-densities are most likely, and the mean NLL.
fn best_share(logs: &[f64]) -> (f64, f64) {
    let nll = |share: f64| {
        let uniform = share * (-UNIFORM_NLL_NATS).exp();
        let sum: f64 = logs.iter().map(|log| -((1.0 - share) * log.exp() + uniform).ln()).sum();
        sum / logs.len() as f64
    };
    let scored = SHARES.into_iter().map(|share| (share, nll(share)));
    scored.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
}

/// The power and share under which truths are most likely.
fn fit_power(densities: &[Density], truths: &[LatLon]) -> (f64, f64) {
    let tried = POWERS.into_iter().map(|power| {
        let logs: Vec<f64> = densities
            .par_iter()
            .zip(truths)
            .map(|(density, truth)| {
                Density::product(vec![(power, density.clone())]).unwrap().log_density(*truth)
            })
            .collect();
        let (share, nll) = best_share(&logs);
        (power, share, nll)
    });
    let (power, share, _) = tried.min_by(|a, b| a.2.total_cmp(&b.2)).unwrap();
    (power, share)
}

/// What is found for each row: distance of the place to the truth, NLL, and the level of the region that holds the truth.
#[derive(Clone)]
struct Found {
    distances_km: Vec<f64>,
    nll: Vec<f64>,
    levels: Vec<f64>,
}

fn found(densities: Vec<Density>, truths: &[LatLon]) -> Found {
    let rows: Vec<(f64, f64, f64)> = densities
        .into_par_iter()
        .zip(truths)
        .map(|(density, truth)| {
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
    references: usize,
    /// In the order of [`METHODS`].
    found: Vec<Found>,
}

/// A gallery, fitted, and what is made with it.
struct Methods<'a> {
    gallery: Gallery,
    likelihood: Likelihood,
    paper: HybridModel,
    product: HybridModel,
    inference: Inference,
    test: &'a Rows,
    fitted: &'a Rows,
}

impl<'a> Methods<'a> {
    fn new(
        directory: &Path,
        model: impl Fn() -> Geolocator,
        test: &'a Rows,
        fitted: &'a Rows,
    ) -> Result<Methods<'a>> {
        let gallery = Gallery::open(directory)?;
        let mut fit = Fit::new(&gallery);
        for (row, place) in fitted.places.iter().enumerate() {
            fit.push(fitted.embedding(row), *place, &fitted.ids[row])?;
        }
        let likelihood = fit.finish("rendered views of an unseen mosaic")?;
        likelihood.write(&gallery)?;
        let hybrid = |rule| -> Result<HybridModel> {
            let config = HybridConfig::new("model", "gallery", rule);
            Ok(HybridModel::new(model(), Gallery::open(directory)?, config, "hybrid")?)
        };
        let (paper, product) = (hybrid(HybridRule::Paper)?, hybrid(HybridRule::Product)?);
        let inference = product.inference();
        Ok(Methods { gallery, likelihood, paper, product, inference, test, fitted })
    }

    /// The gallery's own density, as the model kind `gallery` answers.
    fn retrieval(&self, rows: &Rows, row: usize, removed: Option<&Area>) -> Density {
        let count = if removed.is_some() { 4096 } else { Likelihood::HITS };
        let mut hits = self.gallery.search(rows.embedding(row), count).unwrap();
        hits.retain(|hit| !removed.is_some_and(|area| area.contains(self.gallery.place(hit.row))));
        self.likelihood.evidence(&self.gallery, &hits).unwrap().density().unwrap()
    }

    fn hybrid(&self, model: &HybridModel, rows: &Rows, remove: bool) -> Vec<Density> {
        if !remove {
            return model.locate_embeddings(&rows.embeddings, 1, &self.inference).unwrap();
        }
        let density = |row: usize| {
            let removed = circle(rows.places[row]);
            model.locate_without(rows.embedding(row), &self.inference, &removed).unwrap().density
        };
        (0..rows.places.len()).into_par_iter().map(density).collect()
    }

    fn retrievals(&self, rows: &Rows, remove: bool) -> Vec<Density> {
        let density = |row: usize| {
            let removed = remove.then(|| circle(rows.places[row]));
            self.retrieval(rows, row, removed.as_ref())
        };
        (0..rows.places.len()).into_par_iter().map(density).collect()
    }

    /// All methods. Calibrations are those of the whole gallery: nobody knows beforehand that references are missing.
    fn setting(&self, name: &'static str, remove: bool, density: &Found) -> Setting {
        let (test, fitted) = (self.test, self.fitted);
        let logs = |densities: &[Density]| -> Vec<f64> {
            let pairs = densities.iter().zip(&fitted.places);
            pairs.map(|(density, truth)| density.log_density(*truth)).collect()
        };
        let uniform = |densities: Vec<Density>, share: f64| -> Vec<Density> {
            densities.into_iter().map(|density| with_uniform(density, share)).collect()
        };
        let (share, nll) = best_share(&logs(&self.retrievals(fitted, false)));
        eprintln!("{name}: retrieval mixed with {share}, {nll:.3} nats on fitted rows");
        let retrieval = found(uniform(self.retrievals(test, remove), share), &test.places);

        let winners = self.hybrid(&self.paper, fitted, false);
        let tried = WIDTHS_KM.into_iter().map(|width_km| {
            let wide: Vec<Density> =
                winners.iter().map(|density| widened(density, width_km)).collect();
            let (share, nll) = best_share(&logs(&wide));
            (width_km, share, nll)
        });
        let (width_km, share, nll) = tried.min_by(|a, b| a.2.total_cmp(&b.2)).unwrap();
        eprintln!("{name}: paper {width_km} km wide, mixed with {share}, {nll:.3} nats");
        let winners = self.hybrid(&self.paper, test, remove);
        let wide = winners.iter().map(|density| widened(density, width_km)).collect();
        let paper = found(uniform(wide, share), &test.places);

        let (share, nll) = best_share(&logs(&self.hybrid(&self.product, fitted, false)));
        eprintln!("{name}: product mixed with {share}, {nll:.3} nats");
        let product = found(uniform(self.hybrid(&self.product, test, remove), share), &test.places);
        let found = vec![density.clone(), retrieval, paper, product];
        Setting { name, references: self.gallery.len(), found }
    }
}

fn circle(place: LatLon) -> Area {
    Area::circle(place, REMOVED_KM).unwrap()
}

/// The paper's winner with another kernel; a density of the model, where there was no winner, as it is.
fn widened(density: &Density, width_km: f64) -> Density {
    match density {
        Density::PointMasses(spread) if spread.points().len() == 1 => {
            let places = spread.points().places().to_vec();
            PointMasses::new(places, &[1.0]).unwrap().spread(Kernel::new(width_km).unwrap())
        }
        density => density.clone(),
    }
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
    let scratch = tempfile::tempdir()?;
    let at = |name: &str| scratch.path().join(name);
    let (model, all, references, wheel) = match &arguments[..] {
        [model, references, test, wheel] => {
            (*model, Rows::read(test)?, Some(Rows::read(references)?), Some(*wheel))
        }
        [model, test] => (*model, Rows::read(test)?, None, None),
        _ => bail!("see the head of main.rs"),
    };
    let mut order: Vec<usize> = (0..all.places.len()).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
    // Quickly: most of the rows are references, and few are scored.
    let references = match references {
        Some(references) => references,
        None => all.part(&order.split_off(1000)),
    };
    let fitted_rows = if wheel.is_some() { FITTED } else { FITTED / 2 };
    let (fitted, test) = order.split_at(fitted_rows);
    let (fitted, test) = (all.part(fitted), all.part(test));
    ensure!(test.width == references.width, "embeddings of one encoder");

    let options = OpenOptions { encoder: EncoderSource::NotNeeded, ..OpenOptions::default() };
    let bare = Geolocator::open_with(model, &options, &mut |_, _| {})?;
    let raw = |rows: &Rows| -> Result<Vec<Density>> {
        let estimates = bare.locate_embeddings(&rows.embeddings, 1).context("embeddings")?;
        Ok(estimates.iter().map(|estimate| estimate.density().clone()).collect())
    };
    let (power, share) = fit_power(&raw(&fitted)?, &fitted.places);
    eprintln!("density: power {power}, mixed with {share}");
    let densities = raw(&test)?;
    let densities = densities.par_iter().map(|density| calibrated(density, power, share)).collect();
    let density = found(densities, &test.places);
    let calibrated_model = || {
        let model = Calibrated { model: bare.clone(), power, share };
        Geolocator::from_model(model).expect("a model without options")
    };

    let even = references.gallery(&at("even"))?;
    let even = Methods::new(&even, calibrated_model, &test, &fitted)?;
    let mut settings =
        vec![even.setting("even", false, &density), even.setting("removed", true, &density)];
    if let Some(wheel) = wheel {
        let like = references.part(&like_mp16(&references, wheel)?).gallery(&at("mp16"))?;
        let like = Methods::new(&like, calibrated_model, &test, &fitted)?;
        settings.insert(1, like.setting("like MP16", false, &density));
    }
    report(&settings, test.places.len())
}

/// The table, and the last line.
fn report(settings: &[Setting], rows: usize) -> Result<()> {
    println!(
        "| gallery | references | method | ≤ 200 km, % | ≤ 750 km, % | NLL, nats | truth in 90 % region, % |"
    );
    println!("|---|---|---|---|---|---|---|");
    let within = |found: &Found, km: f64| -> Vec<f64> {
        found.distances_km.iter().map(|d| f64::from(u8::from(*d <= km))).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
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
    for Setting { name, references, found } in settings {
        for (method, found) in METHODS.iter().zip(found) {
            println!(
                "| {name} | {references} | {method} | {:.1} | {:.1} | {:.3} | {:.1} |",
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
