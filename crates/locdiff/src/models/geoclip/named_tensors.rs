//! Tensors by name, between a file and the modules: f32, row-major, matrices as PyTorch keeps
//! them, `[outputs, inputs]`.

use std::collections::BTreeMap;

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};

use super::error::GeoClipError;

#[derive(Debug, Clone, Default)]
pub(super) struct NamedTensors(BTreeMap<String, NamedValues>);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct NamedValues {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f32>,
}

impl NamedTensors {
    pub(super) fn insert(&mut self, name: String, values: NamedValues) {
        self.0.insert(name, values);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &NamedValues)> {
        self.0.iter()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn take(&mut self, name: &str) -> Result<NamedValues, GeoClipError> {
        self.0.remove(name).ok_or_else(|| GeoClipError::MissingTensor(name.to_owned()))
    }

    /// A file with unknown tensors is another format.
    pub(super) fn expect_empty(self) -> Result<(), GeoClipError> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(GeoClipError::UnknownTensors(self.0.into_keys().collect()))
    }

    /// The layer `prefix`, of as many outputs as there are; inputs must be `inputs` if given.
    pub(super) fn take_linear(
        &mut self,
        prefix: &str,
        inputs: Option<usize>,
        device: &Device,
    ) -> Result<Linear, GeoClipError> {
        let (weight_name, bias_name) = (format!("{prefix}.weight"), format!("{prefix}.bias"));
        let weight = self.take(&weight_name)?;
        let &[rows, columns] = weight.shape.as_slice() else {
            return Err(weight.shape_error(weight_name, "a matrix".to_owned()));
        };
        if let Some(inputs) = inputs.filter(|inputs| *inputs != columns) {
            return Err(weight.shape_error(weight_name, format!("[{rows}, {inputs}]")));
        }
        let bias = self.take(&bias_name)?;
        if bias.shape != [rows] {
            return Err(bias.shape_error(bias_name, format!("[{rows}]")));
        }
        let weight =
            Tensor::<2>::from_data(TensorData::new(weight.values, [rows, columns]), device);
        let bias = Tensor::<1>::from_data(TensorData::new(bias.values, [rows]), device);
        Ok(Linear {
            weight: Param::from_tensor(weight.transpose()), // [inputs, outputs], as Burn has it
            bias: Some(Param::from_tensor(bias)),
        })
    }

    pub(super) fn put_linear(&mut self, prefix: &str, layer: &Linear) {
        self.insert(format!("{prefix}.weight"), NamedValues::of(layer.weight.val().transpose()));
        if let Some(bias) = &layer.bias {
            self.insert(format!("{prefix}.bias"), NamedValues::of(bias.val()));
        }
    }
}

impl NamedValues {
    fn of<const D: usize>(tensor: Tensor<D>) -> NamedValues {
        let shape = tensor.dims().to_vec();
        let values = tensor.into_data_as::<f32>().try_into_vec().expect("just made of f32");
        NamedValues { shape, values }
    }

    /// From little-endian bytes, as `.pth` and safetensors files keep them.
    pub(super) fn from_bytes(shape: &[usize], bytes: &[u8]) -> NamedValues {
        let (numbers, rest) = bytes.as_chunks();
        let count: usize = shape.iter().product();
        assert!(rest.is_empty() && numbers.len() == count, "the bytes are those of the shape");
        let values = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
        NamedValues { shape: shape.to_vec(), values }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    pub(super) fn into_scalar(self, name: &str) -> Result<f32, GeoClipError> {
        match self.values[..] {
            [value] if self.shape.is_empty() => Ok(value),
            _ => Err(self.shape_error(name.to_owned(), "a scalar, []".to_owned())),
        }
    }

    pub(super) fn shape_error(self, name: String, expected: String) -> GeoClipError {
        GeoClipError::Shape { name, found: self.shape, expected }
    }
}

/// Rows of length one, as `torch.nn.functional.normalize` makes them.
pub(super) fn unit_rows(rows: Tensor<2>) -> Tensor<2> {
    let lengths = rows.clone().square().sum_dim(1).sqrt();
    rows / lengths.clamp_min(1e-12)
}
