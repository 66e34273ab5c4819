//! Many places with their embeddings, ready to be compared with images.
//!
//! Each number is stored in 16 bits, as a whole multiple of a 32,767th of the largest in its row.
//! Half-precision floats have the same size and four bits less for the largest numbers of a row.
//! A query reads all of it once, so it takes as long as the
//! memory needs to deliver 100 MB.
//!
//! On disk: a line of JSON that describes it, then scales (f32), then rows (i16), all little
//! endian, then a CRC-32 of both. Anything unexpected there, and the places are encoded again: it is a cache.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use crc32fast::Hasher;
use locdiff_sphere::LatLon;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::location_encoder::LocationEncoder;
use crate::tensors::fused::vectorised;

/// Numbers that are multiplied side by side.
const LANES: usize = 32;
/// Rows that a thread takes at a time: 100 KB or so.
const ROWS_AT_ONCE: usize = 128;
/// Bytes that a thread reads at a time.
const READ_AT_ONCE: usize = 4 << 20;

/// Embeddings of places, of length one each.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedPlaces {
    /// Numbers of a row, a multiple of [`LANES`]; the last may be zeros.
    padded: usize,
    /// What a row's whole numbers are multiples of.
    scales: Vec<f32>,
    /// `[place, padded]`
    rows: Vec<i16>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    format: String,
    /// Identity of the encoder and of the places.
    identity: String,
    places: usize,
    padded: usize,
}

const FORMAT: &str = "locdiff embedded places 1";

impl EmbeddedPlaces {
    /// Encodes places; `progress` hears how many are done.
    pub fn encode(
        encoder: &LocationEncoder,
        places: &[LatLon],
        progress: &mut dyn FnMut(usize),
    ) -> EmbeddedPlaces {
        const BATCH: usize = 2048;
        let padded = encoder.width().next_multiple_of(LANES);
        let mut scales = Vec::with_capacity(places.len());
        let mut rows = Vec::with_capacity(places.len() * padded);
        for batch in places.chunks(BATCH) {
            let embeddings: Vec<f32> =
                encoder.embed(batch).into_data_as::<f32>().try_into_vec().expect("f32");
            for embedding in embeddings.chunks_exact(encoder.width()) {
                let largest = embedding.iter().fold(f32::MIN_POSITIVE, |a, b| a.max(b.abs()));
                let scale = largest / f32::from(i16::MAX);
                scales.push(scale);
                rows.extend(embedding.iter().map(|number| (number / scale).round() as i16));
                rows.resize(scales.len() * padded, 0);
            }
            progress(scales.len());
        }
        EmbeddedPlaces { padded, scales, rows }
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Products of one embedding with those of all places.
    ///
    /// # Panics
    /// If the embedding is longer than those of the places.
    pub fn products(&self, embedding: &[f32]) -> Vec<f32> {
        assert!(embedding.len() <= self.padded, "embeddings of one length");
        let mut query = embedding.to_vec();
        query.resize(self.padded, 0.0);
        let mut products = vec![0.0; self.len()];
        let rows = self.rows.par_chunks(ROWS_AT_ONCE * self.padded);
        let parts = products.par_chunks_mut(ROWS_AT_ONCE).zip(self.scales.par_chunks(ROWS_AT_ONCE));
        parts.zip(rows).for_each(|((products, scales), rows)| {
            vectorised!({
                let rows = rows.chunks_exact(query.len());
                for ((product, scale), row) in products.iter_mut().zip(scales).zip(rows) {
                    *product = scale * dot(row, &query);
                }
            });
        });
        products
    }

    /// Reads what [`EmbeddedPlaces::write`] wrote; `None` if it isn't there, isn't what is wanted, or
    /// isn't whole.
    pub fn read(path: &Path, identity: &str, places: usize) -> Option<EmbeddedPlaces> {
        let mut reader = BufReader::new(File::open(path).ok()?);
        let mut line = String::new();
        reader.by_ref().take(4096).read_line(&mut line).ok()?;
        let header: Header = serde_json::from_str(&line).ok()?;
        let padded = header.padded;
        let sensible = padded > 0 && padded.is_multiple_of(LANES) && padded < 1 << 20;
        if header != Header::new(identity, places, padded) || !sensible {
            return None;
        }
        // Nothing may be missing, and nothing may follow.
        let expected = line.len() + 4 * places + 2 * places * padded + 4;
        if fs::metadata(path).ok()?.len() != expected as u64 {
            return None;
        }
        let (mut scales, mut rows) = (vec![0_f32; places], vec![0_i16; places * padded]);
        reader.read_exact(bytemuck::cast_slice_mut(&mut scales)).ok()?;
        let file = reader.get_ref();
        let start = (line.len() + 4 * places) as u64;
        // In parallel: most of the time goes into new pages of memory.
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut rows);
        let parts = bytes.par_chunks_mut(READ_AT_ONCE).enumerate().map(|(k, part)| {
            read_exact_at(file, part, start + (k * READ_AT_ONCE) as u64).ok()?;
            let mut hasher = Hasher::new();
            hasher.update(part);
            Some(hasher)
        });
        let parts: Option<Vec<Hasher>> = parts.collect();
        let mut hasher = Hasher::new();
        hasher.update(bytemuck::cast_slice(&scales));
        parts?.iter().for_each(|part| hasher.combine(part));
        let mut sum = [0; 4];
        read_exact_at(file, &mut sum, (expected - 4) as u64).ok()?;
        if hasher.finalize() != u32::from_le_bytes(sum) {
            return None;
        }
        if cfg!(target_endian = "big") {
            return None;
        }
        Some(EmbeddedPlaces { padded, scales, rows })
    }

