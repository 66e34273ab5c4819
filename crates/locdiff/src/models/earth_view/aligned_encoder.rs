//! A small convolutional encoder of the parts of a picture, whose descriptors agree between a view of the Earth and a
//! clean map of the same ground.
//!
//! Descriptors keep their places in the picture: a view and a map are compared part by part. One descriptor of a whole
//! picture did not carry over from renderings to photographs; aligned ones do (`experiments/earth-view`).

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::view_encoder::{Stage, count_of_stages, matrix, stages, tokens_of, too_many};

/// Pixels along the side of a part.
pub const PART: usize = 16;
/// Numbers that describe a part.
pub const NUMBERS: usize = 32;

/// Everything that fixes the encoder's shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlignedEncoderConfig {
    /// Widths of tokens: of 4, 8 and 16 pixels.
    pub widths: [usize; 3],
    /// Blocks at each width.
    pub blocks: [usize; 3],
}

impl Default for AlignedEncoderConfig {
    fn default() -> AlignedEncoderConfig {
        AlignedEncoderConfig { widths: [48, 96, 192], blocks: [1, 2, 3] }
    }
}

impl AlignedEncoderConfig {
    /// What is wrong with the numbers, if anything; `stored` is how many weights there are for such an encoder.
    pub fn problem(&self, stored: usize) -> Option<String> {
        let of_stages = count_of_stages(&self.widths, &self.blocks);
        let out = self.widths[2].checked_mul(NUMBERS);
        too_many(of_stages.zip(out).and_then(|(a, b)| a.checked_add(b)), stored)
    }

    /// An encoder with random weights.
    pub fn init(&self, device: &Device) -> AlignedEncoder {
        AlignedEncoder {
            stages: stages(&self.widths, &self.blocks, device),
            out: matrix(self.widths[2], NUMBERS, 1.0, device),
            log_sharpness: Param::from_data(TensorData::from([3.0_f32]), device),
        }
    }
}

/// A small convolutional network that describes each part of a view or map.
#[derive(Module, Debug)]
pub struct AlignedEncoder {
    stages: Vec<Stage>,
    out: Param<Tensor<2>>,
    /// Of the softmax over places that it was trained with.
    log_sharpness: Param<Tensor<1>>,
}

impl AlignedEncoder {
    /// Descriptors `[pictures · (side / 16)², 32]` of the parts of square pictures, row by row, from their
    /// [local contrast](super::local_contrast()) `[pictures · side², 3]`.
    ///
    /// # Panics
    /// If the side is no multiple of 16, or the numbers don't fill pictures.
    pub fn parts(&self, contrast: Vec<f32>, side: usize) -> Tensor<2> {
        assert!(side.is_multiple_of(PART), "{side} pixels are no whole number of parts");
        assert!(contrast.len().is_multiple_of(3 * side * side), "whole pictures");
        let device = self.out.val().device();
        let rows = contrast.len() / 3;
        let x = Tensor::from_data(TensorData::new(contrast, [rows, 3]), &device);
        tokens_of(&self.stages, x, side).matmul(self.out.val())
    }

    /// The same encoder with its numbers turned: products between descriptors stay as they are. `rotation` is
    /// `[32, 32]`, row by row, with orthonormal columns.
    pub fn turned(mut self, rotation: Vec<f32>) -> AlignedEncoder {
        let device = self.out.val().device();
        let rotation =
            Tensor::<2>::from_data(TensorData::new(rotation, [NUMBERS, NUMBERS]), &device);
        self.out = self.out.map(|out| out.matmul(rotation));
        self
    }

    /// What likenesses of 0 to 1 were multiplied by in the softmax of training.
    pub fn sharpness(&self) -> Tensor<1> {
        self.log_sharpness.val().exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::fused::numbers_of;

    /// What makes comparing at all shifts possible: a picture shifted by a part has shifted descriptors, away from
    /// the edges.
    #[test]
    fn descriptors_move_with_the_picture() {
        let device = Device::flex();
        device.seed(7);
        let encoder = AlignedEncoderConfig::default().init(&device);
        let side = 192;
        let value = |x: usize, y: usize, c: usize| {
            ((x * x + 3 * y * y + 7 * x * y + 50 * c) as f32 * 0.001).sin()
        };
        let picture = |shift: usize| -> Vec<f32> {
            let at = |k: usize| value(k / 3 % side + shift, k / 3 / side, k % 3);
            (0..3 * side * side).map(at).collect()
        };
        let parts = side / PART;
        let (here, there) = (
            numbers_of(&encoder.parts(picture(0), side)),
            numbers_of(&encoder.parts(picture(PART), side)),
        );
        assert_eq!(here.len(), parts * parts * NUMBERS);
        for row in 5..7 {
            for column in 5..6 {
                let a = &here[(row * parts + column + 1) * NUMBERS..][..NUMBERS];
                let b = &there[(row * parts + column) * NUMBERS..][..NUMBERS];
                for (a, b) in a.iter().zip(b) {
                    assert!((a - b).abs() < 1e-3, "{a} {b}");
                }
            }
        }
    }
}
