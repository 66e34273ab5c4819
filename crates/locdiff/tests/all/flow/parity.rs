//! A network beside what the package `diff-plonk` computed with it: for the tests, and for `experiments/plonk-parity`.

use std::f64::consts::PI;
use std::fs;
use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use locdiff::models::flow::{FlowConfig, FlowNetwork, gammas};
use locdiff_sphere::{LatLon, UnitVector};
use serde_json::Value;

/// Largest differences from the package.
#[derive(Debug)]
pub(crate) struct Parity {
    /// Of velocities.
    pub(crate) velocity: f64,
    /// Of noise levels.
    pub(crate) gamma: f64,
    /// Of coordinates after 16 steps, with and without guidance.
    pub(crate) trajectory: f64,
    /// Of log-likelihoods by the package's formula, in nats.
    pub(crate) their_likelihood_nat: f64,
}

/// A published directory.
pub(crate) fn network(directory: &Path) -> FlowNetwork {
    let config = fs::read_to_string(directory.join("config.json")).unwrap();
    let config: FlowConfig = serde_json::from_str(&config).unwrap();
    FlowNetwork::read(&config, &directory.join("model.safetensors"), &Device::flex()).unwrap()
}

/// What the package gave.
pub(crate) fn expected(directory: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(directory.join("expected.json")).unwrap()).unwrap()
}

pub(crate) fn embeddings(expected: &Value) -> Vec<Vec<f32>> {
    serde_json::from_value(expected["embeddings"].clone()).unwrap()
}

fn triples(value: &Value) -> Vec<[f64; 3]> {
    serde_json::from_value(value.clone()).unwrap()
}

fn largest(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// All comparisons.
pub(crate) fn compare(directory: &Path) -> Parity {
    let (network, expected) = (network(directory), expected(directory));
    let embeddings = embeddings(&expected);
    let embedding = |case: &Value| &embeddings[case["embedding"].as_u64().unwrap() as usize];
    let noise = triples(&expected["noise"]);
    let cases = |name: &str| expected[name].as_array().unwrap();

    let numbers: Vec<f32> = noise.as_flattened().iter().map(|x| *x as f32).collect();
    let particles =
        Tensor::<2>::from_data(TensorData::new(numbers, [noise.len(), 3]), &Device::flex());
    let velocity = cases("outputs").iter().map(|case| {
        let gamma = case["gamma"].as_f64().unwrap() as f32;
        let found = network.field(embedding(case), gamma, 1.0).velocity(particles.clone());
        let found: Vec<f32> = found.into_data_as::<f32>().try_into_vec().unwrap();
        let found: Vec<f64> = found.into_iter().map(f64::from).collect();
        largest(&found, triples(&case["velocity"]).as_flattened())
    });
    let velocity = velocity.fold(0.0, f64::max);

    let steps = expected["steps"].as_u64().unwrap() as usize;
    let levels: Vec<f64> = serde_json::from_value(expected["gammas"].clone()).unwrap();
    let found: Vec<f64> = gammas(steps).into_iter().map(f64::from).collect();
    let gamma = largest(&found, &levels);

    let starts: Vec<UnitVector> =
        noise.iter().map(|x| UnitVector::from_direction(*x).unwrap()).collect();
    let trajectory = cases("trajectories").iter().map(|case| {
        let guidance = 1.0 + case["cfg"].as_f64().unwrap();
        let found = network.sample(embedding(case), &starts, steps, guidance);
        let found: Vec<[f64; 3]> = found.iter().map(|place| place.to_array()).collect();
        largest(found.as_flattened(), triples(&case["places"]).as_flattened())
    });
    let trajectory = trajectory.fold(0.0, f64::max);

    let places: Vec<[f64; 2]> = serde_json::from_value(expected["places"].clone()).unwrap();
    let steps = expected["likelihood_steps"].as_u64().unwrap() as usize;
    let likelihood = cases("their_likelihoods").iter().map(|case| {
        let guidance = 1.0 + case["cfg"].as_f64().unwrap();
        let found = their_likelihoods(&network, embedding(case), &places, steps, guidance);
        let nats: Vec<f64> = serde_json::from_value(case["nats"].clone()).unwrap();
        largest(&found, &nats)
    });
    let their_likelihood_nat = likelihood.fold(0.0, f64::max);
    Parity { velocity, gamma, trajectory, their_likelihood_nat }
}

/// The package's formula, for comparison only: a flow in space, off the sphere, and the trace of its Jacobian. By Kutta's 3/8
/// rule over t, from places (0) to noise (1).
pub(crate) fn their_likelihoods(
    network: &FlowNetwork,
    embedding: &[f32],
    places: &[[f64; 2]],
    steps: usize,
    guidance: f64,
) -> Vec<f64> {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let range = sigmoid(3.0) - sigmoid(-7.0);
    // x and the integral of the divergence.
    type State = Vec<[f64; 4]>;
    let slope = |t: f64, state: &State| -> State {
        let shifted = 10.0 * t - 7.0;
        let gamma = ((sigmoid(3.0) - sigmoid(shifted)) / range).clamp(1e-9, 1.0);
        let rate = -10.0 * sigmoid(shifted) * (1.0 - sigmoid(shifted)) / range;
        let x: Vec<[f64; 3]> = state.iter().map(|[x, y, z, _]| [*x, *y, *z]).collect();
        let motions = network.field(embedding, gamma as f32, guidance).motion(&x);
        let slopes = motions.iter().map(|motion| {
            let [x, y, z] = motion.velocity;
            let trace: f64 = (0..3).map(|k| motion.jacobian[k][k]).sum();
            [x, y, z, trace].map(|value| rate * value)
        });
        slopes.collect()
    };
    let plus = |state: &State, parts: &[(f64, &State)]| -> State {
        let row = |k: usize| {
            std::array::from_fn(|c| {
                state[k][c] + parts.iter().map(|(factor, slope)| factor * slope[k][c]).sum::<f64>()
            })
        };
        (0..state.len()).map(row).collect()
    };
    let start = |[latitude, longitude]: &[f64; 2]| {
        let [x, y, z] = UnitVector::from(LatLon::new(*latitude, *longitude).unwrap()).to_array();
        [x, y, z, 0.0]
    };
    let mut state: State = places.iter().map(start).collect();
    let h = 1.0 / steps as f64;
    for step in 0..steps {
        let t = step as f64 * h;
        let k1 = slope(t, &state);
        let k2 = slope(t + h / 3.0, &plus(&state, &[(h / 3.0, &k1)]));
        let k3 = slope(t + h * 2.0 / 3.0, &plus(&state, &[(-h / 3.0, &k1), (h, &k2)]));
        let k4 = slope(t + h, &plus(&state, &[(h, &k1), (-h, &k2), (h, &k3)]));
        let (once, thrice) = (h / 8.0, 3.0 * h / 8.0);
        state = plus(&state, &[(once, &k1), (thrice, &k2), (thrice, &k3), (once, &k4)]);
    }
    state.iter().map(|[.., integral]| integral - (4.0 * PI).ln()).collect()
}
