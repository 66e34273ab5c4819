//! Vision Transformers that turn pixels into an embedding: CLIP ("Learning Transferable Visual
//! Models From Natural Language Supervision", 2021), StreetCLIP, which has CLIP's shape, and
//! DINOv2 ("Learning Robust Visual Features without Supervision", 2023), with registers
//! ("Vision Transformers Need Registers", 2023) or without.
//!
//! ```text
//! tokens = [class, registers…, W·patch + b …] + positions        `[batch, tokens, width]`
//! tokens = norm(tokens)                                          CLIP only
//! layer: tokens += W_o·attention(W_qkv·norm(tokens))
//!        tokens += W_down·gelu(W_up·norm(tokens))
//! embedding = norm(class token), projected by CLIP               `[batch, embedding]`
//! ```
//!
//! They are frozen, so what can be folded into the matrices is folded when they are read
//! (`checkpoint.rs`): DINOv2's layer scales and attention's 1/√(head width). Tested against
//! Python `transformers`, layer by layer: `parity/vision`.

mod checkpoint;
mod error;
mod names;
mod positions;
mod tensor_file;

use burn::tensor::module::layer_norm;
use burn::tensor::{Device, Tensor};

pub(crate) use checkpoint::weights_in;
pub use error::InvalidEncoder;

use crate::tensors::fused::{Gelu, add_with_bias, gelu, softmax_of_rows};

/// Authors' variant of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// CLIP and StreetCLIP.
    Clip,
    /// DINOv2.
    Dinov2,
}

/// The shape of a Vision Transformer.
#[derive(Debug, Clone, PartialEq)]
pub struct VisionConfig {
    /// CLIP or DINOv2: they differ in details of the layers.
    pub family: Family,
    /// Side of the pictures, in pixels.
    pub image_size: usize,
    /// Side of a patch, in pixels.
    pub patch_size: usize,
    /// Length of a token.
    pub token_width: usize,
    /// Number of layers.
    pub layers: usize,
    /// Heads of attention.
    pub heads: usize,
    /// Tokens that stand for nothing in the picture.
    pub registers: usize,
    /// The function between the matrices.
    pub gelu: Gelu,
    /// Added to the variance before dividing by its root.
    pub norm_epsilon: f64,
    /// Length of the embedding.
    pub embedding: usize,
}

/// A frozen network from pixels to an embedding.
#[derive(Debug, Clone)]
pub struct VisionTransformer {
    config: VisionConfig,
    patches: Dense,
    /// The class token, the registers, with the first one's position: `[1 + registers, width]`.
    first_tokens: Tensor<2>,
    /// `[patches, width]`.
    positions: Tensor<2>,
    norm_before: Option<Norm>,
    layers: Vec<Layer>,
    norm_after: Option<Norm>,
    projection: Option<Tensor<2>>,
}

#[derive(Debug, Clone)]
struct Layer {
    norm_attention: Norm,
    /// Queries, keys and values side by side: `[width, 3·width]`.
    qkv: Dense,
    out: Dense,
    norm_mlp: Norm,
    up: Dense,
    down: Dense,
}

#[derive(Debug, Clone)]
struct Norm {
    scale: Tensor<1>,
    shift: Tensor<1>,
    epsilon: f64,
}

#[derive(Debug, Clone)]
struct Dense {
    /// `[inputs, outputs]`.
    weight: Tensor<2>,
    bias: Tensor<1>,
}

impl VisionTransformer {
    /// Family, sizes and number of layers.
    pub fn config(&self) -> &VisionConfig {
        &self.config
    }

    /// Where the weights are.
    pub fn device(&self) -> Device {
        self.positions.device()
    }

    /// The same network with the last class token as its embedding: before the norm, and not projected.
    pub(crate) fn without_head(mut self) -> VisionTransformer {
        (self.norm_after, self.projection) = (None, None);
        self.config.embedding = self.config.token_width;
        self
    }

