//! Laws of the diffusion that need no training, and agreement with the f64 mathematics.

use std::f64::consts::PI;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::diffusion::{
    Denoiser, DenoiserConfig, Diffusion, DiffusionConfig, Loss, Meaning, Method, Objective,
    Quadrature, SampleOptions, ScheduleConfig, ScheduleKind, SphereGrid, coefficients_of,
    encoding_width_km, encodings,
};
use locdiff_sphere::{
    Basis, Coefficients, Decoder, Density, Grid, Integrator, LatLon, Transform, uniform_place,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn random_coefficients(batch: usize, size: usize, amplitude: f64, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..batch * size).map(|_| (amplitude * rng.random_range(-1.0..1.0)) as f32).collect()
}

fn tensor(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn numbers(tensor: &Tensor<2>) -> Vec<f32> {
    tensor.to_data().try_to_vec().unwrap()
}

fn config(objective: Objective, max_degree: usize, steps: usize) -> DiffusionConfig {
    DiffusionConfig {
        denoiser: DenoiserConfig { dropout: 0.0, ..DenoiserConfig::new(max_degree, 6) },
        schedule: ScheduleConfig { kind: ScheduleKind::Shifted, steps },
        objective,
        quadrature: Quadrature::default(),
    }
}

/// Sets every weight to zero: its output is then zero.
struct Silence;

impl ModuleMapper for Silence {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| tensor.zeros_like())
    }
}

fn silent(config: DiffusionConfig, device: &Device) -> Diffusion {
    let denoiser: Denoiser = config.denoiser.init(device).map(&mut Silence);
    Diffusion::with_denoiser(config, denoiser, device).unwrap()
}

#[test]
fn tensors_transform_as_the_f64_code_does() {
    let device = Device::flex();
    for (max_degree, rings, longitudes) in [(1, 3, 5), (7, 9, 16), (15, 33, 40)] {
        let grid = Grid::new(rings, longitudes);
        let exact = Transform::<f64>::new(grid.clone(), max_degree);
        let tensors = SphereGrid::new(grid.clone(), max_degree, &device);
        let size = (max_degree + 1) * (max_degree + 1);
        let values = random_coefficients(3, size, 1.0, 1);
        let fields = tensors.synthesize(tensor(values.clone(), [3, size], &device));
        for (row, field) in values.chunks(size).zip(numbers(&fields).chunks(grid.len())) {
            let row = Coefficients::from_vec(row.iter().map(|v| f64::from(*v)).collect()).unwrap();
            for (exact, value) in exact.synthesize(&row).iter().zip(field) {
                assert!((exact - f64::from(*value)).abs() < 2e-5 * size as f64, "{max_degree}");
            }
        }
        // With the areas as weights, analysis inverts synthesis if there are enough rings.
        let areas = tensors.log_areas().exp();
        let back = numbers(&tensors.analyze(fields * areas));
        for (before, after) in values.iter().zip(back) {
            assert!((before - after).abs() < 1e-4, "{max_degree}: {before} became {after}");
        }
    }
}

#[test]
fn a_turned_grid_sees_the_turned_function() {
    let device = Device::flex();
    let grid = SphereGrid::new(Grid::new(12, 24), 6, &device);
    let basis = Basis::new(6);
    let at = |longitude: f64| encodings(&basis, &[LatLon::new(20.0, longitude).unwrap()], &device);
    let turned = numbers(&grid.turned(0.7).synthesize(at(50.0)));
    let straight = numbers(&grid.synthesize(at(50.0 - 0.7_f64.to_degrees())));
    for (a, b) in turned.iter().zip(straight) {
        assert!((a - b).abs() < 1e-4, "{a} and {b}");
    }
}

/// The mean of Y under q ∝ exp(e·Y), and its log-normaliser, in f64 on a fine grid.
fn moments(e: &Coefficients) -> (Coefficients, f64) {
    let transform = Transform::<f64>::new(Grid::new(160, 320), e.max_degree());
    let normaliser = Integrator::new(e.max_degree()).log_integral_exp(e).value;
    let density: Vec<f64> =
        transform.synthesize(e).iter().map(|value| (value - normaliser).exp()).collect();
    (transform.analyze(&density), normaliser)
}

