//! The two networks: from an embedding to numbers at once, and to a field of vectors over places and
//! time. Both stand on the same trunk.
//!
//! ```text
//! trunk   h = gelu(W·embedding + b);  h + gelu(V·h + c)                      [rows, 512]
//! direct  linear map of the trunk
//! field   a = gelu((1 + γ) ⊙ A·x + β);  a + gelu((1 + γ′) ⊙ B·a + β′) twice; linear map to R³
//!         all γ and β are linear in the trunk and in sines of the time
//! ```
//!
//! The field works as plonk's does (Dufour et al. 2025): the embedding modulates layers that see the place.

use std::f64::consts::PI;

use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor};
use locdiff::tensors::Gelu;
use locdiff::tensors::gelu;

use super::fitting::matrix_of;

/// Of the trunk's two layers.
const WIDTH: usize = 512;
/// Of the field's layers.
const FIELD_WIDTH: usize = 256;
/// Layers of the field behind its first.
const FIELD_LAYERS: usize = 2;
/// Frequencies of the time, in half turns over its whole.
const TIME_FREQUENCIES: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

/// A linear map.
#[derive(Module, Debug)]
struct Layer {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Layer {
    /// Outputs of standard deviation `gain` for inputs of unit mean square.
    fn init(inputs: usize, outputs: usize, gain: f64, device: &Device) -> Layer {
        let bound = gain * (3.0 / inputs as f64).sqrt();
        Layer {
            weight: Initializer::Uniform { min: -bound, max: bound }
                .init([inputs, outputs], device),
            bias: Initializer::Zeros.init([outputs], device),
        }
    }

    fn product(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.weight.val())
    }

    fn linear(&self, x: Tensor<2>) -> Tensor<2> {
        self.product(x) + self.bias.val().unsqueeze()
    }

    fn gelu(&self, x: Tensor<2>) -> Tensor<2> {
        gelu(self.product(x), self.bias.val(), Gelu::Quick)
    }
}

#[derive(Module, Debug)]
struct Trunk {
    first: Layer,
    second: Layer,
}

impl Trunk {
    fn init(inputs: usize, device: &Device) -> Trunk {
        Trunk {
            first: Layer::init(inputs, WIDTH, 1.5, device),
            second: Layer::init(WIDTH, WIDTH, 1.5, device),
        }
    }

    fn forward(&self, embeddings: Tensor<2>) -> Tensor<2> {
        let hidden = self.first.gelu(embeddings);
        hidden.clone() + self.second.gelu(hidden)
    }
}

/// Numbers of an embedding at once.
#[derive(Module, Debug)]
pub(super) struct Direct {
    trunk: Trunk,
    out: Layer,
}

impl Direct {
    /// Outputs begin near `start`, the same for all embeddings.
    pub(super) fn init(inputs: usize, start: Vec<f32>, device: &Device) -> Direct {
        let mut out = Layer::init(WIDTH, start.len(), 0.02, device);
        out.bias = Param::from_tensor(Tensor::<1>::from_floats(start.as_slice(), device));
        Direct { trunk: Trunk::init(inputs, device), out }
    }

    pub(super) fn forward(&self, embeddings: Tensor<2>) -> Tensor<2> {
        self.out.linear(self.trunk.forward(embeddings))
    }
}

/// Vectors at places and times, given an embedding.
#[derive(Module, Debug)]
pub(super) struct Field {
    trunk: Trunk,
    from_trunk: Layer,
    from_time: Layer,
    input: Layer,
    hidden: Vec<Layer>,
    out: Layer,
}

/// All γ and β, `[rows, 2·layers·width]`.
#[derive(Clone)]
pub(super) struct Modulation(Tensor<2>);

impl Field {
    pub(super) fn init(inputs: usize, device: &Device) -> Field {
        let modulations = 2 * (FIELD_LAYERS + 1) * FIELD_WIDTH;
        let times = 1 + 2 * TIME_FREQUENCIES.len();
        let hidden = |_| Layer::init(FIELD_WIDTH, FIELD_WIDTH, 1.5, device);
        Field {
            trunk: Trunk::init(inputs, device),
            from_trunk: Layer::init(WIDTH, modulations, 0.5, device),
            from_time: Layer::init(times, modulations, 0.5, device),
            input: Layer::init(3, FIELD_WIDTH, 1.5, device),
            hidden: (0..FIELD_LAYERS).map(hidden).collect(),
            out: Layer::init(FIELD_WIDTH, 3, 0.02, device),
        }
    }

    /// The part that depends on the embedding only, not on place and time.
    pub(super) fn modulation(&self, embeddings: Tensor<2>) -> Modulation {
        Modulation(self.from_trunk.linear(self.trunk.forward(embeddings)))
    }

