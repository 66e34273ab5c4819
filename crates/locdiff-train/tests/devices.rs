//! The same numbers on another device as on the CPU. Built with the device's feature only, and run by
//! `experiments/run devices`: such builds take long.

#![cfg(any(feature = "cuda", feature = "metal", feature = "wgpu"))]
#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

use std::path::Path;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::diffusion::{
    Denoiser, DenoiserConfig, Diffusion, DiffusionConfig, Loss, Method, Objective, Quadrature,
    SampleOptions, ScheduleConfig, ScheduleKind,
};
use locdiff::encoders::VisionTransformer;
use locdiff::tensors::{device_by_name, read_weights, write_weights};
use locdiff_sphere::{LatLon, uniform_place};
use locdiff_train::{Adam, AdamConfig};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const BATCH: usize = 16;
const CONDITION: usize = 12;

fn other_device() -> Device {
    let name = if cfg!(feature = "cuda") {
        "cuda"
    } else if cfg!(feature = "metal") {
        "metal"
    } else {
        "wgpu"
    };
    device_by_name(name).unwrap()
}

fn random(shape: [usize; 2], seed: u64, device: &Device) -> Tensor<2> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..shape[0] * shape[1]).map(|_| rng.random_range(-1.5..1.5)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn assert_close<const D: usize>(ours: Tensor<D>, theirs: Tensor<D>, share: f32, what: &str) {
    let numbers = |x: Tensor<D>| -> Vec<f32> { x.into_data_as::<f32>().try_into_vec().unwrap() };
    let (ours, theirs) = (numbers(ours), numbers(theirs));
    let scale = ours.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let off = ours.iter().zip(&theirs).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
    assert!(off <= share * scale, "{what}: off by {off:e} where numbers reach {scale:e}");
}

fn config(objective: Objective, quadrature: Quadrature) -> DiffusionConfig {
    DiffusionConfig {
        denoiser: DenoiserConfig { dropout: 0.0, ..DenoiserConfig::new(7, CONDITION) },
        schedule: ScheduleConfig { kind: ScheduleKind::Shifted, steps: 50 },
        objective,
        quadrature,
    }
}

/// A few steps of training, and the network after them.
fn trained(diffusion: &DiffusionConfig, start: &Path, device: &Device) -> (Vec<f32>, Denoiser) {
    let device = device.clone().autodiff();
    let mut denoiser = read_weights(diffusion.denoiser.init(&device), start).unwrap();
    let process = Diffusion::init(diffusion.clone(), &device).unwrap();
    let loss = Loss::new(diffusion.objective, diffusion.quadrature, 7, &device);
    // With the usual epsilon, a gradient that is nothing but rounding makes as large a step as any other.
    let mut optimizer = Adam::new(AdamConfig { epsilon: 1e-3, ..AdamConfig::default() });
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut losses = Vec::new();
    for step in 0..5 {
        let places: Vec<LatLon> = (0..BATCH).map(|_| uniform_place(&mut rng)).collect();
        let latent = random([BATCH, 64], 10 + step, &device);
        let condition = random([BATCH, CONDITION], 20 + step, &device);
        let steps: Vec<usize> = (0..BATCH).map(|k| 20 + k).collect();
        let output = process.output(&denoiser, latent, condition, &steps);
        let value = loss.mean(output, &places, &mut rng);
        losses.push(value.clone().into_scalar::<f32>());
        let gradients = GradientsParams::from_grads(value.backward(), &denoiser);
        denoiser = optimizer.step(1e-3, denoiser, gradients).0;
    }
    (losses, denoiser.valid())
}

#[test]
fn training_takes_the_same_steps() {
    let folder = tempfile::tempdir().unwrap();
    let start = folder.path().join("start.safetensors");
    let cpu = Device::flex();
    let anchors = Quadrature::Anchors(256);
    let transform = Quadrature::Transform(24);
    for (objective, quadrature) in [
        (Objective::Likelihood, transform),
        (Objective::Likelihood, anchors),
        (Objective::ReverseKl, transform),
        (Objective::ReverseKl, anchors),
        (Objective::L2, anchors),
        (Objective::L1, anchors),
        (Objective::Cosine, anchors),
    ] {
        let what = format!("{objective:?}, {quadrature:?}");
        let config = config(objective, quadrature);
        write_weights(&config.denoiser.init(&cpu), &start, &[]).unwrap();
        let (ours, on_cpu) = trained(&config, &start, &cpu);
        let (theirs, elsewhere) = trained(&config, &start, &other_device());
        for (a, b) in ours.iter().zip(&theirs) {
            assert!((a - b).abs() < 2e-4 * a.abs().max(1.0), "{what}: {ours:?}, {theirs:?}");
        }
        let steps = [30; BATCH];
        let output = |denoiser: &Denoiser, device: &Device| {
            let latent = random([BATCH, 64], 1, device);
            denoiser.forward(latent, random([BATCH, CONDITION], 2, device), &steps)
        };
        assert_close(output(&on_cpu, &cpu), output(&elsewhere, &other_device()), 2e-3, &what);
    }
}

#[test]
fn samples_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let start = folder.path().join("start.safetensors");
    let config = config(Objective::Likelihood, Quadrature::Transform(24));
    write_weights(&config.denoiser.init(&Device::flex()), &start, &[]).unwrap();
    for method in [Method::OnePass, Method::Ddim(5), Method::Ddpm] {
        let sample = |device: &Device| {
            let denoiser = read_weights(config.denoiser.init(device), &start).unwrap();
            let process = Diffusion::with_denoiser(config.clone(), denoiser, device).unwrap();
            let options = SampleOptions { method, seed: 3, ..Default::default() };
            process.sample(Some(random([4, CONDITION], 2, device)), 4, options, |_| ())
        };
        let what = format!("{method:?}");
        assert_close(sample(&Device::flex()), sample(&other_device()), 5e-3, &what);
    }
}

#[test]
fn embeddings_are_the_same() {
    for name in ["clip-quick-gelu", "clip-gelu", "dinov2-registers"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../parity/vision").join(name);
        let embed = |device: &Device| {
            let model = VisionTransformer::open(&path, None, device).unwrap();
            let size = model.config().image_size;
            model.forward(random([6, size * size], 4, device).reshape([2, 3, size, size]))
        };
        assert_close(embed(&Device::flex()), embed(&other_device()), 1e-3, name);
    }
}
