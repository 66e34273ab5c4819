//! A segment: rows sorted along the curve, in files that are mapped into memory.
//!
//! | file | content | type |
//! |---|---|---|
//! | `halves.f16` | embeddings of length 1 | `[row, number]` |
//! | `bytes.i8` | the same in 8 bits, rows padded to a multiple of 64 | `[row, number]` |
//! | `scales.f32` | step and error of each row of bytes | `[row, 2]` |
//! | `sketches.u64` | signs after subtraction of the mean | `[row, word]` |
//! | `mean.f32` | the mean of the rows | `[number]` |
//! | `places.f64` | latitude and longitude in degrees | `[row, 2]` |
//! | `keys.u64` | positions on the curve, ascending | `[row]` |
//! | `id_ends.u64` | where each id ends in `ids.txt` | `[row]` |
//! | `ids.txt` | ids, each followed by a line feed | |

use std::fs::File;
use std::path::{Path, PathBuf};

use bytemuck::{AnyBitPattern, cast_slice};
use half::f16;
use locdiff_sphere::LatLon;
use memmap2::Mmap;

use crate::GalleryError;
use crate::manifest::{SegmentEntry, check_files};
use crate::quantize::{self, Scale, bytes_width, sketch_words};

pub(crate) const HALVES: &str = "halves.f16";
pub(crate) const BYTES: &str = "bytes.i8";
pub(crate) const SCALES: &str = "scales.f32";
pub(crate) const SKETCHES: &str = "sketches.u64";
pub(crate) const MEAN: &str = "mean.f32";
pub(crate) const PLACES: &str = "places.f64";
pub(crate) const KEYS: &str = "keys.u64";
pub(crate) const ID_ENDS: &str = "id_ends.u64";
pub(crate) const IDS: &str = "ids.txt";

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    path: PathBuf,
    dimension: usize,
    rows: usize,
    halves: Mmap,
    bytes: Mmap,
    scales: Mmap,
    sketches: Mmap,
    mean: Vec<f32>,
    places: Mmap,
    keys: Mmap,
    id_ends: Mmap,
    ids: Mmap,
}

impl Segment {
    /// Maps the files after a check of their sizes, and reads only the mean.
    pub(crate) fn open(
        directory: &Path,
        entry: &SegmentEntry,
        dimension: usize,
    ) -> Result<Segment, GalleryError> {
        let path = directory.join(&entry.name);
        check_files(&path)?;
        let rows = entry.rows;
        if rows == 0 || u32::try_from(rows).is_err() {
            let reason = format!("it has {rows} rows, from 1 to {} are possible", u32::MAX);
            return Err(GalleryError::Contents { path, reason });
        }
        let map =
            |name: &str, row_bytes: usize| map(&path.join(name), rows as u64 * row_bytes as u64);
        let mean = crate::segment::map(&path.join(MEAN), 4 * dimension as u64)?;
        Ok(Segment {
            dimension,
            rows,
            halves: map(HALVES, 2 * dimension)?,
            bytes: map(BYTES, bytes_width(dimension))?,
            scales: map(SCALES, 8)?,
            sketches: map(SKETCHES, 8 * sketch_words(dimension))?,
            mean: cast_slice(&mean).to_vec(),
            places: map(PLACES, 16)?,
            keys: map(KEYS, 8)?,
            id_ends: map(ID_ENDS, 8)?,
            ids: crate::segment::map(&path.join(IDS), entry.id_bytes)?,
            path,
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// `[row, number]`, padded.
    pub(crate) fn bytes(&self) -> &[i8] {
        numbers(&self.bytes)
    }

    pub(crate) fn scale(&self, row: usize) -> Scale {
        let [step, error] = numbers::<[f32; 2]>(&self.scales)[row];
        Scale { step, error }
    }

    /// `[row, word]`.
    pub(crate) fn sketches(&self) -> &[u64] {
        numbers(&self.sketches)
    }

    pub(crate) fn mean(&self) -> &[f32] {
        &self.mean
    }

    pub(crate) fn keys(&self) -> &[u64] {
        numbers(&self.keys)
    }

    pub(crate) fn half(&self, row: usize) -> &[f16] {
        &numbers(&self.halves)[row * self.dimension..][..self.dimension]
    }

    /// A row in 32-bit floats.
    pub(crate) fn embedding(&self, row: usize, into: &mut [f32]) {
        quantize::widen(self.half(row), into);
    }

    /// Opening reads no row: that a row is damaged is found when it is read.
    pub(crate) fn place(&self, row: usize) -> Result<LatLon, GalleryError> {
        let [latitude, longitude] = numbers::<[f64; 2]>(&self.places)[row];
        LatLon::new(latitude, longitude)
            .map_err(|error| self.damaged(PLACES, format!("row {row}: {error}")))
    }

    pub(crate) fn id(&self, row: usize) -> Result<&str, GalleryError> {
        let ends = numbers::<u64>(&self.id_ends);
        // Each id but the first begins after a line feed.
        let start = row.checked_sub(1).map_or(0, |before| ends[before].saturating_add(1));
        let id = self.ids.get(start as usize..ends[row] as usize);
        id.and_then(|id| std::str::from_utf8(id).ok())
            .ok_or_else(|| self.damaged(ID_ENDS, format!("row {row} has no id")))
    }

    pub(crate) fn damaged(&self, file: &str, reason: String) -> GalleryError {
        GalleryError::Contents { path: self.path.join(file), reason }
    }

    /// Bytes of all files.
    pub(crate) fn size_bytes(&self) -> u64 {
        let maps = [
            &self.halves,
            &self.bytes,
            &self.scales,
            &self.sketches,
            &self.places,
            &self.keys,
            &self.id_ends,
            &self.ids,
        ];
        maps.iter().map(|map| map.len() as u64).sum::<u64>() + 4 * self.dimension as u64
    }
}

/// Numbers as they lie in a file. Maps begin at a page, and sizes are multiples of the number's.
pub(crate) fn numbers<T: AnyBitPattern>(map: &Mmap) -> &[T] {
    cast_slice(map)
}

/// Maps a file that must have a size.
#[expect(unsafe_code, reason = "mapping a file is unsafe, because another process could change it")]
pub(crate) fn map(path: &Path, expected: u64) -> Result<Mmap, GalleryError> {
    let file = File::open(path).map_err(GalleryError::file("open", path))?;
    let found = file.metadata().map_err(GalleryError::file("read", path))?.len();
    if found != expected {
        return Err(GalleryError::Size { path: path.to_owned(), found, expected });
    }
    // SAFETY: files of a segment are written before it has its name, and are never changed afterwards: appending
    // and merging make new segments. Numbers of every bit pattern are valid, so that even a file that
    // somebody overwrites in place gives wrong numbers and no invalid values.
    unsafe { Mmap::map(&file) }.map_err(GalleryError::file("map", path))
}
