//! From a checkpoint to the network: names, shapes, and what is folded into the matrices.

use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;

use super::error::InvalidEncoder;
use super::names::Names;
use super::positions::{Filter, resample};
use super::tensor_file::{TensorFile, Values};
use super::{Dense, Family, Layer, Norm, VisionConfig, VisionTransformer};
use crate::tensors::Gelu;

/// Every published CLIP and DINOv2 has heads of this width.
const HEAD_WIDTH: usize = 64;

/// Fields of `config.json` that are used; the shapes of the tensors have the rest.
#[derive(Debug, Default, Deserialize)]
struct HuggingFaceConfig {
    vision_config: Option<Box<HuggingFaceConfig>>,
    hidden_act: Option<String>,
    layer_norm_eps: Option<f64>,
    num_attention_heads: Option<usize>,
}

impl VisionTransformer {
    /// From a directory in Hugging Face layout, or a file of weights by itself
    /// (`.safetensors`, or a PyTorch state dict). Positions are interpolated for pictures of
    /// another size than in training.
    pub fn open(
        path: &Path,
        image_size: Option<usize>,
        device: &Device,
    ) -> Result<VisionTransformer, InvalidEncoder> {
        let (weights, config) = locate(path)?;
        let mut file = TensorFile::open(&weights)?;
        let names = Names::detect(file.names())
            .ok_or_else(|| InvalidEncoder::UnknownLayout(weights.clone()))?;
        Builder { file: &mut file, names, device }.build(image_size, &config)
    }
}

/// The file of weights in a directory, or the file itself.
pub(crate) fn weights_in(path: &Path) -> Result<PathBuf, InvalidEncoder> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    ["model.safetensors", "pytorch_model.bin"]
        .map(|name| path.join(name))
        .into_iter()
        .find(|path| path.exists())
        .ok_or_else(|| InvalidEncoder::NoWeights(path.to_owned()))
}

/// The weights, and the configuration beside them.
fn locate(path: &Path) -> Result<(PathBuf, HuggingFaceConfig), InvalidEncoder> {
    let weights = weights_in(path)?;
    if !path.is_dir() {
        return Ok((weights, HuggingFaceConfig::default()));
    }
    let config = path.join("config.json");
    if !config.exists() {
        return Ok((weights, HuggingFaceConfig::default()));
    }
    let text = std::fs::read_to_string(&config)
        .map_err(|error| InvalidEncoder::file(&config, error.to_string()))?;
    let parsed: HuggingFaceConfig = serde_json::from_str(&text)
        .map_err(|error| InvalidEncoder::file(&config, error.to_string()))?;
    // A whole CLIP states it for both its towers.
    Ok(match parsed.vision_config {
        Some(vision) => (weights, *vision),
        None => (weights, parsed),
    })
}

struct Builder<'a> {
    file: &'a mut TensorFile,
    names: Names,
    device: &'a Device,
}

