//! All targets.

mod density_record;
mod exif_xmp;
mod gallery_directory;
mod geojson;
mod http;
mod image;
mod library;
mod manifest_csv;
mod model_directory;
mod parquet;
mod pickle;
mod safetensors;
mod toml;

use super::Target;

/// Every kind of input.
pub static TARGETS: &[Target] = &[
    image::TARGET,
    exif_xmp::TARGET,
    safetensors::TARGET,
    pickle::TARGET,
    model_directory::TARGET,
    gallery_directory::TARGET,
    parquet::TARGET,
    manifest_csv::TARGET,
    toml::TARGET,
    geojson::TARGET,
    density_record::TARGET,
    library::TARGET,
    http::QUERY,
    http::BODY,
];
