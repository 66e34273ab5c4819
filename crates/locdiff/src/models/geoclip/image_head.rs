//! GeoCLIP's image head: from CLIP's features of an image to the space of places.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};

use super::error::GeoClipError;
use super::named_tensors::{NamedTensors, unit_rows};

/// Two layers on top of CLIP ViT-L/14: 768 → 768, ReLU, → 512, then to length one.
#[derive(Module, Debug)]
pub struct ImageHead {
    hidden: Linear,
    output: Linear,
}

/// The names that GeoCLIP's own checkpoints use.
const HIDDEN: &str = "image_encoder.mlp.0";
const OUTPUT: &str = "image_encoder.mlp.2";

impl ImageHead {
    /// Embeddings of images from the backbone's features, `[images, 768]`: `[images, 512]`, rows
    /// of length one. The features are CLIP's projected ones (`image_embeds`), not normalised.
    pub fn embed(&self, features: Tensor<2>) -> Tensor<2> {
        let hidden = relu(self.hidden.forward(features)); // [images, 768]
        unit_rows(self.output.forward(hidden)) // [images, 512]
    }

    /// The same of one image.
    pub(crate) fn embed_row(&self, features: &[f32]) -> Vec<f32> {
        let features = TensorData::new(features.to_vec(), [1, features.len()]);
        let device = self.output.weight.val().device();
        let embedding = self.embed(Tensor::from_data(features, &device));
        embedding.into_data_as::<f32>().try_into_vec().expect("f32")
    }

    /// How many numbers an embedding has.
    pub fn width(&self) -> usize {
        self.output.weight.dims()[1]
    }

    /// How many features of the backbone it takes.
    pub fn feature_width(&self) -> usize {
        self.hidden.weight.dims()[0]
    }

    pub(super) fn take_from(
        tensors: &mut NamedTensors,
        device: &Device,
    ) -> Result<ImageHead, GeoClipError> {
        let hidden = tensors.take_linear(HIDDEN, None, device)?;
        let output = tensors.take_linear(OUTPUT, Some(hidden.weight.dims()[1]), device)?;
        Ok(ImageHead { hidden, output }.no_grad())
    }

    pub(super) fn put_into(&self, tensors: &mut NamedTensors) {
        tensors.put_linear(HIDDEN, &self.hidden);
        tensors.put_linear(OUTPUT, &self.output);
    }
}
