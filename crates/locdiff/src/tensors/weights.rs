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
        /// The file that could not be read or written.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is no safetensors file.
    #[error("{path} is not a safetensors file: {reason}")]
    Format {
        /// The file that is no safetensors file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor is missing, or there is one too many.
    #[error("{path} {has}, the configuration {wants}: {name}")]
    Name {
        /// File of weights.
        path: PathBuf,
        /// Name of the tensor that is missing or unknown.
        name: String,
        /// What the file has.
        has: &'static str,
        /// What the configuration needs.
        wants: &'static str,
    },
    /// A tensor has another shape or type than the configuration needs.
    #[error("{path}: {name} is {found}, the configuration needs {expected}")]
    Shape {
        /// File of weights.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
        /// What the file has.
        found: String,
        /// The value that the configuration needs.
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
    let mut weights = FileOfWeights::read(path)?;
    let expected = collect(&module);
    if let Some(extra) = weights.tensors.keys().find(|name| !expected.contains_key(*name)) {
        return Err(weights.unknown(extra));
    }
    let mut values = BTreeMap::new();
    for (name, (shape, _)) in expected {
        let numbers = weights.take(&name, &shape)?;
        values.insert(name, numbers);
    }
    Ok(replace(module, values))
}

/// All tensors of a safetensors file, to be taken one by one.
pub(crate) struct FileOfWeights {
    path: PathBuf,
    tensors: Weights,
}

impl FileOfWeights {
    /// Reads a file of f32 tensors.
    pub(crate) fn read(path: &Path) -> Result<FileOfWeights, InvalidWeights> {
        let file = fs::read(path).map_err(|source| InvalidWeights::File {
            what: "read",
            path: path.into(),
            source,
        })?;
        let views = SafeTensors::deserialize(&file).map_err(|error| InvalidWeights::Format {
            path: path.into(),
            reason: error.to_string(),
        })?;
        let mut tensors = Weights::new();
        for (name, view) in views.iter() {
            if view.dtype() != Dtype::F32 {
                return Err(InvalidWeights::Shape {
                    path: path.into(),
                    name: name.to_owned(),
                    found: format!("{:?} {:?}", view.dtype(), view.shape()),
                    expected: "F32".to_owned(),
                });
            }
            let (numbers, _) = view.data().as_chunks::<4>();
            let numbers: Vec<f32> =
                numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            // Answers would be none, long after the model was opened.
            if !numbers.iter().all(|number| number.is_finite()) {
                let reason = format!("{name} has numbers that are not finite");
                return Err(InvalidWeights::Format { path: path.into(), reason });
            }
            tensors.insert(name.to_owned(), (view.shape().to_vec(), numbers));
        }
        Ok(FileOfWeights { path: path.into(), tensors })
    }

    /// The numbers of a tensor of this shape.
    pub(crate) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, InvalidWeights> {
        match self.tensors.remove(name) {
            None => Err(self.name_error(name, "lacks a tensor", "needs it")),
            Some((found, numbers)) if found == shape => Ok(numbers),
            Some((found, _)) => Err(InvalidWeights::Shape {
                path: self.path.clone(),
                name: name.to_owned(),
                found: format!("F32 {found:?}"),
                expected: format!("F32 {shape:?}"),
            }),
        }
    }

    /// Rejects a file with tensors that were not read: it belongs to another configuration.
    pub(crate) fn expect_empty(self) -> Result<(), InvalidWeights> {
        self.tensors.keys().next().map_or(Ok(()), |name| Err(self.unknown(name)))
    }

    fn unknown(&self, name: &str) -> InvalidWeights {
        self.name_error(name, "has a tensor", "does not need it")
    }

    fn name_error(&self, name: &str, has: &'static str, wants: &'static str) -> InvalidWeights {
        InvalidWeights::Name { path: self.path.clone(), name: name.to_owned(), has, wants }
    }
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
