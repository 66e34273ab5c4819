//! An encoder with a head that answers at once: from pixels to the coefficients of an exponential
//! density. It is how encoders are trained end to end; a denoiser can be trained on its embeddings.

use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};
use locdiff_sphere::coefficient_count;
use serde::{Deserialize, Serialize};

use super::view_encoder::{ViewEncoder, ViewEncoderConfig, matrix};
use crate::tensors::fused::{Gelu, gelu};

/// Everything that fixes the model's shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewNetworkConfig {
    /// The encoder.
    pub encoder: ViewEncoderConfig,
    /// Width of the head's only layer.
    pub hidden: usize,
    /// L of the answer.
    pub max_degree: usize,
}

impl Default for ViewNetworkConfig {
    fn default() -> ViewNetworkConfig {
        ViewNetworkConfig { encoder: ViewEncoderConfig::default(), hidden: 768, max_degree: 31 }
    }
}

impl ViewNetworkConfig {
    /// A model with random weights, which says next to nothing.
    pub fn init(&self, device: &Device) -> ViewNetwork {
        let outputs = coefficient_count(self.max_degree);
        ViewNetwork {
            encoder: self.encoder.init(device),
            hidden: matrix(self.encoder.embedding, self.hidden, 1.5, device),
            bias: Initializer::Zeros.init([self.hidden], device),
            out: matrix(self.hidden, outputs, 0.02, device),
            out_bias: Initializer::Zeros.init([outputs], device),
        }
    }
}

/// The model.
#[derive(Module, Debug)]
pub struct ViewNetwork {
    encoder: ViewEncoder,
    hidden: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    out: Param<Tensor<2>>,
    out_bias: Param<Tensor<1>>,
}

impl ViewNetwork {
    /// The encoder.
    pub fn encoder(&self) -> &ViewEncoder {
        &self.encoder
    }

    /// Coefficients `[pictures, (L+1)²]` of exponential densities, of pictures as
    /// [`ViewEncoder::forward`] takes them.
    pub fn forward(&self, pixels: &[u8]) -> Tensor<2> {
        self.answer(self.encoder.forward(pixels))
    }

    /// The same from embeddings `[pictures, embedding]`.
    pub fn answer(&self, embeddings: Tensor<2>) -> Tensor<2> {
        let hidden = gelu(embeddings.matmul(self.hidden.val()), self.bias.val(), Gelu::Quick);
        hidden.matmul(self.out.val()) + self.out_bias.val().unsqueeze()
    }
}
