//! Reading GeoCLIP out of its wheel. Every file is known by its SHA-256 before anything in it is
//! believed; of the pickles in `.pth` files, only names, shapes and numbers are read.

use std::fs::File;
use std::io::{BufReader, Cursor, ErrorKind, Read, Write};
use std::path::Path;

use burn::tensor::Device;
use locdiff_sphere::LatLon;
use pytorch_reader::{DType, PytorchReader};
use zip::ZipArchive;
use zip::result::ZipError;

use super::directory::gallery_from_csv;
use super::error::GeoClipError;
use super::named_tensors::{NamedTensors, NamedValues};
use super::parts::{GeoClip, LOGIT_SCALE};
use crate::checksum::sha256;

/// What we read of a wheel: paths in it, and checksums.
pub(super) struct Release<'a> {
    pub(super) location_encoder: Member<'a>,
    pub(super) image_head: Member<'a>,
    pub(super) logit_scale: Member<'a>,
    pub(super) gallery: Member<'a>,
}

pub(super) struct Member<'a> {
    pub(super) path: &'a str,
    pub(super) sha256: &'a str,
}

/// PyPI's `geoclip-1.3.0-py3-none-any.whl`.
const GEOCLIP_1_3_0: Release<'static> = Release {
    location_encoder: Member {
        path: "geoclip/model/weights/location_encoder_weights.pth",
        sha256: "94b80ae3af89fca78539e129dd2929d321247f5ceeeb0a31bc2c31041a253394",
    },
    image_head: Member {
        path: "geoclip/model/weights/image_encoder_mlp_weights.pth",
        sha256: "5342c391eec961796d04d02f2bd670bfa97b34ce32c656d0e0676581103c2c14",
    },
    logit_scale: Member {
        path: "geoclip/model/weights/logit_scale_weights.pth",
        sha256: "9568e2e09dd19083082bf285b2c0c126867e40dbd275a8ee8c621888b861904e",
    },
    gallery: Member {
        path: "geoclip/model/gps_gallery/coordinates_100K.csv",
        sha256: "3a00b1ba58f13443db726533b6399b39609e292df09d4e58792fa5949d1838b1",
    },
};

/// More than any member has; a larger one is not geoclip's wheel.
const LARGEST_MEMBER: u64 = 64 << 20;

impl GeoClip {
    /// Reads the wheel of `geoclip` 1.3.0, as `pip download geoclip==1.3.0 --no-deps` gets it. No
    /// Python is run, and no other version is accepted.
    pub fn import(wheel: &Path, device: &Device) -> Result<GeoClip, GeoClipError> {
        GeoClip::import_release(wheel, &GEOCLIP_1_3_0, device)
    }

    pub(super) fn import_release(
        wheel: &Path,
        release: &Release<'_>,
        device: &Device,
    ) -> Result<GeoClip, GeoClipError> {
        let mut wheel = Wheel::open(wheel)?;
        // All four are checked before any is read.
        let location_encoder = wheel.extract(&release.location_encoder)?;
        let image_head = wheel.extract(&release.image_head)?;
        let logit_scale = wheel.extract(&release.logit_scale)?;
        let gallery = wheel.extract(&release.gallery)?;

        let mut tensors = NamedTensors::default();
        read_state(&location_encoder, release.location_encoder.path, |name, values| {
            tensors.insert(format!("location_encoder.{name}"), values);
        })?;
        read_state(&image_head, release.image_head.path, |name, values| {
            tensors.insert(format!("image_encoder.mlp.{name}"), values);
        })?;
        let scale = read_only_number(logit_scale, release.logit_scale.path)?;
        tensors.insert(LOGIT_SCALE.to_owned(), scale);
        let gallery = read_gallery(&gallery, release.gallery.path)?;
        GeoClip::from_tensors(tensors, gallery, device)
    }
}

struct Wheel<'a> {
    path: &'a Path,
    archive: ZipArchive<BufReader<File>>,
}

