//! earth-view's network can be trained.

use burn::optim::GradientsParams;
use burn::tensor::Device;
use locdiff::diffusion::{Loss, Objective, Quadrature};
use locdiff::models::earth_view::{ViewEncoderConfig, ViewNetworkConfig};
use locdiff_sphere::LatLon;
use locdiff_train::{Adam, AdamConfig};
use rand::SeedableRng;

/// Gradients reach every parameter, and one step along them lowers the loss.
#[test]
fn the_network_learns() {
    let device = Device::flex().autodiff();
    device.seed(3);
    let encoder =
        ViewEncoderConfig { side: 16, widths: vec![8, 12], blocks: vec![1, 1], embedding: 16 };
    let mut model = ViewNetworkConfig { encoder, hidden: 24, max_degree: 5 }.init(&device);
    let loss = Loss::new(Objective::Likelihood, Quadrature::Transform(0), 5, &device);
    let pixels: Vec<u8> = (0..6 * 3 * 256_u32).map(|k| (k * k / 37 % 256) as u8).collect();
    let places: Vec<LatLon> =
        (0..6).map(|k| LatLon::new(10.0 * f64::from(k), 25.0 * f64::from(k)).unwrap()).collect();
    let mut optimizer = Adam::new(AdamConfig::default());
    let mut values = Vec::new();
    for _ in 0..60 {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let value = loss.mean(model.forward(&pixels), &places, &mut rng);
        values.push(value.clone().into_scalar::<f32>());
        let gradients = GradientsParams::from_grads(value.backward(), &model);
        model = optimizer.step(0.01, model, gradients).0;
    }
    // Six pictures are learned by heart.
    assert!(values[59] < values[0] - 1.5, "{} to {}", values[0], values[59]);
}
