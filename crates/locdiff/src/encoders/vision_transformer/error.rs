//! What can be wrong with an encoder's files.

use std::path::{Path, PathBuf};

/// Why an image encoder cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEncoder {
    /// A file can't be read or isn't what it should be.
    #[error("{}: {what}", path.display())]
    File {
        /// File of weights or of the configuration.
        path: PathBuf,
        /// What was wrong.
        what: String,
    },
    /// No weights in a directory.
    #[error(
        "{} contains neither model.safetensors nor pytorch_model.bin: fetch an encoder with `locdiff model \
         fetch`, or give a directory in Hugging Face layout", .0.display()
    )]
    NoWeights(PathBuf),
    /// The names are those of another kind of network.
    #[error(
        "{}: this Vision Transformer is not supported: use CLIP (or StreetCLIP) or DINOv2 S, B or L, \
         as published by their authors or by Hugging Face", .0.display()
    )]
    UnknownLayout(PathBuf),
    /// The file has no tensor of this name.
    #[error("{}: there is no tensor `{name}`", path.display())]
    MissingTensor {
        /// File of weights.
        path: PathBuf,
        /// The tensor's name.
        name: String,
    },
    /// A tensor has another shape than its neighbours call for.
    #[error("{}: `{name}` has the shape {found:?}, expected {expected}", path.display())]
    Shape {
        /// File of weights.
        path: PathBuf,
        /// The tensor's name.
        name: String,
        /// Shape in the file.
        found: Vec<usize>,
        /// The shape that the network needs.
        expected: String,
    },
    /// Pictures can't be cut into whole patches.
    #[error("pictures of {image_size} pixels cannot be cut into patches of {patch_size}")]
    ImageSize {
        /// The size that was requested, in pixels.
        image_size: usize,
        /// Size of the model's patches, in pixels.
        patch_size: usize,
    },
}

impl InvalidEncoder {
    pub(crate) fn file(path: &Path, what: String) -> InvalidEncoder {
        InvalidEncoder::File { path: path.to_owned(), what }
    }
}
