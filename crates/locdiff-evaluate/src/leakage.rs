//! What a test set shares with training: places, and pictures that are almost the same.

use std::path::Path;

use locdiff_sphere::{LatLon, PlaceIndex};

use super::benchmark_files::manifest_path;
use super::error::EvaluationError;
use super::table::{PlaceTable, Role, Units};
use locdiff_train::{Dataset, Ids, OnBadShard, StreamOptions};

/// A test place at most this far from one of training counts as shared: 0.1 km, the reach of a GPS fix in a
/// town and of a walk around a building. Two pictures from there may well show the same.
pub const LEAKAGE_KM: f64 = 0.1;

/// Embeddings with at least this cosine count as of almost the same picture: 0.98. Which number means
/// "the same" depends on the encoder; look at pairs before you trust it.
pub const LEAKAGE_COSINE: f64 = 0.98;

/// Rows of training that are compared at a time.
const BATCH: usize = 4096;

/// Images by name, with their places.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamedPlaces {
    /// Names of the images, in the order of `places`.
    pub names: Vec<String>,
    /// Where they were taken.
    pub places: Vec<LatLon>,
}

impl NamedPlaces {
    /// From a table of places, a folder with a `manifest.csv`, or a data set of embeddings.
    pub fn read(path: &Path) -> Result<NamedPlaces, EvaluationError> {
        if is_embeddings(path) {
            let set = Dataset::open(&path.to_string_lossy(), OnBadShard::Fail)?;
            let mut named = NamedPlaces::default();
            for batch in set.stream(one_pass())? {
                let batch = batch?;
                named.names.extend(batch.ids);
                named.places.extend(batch.places);
            }
            return Ok(named);
        }
        let table = PlaceTable::read(&manifest_path(path), Role::Truth, Units::Degrees)?;
        let rows = table.rows.into_iter().enumerate().filter_map(|(number, row)| {
            Some((row.image.unwrap_or_else(|| format!("row {}", number + 1)), row.place?))
        });
        let (names, places) = rows.unzip();
        Ok(NamedPlaces { names, places })
    }
}

/// Whether a path is a data set of embeddings: a folder of shards without a manifest.
pub fn is_embeddings(path: &Path) -> bool {
    path.is_dir() && !manifest_path(path).is_file()
}

fn one_pass() -> StreamOptions {
    StreamOptions { batch: BATCH, epochs: Some(1), ids: Ids::Include, ..Default::default() }
}

/// A test image near a place of training.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceTwin {
    /// Its number in the test set.
    pub test: usize,
    /// The number of the nearest place of training.
    pub training: usize,
    /// How far they are apart.
    pub distance_km: f64,
}

/// A test image like one of training.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingTwin {
    /// Id of the image of the test set.
    pub test: String,
    /// The id of the most similar one of training.
    pub training: String,
    /// How similar they are: 1 is the same direction.
    pub cosine: f64,
    /// How far apart they were taken, by the places of both sets.
    pub distance_km: f64,
}

/// The test images within a distance of a place of training, the nearest first.
pub fn place_leakage(test: &[LatLon], training: &[LatLon], within_km: f64) -> Vec<PlaceTwin> {
    let index = PlaceIndex::new(training);
    let mut twins: Vec<PlaceTwin> = test
        .iter()
        .enumerate()
        .filter_map(|(number, place)| {
            let (nearest, distance_km) = index.nearest(*place)?;
            let twin = PlaceTwin { test: number, training: nearest, distance_km };
            (distance_km <= within_km).then_some(twin)
        })
        .collect();
    twins.sort_by(|a, b| a.distance_km.total_cmp(&b.distance_km).then(a.test.cmp(&b.test)));
    twins
}