impl<'a> Wheel<'a> {
    fn open(path: &'a Path) -> Result<Wheel<'a>, GeoClipError> {
        let file = File::open(path).map_err(GeoClipError::at(path))?;
        // Opens like a file, and then fails with an unhelpful message.
        if path.is_dir() {
            return Err(GeoClipError::at(path)(ErrorKind::IsADirectory.into()));
        }
        let archive =
            ZipArchive::new(BufReader::new(file)).map_err(|error| not_a_wheel(path, error))?;
        Ok(Wheel { path, archive })
    }

    /// A member's bytes, once their checksum is what it should be.
    fn extract(&mut self, member: &Member<'_>) -> Result<Vec<u8>, GeoClipError> {
        let path = self.path;
        let entry = self.archive.by_name(member.path).map_err(|error| match error {
            ZipError::FileNotFound => {
                GeoClipError::MissingFile { path: path.to_owned(), file: member.path.to_owned() }
            }
            error => not_a_wheel(path, error),
        })?;
        let mut bytes = Vec::new();
        entry.take(LARGEST_MEMBER).read_to_end(&mut bytes).map_err(GeoClipError::at(path))?;
        let found = sha256(&bytes);
        if found != member.sha256 {
            return Err(GeoClipError::Checksum {
                path: path.to_owned(),
                file: member.path.to_owned(),
                found,
                expected: member.sha256.to_owned(),
            });
        }
        Ok(bytes)
    }
}

fn not_a_wheel(path: &Path, error: ZipError) -> GeoClipError {
    match error {
        ZipError::Io(source) if source.kind() != ErrorKind::UnexpectedEof => {
            GeoClipError::File { path: path.to_owned(), source }
        }
        source => GeoClipError::NotAWheel { path: path.to_owned(), source },
    }
}

/// All tensors of a state dict, by name.
fn read_state(
    checkpoint: &[u8],
    file: &str,
    mut take: impl FnMut(&str, NamedValues),
) -> Result<(), GeoClipError> {
    let failed = |source| GeoClipError::Checkpoint { file: file.to_owned(), source };
    // The reader needs a file of its own.
    let mut copy = tempfile::NamedTempFile::new().map_err(|error| failed(error.into()))?;
    copy.write_all(checkpoint).map_err(|error| failed(error.into()))?;
    let reader = PytorchReader::new(copy.path()).map_err(|error| failed(error.into()))?;
    for (name, tensor) in reader.tensors() {
        if tensor.dtype() != DType::F32 {
            let (name, found) = (name.clone(), format!("{:?}", tensor.dtype()));
            return Err(GeoClipError::ElementType { name, found });
        }
        let bytes = tensor.read().map_err(|error| failed(error.into()))?;
        take(name, NamedValues::from_bytes(tensor.shape(), &bytes));
    }
    Ok(())
}

/// The number in a checkpoint that is nothing but one number, which the reader of state dicts
/// refuses: its only storage.
fn read_only_number(checkpoint: Vec<u8>, file: &str) -> Result<NamedValues, GeoClipError> {
    let failed = |source| GeoClipError::Checkpoint { file: file.to_owned(), source };
    let mut archive =
        ZipArchive::new(Cursor::new(checkpoint)).map_err(|error| failed(error.into()))?;
    let names: Vec<String> = archive.file_names().flatten().map(Into::into).collect();
    let storages: Vec<&String> = names.iter().filter(|name| name.contains("/data/")).collect();
    let [storage] = &storages[..] else {
        return Err(failed(format!("it contains {} tensors, expected 1", storages.len()).into()));
    };
    let mut bytes = Vec::new();
    let entry = archive.by_name(storage).map_err(|error| failed(error.into()))?;
    entry.take(LARGEST_MEMBER).read_to_end(&mut bytes).map_err(|error| failed(error.into()))?;
    if bytes.len() != size_of::<f32>() {
        return Err(failed(format!("it contains {} bytes, expected one f32", bytes.len()).into()));
    }
    Ok(NamedValues::from_bytes(&[], &bytes))
}

fn read_gallery(bytes: &[u8], file: &str) -> Result<Vec<LatLon>, GeoClipError> {
    gallery_from_csv(&String::from_utf8_lossy(bytes), file)
}
