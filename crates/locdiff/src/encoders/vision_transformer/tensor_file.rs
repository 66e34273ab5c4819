//! Tensors by name out of safetensors and PyTorch files, read one at a time: a CLIP checkpoint
//! holds its text tower too, which is not read here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use pytorch_reader::{DType, PytorchReader};
use safetensors::Dtype;
use safetensors::tensor::Metadata;

use super::error::InvalidEncoder;

/// Length of the number at the beginning of a safetensors file.
const PREFIX: u64 = 8;
/// A header of a million tensors is smaller.
const LONGEST_HEADER: u64 = 100 << 20;

/// An open checkpoint.
pub(super) struct TensorFile {
    path: PathBuf,
    tensors: BTreeMap<String, Vec<usize>>,
    source: Source,
}

enum Source {
    Safetensors { file: File, parts: BTreeMap<String, (Dtype, u64, usize)> },
    Pytorch(Box<PytorchReader>),
}

/// Numbers with their shape, row by row.
#[derive(Debug, Clone)]
pub(super) struct Values {
    pub(super) shape: Vec<usize>,
    pub(super) numbers: Vec<f32>,
}

impl TensorFile {
    /// `.safetensors`, or else a PyTorch state dict; nothing in it is executed.
    pub(super) fn open(path: &Path) -> Result<TensorFile, InvalidEncoder> {
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            return TensorFile::open_safetensors(path);
        }
        // Its errors do not name the file.
        let reader = PytorchReader::new(path)
            .map_err(|error| InvalidEncoder::file(path, format!("not a state dict: {error}")))?;
        let tensors = reader
            .tensors()
            .iter()
            .map(|(name, tensor)| (name.clone(), tensor.shape().to_vec()))
            .collect();
        Ok(TensorFile { path: path.to_owned(), tensors, source: Source::Pytorch(Box::new(reader)) })
    }

    fn open_safetensors(path: &Path) -> Result<TensorFile, InvalidEncoder> {
        let failed = |error: std::io::Error| InvalidEncoder::file(path, error.to_string());
        let mut file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut prefix = [0; PREFIX as usize];
        file.read_exact(&mut prefix).map_err(failed)?;
        let header_length = u64::from_le_bytes(prefix);
        if header_length > LONGEST_HEADER.min(length) {
            return Err(InvalidEncoder::file(path, "not a safetensors file".to_owned()));
        }
        let mut header = vec![0; header_length as usize];
        file.read_exact(&mut header).map_err(failed)?;
        let metadata: Metadata = serde_json::from_slice(&header)
            .map_err(|error| InvalidEncoder::file(path, error.to_string()))?;
        let mut tensors = BTreeMap::new();
        let mut parts = BTreeMap::new();
        for (name, info) in metadata.tensors() {
            let (from, to) = info.data_offsets;
            let begin = PREFIX + header_length + from as u64;
            if begin + (to - from) as u64 > length {
                let what = format!("it ends before `{name}` does: fetch or copy it again");
                return Err(InvalidEncoder::file(path, what));
            }
            tensors.insert(name.clone(), info.shape.clone());
            parts.insert(name, (info.dtype, begin, to - from));
        }
        let source = Source::Safetensors { file, parts };
        Ok(TensorFile { path: path.to_owned(), tensors, source })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(super) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(Vec::as_slice)
    }

    pub(super) fn read(&mut self, name: &str) -> Result<Values, InvalidEncoder> {
        let missing =
            || InvalidEncoder::MissingTensor { path: self.path.clone(), name: name.to_owned() };
        let shape = self.tensors.get(name).ok_or_else(missing)?.clone();
        let (kind, bytes) = match &mut self.source {
            Source::Safetensors { file, parts } => {
                let (kind, begin, length) = parts[name];
                let mut bytes = vec![0; length];
                file.seek(SeekFrom::Start(begin))
                    .and_then(|_| file.read_exact(&mut bytes))
                    .map_err(|error| InvalidEncoder::file(&self.path, error.to_string()))?;
                (format!("{kind:?}"), bytes)
            }
            Source::Pytorch(reader) => {
                let tensor = &reader.tensors()[name];
                let bytes = tensor
                    .read()
                    .map_err(|error| InvalidEncoder::file(&self.path, error.to_string()))?;
                let kind = match tensor.dtype() {
                    DType::F32 => "F32".to_owned(),
                    DType::F16 => "F16".to_owned(),
                    DType::BF16 => "BF16".to_owned(),
                    other => format!("{other:?}"),
                };
                (kind, bytes.to_vec())
            }
        };
        let numbers = numbers_of(&kind, &bytes).ok_or_else(|| {
            InvalidEncoder::file(
                &self.path,
                format!("`{name}` contains {kind}, not f32, f16 or bf16"),
            )
        })?;
        if numbers.len() != shape.iter().product::<usize>() {
            let what = format!("`{name}` contains {} numbers, not {shape:?}", numbers.len());
            return Err(InvalidEncoder::file(&self.path, what));
        }
        Ok(Values { shape, numbers })
    }
}

fn numbers_of(kind: &str, bytes: &[u8]) -> Option<Vec<f32>> {
    Some(match kind {
        "F32" => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        "F16" => bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
        "BF16" => bytes.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
        _ => return None,
    })
}
