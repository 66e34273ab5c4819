//! A task with real places and made-up images, that anybody can rebuild.
//!
//! Places are the coordinates of GeoCLIP's gallery (MP16). The "image" of a place is
//! GeoCLIP's embedding of the place itself plus noise of different strength along each axis,
//! always the same for the same place, scaled so that the nearest neighbour among the
//! training places' clean embeddings is right within 200 km for half of the test places.
//! It compares objectives and samplers, and gives no information about photographs.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::models::geoclip::{GeoClip, LocationEncoder};
use locdiff_sphere::LatLon;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::{flat, places_of, read_npy, standard_normal, write_npy};

const SEED: u64 = 5;
/// Seeds of further images of the training places count from here.
const MORE_IMAGES_SEED: u64 = 100;
/// Test places.
const TEST_COUNT: usize = 2000;
/// Training places lie at least this far from every test place.
const APART_KM: f64 = 1.0;
/// Share of test places that the nearest neighbour must find within 200 km.
const RETRIEVAL_TARGET: f64 = 0.5;

/// Places with their made-up image embeddings.
pub struct Split {
    pub places: Vec<LatLon>,
    /// One row per place.
    pub conditions: Vec<f32>,
}

/// Training and test rows of the simulation.
pub struct Simulation {
    /// What a model learns from.
    pub train: Split,
    /// What it is judged by.
    pub test: Split,
    /// Length of an embedding.
    pub width: usize,
    /// Share of the test places that the nearest neighbour finds within 200 km, in percent.
    pub retrieval_within_200: f64,
    /// Length of the noise against that of the embedding.
    pub noise: f64,
    /// GeoCLIP's whole gallery, some places more than once.
    pub gallery: Vec<LatLon>,
    encoder: LocationEncoder,
    /// Of the noise along each axis; their squares sum to one.
    strengths: Vec<f64>,
}

impl Simulation {
    /// Builds the task from the wheel of GeoCLIP.
    pub fn build(wheel: &Path, device: &Device) -> Result<Simulation> {
        let geoclip = GeoClip::import(wheel, device).context("GeoCLIP's wheel")?;
        let mut places = geoclip.gallery.clone();
        places.sort_by(|a, b| {
            (a.latitude(), a.longitude()).partial_cmp(&(b.latitude(), b.longitude())).unwrap()
        });
        places.dedup();
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        places.shuffle(&mut rng);
        let test_places = places.split_off(places.len() - TEST_COUNT);
        let places = far_from(&test_places, places);
        let width = geoclip.location_encoder.width();
        let embed = |places: &[LatLon]| -> Vec<f32> {
            geoclip.location_encoder.embed(places).into_data().try_to_vec().unwrap()
        };
        let (clean_train, clean_test) = (embed(&places), embed(&test_places));
        // Axes differ in strength by factors of e either way.
        let strengths: Vec<f64> = (0..width).map(|_| standard_normal(&mut rng).exp()).collect();
        let length = strengths.iter().map(|s| s * s).sum::<f64>().sqrt();
        let strengths: Vec<f64> = strengths.iter().map(|s| s / length).collect();
        let noise_of = |count: usize, rng: &mut ChaCha8Rng| -> Vec<f32> {
            let values = (0..count * width).map(|k| standard_normal(rng) * strengths[k % width]);
            values.map(|value| value as f32).collect()
        };
        let (train_noise, test_noise) =
            (noise_of(places.len(), &mut rng), noise_of(test_places.len(), &mut rng));
        // More noise, fewer hits: halve the interval, by factors.
        let gallery = Tensor::<2>::from_data(
            TensorData::new(clean_train.clone(), [places.len(), width]),
            device,
        );
        let (mut low, mut high) = (1.0_f64, 64.0_f64);
        let mut retrieval = 0.0;
        for _ in 0..12 {
            let noise = (low * high).sqrt();
            let queries = noisy(&clean_test, &test_noise, noise, width);
            retrieval = hits(&gallery, &queries, width, &places, &test_places, device);
            if (retrieval - RETRIEVAL_TARGET).abs() < 0.01 {
                low = noise;
                high = noise;
                break;
            }
            if retrieval > RETRIEVAL_TARGET { low = noise } else { high = noise }
        }
        let noise = (low * high).sqrt();
        ensure!((retrieval - RETRIEVAL_TARGET).abs() < 0.05, "retrieval finds {retrieval}");
        Ok(Simulation {
            train: Split { conditions: noisy(&clean_train, &train_noise, noise, width), places },
            test: Split {
                conditions: noisy(&clean_test, &test_noise, noise, width),
                places: test_places,
            },
            width,
            retrieval_within_200: 100.0 * retrieval,
            noise,
            gallery: geoclip.gallery,
            encoder: geoclip.location_encoder,
            strengths,
        })
    }

