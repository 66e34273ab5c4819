//! What can be wrong with a wheel or a model directory.

use std::io;
use std::path::{Path, PathBuf};

use locdiff_sphere::InvalidPlace;

/// Why GeoCLIP could not be imported, opened or saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GeoClipError {
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file to import isn't a zip archive, as every wheel is.
    #[error("{} is not a wheel", .path.display())]
    NotAWheel {
        /// The file that is no zip archive.
        path: PathBuf,
        /// The error of the archive's reader.
        source: zip::result::ZipError,
    },
    /// The wheel lacks a file.
    #[error("{} contains no {file}: use the wheel of geoclip 1.3.0, from `pip download geoclip==1.3.0 --no-deps`", .path.display())]
    MissingFile {
        /// Path of the wheel.
        path: PathBuf,
        /// The file that should be in it.
        file: String,
    },
    /// A file in the wheel differs from that of geoclip 1.3.0.
    #[error("{file} in {} has SHA-256 {found}, expected {expected}: use the wheel of geoclip 1.3.0", .path.display())]
    Checksum {
        /// Path of the wheel.
        path: PathBuf,
        /// Name of the file in the wheel.
        file: String,
        /// SHA-256 of what is there.
        found: String,
        /// SHA-256 of what should be there.
        expected: String,
    },
    /// A `.pth` file in the wheel cannot be read.
    #[error("{file} cannot be read as a PyTorch checkpoint")]
    Checkpoint {
        /// The file in the wheel.
        file: String,
        /// The reader's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// `model.safetensors` cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Safetensors {
        /// Path of `model.safetensors`.
        path: PathBuf,
        /// The error of the reader or writer.
        source: safetensors::SafeTensorError,
    },
    /// `config.json` is not JSON, or lacks fields.
    #[error("{}: {source}", .path.display())]
    Config {
        /// Path of `config.json`.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// `config.json` describes something else.
    #[error("{} has {field} {found}, expected {expected}", .path.display())]
    Format {
        /// Path of `config.json`.
        path: PathBuf,
        /// The field that differs.
        field: &'static str,
        /// Its value there.
        found: String,
        /// The value that this program reads.
        expected: String,
    },
    /// A tensor is not there.
    #[error("no tensor is named {0}")]
    MissingTensor(String),
    /// A tensor has another shape than the ones beside it ask for.
    #[error("tensor {name} has shape {found:?}, expected {expected}")]
    Shape {
        /// Name of the tensor.
        name: String,
        /// Shape in the file.
        found: Vec<usize>,
        /// The wanted shape.
        expected: String,
    },
    /// A tensor holds something else than 32-bit floats.
    #[error("tensor {name} contains {found}, expected F32")]
    ElementType {
        /// Name of the tensor.
        name: String,
        /// Its type of elements.
        found: String,
    },
    /// Tensors that belong to no part of GeoCLIP.
    #[error("tensors that GeoCLIP doesn't have: {}", .0.join(", "))]
    UnknownTensors(Vec<String>),
    /// Images and places would lie in different spaces.
    #[error(
        "the location encoder's embeddings are {place_width} wide, the image head's {image_width}"
    )]
    Widths {
        /// Width of the location encoder's embeddings.
        place_width: usize,
        /// Width of the image head's embeddings.
        image_width: usize,
    },
    /// The gallery's first line isn't its header.
    #[error("{gallery} begins with `{found}`, expected `LAT,LON`")]
    GalleryHeader {
        /// Where the gallery is.
        gallery: String,
        /// Its first line.
        found: String,
    },
    /// A line of the gallery isn't a place.
    #[error("{gallery}, line {line}")]
    GalleryPlace {
        /// Where the gallery is.
        gallery: String,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        source: InvalidPlace,
    },
    /// There is a model already.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// What should be replaced isn't ours to remove.
    #[error("{} is not a GeoCLIP model directory and was not replaced", .0.display())]
    NotOurs(PathBuf),
}

impl GeoClipError {
    /// For `map_err`: an input or output error at a path.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> GeoClipError {
        move |source| GeoClipError::File { path: path.to_owned(), source }
    }
}
