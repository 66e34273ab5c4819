//! What the model, and retrieval with its encoder, say of every view of the tests.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use locdiff::EarthView;
use locdiff_earth::{Renderer, View};
use locdiff_experiments::write_npy;
use locdiff_sphere::{Area, Decoder, LatLon};
use rayon::prelude::*;

use crate::outcomes::Outcomes;
use crate::pack::{pixels, read};
use crate::sets::{SETS, TestSet};
use crate::sources::Folders;
use crate::train::place;

const SEED: u64 = 3_000_017;
const GALLERY_SEED: u64 = 4_000_037;
/// What a crew can see from the station.
pub const CIRCLE_KM: f64 = 2500.0;
/// Views per set that are also located within the circle.
const WITH_CIRCLE: usize = 500;
const FIELDS: usize = 18;

/// One view, and what was said of it.
#[derive(Clone, Copy, Debug)]
pub struct Prediction {
    pub set: usize,
    pub width_km: f64,
    pub truth: LatLon,
    pub mode: LatLon,
    pub nll_nats: f64,
    pub level: f64,
    pub area_km2: f64,
    /// Within the circle, for some.
    pub circle: Option<(LatLon, f64, f64)>,
    pub retrieved: LatLon,
    pub likeness: f64,
    pub said_nats: f64,
    pub turned_away: bool,
}

fn field(place: LatLon) -> [f32; 2] {
    [place.latitude() as f32, place.longitude() as f32]
}

impl Prediction {
    fn row(&self) -> [f32; FIELDS] {
        let mut row = [f32::NAN; FIELDS];
        row[0] = self.set as f32;
        row[1] = self.width_km as f32;
        row[2..4].copy_from_slice(&field(self.truth));
        row[4..6].copy_from_slice(&field(self.mode));
        row[6] = self.nll_nats as f32;
        row[7] = self.level as f32;
        row[8] = self.area_km2 as f32;
        if let Some((place, nll, level)) = self.circle {
            row[9..11].copy_from_slice(&field(place));
            row[11] = nll as f32;
            row[12] = level as f32;
        }
        row[13..15].copy_from_slice(&field(self.retrieved));
        row[15] = self.likeness as f32;
        row[16] = self.said_nats as f32;
        row[17] = f32::from(u8::from(self.turned_away));
        row
    }

    fn of_row(row: &[f32]) -> Result<Prediction> {
        let number = |at: usize| f64::from(row[at]);
        let place = |at: usize| Ok::<_, anyhow::Error>(LatLon::new(number(at), number(at + 1))?);
        let circle = !row[9].is_nan();
        Ok(Prediction {
            set: row[0] as usize,
            width_km: number(1),
            truth: place(2)?,
            mode: place(4)?,
            nll_nats: number(6),
            level: number(7),
            area_km2: number(8),
            circle: if circle { Some((place(9)?, number(11), number(12))) } else { None },
            retrieved: place(13)?,
            likeness: number(15),
            said_nats: number(16),
            turned_away: row[17] != 0.0,
        })
    }
}

pub fn read_predictions(path: &Path) -> Result<Vec<Prediction>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let numbers: Vec<f32> = npyz::NpyFile::new(&bytes[..])?.into_vec()?;
    ensure!(numbers.len().is_multiple_of(FIELDS), "predictions of another version");
    numbers.chunks_exact(FIELDS).map(Prediction::of_row).collect()
}

/// Predicts `count` views of each set, and writes them.
pub fn predict(weights: &Path, out: &Path, count: usize, gallery: usize) -> Result<()> {
    let model = EarthView::from_bytes(&std::fs::read(weights)?, &Device::flex())?;
    let folders = Folders::from_environment()?;
    let gallery = Gallery::make(&model, &folders, gallery)?;
    eprintln!("{} places in the gallery", gallery.places.len());
    let mut rows = Vec::new();
    for (number, set) in SETS.iter().enumerate() {
        let predictions = predict_set(&model, &folders, &gallery, number, set, count)?;
        rows.extend(predictions.iter().flat_map(Prediction::row));
        eprintln!("{}: {count} views", set.name);
        write_npy(out, &[rows.len() / FIELDS, FIELDS], &rows)?;
    }
    Ok(())
}