impl Builder<'_> {
    fn build(
        mut self,
        image_size: Option<usize>,
        said: &HuggingFaceConfig,
    ) -> Result<VisionTransformer, InvalidEncoder> {
        let patches = self.read(&self.names.patches())?;
        let &[width @ 1..=usize::MAX, 3, patch_size @ 1..=usize::MAX, _] = &patches.shape[..]
        else {
            return Err(self.shape_error(&self.names.patches(), "[width, 3, patch, patch]".into()));
        };
        let class = self.read_vector(&self.names.class_token(), width)?;
        let registers = match self.file.shape(&self.names.registers()) {
            Some(_) if !self.names.is_clip() => self.read(&self.names.registers())?.numbers,
            _ => Vec::new(),
        };
        let (first_position, positions, image_size) =
            self.positions(width, patch_size, image_size, !registers.is_empty())?;
        let mut first_tokens: Vec<f32> =
            class.iter().zip(&first_position).map(|(token, position)| token + position).collect();
        first_tokens.extend(&registers);

        let epsilon = said.layer_norm_eps.unwrap_or(if self.names.is_clip() { 1e-5 } else { 1e-6 });
        let heads = said.num_attention_heads.unwrap_or(width / HEAD_WIDTH).max(1);
        let gelu = match said.hidden_act.as_deref() {
            Some("quick_gelu") => Gelu::Quick,
            Some("gelu") => Gelu::Exact,
            None if self.names.is_clip() => Gelu::Quick,
            None => Gelu::Exact,
            Some(other) => {
                let what = format!("hidden_act is `{other}`, expected gelu or quick_gelu");
                return Err(InvalidEncoder::file(self.file.path(), what));
            }
        };
        if !width.is_multiple_of(heads) {
            let what = format!("{width} numbers per token cannot be split into {heads} heads");
            return Err(InvalidEncoder::file(self.file.path(), what));
        }
        let mut layers = Vec::new();
        while self.file.shape(&self.names.layer(layers.len()).out_weight()).is_some() {
            layers.push(self.layer(layers.len(), width, heads, epsilon)?);
        }
        let norm_before = match self.names.norm_before() {
            Some(name) => Some(self.norm(&name, width, epsilon)?),
            None => None,
        };
        let norm_after = self.norm(&self.names.norm_after(), width, epsilon)?;
        let projection = self.projection(width)?;
        let embedding = projection.as_ref().map_or(width, |matrix| matrix.dims()[1]);
        let bias = match self.names.patches_bias() {
            Some(name) => self.read_vector(&name, width)?,
            None => vec![0.0; width],
        };
        let patches = Values { shape: vec![width, 3 * patch_size * patch_size], ..patches };
        let side = image_size / patch_size;
        Ok(VisionTransformer {
            config: VisionConfig {
                family: if self.names.is_clip() { Family::Clip } else { Family::Dinov2 },
                image_size,
                patch_size,
                token_width: width,
                layers: layers.len(),
                heads,
                registers: registers.len() / width,
                gelu,
                norm_epsilon: epsilon,
                embedding,
            },
            patches: self.dense(patches, bias),
            first_tokens: self.matrix(first_tokens, width),
            positions: {
                debug_assert_eq!(positions.len(), side * side * width);
                self.matrix(positions, width)
            },
            norm_before,
            layers,
            norm_after: Some(norm_after),
            projection,
        })
    }

    /// The position of the class token, those of the patches, and the size of pictures.
    fn positions(
        &mut self,
        width: usize,
        patch_size: usize,
        image_size: Option<usize>,
        registers: bool,
    ) -> Result<(Vec<f32>, Vec<f32>, usize), InvalidEncoder> {
        let name = self.names.positions();
        let positions = self.read(&name)?;
        let count = positions.numbers.len() / width;
        let side = count.saturating_sub(1).isqrt();
        if side == 0 || positions.numbers.len() != (1 + side * side) * width {
            return Err(self.shape_error(&name, format!("[1 + a square, {width}]")));
        }
        let image_size = image_size.unwrap_or(side * patch_size);
        if image_size == 0 || !image_size.is_multiple_of(patch_size) {
            return Err(InvalidEncoder::ImageSize { image_size, patch_size });
        }
        let filter = if registers { Filter::Antialiased } else { Filter::Plain };
        let (first, rest) = positions.numbers.split_at(width);
        let rest = resample(rest, side, image_size / patch_size, width, filter);
        Ok((first.to_vec(), rest, image_size))
    }

    fn layer(
        &mut self,
        number: usize,
        width: usize,
        heads: usize,
        epsilon: f64,
    ) -> Result<Layer, InvalidEncoder> {
        let names = self.names.layer(number);
        let (mut weight, mut bias) = (Vec::new(), Vec::new());
        for (weight_name, bias_name) in &names.qkv {
            let rows = 3 * width / names.qkv.len();
            weight.extend(self.read_matrix(weight_name, Some(rows), width)?.numbers);
            bias.extend(self.read_vector(bias_name, rows)?);
        }
        // Queries come first. 1/√(head width) is a power of two for the usual heads of 64.
        let scale = 1.0 / ((width / heads) as f32).sqrt();
        weight[..width * width].iter_mut().for_each(|value| *value *= scale);
        bias[..width].iter_mut().for_each(|value| *value *= scale);
        let qkv = self.dense(Values { shape: vec![3 * width, width], numbers: weight }, bias);

        let out = self.scaled_dense(&names.out, Some(width), width, names.scale_attention)?;
        let up = self.scaled_dense(&names.up, None, width, None)?;
        let wide = up.weight.dims()[1];
        let down = self.scaled_dense(&names.down, Some(width), wide, names.scale_mlp)?;
        Ok(Layer {
            norm_attention: self.norm(&names.norm_attention, width, epsilon)?,
            qkv,
            out,
            norm_mlp: self.norm(&names.norm_mlp, width, epsilon)?,
            up,
            down,
        })
    }

    /// λ ⊙ (W·x + b) is another linear map.
    fn scaled_dense(
        &mut self,
        name: &str,
        outputs: Option<usize>,
        inputs: usize,
        scale: Option<String>,
    ) -> Result<Dense, InvalidEncoder> {
        let mut weight = self.read_matrix(&format!("{name}.weight"), outputs, inputs)?;
        let outputs = weight.shape[0];
        let mut bias = self.read_vector(&format!("{name}.bias"), outputs)?;
        if let Some(scale) = scale {
            let scale = self.read_vector(&scale, outputs)?;
            for ((row, bias), scale) in
                weight.numbers.chunks_exact_mut(inputs).zip(&mut bias).zip(&scale)
            {
                row.iter_mut().for_each(|value| *value *= scale);
                *bias *= scale;
            }
        }
        Ok(self.dense(weight, bias))
    }

    fn projection(&mut self, width: usize) -> Result<Option<Tensor<2>>, InvalidEncoder> {
        let Some((name, inputs_first)) = self.names.projection() else { return Ok(None) };
        let values = self.read(&name)?;
        let &[rows, columns] = values.shape.as_slice() else {
            return Err(self.shape_error(&name, "a matrix".to_owned()));
        };
        if width != if inputs_first { rows } else { columns } {
            return Err(self.shape_error(&name, format!("a matrix for {width} inputs")));
        }
        let matrix = self.matrix(values.numbers, columns);
        Ok(Some(if inputs_first { matrix } else { matrix.transpose() }))
    }

    fn norm(&mut self, name: &str, width: usize, epsilon: f64) -> Result<Norm, InvalidEncoder> {
        let scale = self.read_vector(&format!("{name}.weight"), width)?;
        let shift = self.read_vector(&format!("{name}.bias"), width)?;
        Ok(Norm { scale: self.vector(scale), shift: self.vector(shift), epsilon })
    }

    fn read(&mut self, name: &str) -> Result<Values, InvalidEncoder> {
        self.file.read(name)
    }

    /// Of any shape with so many numbers: tokens stand as `[1, 1, width]` in some files.
    fn read_vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>, InvalidEncoder> {
        let values = self.read(name)?;
        if values.numbers.len() != length {
            return Err(self.shape_error(name, format!("[{length}]")));
        }
        Ok(values.numbers)
    }

    fn read_matrix(
        &mut self,
        name: &str,
        outputs: Option<usize>,
        inputs: usize,
    ) -> Result<Values, InvalidEncoder> {
        let values = self.read(name)?;
        match values.shape[..] {
            [rows, columns] if columns == inputs && outputs.is_none_or(|n| n == rows) => Ok(values),
            _ => {
                let rows = outputs.map_or("any".to_owned(), |outputs| outputs.to_string());
                Err(self.shape_error(name, format!("[{rows}, {inputs}]")))
            }
        }
    }

    fn shape_error(&self, name: &str, expected: String) -> InvalidEncoder {
        InvalidEncoder::Shape {
            path: self.file.path().to_owned(),
            name: name.to_owned(),
            found: self.file.shape(name).unwrap_or_default().to_vec(),
            expected,
        }
    }

    /// From PyTorch's `[outputs, inputs]`, turned round once: products then read it in order.
    fn dense(&self, weight: Values, bias: Vec<f32>) -> Dense {
        let [outputs, inputs] = [weight.shape[0], weight.shape[1]];
        let mut turned = vec![0.0; weight.numbers.len()];
        for (row, numbers) in weight.numbers.chunks_exact(inputs).enumerate() {
            for (column, number) in numbers.iter().enumerate() {
                turned[column * outputs + row] = *number;
            }
        }
        Dense { weight: self.matrix(turned, outputs), bias: self.vector(bias) }
    }

    fn matrix(&self, numbers: Vec<f32>, columns: usize) -> Tensor<2> {
        let shape = [numbers.len() / columns, columns];
        Tensor::from_data(TensorData::new(numbers, shape), self.device)
    }

    fn vector(&self, numbers: Vec<f32>) -> Tensor<1> {
        let length = numbers.len();
        Tensor::from_data(TensorData::new(numbers, [length]), self.device)
    }
}