/// The test images whose embedding is almost that of an image of training, the most similar first: every
/// pair is compared. Both are data sets as `locdiff embed` writes them, by the same encoder. `progress` is called with how many
/// rows of training are done.
pub fn embedding_leakage(
    test: &str,
    training: &str,
    at_least: f64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<EmbeddingTwin>, EvaluationError> {
    let (test_set, training_set) =
        (Dataset::open(test, OnBadShard::Fail)?, Dataset::open(training, OnBadShard::Fail)?);
    let identity =
        |set: &Dataset| format!("{} ({} numbers)", set.layout().encoder, set.layout().width);
    let (ours, theirs) = (test_set.layout(), training_set.layout());
    if ours.width != theirs.width || ours.encoder.check(&theirs.encoder).is_err() {
        return Err(EvaluationError::Encoders {
            test: test.to_owned(),
            test_encoder: identity(&test_set),
            train: training.to_owned(),
            train_encoder: identity(&training_set),
        });
    }
    let width = test_set.layout().width;
    let (mut ids, mut places, mut directions) = (Vec::new(), Vec::new(), Vec::new());
    for batch in test_set.stream(one_pass())? {
        let batch = batch?;
        ids.extend(batch.ids);
        places.extend(batch.places);
        directions.extend(of_length_one(batch.embeddings, width));
    }
    let mut best: Vec<Option<EmbeddingTwin>> = vec![None; ids.len()];
    let mut done = 0;
    for batch in training_set.stream(one_pass())? {
        let batch = batch?;
        let others = of_length_one(batch.embeddings, width);
        for (number, direction) in directions.chunks_exact(width).enumerate() {
            for (row, other) in others.chunks_exact(width).enumerate() {
                let cosine = dot(direction, other);
                let known = best[number].as_ref().map_or(at_least, |twin| twin.cosine);
                let is_better = cosine > known || (best[number].is_none() && cosine >= at_least);
                if is_better {
                    best[number] = Some(EmbeddingTwin {
                        test: ids[number].clone(),
                        training: batch.ids[row].clone(),
                        cosine,
                        distance_km: places[number].distance_km(batch.places[row]),
                    });
                }
            }
        }
        done += batch.places.len() as u64;
        progress(done, training_set.rows());
    }
    let mut twins: Vec<EmbeddingTwin> = best.into_iter().flatten().collect();
    twins.sort_by(|a, b| b.cosine.total_cmp(&a.cosine).then_with(|| a.test.cmp(&b.test)));
    Ok(twins)
}

/// Rows as directions; a row of zeros stays one, and is like no other.
fn of_length_one(mut embeddings: Vec<f32>, width: usize) -> Vec<f32> {
    for row in embeddings.chunks_exact_mut(width) {
        let length = dot(row, row).sqrt() as f32;
        if length > 0.0 {
            row.iter_mut().for_each(|number| *number /= length);
        }
    }
    embeddings
}

/// In eight sums, which the compiler keeps in one register.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0_f32; 8];
    let (a_parts, b_parts) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a_parts.remainder().iter().zip(b_parts.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_parts.zip(b_parts) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    f64::from(sums.iter().sum::<f32>() + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_training_is_found_across_the_antimeridian_and_at_a_pole() {
        let at = |latitude, longitude| LatLon::new(latitude, longitude).expect("a place");
        let training = [at(0.0, -179.9999), at(90.0, 55.0), at(10.0, 10.0)];
        let test = [at(0.0, 179.9999), at(89.9999, -120.0), at(10.0, 10.1)];
        let twins = place_leakage(&test, &training, LEAKAGE_KM);
        let found: Vec<(usize, usize)> =
            twins.iter().map(|twin| (twin.test, twin.training)).collect();
        assert_eq!(found, [(1, 1), (0, 0)]);
        assert!(twins[0].distance_km < twins[1].distance_km && twins[1].distance_km < 0.03);
        assert_eq!(place_leakage(&test, &[], 1e9), []);
    }

    #[test]
    fn products_are_sums_of_products() {
        let a: Vec<f32> = (0..19).map(|i| i as f32 * 0.5).collect();
        let b: Vec<f32> = (0..19).map(|i| 3.0 - i as f32).collect();
        let plain: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        assert!((dot(&a, &b) - f64::from(plain)).abs() < 1e-3);
        let row = of_length_one(vec![3.0, 4.0, 0.0, 0.0], 2);
        assert_eq!(row, [0.6, 0.8, 0.0, 0.0]);
    }
}
