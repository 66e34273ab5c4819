//! The built-in model on real pictures, as the program answers: views of the Earth of tier A
//! (`$LOCDIFF_DATA/realviews`: land is recognizable) and the astronaut photographs.

use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use locdiff::locate::Decode;
use locdiff::{Geolocator, Photo, Summary};
use locdiff_experiments::round;
use locdiff_sphere::{DensityOutcome, DensityScores, EARTH_RADIUS_KM, LatLon, PointScores};
use serde_json::{Map, Value, json};

use crate::astronaut;

/// As far as two places can be apart. A rejected picture counts as this far off.
const FARTHEST_KM: f64 = PI * EARTH_RADIUS_KM;
const RADII_KM: [u32; 3] = [200, 750, 2500];
const COLUMNS: [&str; 7] =
    ["n", "accepted", "within_200", "within_750", "within_2500", "mean_confidence", "coverage_90"];

/// Prints a table, and returns its figures by name.
pub fn report() -> Result<Map<String, Value>> {
    let model = Geolocator::open("earth-view")?;
    let sets = views_of_tier("A")?;
    println!("## Real pictures\n");
    println!(
        "The built-in model on real pictures, which it was not trained on. Shares are of all pictures of a row: a rejected picture counts as not within any radius. \
         Confidence is the score of the first candidate, averaged over the accepted pictures. Neighboring frames of a set overlap, so there are no intervals. \
         The astronaut photographs are mostly narrower than the 100 km that a view needs. Script: `experiments/earth-view/run --real`.\n"
    );
    println!(
        "| real pictures | n | accepted | ≤ 200 km, % | ≤ 750 km, % | ≤ 2500 km, % | mean confidence | truth in the 90 % region, % of the accepted |\n|---|---|---|---|---|---|---|---|"
    );
    let mut all = Vec::new();
    for (name, views) in sets {
        let answers = located(&model, views)?;
        row(&format!("{name}, tier A"), &figures(&answers)?);
        all.extend(answers);
    }
    let real = figures(&all)?;
    row("**all of tier A**", &real);
    let photographs = astronaut::photographs()?.into_iter().map(|photo| (photo.path, photo.truth));
    let astronaut = figures(&located(&model, photographs.collect())?)?;
    row("**astronaut photographs**", &astronaut);
    println!();
    let named = |prefix: &str, figures: Map<String, Value>| {
        let prefix = prefix.to_owned();
        figures.into_iter().map(move |(name, value)| (format!("{prefix}_{name}"), value))
    };
    Ok(named("real", real).chain(named("astronaut", astronaut)).collect())
}

/// Pictures and their true places, by set.
fn views_of_tier(tier: &str) -> Result<BTreeMap<String, Vec<(PathBuf, LatLon)>>> {
    let data = std::env::var("LOCDIFF_DATA").context("LOCDIFF_DATA is not set")?;
    let folder = Path::new(&data).join("realviews");
    let table = folder.join("views.csv");
    let table = std::fs::read_to_string(&table).with_context(|| table.display().to_string())?;
    let mut sets: BTreeMap<String, Vec<(PathBuf, LatLon)>> = BTreeMap::new();
    for line in table.lines().skip(1) {
        // Only later columns have quotes: file, latitude, longitude, width_km, heading, tier, …
        let fields: Vec<&str> = line.splitn(7, ',').collect();
        let [file, latitude, longitude, _, _, of_tier, ..] = fields[..] else {
            anyhow::bail!("views.csv has a line with {} columns: {line}", fields.len());
        };
        if of_tier == tier {
            let place = LatLon::new(latitude.parse()?, longitude.parse()?)?;
            let set = file.split('_').next().unwrap_or(file);
            sets.entry(set.to_owned()).or_default().push((folder.join(file), place));
        }
    }
    Ok(sets)
}

/// The answer to one picture.
struct Answer {
    distance_km: f64,
    /// Mass of the first candidate, and the density at the truth, if the picture was accepted.
    accepted: Option<(f64, DensityOutcome)>,
}

fn located(model: &Geolocator, pictures: Vec<(PathBuf, LatLon)>) -> Result<Vec<Answer>> {
    let answer = |(path, truth): (PathBuf, LatLon)| {
        let photo = Photo::open(&path).with_context(|| path.display().to_string())?;
        Ok(match model.locate(&photo) {
            Ok(estimate) => {
                let survey = estimate.survey();
                let summary = Summary::of(&survey, 1, Decode::Mode);
                let best = summary.best();
                Answer {
                    distance_km: best.place.distance_km(truth),
                    accepted: Some((best.mass, survey.outcome(truth))),
                }
            }
            Err(_) => Answer { distance_km: FARTHEST_KM, accepted: None },
        })
    };
    pictures.into_iter().map(answer).collect()
}

fn figures(answers: &[Answer]) -> Result<Map<String, Value>> {
    let scores = PointScores::of_distances(answers.iter().map(|a| a.distance_km).collect())?;
    let (confidences, outcomes): (Vec<f64>, Vec<DensityOutcome>) =
        answers.iter().filter_map(|a| a.accepted).unzip();
    let mut figures = Map::new();
    figures.insert("n".to_owned(), json!(answers.len()));
    figures.insert("accepted".to_owned(), json!(confidences.len()));
    for radius in RADII_KM {
        let share = 100.0 * scores.accuracy(f64::from(radius)).value();
        figures.insert(format!("within_{radius}"), json!(round(share)));
    }
    if !outcomes.is_empty() {
        let mean = confidences.iter().sum::<f64>() / confidences.len() as f64;
        let coverage = 100.0 * DensityScores::of(&outcomes)?.coverage(0.9).value();
        figures.insert("mean_confidence".to_owned(), json!(round(mean)));
        figures.insert("coverage_90".to_owned(), json!(round(coverage)));
    }
    Ok(figures)
}

fn row(name: &str, figures: &Map<String, Value>) {
    let cells = COLUMNS.map(|column| figures.get(column).map_or("–".to_owned(), Value::to_string));
    println!("| {name} | {} |", cells.join(" | "));
}