fn predict_set(
    model: &EarthView,
    folders: &Folders,
    gallery: &Gallery,
    number: usize,
    set: &TestSet,
    count: usize,
) -> Result<Vec<Prediction>> {
    let side = model.settings().model.encoder.side;
    let views = set.render(folders, SEED, count, side)?;
    let readings = read(model, &views);
    let retrieved = gallery.nearest(&embeddings(model, &views));
    let max_degree = model.settings().model.max_degree;
    let (decoder, outcomes) = (Decoder::new(max_degree), Outcomes::new(max_degree));
    let numbered: Vec<usize> = (0..views.len()).collect();
    let predictions = numbered.into_par_iter().map(|at| {
        let (view, reading) = (&views[at], &readings[at]);
        let truth = place(view);
        let (outcome, said_nats) =
            outcomes.outcome(&outcomes.values(reading, truth), model.settings().sharpness);
        let label = &view.label;
        let below = LatLon::new(label.below_latitude, label.below_longitude).expect("on Earth");
        let inside = || within_circle(&model.density(reading), below, truth);
        let circle = (at < WITH_CIRCLE).then(inside).flatten();
        Prediction {
            set: number,
            width_km: label.width_km,
            truth,
            mode: decoder.mode(&reading.coefficients).place,
            nll_nats: outcome.nll_nats,
            level: outcome.level,
            area_km2: outcome.searched_area_km2,
            circle,
            retrieved: retrieved[at],
            likeness: reading.likeness,
            said_nats,
            turned_away: model.check(reading).is_err(),
        }
    });
    Ok(predictions.collect())
}

/// The mode, NLL and level of the truth, once it is known to lie near a place.
pub fn within_circle(
    density: &locdiff_sphere::Density,
    below: LatLon,
    truth: LatLon,
) -> Option<(LatLon, f64, f64)> {
    let circle = Area::circle(below, CIRCLE_KM).ok()?;
    let inside = density.restricted_to(circle).ok()?;
    let survey = inside.survey();
    let outcome = survey.outcome(truth);
    let best = survey.modes().modes.first().map(|mode| mode.place)?;
    Some((best, outcome.nll_nats, outcome.level))
}

/// Unit embeddings of views as they are, a row each.
fn embeddings(model: &EarthView, views: &[View]) -> Vec<f32> {
    let parts = views.par_chunks(32).map(|part| {
        let rows = model.network().encoder().forward(&pixels(part));
        let mut numbers: Vec<f32> = rows.into_data().try_to_vec().expect("f32");
        // Normalised embeddings all have the same length.
        let length = (model.settings().model.encoder.embedding as f32).sqrt();
        numbers.iter_mut().for_each(|number| *number /= length);
        numbers
    });
    parts.collect::<Vec<_>>().concat()
}

/// Retrieval: the place of the training view whose embedding is the nearest.
struct Gallery {
    places: Vec<LatLon>,
    embeddings: Vec<f32>,
    width: usize,
}

impl Gallery {
    fn make(model: &EarthView, folders: &Folders, count: usize) -> Result<Gallery> {
        let mask = folders.mask()?;
        let open = |name: &str| folders.open(name, &mask);
        let day = vec![open("blue-marble")?, open("bmng")?, open("may")?];
        let renderer = Renderer::new(mask.clone(), day, vec![open("black-marble")?]);
        let settings = &model.settings().model.encoder;
        let (mut places, mut all) = (Vec::new(), Vec::new());
        for start in (0..count as u64).step_by(4096) {
            let end = (start + 4096).min(count as u64);
            let views = renderer.render_range(GALLERY_SEED, start..end, settings.side);
            places.extend(views.iter().map(place));
            all.extend(embeddings(model, &views));
        }
        Ok(Gallery { places, embeddings: all, width: settings.embedding })
    }

    fn nearest(&self, queries: &[f32]) -> Vec<LatLon> {
        let width = self.width;
        let best_of = |query: &[f32]| {
            let mut best = (f32::MIN, 0);
            for (at, row) in self.embeddings.chunks_exact(width).enumerate() {
                let mut lanes = [0.0_f32; 16];
                for (a, b) in row.as_chunks::<16>().0.iter().zip(query.as_chunks::<16>().0) {
                    for k in 0..16 {
                        lanes[k] += a[k] * b[k];
                    }
                }
                let likeness: f32 = lanes.iter().sum();
                if likeness > best.0 {
                    best = (likeness, at);
                }
            }
            self.places[best.1]
        };
        queries.par_chunks(width).map(best_of).collect()
    }
}

/// Predictions of each set, by its number.
pub fn by_set(predictions: Vec<Prediction>) -> HashMap<usize, Vec<Prediction>> {
    let mut sets: HashMap<usize, Vec<Prediction>> = HashMap::new();
    for prediction in predictions {
        sets.entry(prediction.set).or_default().push(prediction);
    }
    sets
}
