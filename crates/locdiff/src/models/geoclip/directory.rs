//! The model directory: `config.json`, `model.safetensors`, the gallery as CSV, and `README.md`.
//!
//! Names and fields are those of GeoCLIP's own releases (`model_type` "geoclip-geolocation",
//! `format_version` 1), so that Python's `geoclip` and this program read each other's files.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use locdiff_sphere::LatLon;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::error::GeoClipError;
use super::named_tensors::{NamedTensors, NamedValues};
use super::parts::GeoClip;

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
const GALLERY: &str = "coordinates_100K.csv";
const MODEL_CARD: &str = "README.md";

const MODEL_TYPE: &str = "geoclip-geolocation";
const FORMAT_VERSION: u32 = 1;
const GALLERY_HEADER: &str = "LAT,LON";

/// What to do if the directory exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// Keeps the directory and fails.
    Keep,
    /// Put the new one in its place, if it holds a GeoCLIP model; otherwise fail.
    Replace,
}

#[derive(Serialize, Deserialize)]
struct Config {
    model_type: String,
    format_version: u32,
    gallery_file: String,
    /// Of the random frequencies: only told, nothing is computed from it.
    sigma: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backbone: Option<Backbone>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    license: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

/// The image model that the image head stands on; it isn't in the directory.
#[derive(Serialize, Deserialize)]
struct Backbone {
    repo_id: String,
    revision: String,
}

impl Config {
    fn of_geoclip() -> Config {
        Config {
            model_type: MODEL_TYPE.to_owned(),
            format_version: FORMAT_VERSION,
            gallery_file: GALLERY.to_owned(),
            sigma: vec![1.0, 16.0, 256.0],
            backbone: Some(Backbone {
                repo_id: "openai/clip-vit-large-patch14".to_owned(),
                revision: "main".to_owned(),
            }),
            license: Some("MIT".to_owned()),
            source: Some("PyPI geoclip 1.3.0".to_owned()),
        }
    }

    fn read(directory: &Path) -> Result<Config, GeoClipError> {
        let path = directory.join(CONFIG);
        let text = fs::read_to_string(&path).map_err(GeoClipError::at(&path))?;
        // The type first: another kind of model has other fields.
        let differs = |field, found: String, expected: String| {
            Err(GeoClipError::Format { path: path.clone(), field, found, expected })
        };
        let value: serde_json::Value = serde_json::from_str(&text)
            .map_err(|source| GeoClipError::Config { path: path.clone(), source })?;
        if value["model_type"] != MODEL_TYPE {
            return differs(
                "model_type",
                value["model_type"].to_string(),
                format!("{MODEL_TYPE:?}"),
            );
        }
        if value["format_version"] != FORMAT_VERSION {
            let found = value["format_version"].to_string();
            return differs("format_version", found, FORMAT_VERSION.to_string());
        }
        let config: Config = serde_json::from_value(value)
            .map_err(|source| GeoClipError::Config { path: path.clone(), source })?;
        let gallery = &config.gallery_file;
        if Path::new(gallery).file_name().is_none_or(|name| name != gallery.as_str()) {
            return differs(
                "gallery_file",
                format!("{gallery:?}"),
                "a name without a path".to_owned(),
            );
        }
        Ok(config)
    }
}

impl GeoClip {
    /// Reads the directory that [`GeoClip::save`] writes, or a release of GeoCLIP.
    pub fn open(directory: &Path, device: &Device) -> Result<GeoClip, GeoClipError> {
        let config = Config::read(directory)?;
        let tensors = read_safetensors(&directory.join(WEIGHTS))?;
        let gallery = directory.join(&config.gallery_file);
        let text = fs::read_to_string(&gallery).map_err(GeoClipError::at(&gallery))?;
        let gallery = gallery_from_csv(&text, &gallery.display().to_string())?;
        GeoClip::from_tensors(tensors, gallery, device)
    }

    /// Writes a model directory: whole, or not at all. Directories above it are made as needed.
    pub fn save(&self, directory: &Path, existing: Existing) -> Result<(), GeoClipError> {
        let place = Destination::prepare(directory, existing)?;
        let write = |name: &str, bytes: &[u8]| {
            let path = place.unfinished.join(name);
            fs::write(&path, bytes).map_err(GeoClipError::at(&path))
        };
        let path = || directory.join(CONFIG);
        let mut config = serde_json::to_string_pretty(&Config::of_geoclip())
            .map_err(|source| GeoClipError::Config { path: path(), source })?;
        config.push('\n');
        write(CONFIG, config.as_bytes())?;
        write_safetensors(&self.to_tensors(), &place.unfinished.join(WEIGHTS))?;
        write(GALLERY, csv_from_gallery(&self.gallery).as_bytes())?;
        write(MODEL_CARD, include_bytes!("model_card.md"))?;
        place.finish()
    }
}

/// A directory under construction beside the one it will be.
struct Destination<'a> {
    directory: &'a Path,
    unfinished: PathBuf,
    outdated: PathBuf,
}