    /// Vectors `[rows, 3]` at places `[rows, 3]`; one time for each row, or one for all.
    pub(super) fn forward(
        &self,
        x: Tensor<2>,
        modulation: &Modulation,
        times: &[f64],
    ) -> Tensor<2> {
        let modulation = self.at_times(modulation, times, &x.device());
        let mut hidden: Option<Tensor<2>> = None;
        for (k, layer) in self.layers().enumerate() {
            let (scale, shift) = part(&modulation, k);
            let product = layer.product(hidden.clone().unwrap_or_else(|| x.clone()));
            let active = gelu(product * scale + shift, layer.bias.val(), Gelu::Quick);
            hidden = Some(match hidden {
                Some(hidden) => hidden + active,
                None => active,
            });
        }
        self.out.linear(hidden.expect("a field has layers"))
    }

    /// The same, with its derivatives along two directions at each place: by the chain rule, layer
    /// after layer.
    pub(super) fn forward_with_derivatives(
        &self,
        x: Tensor<2>,
        directions: [Tensor<2>; 2],
        modulation: &Modulation,
        times: &[f64],
    ) -> (Tensor<2>, [Tensor<2>; 2]) {
        let modulation = self.at_times(modulation, times, &x.device());
        let mut seen = (x, directions);
        for (k, layer) in self.layers().enumerate() {
            let (scale, shift) = part(&modulation, k);
            let input = layer.product(seen.0.clone()) * scale.clone()
                + shift
                + layer.bias.val().unsqueeze();
            // x·σ(1.702·x), and its slope.
            let gate = sigmoid(input.clone() * 1.702);
            let slope = (gate.clone() * (gate.clone().neg() + 1.0) * input.clone() * 1.702
                + gate.clone())
                * scale;
            let active = input * gate;
            let derived = seen.1.clone().map(|along| layer.product(along) * slope.clone());
            seen = if k == 0 {
                (active, derived)
            } else {
                let [first, second] = derived;
                let [before_first, before_second] = seen.1;
                (seen.0 + active, [before_first + first, before_second + second])
            };
        }
        (self.out.linear(seen.0), seen.1.map(|along| self.out.product(along)))
    }

    fn layers(&self) -> impl Iterator<Item = &Layer> {
        std::iter::once(&self.input).chain(&self.hidden)
    }

    fn at_times(&self, modulation: &Modulation, times: &[f64], device: &Device) -> Tensor<2> {
        let mut values = Vec::with_capacity(times.len() * (1 + 2 * TIME_FREQUENCIES.len()));
        for time in times {
            values.push(*time as f32);
            for frequency in TIME_FREQUENCIES {
                let (sin, cos) = (PI * frequency * time).sin_cos();
                values.extend([sin as f32, cos as f32]);
            }
        }
        let times = matrix_of(values, 1 + 2 * TIME_FREQUENCIES.len(), device);
        modulation.0.clone() + self.from_time.linear(times)
    }
}

/// 1 + γ and β of a layer, `[rows, width]` each.
fn part(modulation: &Tensor<2>, layer: usize) -> (Tensor<2>, Tensor<2>) {
    let first = 2 * layer * FIELD_WIDTH;
    let scale = modulation.clone().narrow(1, first, FIELD_WIDTH) + 1.0;
    (scale, modulation.clone().narrow(1, first + FIELD_WIDTH, FIELD_WIDTH))
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Distribution, Tolerance};

    use super::*;

    #[test]
    fn baseline_fields_derivatives_are_the_limits_of_differences() {
        let device = Device::flex();
        device.seed(3);
        let field = Field::init(7, &device);
        let random =
            |width: usize| Tensor::<2>::random([5, width], Distribution::Normal(0.0, 1.0), &device);
        let (x, directions) = (random(3), [random(3), random(3)]);
        let modulation = field.modulation(random(7));
        let times = [0.0, 0.2, 0.5, 0.9, 1.0];
        let (value, derived) =
            field.forward_with_derivatives(x.clone(), directions.clone(), &modulation, &times);
        let at = |x: Tensor<2>| field.forward(x, &modulation, &times);
        let same = Tolerance::absolute(1e-6);
        value.into_data().assert_approx_eq::<f32>(&at(x.clone()).into_data(), same);
        for (direction, derived) in directions.into_iter().zip(derived) {
            let step = direction * 0.01;
            let difference = (at(x.clone() + step.clone()) - at(x.clone() - step)) / 0.02;
            let near = Tolerance::rel_abs(2e-3, 2e-4);
            derived.into_data().assert_approx_eq::<f32>(&difference.into_data(), near);
        }
    }
}
