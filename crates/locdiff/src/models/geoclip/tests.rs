//! The architecture with small random weights that PyTorch saved in a wheel's paths: import,
//! mathematics and model directory, without the real weights. `tests/geoclip.rs` has those.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor, TensorData};
use locdiff_sphere::LatLon;
use serde_json::Value;

use super::named_tensors::{NamedTensors, NamedValues};
use super::wheel::{Member, Release};
use super::{Existing, GeoClip, GeoClipError};

fn parity(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../parity/geoclip").join(file)
}

fn reference() -> Value {
    let text = fs::read_to_string(parity("tiny.json")).expect("tiny.json is there");
    serde_json::from_str(&text).expect("tiny.json is JSON")
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    serde_json::from_value(value.clone()).expect("rows of numbers")
}

fn places(value: &Value) -> Vec<LatLon> {
    let rows = rows(value);
    rows.iter().map(|row| LatLon::new(row[0], row[1]).expect("a place")).collect()
}

fn import(reference: &Value) -> Result<GeoClip, GeoClipError> {
    let member = |path| {
        let sha256 = reference["sha256"][path].as_str().expect("a checksum");
        Member { path, sha256 }
    };
    let release = Release {
        location_encoder: member("geoclip/model/weights/location_encoder_weights.pth"),
        image_head: member("geoclip/model/weights/image_encoder_mlp_weights.pth"),
        logit_scale: member("geoclip/model/weights/logit_scale_weights.pth"),
        gallery: member("geoclip/model/gps_gallery/coordinates_100K.csv"),
    };
    GeoClip::import_release(&parity("tiny-wheel.zip"), &release, &Device::flex())
}

fn tiny() -> GeoClip {
    import(&reference()).expect("the tiny wheel is fine")
}

fn values(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data_as::<f32>().try_into_vec().expect("f32")
}

