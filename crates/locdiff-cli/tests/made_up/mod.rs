//! A GeoCLIP with small made-up weights and a gallery of eight places.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// Coordinates of GeoCLIP's gallery; one place is there twice.
pub(crate) const GALLERY: &str = "LAT,LON\n48.8566,2.3522\n38.7223,-9.1393\n-33.8688,151.2093\n-22.9068,-43.1729\n\
    64.1466,-21.9426\n-18.1416,178.4419\n48.8566,2.3522\n35.6762,139.6503\n";

/// Installs it, with a small CLIP, in a home of models.
pub(crate) fn install_geoclip(home: &Path) {
    let encoder = home.join("models/clip-vit-l-14");
    fs::create_dir_all(&encoder).unwrap();
    for file in ["config.json", "model.safetensors"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../parity/vision/clip-quick-gelu")
            .join(file);
        fs::copy(from, encoder.join(file)).unwrap();
    }
    let model = home.join("models/geoclip");
    fs::create_dir_all(&model).unwrap();
    let config = r#"{"model_type": "geoclip-geolocation", "format_version": 1,
        "gallery_file": "coordinates_100K.csv", "sigma": [1, 16, 256]}"#;
    fs::write(model.join("config.json"), config).unwrap();
    fs::write(model.join("coordinates_100K.csv"), GALLERY).unwrap();
    fs::write(model.join("model.safetensors"), weights()).unwrap();
}

/// GeoCLIP's tensors, small and made up: 16 image features, embeddings of 8 numbers.
fn weights() -> Vec<u8> {
    let mut shapes: Vec<(String, Vec<usize>)> = Vec::new();
    let mut linear = |name: String, outputs: usize, inputs: usize| {
        shapes.push((format!("{name}.weight"), vec![outputs, inputs]));
        shapes.push((format!("{name}.bias"), vec![outputs]));
    };
    for capsule in 0..3 {
        let part = |part: &str| format!("location_encoder.LocEnc{capsule}.{part}");
        linear(part("capsule.1"), 12, 8);
        linear(part("capsule.3"), 12, 12);
        linear(part("capsule.5"), 12, 12);
        linear(part("head.0"), 8, 12);
    }
    linear("image_encoder.mlp.0".to_owned(), 16, 16);
    linear("image_encoder.mlp.2".to_owned(), 8, 16);
    for capsule in 0..3 {
        shapes.push((format!("location_encoder.LocEnc{capsule}.capsule.0.b"), vec![4, 2]));
    }
    shapes.push(("logit_scale".to_owned(), Vec::new()));
    let mut tensors = HashMap::new();
    for (number, (name, shape)) in shapes.iter().enumerate() {
        let count: usize = shape.iter().product();
        let values: Vec<f32> = match name.as_str() {
            "logit_scale" => vec![2.0],
            _ => (0..count).map(|k| ((k * 7 + number * 13) as f32).sin() * 0.6).collect(),
        };
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        tensors.insert(name.clone(), (shape.clone(), bytes));
    }
    let views: HashMap<&String, TensorView<'_>> = tensors
        .iter()
        .map(|(name, (shape, bytes))| {
            (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
        })
        .collect();
    safetensors::serialize(views, None).unwrap()
}
