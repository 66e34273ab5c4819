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
/// Pixels along a side, at most.
const MOST_SIDE: usize = 4096;
/// Widths of an encoder, at most.
const MOST_STAGES: usize = 8;
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
    /// What is wrong with the numbers, if anything; `stored` is how many weights there are for such an encoder.
    pub fn problem(&self, stored: usize) -> Option<String> {
        let ViewEncoderConfig { side, widths, blocks, embedding } = self;
        if widths.is_empty() || widths.len() != blocks.len() || widths.len() > MOST_STAGES {
            return Some(format!("there are {} widths and {} blocks", widths.len(), blocks.len()));
        }
        let last_token = STEM_STRIDE << (widths.len() - 1);
        if !(1..=MOST_SIDE).contains(side) || !side.is_multiple_of(last_token) {
            return Some(format!("pictures of {side} pixels can't be halved so often"));
        }
        let tokens = (side / last_token).pow(2);
        let last = widths.last().and_then(|width| width.checked_mul(tokens));
        let out = last.and_then(|last| last.checked_mul(*embedding)).filter(|out| *out > 0);
        let count = count_of_stages(widths, blocks).zip(out).and_then(|(a, b)| a.checked_add(b));
        too_many(count, stored)
    }

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

/// How many weights stages have; none if that is no number, or a stage has no width.
pub(super) fn count_of_stages(widths: &[usize], blocks: &[usize]) -> Option<usize> {
    let mut count = 0_usize;
    for (k, (width, blocks)) in widths.iter().zip(blocks).enumerate() {
        let inputs = if k == 0 { STEM * STEM * 3 } else { widths[k - 1].checked_mul(4)? };
        let rows = width.checked_mul(2 * EXPANSION)?.checked_add(KERNEL * KERNEL + EXPANSION)?;
        let stage = rows.checked_mul(*blocks)?.checked_add(inputs)?.checked_mul(*width)?;
        count = count.checked_add(stage)?;
    }
    widths.iter().all(|width| *width > 0).then_some(count)
}

/// An encoder that is larger than its file is not made: it might need all memory.
pub(super) fn too_many(count: Option<usize>, stored: usize) -> Option<String> {
    match count {
        Some(count) if count <= stored => None,
        Some(count) => Some(format!("the encoder needs {count} weights, the file has {stored}")),
        None => Some("the encoder's widths are out of range".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::super::AlignedEncoderConfig;
    use super::*;

    #[test]
    fn an_encoder_that_is_larger_than_its_file_is_a_problem() {
        let device = Device::flex();
        let view =
            ViewEncoderConfig { widths: vec![4, 6], blocks: vec![1, 2], side: 16, embedding: 5 };
        let count = view.init(&device).num_params();
        assert_eq!(view.problem(count), None);
        assert!(view.problem(count - 1).unwrap().contains("the file has"));
        let aligned = AlignedEncoderConfig { widths: [2, 4, 6], blocks: [1, 0, 2] };
        // The sharpness is one number more.
        let count = aligned.init(&device).num_params() - 1;
        assert_eq!(aligned.problem(count), None);
        assert!(aligned.problem(count - 1).unwrap().contains("the file has"));
    }

    /// Each of them panicked, or took all memory or time, when a file with such settings was opened.
    #[test]
    fn encoders_that_cannot_be_made_are_problems() {
        let view = ViewEncoderConfig::default();
        for config in [
            ViewEncoderConfig { widths: vec![], blocks: vec![], ..view.clone() },
            ViewEncoderConfig { blocks: vec![1], ..view.clone() },
            ViewEncoderConfig { side: 65, ..view.clone() },
            ViewEncoderConfig { side: 0, ..view.clone() },
            ViewEncoderConfig { side: 1 << 40, ..view.clone() },
            ViewEncoderConfig { embedding: usize::MAX, ..view.clone() },
            ViewEncoderConfig { embedding: 0, ..view.clone() },
            ViewEncoderConfig { widths: vec![64, usize::MAX / 2, 256], ..view.clone() },
            ViewEncoderConfig { widths: vec![64, 0, 256], ..view.clone() },
            ViewEncoderConfig { blocks: vec![1, usize::MAX, 3], ..view.clone() },
            ViewEncoderConfig { widths: vec![4; 70], blocks: vec![1; 70], ..view.clone() },
        ] {
            assert!(config.problem(1 << 30).is_some(), "{config:?}");
        }
        let aligned = AlignedEncoderConfig { widths: [48, 0, 192], blocks: [1, usize::MAX, 3] };
        assert!(aligned.problem(1 << 30).is_some());
    }
}