#[test]
fn the_gradient_of_the_likelihood_is_the_difference_of_moments() {
    let device = Device::flex().autodiff();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (max_degree, size) = (8, 81);
    let values = random_coefficients(2, size, 0.6, 4);
    let places: Vec<LatLon> = (0..2).map(|_| uniform_place(&mut rng)).collect();
    let output = tensor(values.clone(), [2, size], &device).require_grad();
    let loss = Loss::new(Objective::Likelihood, Quadrature::Transform(40), max_degree, &device);
    let value = loss.mean(output.clone(), &places, &mut rng);
    let gradients = value.backward();
    let gradient = numbers(&output.grad(&gradients).unwrap());
    let mut expected_value = 0.0;
    for (k, place) in places.iter().enumerate() {
        let row = values[k * size..(k + 1) * size].iter().map(|v| f64::from(*v)).collect();
        let e = Coefficients::from_vec(row).unwrap();
        let truth = Coefficients::of(*place, max_degree);
        let (mean, normaliser) = moments(&e);
        let dot: f64 = e.as_slice().iter().zip(truth.as_slice()).map(|(a, b)| a * b).sum();
        expected_value += 0.5 * (normaliser - dot);
        for i in 0..size {
            let expected = 0.5 * (mean.as_slice()[i] - truth.as_slice()[i]);
            let found = f64::from(gradient[k * size + i]);
            assert!((found - expected).abs() < 1e-4, "coefficient {i}: {found}, not {expected}");
        }
    }
    let value: f32 = value.into_scalar();
    assert!((f64::from(value) - expected_value).abs() < 1e-3, "{value}, not {expected_value}");
}

#[test]
fn the_value_of_the_reverse_divergence_is_that_of_the_survey() {
    let device = Device::flex();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (max_degree, size) = (8, 81);
    let values = random_coefficients(1, size, 0.6, 6);
    let place = uniform_place(&mut rng);
    let loss = Loss::new(Objective::ReverseKl, Quadrature::Transform(60), max_degree, &device);
    let value: f32 =
        loss.mean(tensor(values.clone(), [1, size], &device), &[place], &mut rng).into_scalar();
    let e = Coefficients::from_vec(values.iter().map(|v| f64::from(*v)).collect()).unwrap();
    let truth = Density::exponential(&Coefficients::of(place, max_degree));
    let expected = Density::exponential(&e).survey().divergence_from(&truth);
    assert!((f64::from(value) - expected).abs() < 2e-3 * expected, "{value}, not {expected}");
}

#[test]
fn every_objective_has_the_gradient_of_its_value() {
    let device = Device::flex().autodiff();
    let (max_degree, size) = (4, 25);
    let objectives = [
        Objective::ReverseKl,
        Objective::Likelihood,
        Objective::Cosine,
        Objective::L1,
        Objective::L2,
    ];
    for objective in objectives {
        for quadrature in [Quadrature::Anchors(64), Quadrature::Transform(12)] {
            let loss = Loss::new(objective, quadrature, max_degree, &device);
            let places = [LatLon::new(10.0, 20.0).unwrap(), LatLon::new(-70.0, 179.0).unwrap()];
            let values = random_coefficients(2, size, 0.5, 7);
            // The same points each time.
            let mean = |values: &[f32]| {
                let mut rng = ChaCha8Rng::seed_from_u64(8);
                let output = tensor(values.to_vec(), [2, size], &device).require_grad();
                (loss.mean(output.clone(), &places, &mut rng), output)
            };
            let (value, output) = mean(&values);
            let gradient = numbers(&output.grad(&value.backward()).unwrap());
            for i in [0, 3, 17, 30, 44] {
                let step = 0.02_f32;
                let shifted = |by: f32| {
                    let mut moved = values.clone();
                    moved[i] += by;
                    mean(&moved).0.into_scalar::<f32>()
                };
                let slope = (shifted(step) - shifted(-step)) / (2.0 * step);
                let error = (slope - gradient[i]).abs();
                assert!(
                    error < 2e-3 + 0.03 * slope.abs(),
                    "{objective:?} {quadrature:?} {i}: {} by autodiff, {slope} by differences",
                    gradient[i]
                );
            }
        }
    }
}