impl<'a> Destination<'a> {
    fn prepare(directory: &'a Path, existing: Existing) -> Result<Destination<'a>, GeoClipError> {
        if fs::symlink_metadata(directory).is_ok() {
            match existing {
                Existing::Keep => return Err(GeoClipError::Exists(directory.to_owned())),
                // A mistyped path must not cost anybody their photographs.
                Existing::Replace if Config::read(directory).is_err() => {
                    return Err(GeoClipError::NotOurs(directory.to_owned()));
                }
                Existing::Replace => {}
            }
        }
        let beside = |what: &str| {
            let mut name = std::ffi::OsString::from(".");
            name.push(directory.file_name().unwrap_or("model".as_ref()));
            name.push(format!(".{what}-{}", std::process::id()));
            directory.with_file_name(name)
        };
        let destination =
            Destination { directory, unfinished: beside("partial"), outdated: beside("outdated") };
        fs::create_dir_all(&destination.unfinished)
            .map_err(GeoClipError::at(&destination.unfinished))?;
        Ok(destination)
    }

    fn finish(self) -> Result<(), GeoClipError> {
        let replaces = self.directory.exists();
        if replaces {
            fs::rename(self.directory, &self.outdated).map_err(GeoClipError::at(self.directory))?;
        }
        if let Err(error) = fs::rename(&self.unfinished, self.directory) {
            if replaces {
                // Best effort: the first error is the one to report.
                let _ = fs::rename(&self.outdated, self.directory);
            }
            return Err(GeoClipError::at(self.directory)(error));
        }
        if replaces {
            fs::remove_dir_all(&self.outdated).map_err(GeoClipError::at(&self.outdated))?;
        }
        Ok(())
    }
}

impl Drop for Destination<'_> {
    fn drop(&mut self) {
        // After the renaming there is nothing left to remove.
        let _ = fs::remove_dir_all(&self.unfinished);
    }
}

fn read_safetensors(path: &Path) -> Result<NamedTensors, GeoClipError> {
    let failed = |source| GeoClipError::Safetensors { path: path.to_owned(), source };
    let bytes = fs::read(path).map_err(GeoClipError::at(path))?;
    let mut tensors = NamedTensors::default();
    for (name, view) in SafeTensors::deserialize(&bytes).map_err(failed)?.iter() {
        if view.dtype() != Dtype::F32 {
            let (name, found) = (name.to_owned(), format!("{:?}", view.dtype()));
            return Err(GeoClipError::ElementType { name, found });
        }
        tensors.insert(name.to_owned(), NamedValues::from_bytes(view.shape(), view.data()));
    }
    Ok(tensors)
}

fn write_safetensors(tensors: &NamedTensors, path: &Path) -> Result<(), GeoClipError> {
    let failed = |source| GeoClipError::Safetensors { path: path.to_owned(), source };
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|(_, values)| values.to_bytes()).collect();
    let mut views = Vec::with_capacity(bytes.len());
    for ((name, values), bytes) in tensors.iter().zip(&bytes) {
        let view = TensorView::new(Dtype::F32, values.shape.clone(), bytes).map_err(failed)?;
        views.push((name.as_str(), view));
    }
    // What PyTorch's reader asks of every file.
    let metadata = [("format".to_owned(), "pt".to_owned())].into();
    safetensors::serialize_to_file(views, Some(metadata), path).map_err(failed)
}

/// Places from lines of latitude and longitude below a header; `gallery` names them in errors.
pub(super) fn gallery_from_csv(text: &str, gallery: &str) -> Result<Vec<LatLon>, GeoClipError> {
    let mut lines = text.lines().zip(1..);
    let header = lines.next().map_or("", |(line, _)| line);
    if header != GALLERY_HEADER {
        let (gallery, found) = (gallery.to_owned(), header.chars().take(40).collect());
        return Err(GeoClipError::GalleryHeader { gallery, found });
    }
    lines
        .map(|(text, line)| {
            let place = text.parse();
            place.map_err(|source| GeoClipError::GalleryPlace {
                gallery: gallery.to_owned(),
                line,
                source,
            })
        })
        .collect()
}

fn csv_from_gallery(places: &[LatLon]) -> String {
    let mut text = format!("{GALLERY_HEADER}\n");
    for place in places {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{},{}", place.latitude(), place.longitude());
    }
    text
}
