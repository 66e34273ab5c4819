//! GeoCLIP's location encoder: a place to 512 numbers.
//!
//! Convention: latitude φ and longitude λ in radians go through the Equal Earth projection (Šavrič,
//! Patterson and Jenny 2018) with the constants and the scale that GeoCLIP was trained with, to
//! x, y of about ±1. Three capsules with frequencies B of σ = 1, 16 and 256 see the
//! random Fourier features cos 2πBv, sin 2πBv of v = (x, y), each through an MLP; their outputs are
//! summed and scaled to length one. The plane is cut at the antimeridian, so embeddings jump
//! there: 180° is read as −180°.
//!
//! Precision: phases reach thousands of radians, so projection and phases are computed in f64
//! and only the features are f32. PyTorch in f32 keeps the phases to some 1e-3 of a radian; its
//! embeddings differ by up to 2e-4 (in cities, 1e-5 at a typical place) from what the same code
//! gives in f64, and depend on the machine's sine. So the reference is PyTorch in f64:
//! `parity/geoclip`.

use std::f64::consts::TAU;

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use locdiff_sphere::LatLon;

use super::error::GeoClipError;
use super::named_tensors::{NamedTensors, NamedValues, unit_rows};

/// From places to embeddings: vectors of length one, near those of photographs taken there.
#[derive(Module, Debug)]
pub struct LocationEncoder {
    capsules: Vec<Capsule>,
}

/// One scale of detail: random Fourier features and an MLP.
#[derive(Module, Debug)]
struct Capsule {
    /// Waves per unit of x and of y. On the host, because most devices have no f64.
    #[module(skip)]
    frequencies: Vec<[f32; 2]>,
    /// Features → 1024 → 1024 → 1024 → 512, ReLU between.
    layers: Vec<Linear>,
}

/// Places embedded at a time: enough for full speed, and little memory.
const BATCH: usize = 1024;

impl LocationEncoder {
    /// Embeddings of places, `[places, 512]`, rows of length one, on the weights' device.
    pub fn embed(&self, places: &[LatLon]) -> Tensor<2> {
        match places.len() {
            0 => Tensor::zeros([0, self.width()], &self.device()),
            1..=BATCH => self.embed_batch(places),
            _ => {
                Tensor::cat(places.chunks(BATCH).map(|batch| self.embed_batch(batch)).collect(), 0)
            }
        }
    }

    /// How many numbers an embedding has.
    pub fn width(&self) -> usize {
        self.last_layer().weight.dims()[1]
    }

    fn embed_batch(&self, places: &[LatLon]) -> Tensor<2> {
        let device = self.device();
        let projected: Vec<[f64; 2]> = places.iter().map(|place| equal_earth(*place)).collect();
        let outputs = self.capsules.iter().map(|capsule| capsule.forward(&projected, &device));
        let sum = outputs.reduce(|sum, output| sum + output).expect("there are capsules");
        unit_rows(sum) // [places, 512]
    }

    fn device(&self) -> Device {
        self.last_layer().weight.val().device()
    }

    fn last_layer(&self) -> &Linear {
        self.capsules[0].layers.last().expect("a capsule has layers")
    }

    /// As many capsules as there are names for; their widths must fit each other.
    pub(super) fn take_from(
        tensors: &mut NamedTensors,
        device: &Device,
    ) -> Result<LocationEncoder, GeoClipError> {
        let mut capsules = vec![Capsule::take_from(0, tensors, device)?];
        while tensors.contains(&frequencies_name(capsules.len())) {
            let capsule = Capsule::take_from(capsules.len(), tensors, device)?;
            let [width, first] = [&capsule, &capsules[0]].map(Capsule::width);
            if width != first {
                let name = format!("{}.weight", layer_names(capsules.len())[3]);
                let inputs = capsule.layers[3].weight.dims()[0];
                let (found, expected) = (vec![width, inputs], format!("[{first}, {inputs}]"));
                return Err(GeoClipError::Shape { name, found, expected });
            }
            capsules.push(capsule);
        }
        Ok(LocationEncoder { capsules }.no_grad())
    }