#[test]
fn a_perfect_output_has_no_loss() {
    let device = Device::flex();
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let place = LatLon::new(41.0, -179.5).unwrap();
    let truth = encodings(&Basis::new(10), &[place], &device);
    for objective in [Objective::ReverseKl, Objective::Cosine, Objective::L1, Objective::L2] {
        let loss = Loss::new(objective, Quadrature::default(), 10, &device);
        let value: f32 = loss.mean(truth.clone(), &[place], &mut rng).into_scalar();
        assert!(value.abs() < 1e-5, "{objective:?}: {value}");
    }
}

#[test]
fn the_grid_is_fine_enough_for_what_training_shows_it() {
    // The sharpest density that the loss claims to resolve, against the exact integral.
    let device = Device::flex();
    for max_degree in [10, 23] {
        let loss = Loss::new(Objective::Likelihood, Quadrature::default(), max_degree, &device);
        let t = loss.sharpest();
        let mut rng = ChaCha8Rng::seed_from_u64(10);
        for _ in 0..20 {
            let place = uniform_place(&mut rng);
            let e: Vec<f64> =
                Coefficients::of(place, max_degree).as_slice().iter().map(|y| t * y).collect();
            let exact = Integrator::new(max_degree)
                .exponential(&Coefficients::from_vec(e.clone()).unwrap())
                .nll_nats(place);
            let row = e.iter().map(|v| *v as f32).collect();
            let output = tensor(row, [1, e.len()], &device);
            let value: f32 = loss.mean(output, &[place], &mut rng).into_scalar();
            let error = (f64::from(value) - exact).abs();
            assert!(error < 0.03, "L = {max_degree}, t = {t}: off by {error}");
        }
    }
}

#[test]
fn activations_are_healthy_at_the_start() {
    let device = Device::flex();
    device.seed(1);
    for frequency in [1.0, 5.0, 30.0] {
        let config = DenoiserConfig { frequency, ..DenoiserConfig::new(15, 64) };
        let denoiser = config.init(&device);
        let x = tensor(random_coefficients(128, 256, 3.0_f64.sqrt(), 2), [128, 256], &device);
        let condition = tensor(random_coefficients(128, 64, 3.0_f64.sqrt(), 3), [128, 64], &device);
        let steps: Vec<usize> = (1..=128).collect();
        for (k, sines) in denoiser.activations(x, condition, &steps).iter().enumerate() {
            let mean_square: f32 = sines.clone().square().mean().into_scalar();
            // Of the sine of a standard normal number it is 0.43; 0.5 for wild ones.
            assert!((0.25..0.55).contains(&mean_square), "module {k}: {mean_square}");
        }
    }
}

#[test]
fn the_silent_network_is_exact_for_a_uniform_prior() {
    // Levels of the truth under exp(c_t·x_t·Y) are uniform at every noise level.
    let device = Device::flex();
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let diffusion = silent(config(Objective::Likelihood, 10, 100), &device);
    let basis = Basis::new(10);
    const COUNT: usize = 150;
    for t in [100, 60, 40] {
        let places: Vec<LatLon> = (0..COUNT).map(|_| uniform_place(&mut rng)).collect();
        let clean = encodings(&basis, &places, &device) * (4.0 * PI).sqrt();
        let noise = diffusion.noise(COUNT, &mut rng);
        let steps = vec![t; COUNT];
        let latent = diffusion.noisy(clean, noise, &steps);
        let condition = diffusion.denoiser().unconditional(COUNT);
        let output = diffusion.output(diffusion.denoiser(), latent, condition, &steps);
        let densities = diffusion.densities(&output).unwrap();
        let mut levels: Vec<f64> = densities
            .iter()
            .zip(&places)
            .map(|(density, place)| density.survey().outcome(*place).level)
            .collect();
        levels.sort_by(f64::total_cmp);
        let gaps = levels.iter().enumerate().map(|(k, l)| (l - k as f64 / COUNT as f64).abs());
        let distance = gaps.fold(0.0, f64::max);
        assert!(distance < 1.8 / (COUNT as f64).sqrt(), "t = {t}: {distance}");
    }
}

