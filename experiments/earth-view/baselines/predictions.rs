//! The committed answers of every method for every view.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use locdiff_experiments::baselines::Method;
use locdiff_experiments::write_npy;
use locdiff_sphere::LatLon;

const NUMBERS: usize = 4;

/// The answer of a method for one view.
#[derive(Debug, Clone, Copy)]
pub struct Prediction {
    pub place: LatLon,
    pub nll_nats: f64,
    /// Mass of what is at least as probable as the truth; not a number where it wasn't measured.
    pub level: f64,
}

/// One view's truth.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    pub place: LatLon,
    /// A number of `views::SETS`.
    pub set: usize,
    pub width_km: f64,
}

pub struct Predictions {
    pub truths: Vec<Truth>,
    /// In the order of `Method::ALL`, then of the truths.
    pub methods: Vec<Vec<Prediction>>,
}

impl Predictions {
    pub fn write(&self, path: &Path) -> Result<()> {
        let numbers = |place: LatLon, a: f64, b: f64| {
            [place.latitude() as f32, place.longitude() as f32, a as f32, b as f32]
        };
        let mut values: Vec<f32> = Vec::new();
        for truth in &self.truths {
            values.extend(numbers(truth.place, truth.set as f64, truth.width_km));
        }
        for prediction in self.methods.iter().flatten() {
            values.extend(numbers(prediction.place, prediction.nll_nats, prediction.level));
        }
        write_npy(path, &[1 + self.methods.len(), self.truths.len(), NUMBERS], &values)
    }

    pub fn read(path: &Path) -> Result<Predictions> {
        let file = File::open(path).with_context(|| path.display().to_string())?;
        let array = npyz::NpyFile::new(BufReader::new(file))?;
        let shape = array.shape().to_vec();
        let expected = [1 + Method::ALL.len() as u64, NUMBERS as u64];
        ensure!(
            shape.len() == 3 && [shape[0], shape[2]] == expected,
            "{path:?} has the shape {shape:?}, not {} × views × {NUMBERS}",
            expected[0]
        );
        let values: Vec<f32> = array.into_vec()?;
        let mut runs = values.chunks_exact(shape[1] as usize * NUMBERS).map(|run| {
            run.chunks_exact(NUMBERS)
                .map(|row| {
                    let place = LatLon::new(f64::from(row[0]), f64::from(row[1]))?;
                    Ok((place, f64::from(row[2]), f64::from(row[3])))
                })
                .collect::<Result<Vec<_>>>()
        });
        let truths = runs.next().context("no truths")??;
        let truth = |(place, set, width_km)| Truth { place, set: set as usize, width_km };
        let prediction = |(place, nll_nats, level)| Prediction { place, nll_nats, level };
        let methods = runs
            .map(|run| Ok(run?.into_iter().map(prediction).collect()))
            .collect::<Result<_>>()?;
        Ok(Predictions { truths: truths.into_iter().map(truth).collect(), methods })
    }
}
