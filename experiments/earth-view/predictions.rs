//! What the model, and retrieval with its encoder, say of every view of the tests.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use locdiff::LocationModel;
use locdiff::models::earth_view::EarthView;
use locdiff_experiments::{read_npy, write_npy};
use locdiff_sphere::{Area, Decoder, Density, LatLon};
use rayon::prelude::*;

use crate::outcomes::Outcomes;
use crate::pack::read;
use crate::retrieval::Gallery;
use crate::sets::{SETS, TestSet, place};
use locdiff_experiments::earth_sources::Folders;

pub const SEED: u64 = 3_000_017;
/// What a crew can see from the station.
const CIRCLE_KM: f64 = 2500.0;
/// Views per set that are also located within the circle.
pub const WITH_CIRCLE: usize = 500;
const FIELDS: usize = 19;

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
    pub circle: Option<Inside>,
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
        if let Some(inside) = self.circle {
            row[9..11].copy_from_slice(&field(inside.mode));
            row[11] = inside.nll_nats as f32;
            row[12] = inside.level as f32;
            row[18] = inside.region_km2 as f32;
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
        let inside = || -> Result<Inside> {
            Ok(Inside {
                mode: place(9)?,
                nll_nats: number(11),
                level: number(12),
                region_km2: number(18),
            })
        };
        Ok(Prediction {
            set: row[0] as usize,
            width_km: number(1),
            truth: place(2)?,
            mode: place(4)?,
            nll_nats: number(6),
            level: number(7),
            area_km2: number(8),
            circle: if row[9].is_nan() { None } else { Some(inside()?) },
            retrieved: place(13)?,
            likeness: number(15),
            said_nats: number(16),
            turned_away: row[17] != 0.0,
        })
    }
}

pub fn open_model(weights: &Path) -> Result<EarthView> {
    let bytes = std::fs::read(weights).with_context(|| weights.display().to_string())?;
    Ok(EarthView::from_bytes(&bytes, &Device::flex())?)
}

/// The predictions, if they are those of this model.
pub fn read_predictions(path: &Path, model: &EarthView) -> Result<Vec<Prediction>> {
    let made_by = std::fs::read_to_string(path.with_extension("weights"))?;
    let version = &model.identity().version;
    ensure!(
        made_by.trim() == version,
        "{} are predictions of weights {}, these are {version}: run experiments/earth-view/run",
        path.display(),
        made_by.trim(),
    );
    let numbers = read_npy(path)?;
    ensure!(numbers.len().is_multiple_of(FIELDS), "predictions of another version");
    numbers.chunks_exact(FIELDS).map(Prediction::of_row).collect()
}

/// Predicts `count` views of each set, and writes them.
pub fn predict(weights: &Path, out: &Path, count: usize, gallery: usize) -> Result<()> {
    let model = open_model(weights)?;
    let folders = Folders::from_environment()?;
    let gallery = Gallery::open(gallery, model.settings().model.encoder.embedding)?;
    let mut rows = Vec::new();
    for (number, set) in SETS.iter().enumerate() {
        let predictions = predict_set(&model, &folders, &gallery, number, set, count)?;
        rows.extend(predictions.iter().flat_map(Prediction::row));
        eprintln!("{}: {} views", set.name, predictions.len());
        write_npy(out, &[rows.len() / FIELDS, FIELDS], &rows)?;
    }
    std::fs::write(out.with_extension("weights"), format!("{}\n", model.identity().version))?;
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
    let views = set.render(folders, SEED, set.count(count), side)?;
    let readings = read(model, &views);
    let retrieved = gallery.nearest(model, &views);
    let max_degree = model.settings().model.max_degree;
    let (decoder, outcomes) = (Decoder::new(max_degree), Outcomes::new(max_degree));
    let numbered: Vec<usize> = (0..views.len()).collect();
    let predictions = numbered.into_par_iter().map(|at| {
        let (view, reading) = (&views[at], &readings[at]);
        let truth = place(view);
        let outcome =
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
            said_nats: reading.said_nats,
            turned_away: model.accept(reading).is_err(),
        }
    });
    Ok(predictions.collect())
}

/// What is said once the place is known to lie near another.
#[derive(Clone, Copy, Debug)]
pub struct Inside {
    pub mode: LatLon,
    pub nll_nats: f64,
    /// The least region with the truth in it has this probability.
    pub level: f64,
    /// Area of the 90 % region.
    pub region_km2: f64,
}

pub fn within_circle(density: &Density, below: LatLon, truth: LatLon) -> Option<Inside> {
    let circle = Area::circle(below, CIRCLE_KM).ok()?;
    let inside = density.restricted_to(circle).ok()?;
    let survey = inside.survey();
    let outcome = survey.outcome(truth);
    Some(Inside {
        mode: survey.modes().modes.first().map(|mode| mode.place)?,
        nll_nats: outcome.nll_nats,
        level: outcome.level,
        region_km2: survey.region(0.9).area_km2(),
    })
}

/// Predictions of each set, by its number.
pub fn by_set(predictions: Vec<Prediction>) -> HashMap<usize, Vec<Prediction>> {
    let mut sets: HashMap<usize, Vec<Prediction>> = HashMap::new();
    for prediction in predictions {
        sets.entry(prediction.set).or_default().push(prediction);
    }
    sets
}