#[test]
fn samples_of_the_silent_network_are_uniform() {
    let device = Device::flex();
    let diffusion = silent(config(Objective::Likelihood, 10, 60), &device);
    let decoder = Decoder::new(10);
    const COUNT: usize = 300;
    for method in [Method::Ddpm, Method::Ddim(20)] {
        let options = SampleOptions { method, ..SampleOptions::default() };
        let output = diffusion.sample(None, COUNT, options, |_| ());
        let mut heights: Vec<f64> = coefficients_of(&output)
            .iter()
            .map(|e| decoder.mode(e).place.latitude().to_radians().sin())
            .collect();
        heights.sort_by(f64::total_cmp);
        let gaps = heights
            .iter()
            .enumerate()
            .map(|(k, height)| (0.5 * (height + 1.0) - k as f64 / COUNT as f64).abs());
        let distance = gaps.fold(0.0, f64::max);
        assert!(distance < 1.9 / (COUNT as f64).sqrt(), "{method:?}: {distance}");
        // And sharp: their likelihood is high. The uniform one is 2.5.
        let mut entropies: Vec<f64> = diffusion
            .densities(&output)
            .unwrap()
            .iter()
            .map(|density| density.survey().entropy_nats())
            .collect();
        entropies.sort_by(f64::total_cmp);
        assert!(entropies[COUNT / 2] < -0.5, "{method:?}: {}", entropies[COUNT / 2]);
    }
}

#[test]
fn sampling_is_reproducible_and_can_be_watched() {
    let device = Device::flex();
    device.seed(2);
    let diffusion = Diffusion::init(config(Objective::ReverseKl, 5, 50), &device).unwrap();
    let condition = tensor(random_coefficients(2, 6, 1.0, 1), [2, 6], &device);
    let sample = |seed, guidance| {
        let mut seen = Vec::new();
        let options =
            SampleOptions { method: Method::Ddim(10), seed, guidance, ..SampleOptions::default() };
        let output = diffusion.sample(Some(condition.clone()), 2, options, |step| {
            assert_eq!(step.latent.dims(), [2, 36]);
            assert_eq!(step.output.dims(), [2, 36]);
            seen.push(step.t);
        });
        (numbers(&output), seen)
    };
    let (first, seen) = sample(1, 1.0);
    assert_eq!(seen.len(), 10);
    assert_eq!((seen[0], seen[9]), (50, 1));
    assert!(seen.windows(2).all(|pair| pair[0] > pair[1]));
    assert_eq!(first, sample(1, 1.0).0);
    assert_ne!(first, sample(2, 1.0).0);
    assert_ne!(first, sample(1, 2.0).0);
    // Guidance 0 is the unconditional model.
    let options = SampleOptions { method: Method::Ddim(10), seed: 1, ..SampleOptions::default() };
    let none = numbers(&diffusion.sample(None, 2, options, |_| ()));
    let ignored = sample(1, 0.0).0;
    assert!(none.iter().zip(ignored).all(|(a, b)| (a - b).abs() < 1e-4));
}

#[test]
fn what_an_output_means_follows_from_the_objective() {
    let device = Device::flex();
    let meanings = [
        (Objective::Likelihood, Meaning::Exponential),
        (Objective::ReverseKl, Meaning::Linear),
        (Objective::L1, Meaning::ModeOnly),
        (Objective::L2, Meaning::ModeOnly),
        (Objective::Cosine, Meaning::ModeOnly),
    ];
    for (objective, meaning) in meanings {
        assert_eq!(objective.meaning(), meaning);
        let diffusion = Diffusion::init(config(objective, 5, 50), &device).unwrap();
        let output = diffusion.sample(None, 1, SampleOptions::default(), |_| ());
        let density = diffusion.densities(&output).map(|mut densities| densities.remove(0));
        match meaning {
            Meaning::Exponential => assert!(matches!(density, Some(Density::Exponential(_)))),
            Meaning::Linear => assert!(matches!(density, Some(Density::Linear(_)))),
            _ => assert!(density.is_none()),
        }
    }
}

