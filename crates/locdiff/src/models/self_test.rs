//! Whether an installed model still computes what it should.
//!
//! A reference is stored with each model: what it gives for an input that this program makes itself. For GeoCLIP it
//! is PyTorch's; for image encoders, whose weights we have never seen, it is what this program gave when they were installed,
//! which shows later damage but not an early mistake.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use locdiff_sphere::LatLon;
use serde::{Deserialize, Serialize};

use crate::checksum::sha256_of_file;
use crate::encoders::ImageEncoder;
use crate::models::earth_view::EarthLocator;
use crate::models::geoclip::GeoClip;
use crate::photo::Photo;

/// Other processors add in another order; weights that are wrong do worse.
const TOLERANCE: f64 = 1e-3;

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum SelfTest {
    /// The numbers are the stored ones, but for so much.
    Agrees {
        /// The largest difference, as a part of the length of the vector.
        difference: f64,
    },
    /// There was nothing to compare with; now there is.
    Recorded,
}

/// Why a model can't be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelfTestFailed {
    /// It computes something else.
    #[error("the output differs from the reference in {} by {difference:.2e}, at most {TOLERANCE:.0e} is allowed", .record.display())]
    Differs {
        /// Where the reference is.
        record: PathBuf,
        /// The largest difference, as a part of the length of the vector.
        difference: f64,
    },
    /// The reference can't be read or written.
    #[error("{}: {reason}", .record.display())]
    Record {
        /// Where the reference is, or should be.
        record: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Record {
    /// Description of the input.
    input: String,
    /// The program that computed the reference.
    made_by: String,
    numbers: Vec<f32>,
    /// SHA-256 of files: numbers don't show every damage.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// Embeds a picture that this program paints itself, and compares with the record, or makes it.
pub fn test_encoder(encoder: &ImageEncoder, record: &Path) -> Result<SelfTest, SelfTestFailed> {
    let numbers = encoder.embed_photo(&Photo::test_picture());
    compare(record, "the embedding of the built-in test picture", &numbers, BTreeMap::new())
}

/// Embeds a picture that this program paints itself, and compares with what the model gave when
/// it was made.
pub fn test_earth_view(model: &EarthLocator) -> Result<SelfTest, SelfTestFailed> {
    let (reference, numbers) = model.test();
    agreement(reference, &numbers, Path::new("the program"))
}

/// Embeds two places, reads the files beside the record, and compares with the record, or makes it.
pub fn test_geoclip(geoclip: &GeoClip, record: &Path) -> Result<SelfTest, SelfTestFailed> {
    compare(record, GEOCLIP_INPUT, &geoclip_numbers(geoclip), geoclip_files(record))
}

/// Writes what PyTorch gives with the weights of geoclip 1.3.0, to be compared with later.
pub fn record_published_geoclip(record: &Path) -> Result<(), SelfTestFailed> {
    write(
        record,
        &Record {
            input: GEOCLIP_INPUT.to_owned(),
            made_by: "PyTorch in float64 with the weights of geoclip 1.3.0".to_owned(),
            numbers: GEOCLIP_NUMBERS.to_vec(),
            files: geoclip_files(record),
        },
    )
}

const GEOCLIP_INPUT: &str = "the first six numbers of the embeddings of 0,0 and of the north pole";
/// From `parity/geoclip/embeddings.safetensors`.
const GEOCLIP_NUMBERS: [f32; 12] = [
    0.0117804, 0.0017491, 0.018609, -0.003826, -0.0576944, 0.0285328, //
    0.0723273, -0.0079421, 0.0875775, 0.0239892, 0.0244296, 0.0581355,
];

fn geoclip_numbers(geoclip: &GeoClip) -> Vec<f32> {
    let places =
        [(0.0, 0.0), (90.0, 0.0)].map(|(lat, lon)| LatLon::new(lat, lon).expect("a place"));
    let width = geoclip.location_encoder.width();
    let embeddings = geoclip.location_encoder.embed(&places).into_data_as::<f32>();
    let embeddings: Vec<f32> = embeddings.try_into_vec().expect("f32");
    embeddings.chunks_exact(width).flat_map(|row| row.iter().take(6).copied()).collect()
}

/// The files of a GeoCLIP directory, by the record that lies beside them.
fn geoclip_files(record: &Path) -> BTreeMap<String, String> {
    let directory = record.parent().unwrap_or(Path::new("."));
    let names = ["config.json", "model.safetensors", "coordinates_100K.csv"];
    let digest = |name: &str| -> Option<(String, String)> {
        Some((name.to_owned(), sha256_of_file(&directory.join(name)).ok()?))
    };
    names.into_iter().filter_map(digest).collect()
}

fn compare(
    record: &Path,
    input: &str,
    numbers: &[f32],
    files: BTreeMap<String, String>,
) -> Result<SelfTest, SelfTestFailed> {
    let broken = |reason: String| SelfTestFailed::Record { record: record.to_owned(), reason };
    let text = match fs::read_to_string(record) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let made_by = format!("locdiff {}", env!("CARGO_PKG_VERSION"));
            let numbers = numbers.to_vec();
            write(record, &Record { input: input.to_owned(), made_by, numbers, files })?;
            return Ok(SelfTest::Recorded);
        }
        Err(error) => return Err(broken(error.to_string())),
    };
    let reference: Record = serde_json::from_str(&text).map_err(|e| broken(e.to_string()))?;
    if reference.input != input || reference.numbers.len() != numbers.len() {
        return Err(broken(format!(
            "the reference is of {}, not of {input}: remove it if the model was replaced",
            reference.input
        )));
    }
    if let Some((name, _)) =
        reference.files.iter().find(|(name, sum)| files.get(*name) != Some(*sum))
    {
        return Err(broken(format!("{name} is not the file that was installed")));
    }
    agreement(&reference.numbers, numbers, record)
}