    /// The same, kept in a folder between programs: building it takes a minute or two.
    pub fn cached(wheel: &Path, folder: &Path, device: &Device) -> Result<Simulation> {
        let path = |name: &str| folder.join(format!("simulation-{name}"));
        if !path("about.json").exists() {
            let built = Simulation::build(wheel, device)?;
            std::fs::create_dir_all(folder)?;
            for (name, split) in [("train", &built.train), ("test", &built.test)] {
                let count = split.places.len();
                let places = flat(&split.places);
                write_npy(&path(&format!("{name}-places.npy")), &[count, 2], &places)?;
                let file = path(&format!("{name}-images.npy"));
                write_npy(&file, &[count, built.width], &split.conditions)?;
            }
            let about = json!({
                "retrieval_within_200": built.retrieval_within_200,
                "noise": built.noise,
                "strengths": built.strengths,
            });
            std::fs::write(path("about.json"), about.to_string())?;
        }
        let about: Value = serde_json::from_slice(&std::fs::read(path("about.json"))?)?;
        let split = |name: &str| -> Result<Split> {
            let places = places_of(&read_npy(&path(&format!("{name}-places.npy")))?)?;
            Ok(Split { places, conditions: read_npy(&path(&format!("{name}-images.npy")))? })
        };
        let geoclip = GeoClip::import(wheel, device).context("GeoCLIP's wheel")?;
        let number = |value: &Value| value.as_f64().context("not a number");
        Ok(Simulation {
            train: split("train")?,
            test: split("test")?,
            width: geoclip.location_encoder.width(),
            retrieval_within_200: number(&about["retrieval_within_200"])?,
            noise: number(&about["noise"])?,
            gallery: geoclip.gallery,
            encoder: geoclip.location_encoder,
            strengths: about["strengths"]
                .as_array()
                .context("no strengths")?
                .iter()
                .map(number)
                .collect::<Result<_>>()?,
        })
    }

    /// Made-up images of other places, by the same rule.
    pub fn images_of(&self, places: &[LatLon], seed: u64) -> Split {
        Split { places: places.to_vec(), conditions: self.with_noise(&self.embed(places), seed) }
    }

    /// Gives every training place more images, so that a long training doesn't learn the noise of one
    /// by heart. Clean embeddings are kept in the folder.
    pub fn add_images(&mut self, images_per_place: usize, folder: &Path) -> Result<()> {
        let path = folder.join("simulation-train-clean.npy");
        let places = self.train.places.clone();
        if !path.exists() {
            write_npy(&path, &[places.len(), self.width], &self.embed(&places))?;
        }
        let clean = read_npy(&path)?;
        for seed in 1..images_per_place as u64 {
            self.train.conditions.extend(self.with_noise(&clean, MORE_IMAGES_SEED + seed));
            self.train.places.extend_from_slice(&places);
        }
        Ok(())
    }

    fn with_noise(&self, clean: &[f32], seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let noise: Vec<f32> = (0..clean.len())
            .map(|k| (standard_normal(&mut rng) * self.strengths[k % self.width]) as f32)
            .collect();
        noisy(clean, &noise, self.noise, self.width)
    }

    /// GeoCLIP's embeddings of places, without noise: what retrieval compares an image with.
    pub fn embed(&self, places: &[LatLon]) -> Vec<f32> {
        self.encoder.embed(places).into_data().try_to_vec().unwrap()
    }
}

/// Embeddings plus noise, scaled to unit mean square per number.
fn noisy(clean: &[f32], noise: &[f32], strength: f64, width: usize) -> Vec<f32> {
    let scale = (width as f64 / (1.0 + strength * strength)).sqrt();
    let sums = clean.iter().zip(noise);
    sums.map(|(a, b)| (scale * (f64::from(*a) + strength * f64::from(*b))) as f32).collect()
}

/// Share of queries whose nearest neighbour lies within 200 km of the truth.
fn hits(
    gallery: &Tensor<2>,
    queries: &[f32],
    width: usize,
    places: &[LatLon],
    truths: &[LatLon],
    device: &Device,
) -> f64 {
    let mut found = 0;
    for (queries, truths) in queries.chunks(250 * width).zip(truths.chunks(250)) {
        let shape = [truths.len(), width];
        let queries = Tensor::<2>::from_data(TensorData::new(queries.to_vec(), shape), device);
        let best = queries.matmul(gallery.clone().transpose()).argmax(1);
        let best: Vec<i64> = best.into_data().convert::<i64>().try_to_vec().unwrap();
        let near = best.iter().zip(truths);
        found +=
            near.filter(|(k, truth)| places[**k as usize].distance_km(**truth) <= 200.0).count();
    }
    found as f64 / truths.len() as f64
}

/// The places that lie far enough from all others.
fn far_from(others: &[LatLon], mut places: Vec<LatLon>) -> Vec<LatLon> {
    let mut latitudes: Vec<LatLon> = others.to_vec();
    latitudes.sort_by(|a, b| a.latitude().total_cmp(&b.latitude()));
    let margin = 2.0 * APART_KM / 111.0;
    places.retain(|place| {
        let first = latitudes.partition_point(|other| other.latitude() < place.latitude() - margin);
        latitudes[first..]
            .iter()
            .take_while(|other| other.latitude() <= place.latitude() + margin)
            .all(|other| other.distance_km(*place) >= APART_KM)
    });
    places
}