    /// Writes a file: whole, or not at all.
    pub fn write(&self, path: &Path, identity: &str) -> std::io::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        let mut header = serde_json::to_string(&Header::new(identity, self.len(), self.padded))?;
        header.push('\n');
        file.write_all(header.as_bytes())?;
        let mut hasher = Hasher::new();
        let (scales, rows) = (bytemuck::cast_slice(&self.scales), bytemuck::cast_slice(&self.rows));
        for bytes in [scales, rows] {
            file.write_all(bytes)?;
            hasher.update(bytes);
        }
        file.write_all(&hasher.finalize().to_le_bytes())?;
        file.as_file().sync_all()?;
        // Others on this machine may use it too.
        #[cfg(unix)]
        file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        file.persist(path)?;
        Ok(())
    }
}

impl Header {
    fn new(identity: &str, places: usize, padded: usize) -> Header {
        Header { format: FORMAT.to_owned(), identity: identity.to_owned(), places, padded }
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    use std::io::{Seek, SeekFrom};
    let mut file = file.try_clone()?;
    // A position of its own would be better, but clones share it.
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

/// Σ a·b, in [`LANES`] sums side by side.
#[inline(always)]
fn dot(row: &[i16], query: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let pairs = row.as_chunks::<LANES>().0.iter().zip(query.as_chunks::<LANES>().0);
    for (a, b) in pairs {
        for lane in 0..LANES {
            sums[lane] += f32::from(a[lane]) * b[lane];
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up(places: usize, width: usize) -> EmbeddedPlaces {
        let padded = width.next_multiple_of(LANES);
        let number =
            |k: usize| if k % padded < width { (k * 7919 % 65_535) as i32 - 32_767 } else { 0 };
        EmbeddedPlaces {
            padded,
            scales: (0..places).map(|k| 1e-5 * (1.0 + k as f32)).collect(),
            rows: (0..places * padded).map(|k| number(k) as i16).collect(),
        }
    }

    #[test]
    fn products_are_those_of_plain_loops() {
        let places = made_up(300, 50);
        let query: Vec<f32> = (0..50).map(|k| (k as f32).cos()).collect();
        let products = places.products(&query);
        for (place, product) in products.iter().enumerate() {
            let row = &places.rows[place * 64..][..50];
            let plain: f64 =
                row.iter().zip(&query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let plain = plain * f64::from(places.scales[place]);
            assert!((f64::from(*product) - plain).abs() < 1e-4 * (1.0 + plain.abs()), "{place}");
        }
    }

    #[test]
    fn a_file_is_believed_only_if_it_is_whole_and_the_right_one() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("cache/places.bin");
        let places = made_up(37, 8);
        places.write(&path, "these").expect("written");
        assert_eq!(EmbeddedPlaces::read(&path, "these", 37), Some(places));
        assert_eq!(EmbeddedPlaces::read(&path, "others", 37), None);
        assert_eq!(EmbeddedPlaces::read(&path, "these", 38), None);
        let bytes = fs::read(&path).expect("there");
        for damage in [0, 5, bytes.len() / 2, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[damage] ^= 16;
            fs::write(&path, damaged).expect("written");
            assert_eq!(EmbeddedPlaces::read(&path, "these", 37), None, "byte {damage}");
        }
        for length in [0, 10, bytes.len() - 3] {
            fs::write(&path, &bytes[..length]).expect("written");
            assert_eq!(EmbeddedPlaces::read(&path, "these", 37), None, "{length} bytes");
        }
        assert_eq!(EmbeddedPlaces::read(Path::new("nowhere"), "these", 37), None);
    }
}
