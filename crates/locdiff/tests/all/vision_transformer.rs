//! Vision Transformers against Python `transformers`, layer by layer: see parity/vision.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor, TensorData};
use locdiff::encoders::{Embedder, ImageEncoder, InvalidEncoder, Reading, VisionTransformer};
use locdiff::tensors::Gelu;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

fn parity(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../parity/vision").join(name)
}

struct Numbers {
    shape: Vec<usize>,
    values: Vec<f32>,
}

fn read(path: &Path) -> BTreeMap<String, Numbers> {
    let bytes = fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.tensors()
        .into_iter()
        .map(|(name, tensor)| {
            let values =
                tensor.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            (name, Numbers { shape: tensor.shape().to_vec(), values })
        })
        .collect()
}

fn write(path: &Path, tensors: &BTreeMap<String, Numbers>) {
    let bytes: BTreeMap<&String, Vec<u8>> = tensors
        .iter()
        .map(|(name, t)| (name, t.values.iter().flat_map(|v| v.to_le_bytes()).collect()))
        .collect();
    let views = tensors.iter().map(|(name, tensor)| {
        (name, TensorView::new(Dtype::F32, tensor.shape.clone(), &bytes[name]).unwrap())
    });
    fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

fn largest_difference<const D: usize>(ours: Tensor<D>, theirs: &Numbers) -> f32 {
    assert_eq!(ours.dims().as_slice(), theirs.shape.as_slice());
    let ours: Vec<f32> = ours.into_data().try_into_vec().unwrap();
    assert!(ours.iter().all(|number| number.is_finite()));
    ours.iter().zip(&theirs.values).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Every layer of the model in a folder, for pictures of one size.
fn assert_agrees(path: &Path, expected: &BTreeMap<String, Numbers>, size: usize) {
    let model = VisionTransformer::open(path, Some(size), &Device::flex()).unwrap();
    let pixels = &expected[&format!("{size}.pixels")];
    let shape: [usize; 4] = pixels.shape.clone().try_into().unwrap();
    let pixels = Tensor::from_data(TensorData::new(pixels.values.clone(), shape), &Device::flex());
    let mut layer = 0;
    let embedding = model.observed(pixels, |tokens| {
        let difference =
            largest_difference(tokens.clone(), &expected[&format!("{size}.layer.{layer}")]);
        assert!(difference < 1e-4, "{} at {size}, layer {layer}: {difference:e}", path.display());
        layer += 1;
    });
    assert_eq!(layer, 1 + model.config().layers);
    let difference = largest_difference(embedding, &expected[&format!("{size}.embedding")]);
    assert!(difference < 1e-4, "{} at {size}: embedding off by {difference:e}", path.display());
}

#[test]
fn every_layer_agrees_with_transformers() {
    for (name, sizes, gelu, registers) in [
        ("clip-quick-gelu", &[32][..], Gelu::Quick, 0),
        ("clip-gelu", &[32], Gelu::Exact, 0),
        // 28 and 63 need interpolated positions: fewer, and more.
        ("dinov2", &[42, 28, 63], Gelu::Exact, 0),
        ("dinov2-registers", &[42, 28, 63], Gelu::Exact, 4),
    ] {
        let expected = read(&parity(name).join("expected.safetensors"));
        for size in sizes {
            assert_agrees(&parity(name), &expected, *size);
        }
        let model = VisionTransformer::open(&parity(name), None, &Device::flex()).unwrap();
        assert_eq!(model.config().image_size, sizes[0], "{name}: the size of training");
        assert_eq!((model.config().gelu, model.config().registers), (gelu, registers), "{name}");
    }
}

/// StreetCLIP as plonk uses it: the class token after the last layer, before the norm.
#[test]
fn the_class_token_before_the_norm_agrees_with_transformers() {
    let path = parity("clip-quick-gelu");
    let encoder = ImageEncoder::open_as(&Reading::ClassToken, &path, &Device::flex()).unwrap();
    let published = ImageEncoder::open(&path, &Device::flex()).unwrap();
    assert_eq!((encoder.width(), published.width()), (24, 16));
    assert_ne!(encoder.record().identity, published.record().identity);
    let expected = read(&path.join("expected.safetensors"));
    let (pixels, tokens) = (&expected["32.pixels"], &expected["32.layer.2"]);
    let found = encoder.embed_pixels(pixels.values.clone());
    let [pictures, places, width] = tokens.shape[..] else { panic!("{:?}", tokens.shape) };
    assert_eq!(found.len(), pictures * width);
    let class = tokens.values.chunks(places * width).flat_map(|tokens| &tokens[..width]);
    let difference = found.iter().zip(class).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(difference < 1e-4, "{difference:e}");
}

/// The authors' own names, made from Hugging Face's.
#[test]
fn checkpoints_of_the_authors_are_read_too() {
    let folder = tempfile::tempdir().unwrap();
    for (name, size) in [("clip-quick-gelu", 32), ("dinov2-registers", 42)] {
        let clip = name.starts_with("clip");
        let mut theirs = read(&parity(name).join("model.safetensors"));
        let mut renamed = BTreeMap::new();
        for layer in 0..2 {
            // Three matrices become one.
            let (stem, parts) = if clip {
                (
                    format!("vision_model.encoder.layers.{layer}.self_attn"),
                    ["q_proj", "k_proj", "v_proj"],
                )
            } else {
                (format!("encoder.layer.{layer}.attention.attention"), ["query", "key", "value"])
            };
            for kind in ["weight", "bias"] {
                let taken =
                    parts.map(|part| theirs.remove(&format!("{stem}.{part}.{kind}")).unwrap());
                let mut shape = taken[0].shape.clone();
                shape[0] *= 3;
                let values = taken.into_iter().flat_map(|part| part.values).collect();
                let new = if clip {
                    format!("visual.transformer.resblocks.{layer}.attn.in_proj_{kind}")
                } else {
                    format!("blocks.{layer}.attn.qkv.{kind}")
                };
                renamed.insert(new, Numbers { shape, values });
            }
        }
        let pairs: &[(&str, &str)] = if clip {
            &[
                ("vision_model.embeddings.patch_embedding", "visual.conv1"),
                ("vision_model.embeddings.class_embedding", "visual.class_embedding"),
                (
                    "vision_model.embeddings.position_embedding.weight",
                    "visual.positional_embedding",
                ),
                ("vision_model.pre_layrnorm", "visual.ln_pre"),
                ("vision_model.post_layernorm", "visual.ln_post"),
                ("vision_model.encoder.layers", "visual.transformer.resblocks"),
                ("layer_norm1", "ln_1"),
                ("layer_norm2", "ln_2"),
                ("self_attn.out_proj", "attn.out_proj"),
                ("mlp.fc1", "mlp.c_fc"),
                ("mlp.fc2", "mlp.c_proj"),
                ("visual_projection.weight", "visual.proj"),
            ]
        } else {
            &[
                ("embeddings.patch_embeddings.projection", "patch_embed.proj"),
                ("embeddings.cls_token", "cls_token"),
                ("embeddings.register_tokens", "register_tokens"),
                ("embeddings.position_embeddings", "pos_embed"),
                ("encoder.layer.", "blocks."),
                ("attention.output.dense", "attn.proj"),
                ("layer_scale1.lambda1", "ls1.gamma"),
                ("layer_scale2.lambda1", "ls2.gamma"),
                ("layernorm", "norm"),
            ]
        };
        for (old, mut numbers) in theirs {
            let new = pairs.iter().fold(old, |name, (from, to)| name.replace(from, to));
            if new == "visual.proj" {
                // Theirs is the other way round.
                let [rows, columns] = numbers.shape[..] else { unreachable!() };
                numbers.values = (0..rows * columns)
                    .map(|k| numbers.values[(k % rows) * columns + k / rows])
                    .collect();
                numbers.shape = vec![columns, rows];
            }
            renamed.insert(new, numbers);
        }
        let expected = read(&parity(name).join("expected.safetensors"));
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        write(&path.join("model.safetensors"), &renamed);
        // Nothing but the heads, which here are not 64 wide.
        fs::write(path.join("config.json"), r#"{"num_attention_heads": 3}"#).unwrap();
        assert_agrees(&path, &expected, size);
    }
}

#[test]
fn what_is_wrong_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path, size| {
        VisionTransformer::open(path, size, &Device::flex()).expect_err("should fail")
    };
    let empty = open(folder.path(), None).to_string();
    assert!(empty.contains("neither model.safetensors nor"), "{empty}");

    let uneven = open(&parity("dinov2"), Some(40)).to_string();
    assert_eq!(uneven, "pictures of 40 pixels cannot be cut into patches of 7");

    let weights = folder.path().join("model.safetensors");
    let mut tensors = read(&parity("dinov2").join("model.safetensors"));
    tensors.remove("encoder.layer.1.mlp.fc2.bias");
    write(&weights, &tensors);
    let error = open(folder.path(), None);
    assert!(
        matches!(&error, InvalidEncoder::MissingTensor { name, .. }
        if name == "encoder.layer.1.mlp.fc2.bias"),
        "{error}"
    );

    tensors.retain(|name, _| !name.contains("patch_embeddings"));
    write(&weights, &tensors);
    let error = open(folder.path(), None);
    assert!(matches!(error, InvalidEncoder::UnknownLayout(_)), "{error}");

    let bytes = fs::read(parity("dinov2").join("model.safetensors")).unwrap();
    fs::write(&weights, &bytes[..bytes.len() - 100]).unwrap();
    let error = open(folder.path(), None).to_string();
    assert!(error.contains("it ends before") && error.contains("model.safetensors"), "{error}");
}
