//! A small convolutional encoder of square pictures, made of what the CPU does fast.
//!
//! ```text
//! pixels [side², 3] → windows of 8 × 8, every 4 → tokens of the first width
//! per width: blocks, then 2 × 2 tokens become one of the next width
//! block: x + W·gelu(V·normalised 3 × 3 window of each channel of x)
//! tokens of the last width, normalised → embedding, normalised
//! ```

use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::tensors::fused::{Gelu, Window, convolve, convolve_each, gelu, normalise};

const STEM: usize = 8;
const STEM_STRIDE: usize = 4;
const KERNEL: usize = 3;
/// Width inside a block, over its own.
const EXPANSION: usize = 2;

/// Everything that fixes the encoder's shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewEncoderConfig {
    /// Pixels along a side.
    pub side: usize,
    /// Widths of tokens; each later one has half as many tokens along a side.
    pub widths: Vec<usize>,
    /// Blocks at each width.
    pub blocks: Vec<usize>,
    /// Length of the embedding.
    pub embedding: usize,
}

impl Default for ViewEncoderConfig {
    fn default() -> ViewEncoderConfig {
        ViewEncoderConfig {
            side: 64,
            widths: vec![64, 128, 256],
            blocks: vec![1, 2, 3],
            embedding: 512,
        }
    }
}

impl ViewEncoderConfig {
    /// An encoder with random weights.
    ///
    /// # Panics
    /// If there are no widths, not as many blocks as widths, or the side can't be halved so often.
    pub fn init(&self, device: &Device) -> ViewEncoder {
        assert_eq!(self.widths.len(), self.blocks.len(), "as many numbers of blocks as widths");
        let last_width = *self.widths.last().expect("a width at least");
        // Pixels along the side of a last token.
        let last_token = STEM_STRIDE << (self.widths.len() - 1);
        assert!(
            self.side.is_multiple_of(last_token),
            "{} pixels can't be halved so often",
            self.side
        );
        let last = (self.side / last_token).pow(2) * last_width;
        ViewEncoder {
            stages: stages(&self.widths, &self.blocks, device),
            out: matrix(last, self.embedding, 1.0, device),
            side: self.side,
        }
    }
}

/// Stages of these widths, with so many blocks each.
pub(super) fn stages(widths: &[usize], blocks: &[usize], device: &Device) -> Vec<Stage> {
    let stage = |k: usize| {
        let width = widths[k];
        let inputs = if k == 0 { STEM * STEM * 3 } else { 4 * widths[k - 1] };
        Stage {
            merge: matrix(inputs, width, 1.0, device),
            blocks: (0..blocks[k]).map(|_| Block::init(width, device)).collect(),
        }
    };
    (0..widths.len()).map(stage).collect()
}

/// What stages make of pictures `[pictures · side², 3]`: tokens of the last width, normalised.
pub(super) fn tokens_of(stages: &[Stage], mut x: Tensor<2>, mut side: usize) -> Tensor<2> {
    for (k, stage) in stages.iter().enumerate() {
        let window = if k == 0 {
            let padding = (STEM - STEM_STRIDE) / 2;
            Window { side, kernel: STEM, stride: STEM_STRIDE, padding }
        } else {
            Window { side, kernel: 2, stride: 2, padding: 0 }
        };
        x = convolve(x, stage.merge.val(), window);
        side = window.places();
        for block in &stage.blocks {
            x = block.forward(x, side);
        }
    }
    normalise(x)
}

/// Uniform weights for outputs of standard deviation `gain`.
pub(crate) fn matrix(
    inputs: usize,
    outputs: usize,
    gain: f64,
    device: &Device,
) -> Param<Tensor<2>> {
    let bound = gain * (3.0 / inputs as f64).sqrt();
    Initializer::Uniform { min: -bound, max: bound }.init([inputs, outputs], device)
}

/// The encoder of the first earth-view: one embedding of a whole view.
#[derive(Module, Debug)]
pub struct ViewEncoder {
    stages: Vec<Stage>,
    out: Param<Tensor<2>>,
    side: usize,
}

#[derive(Module, Debug)]
pub(super) struct Stage {
    merge: Param<Tensor<2>>,
    blocks: Vec<Block>,
}

#[derive(Module, Debug)]
struct Block {
    window: Param<Tensor<2>>,
    hidden: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    out: Param<Tensor<2>>,
}

impl Block {
    fn init(width: usize, device: &Device) -> Block {
        let places = KERNEL * KERNEL;
        let spread = Initializer::Normal { mean: 0.0, std: 1.0 / KERNEL as f64 };
        Block {
            window: spread.init([places, width], device),
            hidden: matrix(width, EXPANSION * width, 1.5, device),
            bias: Initializer::Zeros.init([EXPANSION * width], device),
            // Adds little at first.
            out: matrix(EXPANSION * width, width, 0.3, device),
        }
    }

    fn forward(&self, x: Tensor<2>, side: usize) -> Tensor<2> {
        let around = Window { side, kernel: KERNEL, stride: 1, padding: KERNEL / 2 };
        let seen = normalise(convolve_each(x.clone(), self.window.val(), around));
        let hidden = gelu(seen.matmul(self.hidden.val()), self.bias.val(), Gelu::Quick);
        x + hidden.matmul(self.out.val())
    }
}

impl ViewEncoder {
    /// Pixels along a side of the pictures.
    pub fn side(&self) -> usize {
        self.side
    }

    /// Embeddings `[pictures, embedding]`, each with mean 0 and variance 1, of pictures as red,
    /// green and blue bytes, row by row.
    ///
    /// # Panics
    /// If the bytes don't fill pictures.
    pub fn forward(&self, pixels: &[u8]) -> Tensor<2> {
        let picture = 3 * self.side * self.side;
        assert!(pixels.len().is_multiple_of(picture), "{} bytes don't fill pictures", pixels.len());
        let device = self.out.val().device();
        let numbers: Vec<f32> = pixels.iter().map(|byte| f32::from(*byte) / 64.0 - 1.5).collect();
        let tokens = numbers.len() / 3;
        let data = burn::tensor::TensorData::new(numbers, [tokens, 3]);
        let x = tokens_of(&self.stages, Tensor::from_data(data, &device), self.side);
        let pictures = pixels.len() / picture;
        let [tokens, width] = x.dims();
        let flat = x.reshape([pictures, tokens / pictures * width]);
        normalise(flat.matmul(self.out.val()))
    }
}
