//! Weights in safetensors files: of image encoders, of the model for views of the Earth, and of conditions.

use std::collections::BTreeMap;

use locdiff::diffusion::Standardization;
use locdiff::encoders::VisionTransformer;
use locdiff::models::earth_view;
use locdiff::tensors::device_by_name;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors, serialize};

use crate::{Target, contents, folder, repository};

const LONGEST: usize = 16 << 10;

pub(super) const TARGET: Target = Target {
    name: "safetensors",
    reads: "weights in safetensors files",
    longest: LONGEST,
    most_bytes: 64 << 20,
    run,
    seeds,
};

fn run(input: &[u8]) {
    let device = device_by_name("cpu").expect("the CPU");
    let _ = earth_view::Weights::from_bytes(input, &device);
    if let Ok(gallery) = earth_view::Gallery::from_bytes(input) {
        let written = gallery.to_bytes();
        let again = earth_view::Gallery::from_bytes(&written).expect("what was written is read");
        assert_eq!(again.to_bytes(), written);
    }
    let folder = folder::with_file("model.safetensors", input);
    let path = folder.path().join("model.safetensors");
    let _ = VisionTransformer::open(&path, None, &device);
    if let Ok(standardization) = Standardization::open(&path) {
        let again = folder.path().join("again.safetensors");
        standardization.save(&again).expect("the folder can be written");
        let again = Standardization::open(&again).expect("what was written is read");
        assert_eq!(again.width(), standardization.width());
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = contents("examples/models/earth", LONGEST, |path| {
        path.extension().is_some_and(|ending| ending == "safetensors")
    });
    for encoder in ["dinov2", "dinov2-registers", "clip-gelu"] {
        seeds.extend(small_encoder(encoder));
    }
    seeds
}

/// An encoder of `parity/vision` with all sizes made smaller, and one layer: few bytes are many changes in a second.
fn small_encoder(name: &str) -> Option<Vec<u8>> {
    let path = repository("parity/vision").join(name).join("model.safetensors");
    let file = std::fs::read(path).ok()?;
    let tensors = SafeTensors::deserialize(&file).ok()?;
    let mut small = BTreeMap::new();
    for (name, tensor) in tensors.iter().filter(|(name, _)| !name.contains(".1.")) {
        let sizes = tensor.shape();
        let is_square_of_patches = name.contains("position");
        let shape: Vec<usize> = sizes
            .iter()
            .enumerate()
            .map(|(index, size)| match size {
                0..=3 => *size,
                _ if is_square_of_patches && index + 1 < sizes.len() => 5,
                _ if sizes.len() == 4 && index >= 2 => 2,
                _ => 4,
            })
            .collect();
        let count: usize = shape.iter().product();
        let numbers: Vec<u8> =
            (0..count).flat_map(|k| ((k as f32).sin() / 3.0).to_le_bytes()).collect();
        small.insert(name.to_owned(), (shape, numbers));
    }
    let views = small.iter().filter_map(|(name, (shape, numbers))| {
        Some((name, TensorView::new(Dtype::F32, shape.clone(), numbers).ok()?))
    });
    serialize(views, None).ok()
}