    /// Embeddings `[batch, embedding]` of pixels `[batch, 3, size, size]`, prepared as the
    /// model's preprocessing says.
    pub fn forward(&self, pixels: Tensor<4>) -> Tensor<2> {
        self.observed(pixels, |_| ())
    }

    /// As [`forward`](Self::forward), showing the tokens `[batch, tokens, width]` that go into
    /// the first layer, and those after every layer.
    pub fn observed(&self, pixels: Tensor<4>, mut observe: impl FnMut(&Tensor<3>)) -> Tensor<2> {
        let mut tokens = self.tokens_of(pixels);
        observe(&tokens);
        for layer in &self.layers {
            tokens = layer.forward(tokens, &self.config);
            observe(&tokens);
        }
        let [batch, _, width] = tokens.dims();
        let class = tokens.slice([0..batch, 0..1]).reshape([batch, width]);
        let class = match &self.norm_after {
            Some(norm) => norm.forward(class),
            None => class,
        };
        match &self.projection {
            Some(projection) => class.matmul(projection.clone()),
            None => class,
        }
    }

    fn tokens_of(&self, pixels: Tensor<4>) -> Tensor<3> {
        let VisionConfig { image_size, patch_size: p, token_width: width, .. } = self.config;
        let [batch, channels, height, across] = pixels.dims();
        assert_eq!(
            [channels, height, across],
            [3, image_size, image_size],
            "pixels of one picture have the shape [3, {image_size}, {image_size}]"
        );
        let side = image_size / p;
        let patches = pixels
            .reshape([batch, 3, side, p, side, p])
            .permute([0, 2, 4, 1, 3, 5]) // [batch, row, column, channel, y, x]
            .reshape([batch * side * side, 3 * p * p]);
        let patches = add_with_bias(
            self.positions.clone().repeat_dim(0, batch),
            patches.matmul(self.patches.weight.clone()),
            self.patches.bias.clone(),
        )
        .reshape([batch, side * side, width]);
        let first = self.first_tokens.clone().unsqueeze::<3>().repeat_dim(0, batch);
        let tokens = Tensor::cat(vec![first, patches], 1);
        match &self.norm_before {
            Some(norm) => norm.forward(tokens),
            None => tokens,
        }
    }
}

impl Layer {
    fn forward(&self, tokens: Tensor<3>, config: &VisionConfig) -> Tensor<3> {
        let [batch, count, width] = tokens.dims();
        let flat = tokens.reshape([batch * count, width]);
        let attended = self.attention(self.norm_attention.forward(flat.clone()), batch, config);
        let flat =
            add_with_bias(flat, attended.matmul(self.out.weight.clone()), self.out.bias.clone());
        let wide = self.norm_mlp.forward(flat.clone()).matmul(self.up.weight.clone());
        let wide = gelu(wide, self.up.bias.clone(), config.gelu); // [batch·tokens, 4·width]
        add_with_bias(flat, wide.matmul(self.down.weight.clone()), self.down.bias.clone())
            .reshape([batch, count, width])
    }

    /// From `[batch·tokens, width]` to the same shape.
    fn attention(&self, x: Tensor<2>, batch: usize, config: &VisionConfig) -> Tensor<2> {
        let [rows, width] = x.dims();
        let (count, heads) = (rows / batch, config.heads);
        let bias = self.qkv.bias.clone().unsqueeze::<2>();
        let qkv = (x.matmul(self.qkv.weight.clone()) + bias)
            .reshape([batch, count, 3, heads, width / heads])
            .permute([2, 0, 3, 1, 4]); // [3, batch, head, token, head width]
        // Views into one tensor: the products read them where they are.
        let part = |k: usize| -> Tensor<4> { qkv.clone().narrow(0, k, 1).squeeze_dim(0) };
        let scores = part(0).matmul(part(1).swap_dims(2, 3)); // [batch, head, token, token]
        softmax_of_rows(scores)
            .matmul(part(2)) // [batch, head, token, head width]
            .swap_dims(1, 2)
            .reshape([rows, width])
    }
}

impl Norm {
    fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        layer_norm(x, self.scale.clone(), Some(self.shift.clone()), self.epsilon)
    }
}
