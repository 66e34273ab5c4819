//! Embeddings of test images that are also in the training set.

use std::fs;
use std::path::Path;

use locdiff::encoders::EncoderRecord;
use locdiff_evaluate::{
    EvaluationError, LEAKAGE_COSINE, NamedPlaces, embedding_leakage, is_embeddings,
};
use locdiff_sphere::LatLon;
use locdiff_train::{Layout, Numbers, ShardWriter, WriteOptions};

fn write(folder: &Path, encoder: &str, rows: &[(&str, f64, [f32; 4])]) {
    let layout = Layout {
        encoder: EncoderRecord::of_identity(encoder),
        width: 4,
        views: 1,
        numbers: Numbers::F32,
    };
    let mut writer = ShardWriter::create(folder, layout, WriteOptions::default()).unwrap();
    for (id, latitude, embedding) in rows {
        writer.write(id, LatLon::new(*latitude, 179.9).unwrap(), embedding).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn pictures_that_are_almost_the_same_are_found_whatever_their_length() {
    let directory = tempfile::tempdir().unwrap();
    let [test, training] = ["test", "training"].map(|name| directory.path().join(name));
    write(&test, "e", &[("new", 0.0, [1.0, 0.0, 0.0, 0.0]), ("old", 5.0, [0.0, 1.0, 1.0, 0.0])]);
    write(
        &training,
        "e",
        &[
            ("a", 1.0, [0.9, 0.5, 0.0, 0.0]),
            ("b", 5.0, [0.0, 30.0, 31.0, 0.0]),
            ("c", 7.0, [0.0, 10.0, 10.001, 0.0]),
        ],
    );
    let [test, training] = [&test, &training].map(|path| path.to_str().unwrap());
    let mut heard = Vec::new();
    let twins =
        embedding_leakage(test, training, LEAKAGE_COSINE, &mut |done, all| heard.push((done, all)))
            .unwrap();
    assert_eq!(heard, [(3, 3)]);
    assert_eq!(twins.len(), 1);
    assert_eq!((&twins[0].test[..], &twins[0].training[..]), ("old", "c"));
    assert!(twins[0].cosine > 0.999_999 && (twins[0].distance_km - 222.39).abs() < 0.01);
    assert_eq!(embedding_leakage(test, training, 0.8, &mut |_, _| {}).unwrap().len(), 2);
}

#[test]
fn embeddings_of_two_encoders_are_not_compared() {
    let directory = tempfile::tempdir().unwrap();
    let [test, training] = ["test", "training"].map(|name| directory.path().join(name));
    write(&test, "clip", &[("a", 0.0, [1.0; 4])]);
    write(&training, "dinov2", &[("a", 0.0, [1.0; 4])]);
    let [test, training] = [&test, &training].map(|path| path.to_str().unwrap());
    let error = embedding_leakage(test, training, 0.9, &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, EvaluationError::Encoders { .. }), "{error}");
    assert!(error.to_string().contains("clip") && error.to_string().contains("dinov2"));
}

#[test]
fn places_are_read_from_tables_manifests_and_embeddings() {
    let directory = tempfile::tempdir().unwrap();
    let shards = directory.path().join("shards");
    write(&shards, "e", &[("a", 3.0, [1.0; 4])]);
    assert!(is_embeddings(&shards) && !is_embeddings(Path::new("truth.csv")));
    let manifest = directory.path().join("manifest.csv");
    fs::write(&manifest, "image,latitude,longitude\na,3,179.9\n").unwrap();
    let expected =
        NamedPlaces { names: vec!["a".into()], places: vec![LatLon::new(3.0, 179.9).unwrap()] };
    for path in [&shards, &manifest, &directory.path().to_owned()] {
        assert_eq!(NamedPlaces::read(path).unwrap(), expected, "{}", path.display());
    }
}