    pub(super) fn put_into(&self, tensors: &mut NamedTensors) {
        for (index, capsule) in self.capsules.iter().enumerate() {
            let shape = vec![capsule.frequencies.len(), 2];
            let values = capsule.frequencies.as_flattened().to_vec();
            tensors.insert(frequencies_name(index), NamedValues { shape, values });
            for (name, layer) in layer_names(index).iter().zip(&capsule.layers) {
                tensors.put_linear(name, layer);
            }
        }
    }
}

impl Capsule {
    fn forward(&self, projected: &[[f64; 2]], device: &Device) -> Tensor<2> {
        let (last, hidden) = self.layers.split_last().expect("a capsule has layers");
        let features = self.features(projected, device); // [places, 2 · frequencies]
        let hidden = hidden.iter().fold(features, |x, layer| relu(layer.forward(x))); // [places, 1024]
        last.forward(hidden) // [places, 512]
    }

    /// All cosines, then all sines: `[places, 2 · frequencies]`.
    fn features(&self, projected: &[[f64; 2]], device: &Device) -> Tensor<2> {
        let count = self.frequencies.len();
        let mut features = vec![0.0; projected.len() * 2 * count];
        for (&[x, y], row) in projected.iter().zip(features.chunks_exact_mut(2 * count)) {
            let (cosines, sines) = row.split_at_mut(count);
            for (index, &[along_x, along_y]) in self.frequencies.iter().enumerate() {
                let turns = f64::from(along_x) * x + f64::from(along_y) * y;
                // Whole turns are dropped while they cost nothing.
                let phase = (TAU * (turns - turns.round())) as f32;
                (sines[index], cosines[index]) = phase.sin_cos();
            }
        }
        Tensor::from_data(TensorData::new(features, [projected.len(), 2 * count]), device)
    }

    fn width(&self) -> usize {
        self.layers[3].weight.dims()[1]
    }

    fn take_from(
        index: usize,
        tensors: &mut NamedTensors,
        device: &Device,
    ) -> Result<Capsule, GeoClipError> {
        let name = frequencies_name(index);
        let frequencies = tensors.take(&name)?;
        if !matches!(frequencies.shape[..], [count, 2] if count > 0) {
            return Err(frequencies.shape_error(name, "[frequencies, 2]".to_owned()));
        }
        let frequencies = frequencies.values.as_chunks().0.to_vec();
        let (mut layers, mut inputs) = (Vec::new(), 2 * frequencies.len());
        for name in layer_names(index) {
            let layer = tensors.take_linear(&name, Some(inputs), device)?;
            inputs = layer.weight.dims()[1];
            layers.push(layer);
        }
        Ok(Capsule { frequencies, layers })
    }
}

/// The names that GeoCLIP's own checkpoints use: places in a `torch.nn.Sequential`, in which each
/// ReLU counts too.
fn layer_names(capsule: usize) -> [String; 4] {
    ["capsule.1", "capsule.3", "capsule.5", "head.0"]
        .map(|layer| format!("location_encoder.LocEnc{capsule}.{layer}"))
}

fn frequencies_name(capsule: usize) -> String {
    format!("location_encoder.LocEnc{capsule}.capsule.0.b")
}

/// x and y of the Equal Earth projection as GeoCLIP was trained with it: x within ±1.0, y within
/// ±0.49.
fn equal_earth(place: LatLon) -> [f64; 2] {
    const A: [f64; 4] = [1.340264, -0.081106, 0.000893, 0.003796];
    /// Brings x to ±1 where the antimeridian meets the equator.
    const SCALE: f64 = 66.50336 / 180.0;
    /// The f32 nearest to √3, which the published code takes at every precision; the true one
    /// would move embeddings by 6e-6.
    const SQRT_3: f64 = 1.732_050_776_481_628_4;

    let (latitude, longitude) = (place.latitude().to_radians(), place.longitude().to_radians());
    let theta = (SQRT_3 / 2.0 * latitude.sin()).asin();
    let square = theta * theta;
    let sixth = square * square * square;
    let slope = A[0] + 3.0 * A[1] * square + sixth * (7.0 * A[2] + 9.0 * A[3] * square);
    let x = 2.0 * SQRT_3 * longitude * theta.cos() / (3.0 * slope);
    let y = theta * (A[0] + A[1] * square + sixth * (A[2] + A[3] * square));
    [x * SCALE, y * SCALE]
}