/// What is not trained is not visited, whatever a model was trained for.
#[test]
fn samplers_visit_trained_noise_levels_only() {
    let device = Device::flex();
    let objectives = [
        Objective::ReverseKl,
        Objective::Likelihood,
        Objective::Cosine,
        Objective::L1,
        Objective::L2,
    ];
    let quadratures =
        [Quadrature::Anchors(256), Quadrature::Transform(0), Quadrature::Transform(24)];
    for objective in objectives {
        for kind in [ScheduleKind::Linear, ScheduleKind::Cosine, ScheduleKind::Shifted] {
            for quadrature in quadratures {
                let schedule = ScheduleConfig { kind, steps: 200 };
                let config = DiffusionConfig { schedule, quadrature, ..config(objective, 9, 200) };
                let diffusion = Diffusion::init(config, &device).unwrap();
                let trained = diffusion.trained_levels();
                for method in [
                    Method::OnePass,
                    Method::Ddpm,
                    Method::Ddim(2),
                    Method::Ddim(20),
                    Method::Ddim(500),
                ] {
                    let levels = diffusion.levels(method);
                    let what = format!("{objective:?} {kind:?} {quadrature:?} {method:?}");
                    assert!(levels.iter().all(|level| trained.contains(level)), "{what}");
                    // From pure noise down, to where training begins.
                    assert_eq!(levels[0], 200, "{what}");
                    assert!(levels.windows(2).all(|pair| pair[1] < pair[0]), "{what}");
                    if method != Method::OnePass {
                        assert_eq!(levels.last(), Some(trained.start()), "{what}");
                    }
                }
                assert_eq!(diffusion.levels(Method::Ddpm).len(), trained.count());
            }
        }
    }
}

/// Samples follow the mean of Y under the network's density. As sharp as the sharpest level that is trained at L = 47 (40 km
/// wide), that mean lies at the density's peak wherever the nodes of the grid are. Over 4 (L + 1) rings, as earlier, it does not.
#[test]
fn means_are_not_pulled_to_the_nodes_of_their_grid() {
    let device = Device::flex();
    let max_degree = 47;
    let denoiser = DenoiserConfig {
        bottleneck: Some(4),
        head_rank: Some(1),
        ..DenoiserConfig::new(max_degree, 2)
    };
    let config = DiffusionConfig { denoiser, ..config(Objective::Likelihood, max_degree, 200) };
    let diffusion = silent(config, &device);
    // Nodes of 6 (L + 1) rings are 1.75 of its standard deviations apart.
    let width = PI / 288.0 / 1.75;
    let sharpest = (encoding_width_km(max_degree) / 6371.0088 / width).powi(2);
    let basis = Basis::new(max_degree);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let places: Vec<LatLon> = (0..24).map(|_| uniform_place(&mut rng)).collect();
    let sharp = encodings(&basis, &places, &device) * sharpest;
    let farthest_km = |means: &Tensor<2>| {
        let decoded = Decoder::new(max_degree).modes_of_batch(&numbers(means), 1);
        let distances =
            decoded.iter().zip(&places).map(|(peaks, place)| peaks[0].place.distance_km(*place));
        distances.fold(0.0, f64::max)
    };
    let off_km = farthest_km(&diffusion.mean_encoding(sharp.clone()));
    let coarse = SphereGrid::new(Grid::new(192, 384), max_degree, &device);
    let density = softmax(coarse.synthesize(sharp) + coarse.log_areas(), 1);
    let coarse_km = farthest_km(&coarse.analyze(density));
    assert!(off_km < 1.0 && coarse_km > 5.0 * off_km, "{off_km} and {coarse_km} km");
}