fn largest_difference(tensor: Tensor<2>, expected: &[Vec<f64>]) -> f64 {
    assert_eq!(tensor.dims(), [expected.len(), expected[0].len()]);
    let values = values(tensor);
    let pairs = values.iter().zip(expected.iter().flatten());
    pairs.map(|(value, expected)| (f64::from(*value) - expected).abs()).fold(0.0, f64::max)
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[test]
fn embeddings_are_those_of_pytorch() {
    let (reference, geoclip) = (reference(), tiny());
    let embeddings = geoclip.location_encoder.embed(&places(&reference["places"]));
    let difference = largest_difference(embeddings, &rows(&reference["embeddings"]));
    assert!(difference < 1e-6, "places are off by {difference:e}");

    let features = rows(&reference["image_features"]);
    let shape = [features.len(), features[0].len()];
    let features: Vec<f32> = features.concat().iter().map(|value| *value as f32).collect();
    let features = Tensor::from_data(TensorData::new(features, shape), &Device::flex());
    let difference = largest_difference(
        geoclip.image_head.embed(features),
        &rows(&reference["image_embeddings"]),
    );
    assert!(difference < 1e-6, "images are off by {difference:e}");

    let scale = reference["logit_scale"].as_f64().expect("a number");
    assert!((f64::from(geoclip.logit_scale()) - scale).abs() < 1e-6);
    assert_eq!(geoclip.gallery, places(&reference["gallery"]));
}

#[test]
fn an_embedding_does_not_depend_on_its_batch() {
    let (encoder, places) = (tiny().location_encoder, places(&reference()["places"]));
    let many: Vec<LatLon> = places.iter().copied().cycle().take(2500).collect();
    let all = encoder.embed(&many);
    assert_eq!(all.dims(), [2500, encoder.width()]);
    let (all, alone) = (values(all), values(encoder.embed(&places)));
    let pairs = all.iter().zip(alone.iter().cycle());
    let difference = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(difference < 1e-6, "{difference:e}");
    assert_eq!(encoder.embed(&[]).dims(), [0, encoder.width()]);
}

#[test]
fn logits_are_scaled_cosines() {
    let geoclip = tiny();
    let embeddings = geoclip.location_encoder.embed(&geoclip.gallery);
    let logits = values(geoclip.logits(embeddings.clone(), embeddings));
    let count = geoclip.gallery.len();
    for index in 0..count {
        assert!((logits[index * count + index] - geoclip.logit_scale()).abs() < 1e-5);
    }
    // The gallery's third place is its first again.
    assert!((logits[2] - geoclip.logit_scale()).abs() < 1e-5);
    assert!(logits[1] < geoclip.logit_scale() - 1e-3);
}

#[test]
fn a_model_directory_gives_back_what_was_saved() {
    let (geoclip, scratch) = (tiny(), scratch());
    let directory = scratch.path().join("models/geoclip");
    geoclip.save(&directory, Existing::Keep).expect("saved");
    let opened = GeoClip::open(&directory, &Device::flex()).expect("opened");
    assert!(opened.to_tensors().iter().eq(geoclip.to_tensors().iter()));
    assert_eq!(opened.gallery, geoclip.gallery);
    let mut names: Vec<_> = fs::read_dir(&directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["README.md", "config.json", "coordinates_100K.csv", "model.safetensors"]);

    let error = geoclip.save(&directory, Existing::Keep).expect_err("it exists");
    assert!(matches!(error, GeoClipError::Exists(_)), "{error}");
    fs::write(directory.join("old"), "").expect("written");
    geoclip.save(&directory, Existing::Replace).expect("replaced");
    assert!(!directory.join("old").exists());
    // Nothing is left beside it.
    assert_eq!(fs::read_dir(scratch.path().join("models")).expect("a directory").count(), 1);
}

#[test]
fn only_models_are_replaced() {
    let scratch = scratch();
    fs::write(scratch.path().join("photo.jpg"), "precious").expect("written");
    let error = tiny().save(scratch.path(), Existing::Replace).expect_err("not a model");
    assert!(matches!(error, GeoClipError::NotOurs(_)), "{error}");
    assert!(scratch.path().join("photo.jpg").exists());
}

#[test]
fn a_wrong_checksum_says_both_sides() {
    let (mut reference, path) = (reference(), "geoclip/model/weights/logit_scale_weights.pth");
    let right = reference["sha256"][path].as_str().expect("a checksum").to_owned();
    let wrong = "0".repeat(64);
    reference["sha256"][path] = wrong.clone().into();
    let error = import(&reference).expect_err("the checksum is wrong").to_string();
    assert!([&right, &wrong, path].iter().all(|part| error.contains(*part)), "{error}");
}

#[test]
fn a_directory_that_lies_is_refused() {
    let scratch = scratch();
    let directory = scratch.path().join("geoclip");
    tiny().save(&directory, Existing::Keep).expect("saved");
    let config = fs::read_to_string(directory.join("config.json")).expect("read");
    let gallery = fs::read_to_string(directory.join("coordinates_100K.csv")).expect("read");
    let cases = [
        (
            "config.json",
            config.replace("geoclip-geolocation", "other"),
            "has model_type \"other\", expected \"geoclip-geolocation\"",
        ),
        (
            "config.json",
            config.replace("\"format_version\": 1", "\"format_version\": 2"),
            "has format_version 2, expected 1",
        ),
        ("config.json", config.replace("coordinates_100K.csv", "../secret.csv"), "gallery_file"),
        ("config.json", "{".to_owned(), "config.json"),
        (
            "coordinates_100K.csv",
            gallery.replace("LAT,LON", "LON,LAT"),
            "begins with `LON,LAT`, expected `LAT,LON`",
        ),
        ("coordinates_100K.csv", gallery.replace("-90,0", "-91,0"), "line 6"),
        ("model.safetensors", "no".to_owned(), "model.safetensors"),
    ];
    for (file, text, expected) in cases {
        let path = directory.join(file);
        let before = fs::read(&path).expect("read");
        fs::write(&path, &text).expect("written");
        let error = GeoClip::open(&directory, &Device::flex()).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error} does not contain {expected}");
        fs::write(&path, before).expect("written");
    }
    GeoClip::open(&directory, &Device::flex()).expect("all is as before");
}

#[test]
fn tensors_that_do_not_fit_are_named() {
    let change = |edit: &dyn Fn(&mut NamedTensors)| {
        let mut tensors = tiny().to_tensors();
        edit(&mut tensors);
        let result = GeoClip::from_tensors(tensors, Vec::new(), &Device::flex());
        result.expect_err("tensors don't fit").to_string()
    };
    let reshape = |name: &'static str, shape: &'static [usize]| {
        change(&move |tensors| {
            let values = vec![0.0; shape.iter().product()];
            tensors.insert(name.to_owned(), NamedValues { shape: shape.to_vec(), values });
        })
    };
    assert_eq!(
        reshape("location_encoder.LocEnc1.capsule.1.weight", &[11, 13]),
        "tensor location_encoder.LocEnc1.capsule.1.weight has shape [11, 13], expected [11, 14]"
    );
    assert_eq!(
        reshape("location_encoder.LocEnc2.capsule.0.b", &[7, 3]),
        "tensor location_encoder.LocEnc2.capsule.0.b has shape [7, 3], expected [frequencies, 2]"
    );
    assert_eq!(
        reshape("image_encoder.mlp.2.bias", &[7]),
        "tensor image_encoder.mlp.2.bias has shape [7], expected [6]"
    );
    assert_eq!(reshape("surprise", &[1]), "tensors that GeoCLIP doesn't have: surprise");
    assert_eq!(
        change(&|tensors| {
            tensors.take("location_encoder.LocEnc0.head.0.bias").expect("it was there");
        }),
        "no tensor is named location_encoder.LocEnc0.head.0.bias"
    );
    assert_eq!(
        change(&|tensors| {
            for (name, shape) in [("weight", vec![5, 9]), ("bias", vec![5])] {
                let values = vec![0.0; shape.iter().product()];
                let name = format!("location_encoder.LocEnc2.head.0.{name}");
                tensors.insert(name, NamedValues { shape, values });
            }
        }),
        "tensor location_encoder.LocEnc2.head.0.weight has shape [5, 9], expected [6, 9]"
    );
}