fn agreement(
    reference: &[f32],
    numbers: &[f32],
    record: &Path,
) -> Result<SelfTest, SelfTestFailed> {
    if reference.is_empty() || reference.len() != numbers.len() {
        return Err(SelfTestFailed::Differs {
            record: record.to_owned(),
            difference: f64::INFINITY,
        });
    }
    let length = reference.iter().map(|n| f64::from(*n).powi(2)).sum::<f64>().sqrt();
    let pairs = reference.iter().zip(numbers);
    let differences = pairs.map(|(a, b)| f64::from(a - b).abs() / length);
    // What is not a number differs by all there is.
    let difference =
        differences.map(|d| if d.is_nan() { f64::INFINITY } else { d }).fold(0.0, f64::max);
    if difference <= TOLERANCE {
        Ok(SelfTest::Agrees { difference })
    } else {
        Err(SelfTestFailed::Differs { record: record.to_owned(), difference })
    }
}

fn write(path: &Path, record: &Record) -> Result<(), SelfTestFailed> {
    let failed = |reason: String| SelfTestFailed::Record { record: path.to_owned(), reason };
    let text = serde_json::to_string(record).map_err(|error| failed(error.to_string()))?;
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|error| failed(error.to_string()))?;
    }
    fs::write(path, text + "\n").map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> BTreeMap<String, String> {
        BTreeMap::from([("gallery".to_owned(), "ab".to_owned())])
    }

    #[test]
    fn damage_shows() {
        let folder = tempfile::tempdir().expect("a directory");
        let record = folder.path().join("deep/er/self-test.json");
        let numbers = [0.5, -0.25, 1.0];
        assert_eq!(
            compare(&record, "it", &numbers, files()).expect("recorded"),
            SelfTest::Recorded
        );
        let agrees = SelfTest::Agrees { difference: 0.0 };
        assert_eq!(compare(&record, "it", &numbers, files()).expect("the same"), agrees);
        for other in [[0.5, -0.25, 1.01], [0.5, -0.25, f32::NAN]] {
            let error = compare(&record, "it", &other, files()).expect_err("differs");
            assert!(matches!(error, SelfTestFailed::Differs { .. }), "{error}");
        }
        let error =
            compare(&record, "something else", &numbers, files()).expect_err("another record");
        assert!(error.to_string().contains("remove it"), "{error}");
        let other = BTreeMap::from([("gallery".to_owned(), "cd".to_owned())]);
        let error = compare(&record, "it", &numbers, other).expect_err("another file");
        assert!(error.to_string().contains("gallery is not the file"), "{error}");
        fs::write(&record, "{").expect("written");
        let error = compare(&record, "it", &numbers, files()).expect_err("no JSON");
        assert!(error.to_string().contains("self-test.json"), "{error}");
    }
}
