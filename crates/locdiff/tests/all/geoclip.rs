//! GeoCLIP's published weights against PyTorch: numbers made by `parity/geoclip/generate.py`. The
//! weights aren't in the repository: without the wheel, these tests pass with a note.

use std::path::PathBuf;

use burn::tensor::{Device, Tensor, TensorData};
use locdiff::models::geoclip::{Existing, GeoClip};
use locdiff_sphere::LatLon;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

/// The documented tolerance; the largest deviation measured is 2e-7.
const TOLERANCE: f64 = 1e-5;

#[expect(clippy::print_stderr, reason = "whoever runs the tests should know what did not run")]
fn wheel() -> Option<PathBuf> {
    let wheel = std::env::var_os("LOCDIFF_GEOCLIP_WHEEL").map(PathBuf::from);
    if wheel.is_none() {
        eprintln!(
            "skipped: get the weights with `pip download geoclip==1.3.0 --no-deps` and name the \
             wheel in LOCDIFF_GEOCLIP_WHEEL"
        );
    }
    wheel
}

fn doubles(view: &TensorView<'_>) -> Vec<f64> {
    match view.dtype() {
        safetensors::Dtype::F64 => {
            view.data().as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
        }
        _ => singles(view).into_iter().map(f64::from).collect(),
    }
}

fn singles(view: &TensorView<'_>) -> Vec<f32> {
    assert_eq!(view.dtype(), safetensors::Dtype::F32);
    view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn values(tensor: Tensor<2>) -> Vec<f64> {
    let values: Vec<f32> = tensor.into_data_as::<f32>().try_into_vec().unwrap();
    values.into_iter().map(f64::from).collect()
}

fn largest_difference(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn embeddings_agree_with_pytorch() {
    let Some(wheel) = wheel() else { return };
    let geoclip = GeoClip::import(&wheel, &Device::flex()).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../parity/geoclip/embeddings.safetensors");
    let file = std::fs::read(path).unwrap();
    let reference = SafeTensors::deserialize(&file).unwrap();
    let tensor = |name: &str| reference.tensor(name).unwrap();

    let degrees = doubles(&tensor("places"));
    let places: Vec<LatLon> =
        degrees.as_chunks().0.iter().map(|&[lat, lon]| LatLon::new(lat, lon).unwrap()).collect();
    assert_eq!(places.len(), 1000);
    let embeddings = values(geoclip.location_encoder.embed(&places));
    let full = doubles(&tensor("embeddings"));
    let difference = largest_difference(&embeddings[..full.len()], &full);
    println!("20 places, all numbers: off by {difference:.1e}");
    assert!(difference < TOLERANCE, "embeddings are off by {difference:e}");

    let directions = doubles(&tensor("directions"));
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let projections: Vec<f64> = embeddings
        .chunks_exact(512)
        .flat_map(|row| directions.chunks_exact(512).map(move |direction| dot(row, direction)))
        .collect();
    let difference = largest_difference(&projections, &doubles(&tensor("projections")));
    println!("1,000 places, 16 directions: off by {difference:.1e}");
    assert!(difference < TOLERANCE, "projections are off by {difference:e}");

    let features = TensorData::new(singles(&tensor("image_features")), [4, 768]);
    let features = Tensor::from_data(features, &Device::flex());
    let images = values(geoclip.image_head.embed(features));
    let difference = largest_difference(&images, &doubles(&tensor("image_embeddings")));
    println!("4 images: off by {difference:.1e}");
    assert!(difference < TOLERANCE, "images are off by {difference:e}");

    let scale = f64::from(geoclip.logit_scale());
    assert!((scale - doubles(&tensor("logit_scale"))[0]).abs() < TOLERANCE);
}

#[test]
fn the_published_model_survives_its_directory() {
    let Some(wheel) = wheel() else { return };
    let geoclip = GeoClip::import(&wheel, &Device::flex()).unwrap();
    assert_eq!(geoclip.gallery.len(), 100_000);
    assert_eq!(geoclip.location_encoder.width(), 512);
    assert_eq!(geoclip.image_head.feature_width(), 768);
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("geoclip");
    geoclip.save(&directory, Existing::Keep).unwrap();
    let opened = GeoClip::open(&directory, &Device::flex()).unwrap();
    assert_eq!(opened.gallery, geoclip.gallery);
    assert_eq!(opened.logit_scale(), geoclip.logit_scale());
    let some = &geoclip.gallery[..10];
    let [before, after] =
        [&geoclip, &opened].map(|model| values(model.location_encoder.embed(some)));
    assert_eq!(before, after);
}