/// The paper's own setting: a model on CLIP's features searches a gallery of places through the head.
#[test]
fn a_gallery_of_places_is_searched_through_the_head() {
    use crate::encoders::EncoderRecord;
    use crate::locate::{
        Geolocator, Inference, InvalidInference, Located, LocationModel, ModelIdentity, NotItsKind,
    };
    use crate::models::{HybridConfig, HybridModel, HybridRule};
    use crate::photo::Photo;
    use locdiff_gallery::{EncoderIdentity, Gallery, GalleryWriter};
    use locdiff_sphere::{Anchors, Density};

    struct Anywhere(ModelIdentity, EncoderRecord, usize);

    impl LocationModel for Anywhere {
        fn identity(&self) -> &ModelIdentity {
            &self.0
        }

        fn check(&self, _: &Inference) -> Result<Vec<String>, InvalidInference> {
            Ok(Vec::new())
        }

        fn locate(&self, photos: &[Photo], _: &Inference) -> Vec<Result<Located, NotItsKind>> {
            photos.iter().map(|_| Ok(Density::uniform().into())).collect()
        }

        fn embed(&self, _: &[Photo]) -> Vec<Vec<f32>> {
            Vec::new()
        }

        fn locate_embeddings(
            &self,
            rows: &[f32],
            views: usize,
            _: &Inference,
        ) -> Option<Vec<Located>> {
            Some(vec![Density::uniform().into(); rows.len() / (views * self.2)])
        }

        fn takes_embeddings_of(&self) -> Option<(&EncoderRecord, usize)> {
            Some((&self.1, self.2))
        }
    }

    let geoclip = tiny();
    let folder = tempfile::tempdir().expect("a directory");
    let directory = folder.path().join("places");
    let places = Anchors::fibonacci(300).places().to_vec();
    let encoder = EncoderIdentity {
        name: "geoclip".to_owned(),
        digest: format!("sha256:{}", geoclip.weights_sha256()),
        preprocessing: "that of CLIP ViT-L/14".to_owned(),
        dimension: geoclip.location_encoder.width(),
    };
    let embedded = geoclip.location_encoder.embed(&places);
    let mut writer = GalleryWriter::create(&directory, &encoder).expect("begun");
    let rows = values(embedded.clone());
    for (row, place) in rows.chunks_exact(encoder.dimension).zip(&places) {
        writer.push(row, *place, &place.to_string()).expect("a row");
    }
    writer.finish(|_| ()).expect("finished");

    let width = geoclip.image_head.feature_width();
    let open = |encoder: &str| {
        let text = |text: &str| text.to_owned();
        let identity = ModelIdentity {
            name: text("anywhere"),
            version: text("1"),
            description: text("a test"),
            calibrated: false,
            prior: None,
        };
        let mut record = EncoderRecord::of_identity(encoder);
        record.name = Some(text(encoder));
        let model = Geolocator::from_model(Anywhere(identity, record, width)).expect("a model");
        // All of the Earth is near a sample.
        let mut config = HybridConfig::new("anywhere", "places", HybridRule::Paper);
        config.radius_km = 20_000.0;
        let gallery = Gallery::open(&directory).expect("a gallery");
        HybridModel::with_geoclip(model, gallery, config, "both", &geoclip)
    };
    let text = open("another").expect_err("another encoder").to_string();
    assert!(text.contains("another") && text.contains("geoclip"), "{text}");
    let model = open("clip-vit-l-14").expect("the same");
    let features: Vec<f32> = (0..width).map(|k| (k as f32 * 1.7).sin()).collect();
    let located = model.locate_embeddings(&features, 1, &model.inference()).expect("embeddings");
    let density = &located[0].density;
    let Density::PointMasses(spread) = density else { panic!("{density}") };
    let image = geoclip
        .image_head
        .embed(Tensor::from_data(TensorData::new(features, [1, width]), &Device::flex()));
    let logits = values(geoclip.logits(image, embedded));
    let best = (0..places.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
    let winner = spread.points().places()[0];
    assert!(winner.distance_km(places[best.expect("a place")]) < 1.0, "{winner}");
}
