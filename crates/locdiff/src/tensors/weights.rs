//! A module's weights as a safetensors file: names are the paths of the fields, numbers are
//! f32, matrices of linear layers are `[input, output]`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};

use super::named_parameters::{NamedMapper, NamedVisitor, map_named, visit_named};

/// Why weights cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidWeights {
    /// The file can't be read or written.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is no safetensors file.
    #[error("{path} is not a safetensors file: {reason}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor is missing, or there is one too many.
    #[error("{path} {has}, the configuration {wants}: {name}")]
    Name {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// What the file has.
        has: &'static str,
        /// What the configuration wants.
        wants: &'static str,
    },
    /// A tensor has another shape or type than the configuration says.
    #[error("{path}: {name} is {found}, the configuration says {expected}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// What the file has.
        found: String,
        /// What the configuration says.
        expected: String,
    },
}

/// Writes a module's weights, with a few words about them in the file's header.
pub fn write_weights<M: Module>(
    module: &M,
    path: &Path,
    about: &[(&str, &str)],
) -> Result<(), InvalidWeights> {
    let weights = collect(module);
    let bytes: BTreeMap<&String, Vec<u8>> = weights
        .iter()
        .map(|(name, (_, values))| (name, values.iter().flat_map(|v| v.to_le_bytes()).collect()))
        .collect();
    let views = weights.iter().map(|(name, (shape, _))| {
        let view = TensorView::new(Dtype::F32, shape.clone(), &bytes[name]);
        (name.clone(), view.expect("the bytes are those of the shape"))
    });
    let about = about.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let file = serialize(views, Some(about))
        .map_err(|error| InvalidWeights::Format { path: path.into(), reason: error.to_string() })?;
    // A file that exists is whole.
    let partial = path.with_extension("partial");
    fs::write(&partial, file)
        .and_then(|()| fs::rename(&partial, path))
        .map_err(|source| InvalidWeights::File { what: "write", path: path.into(), source })
}

/// The module with its weights replaced by those of a file, which must have the same names
/// and shapes.
pub fn read_weights<M: Module>(module: M, path: &Path) -> Result<M, InvalidWeights> {
    let file = fs::read(path).map_err(|source| InvalidWeights::File {
        what: "read",
        path: path.into(),
        source,
    })?;
    let tensors = SafeTensors::deserialize(&file)
        .map_err(|error| InvalidWeights::Format { path: path.into(), reason: error.to_string() })?;
    let expected = collect(&module);
    let name_error = |name: &str, has, wants| InvalidWeights::Name {
        path: path.into(),
        name: name.to_owned(),
        has,
        wants,
    };
    if let Some(extra) = tensors.names().into_iter().find(|name| !expected.contains_key(*name)) {
        return Err(name_error(extra, "has a tensor", "has no place for it"));
    }
    let mut values = BTreeMap::new();
    for (name, (shape, _)) in &expected {
        let Ok(view) = tensors.tensor(name) else {
            return Err(name_error(name, "lacks a tensor", "wants it"));
        };
        if view.dtype() != Dtype::F32 || view.shape() != shape {
            return Err(InvalidWeights::Shape {
                path: path.into(),
                name: name.clone(),
                found: format!("{:?} {:?}", view.dtype(), view.shape()),
                expected: format!("F32 {shape:?}"),
            });
        }
        let (numbers, _) = view.data().as_chunks::<4>();
        values.insert(name.clone(), numbers.iter().map(|b| f32::from_le_bytes(*b)).collect());
    }
    Ok(replace(module, values))
}

/// The module with its parameters replaced by numbers of the same names and shapes.
pub(crate) fn replace<M: Module>(module: M, values: BTreeMap<String, Vec<f32>>) -> M {
    map_named(module, Replace { values })
}

/// Shapes and numbers by name.
pub(crate) type Weights = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

pub(crate) fn collect<M: Module>(module: &M) -> Weights {
    visit_named(module, Collect { weights: BTreeMap::new() }).weights
}

struct Collect {
    weights: Weights,
}

impl NamedVisitor for Collect {
    fn visit<const D: usize>(&mut self, name: &str, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        let shape = tensor.dims().to_vec();
        let values = tensor.into_data().try_to_vec().expect("weights are f32");
        self.weights.insert(name.to_owned(), (shape, values));
    }
}

struct Replace {
    values: BTreeMap<String, Vec<f32>>,
}

impl NamedMapper for Replace {
    fn map<const D: usize>(&mut self, name: &str, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(values) = self.values.remove(name) else { return param };
        param.map(|old| {
            let shape = old.dims();
            Tensor::from_data(TensorData::new(values, shape), &old.device())
                .set_require_grad(old.is_require_grad())
        })
    }
}
