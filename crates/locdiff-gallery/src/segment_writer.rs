//! How a segment is made: rows are written in the order in which they come, then again, sorted.
//!
//! Embeddings are in memory only one at a time. What grows in memory is 28 bytes per row and the ids.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use bytemuck::cast_slice;
use half::f16;
use half::slice::HalfFloatSliceExt;
use locdiff_sphere::LatLon;

use crate::GalleryError;
use crate::curve::key;
use crate::manifest::{SegmentEntry, sync_directory};
use crate::quantize::{self, bytes_width, sketch_words};
use crate::segment::{self, Segment};

/// The file of rows in the order in which they came.
const UNSORTED: &str = "unsorted.f16";
/// 16-bit floats are multiples of 2⁻²⁴, so that sums of these steps do not depend on the order.
const STEPS: f32 = (1_u64 << 24) as f32;
/// Progress is reported every so many rows.
const REPORT_ROWS: usize = 4096;

/// A segment in the making, in a directory of its own.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    directory: PathBuf,
    dimension: usize,
    unsorted: Output,
    /// Sums of the numbers of all rows, in steps of 2⁻²⁴.
    sums: Vec<i64>,
    places: Vec<LatLon>,
    ids: String,
    id_ends: Vec<u64>,
}

impl SegmentWriter {
    /// Creates the directory.
    pub(crate) fn create(
        directory: &Path,
        dimension: usize,
    ) -> Result<SegmentWriter, GalleryError> {
        fs::create_dir(directory).map_err(GalleryError::file("create", directory))?;
        Ok(SegmentWriter {
            directory: directory.to_owned(),
            dimension,
            unsorted: Output::create(directory.join(UNSORTED))?,
            sums: vec![0; dimension],
            places: Vec::new(),
            ids: String::new(),
            id_ends: Vec::new(),
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.places.len()
    }

    /// Adds a row of length 1.
    pub(crate) fn push(
        &mut self,
        row: &[f16],
        place: LatLon,
        id: &str,
    ) -> Result<(), GalleryError> {
        self.unsorted.write(cast_slice(row))?;
        for (sum, number) in self.sums.iter_mut().zip(row) {
            *sum += (number.to_f32() * STEPS) as i64;
        }
        self.places.push(place);
        self.ids.push_str(id);
        self.id_ends.push(self.ids.len() as u64);
        Ok(())
    }

    /// Adds all rows of a segment.
    pub(crate) fn push_segment(&mut self, segment: &Segment) -> Result<(), GalleryError> {
        for row in 0..segment.rows() {
            self.push(segment.half(row), segment.place(row)?, segment.id(row)?)?;
        }
        Ok(())
    }

    /// Sorts the rows and writes all files. `progress` receives the number of rows that are written.
    pub(crate) fn finish(
        mut self,
        name: String,
        progress: &mut dyn FnMut(usize),
    ) -> Result<SegmentEntry, GalleryError> {
        self.unsorted.flush()?;
        let rows = self.rows();
        let mut order: Vec<(u64, u32)> =
            self.places.iter().zip(0..).map(|(place, row)| (key(*place), row)).collect();
        // Rows at the same place stay in the order in which they came.
        order.sort_unstable();
        let mean: Vec<f32> = self
            .sums
            .iter()
            .map(|sum| (*sum as f64 / (f64::from(STEPS) * rows as f64)) as f32)
            .collect();
        self.write_embeddings(&order, &mean, progress)?;
        let id_bytes = self.write_places_and_ids(&order, &mean)?;
        let unsorted = self.directory.join(UNSORTED);
        fs::remove_file(&unsorted).map_err(GalleryError::file("remove", &unsorted))?;
        sync_directory(&self.directory)?;
        Ok(SegmentEntry { name, rows, id_bytes })
    }

    fn write_embeddings(
        &self,
        order: &[(u64, u32)],
        mean: &[f32],
        progress: &mut dyn FnMut(usize),
    ) -> Result<(), GalleryError> {
        let dimension = self.dimension;
        let unsorted_bytes = 2 * dimension as u64 * order.len() as u64;
        let unsorted = segment::map(&self.directory.join(UNSORTED), unsorted_bytes)?;
        let unsorted: &[f16] = segment::numbers(&unsorted);
        let mut halves = self.output(segment::HALVES)?;
        let mut bytes = self.output(segment::BYTES)?;
        let mut scales = self.output(segment::SCALES)?;
        let mut sketches = self.output(segment::SKETCHES)?;
        let mut numbers = vec![0.0; dimension];
        let mut rounded = vec![0_i8; bytes_width(dimension)];
        let mut words = vec![0_u64; sketch_words(dimension)];
        for (done, (_, row)) in order.iter().enumerate() {
            let row = &unsorted[*row as usize * dimension..][..dimension];
            row.convert_to_f32_slice(&mut numbers);
            let scale = quantize::bytes(&numbers, &mut rounded);
            quantize::sketch(&numbers, mean, &mut words);
            halves.write(cast_slice(row))?;
            bytes.write(cast_slice(&rounded))?;
            scales.write(cast_slice(&[scale.step, scale.error]))?;
            sketches.write(cast_slice(&words))?;
            if (done + 1) % REPORT_ROWS == 0 || done + 1 == order.len() {
                progress(done + 1);
            }
        }
        [halves, bytes, scales, sketches].into_iter().try_for_each(Output::finish)
    }

    /// Returns the size of the ids.
    fn write_places_and_ids(
        &self,
        order: &[(u64, u32)],
        mean: &[f32],
    ) -> Result<u64, GalleryError> {
        let mut means = self.output(segment::MEAN)?;
        let mut places = self.output(segment::PLACES)?;
        let mut keys = self.output(segment::KEYS)?;
        let mut id_ends = self.output(segment::ID_ENDS)?;
        let mut ids = self.output(segment::IDS)?;
        means.write(cast_slice(mean))?;
        let mut end = 0_u64;
        for (key, row) in order {
            let row = *row as usize;
            let place = self.places[row];
            places.write(cast_slice(&[place.latitude(), place.longitude()]))?;
            keys.write(cast_slice(&[*key]))?;
            let start = row.checked_sub(1).map_or(0, |before| self.id_ends[before]);
            let id = &self.ids[start as usize..self.id_ends[row] as usize];
            ids.write(id.as_bytes())?;
            ids.write(b"\n")?;
            end += id.len() as u64;
            id_ends.write(cast_slice(&[end]))?;
            end += 1;
        }
        [means, places, keys, id_ends, ids].into_iter().try_for_each(Output::finish)?;
        Ok(end)
    }

    fn output(&self, name: &str) -> Result<Output, GalleryError> {
        Output::create(self.directory.join(name))
    }
}

/// A file, with its path for messages of errors.
#[derive(Debug)]
struct Output {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Output {
    fn create(path: PathBuf) -> Result<Output, GalleryError> {
        let file = File::create_new(&path).map_err(GalleryError::file("create", &path))?;
        Ok(Output { path, file: BufWriter::with_capacity(1 << 18, file) })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), GalleryError> {
        self.file.write_all(bytes).map_err(GalleryError::file("write", &self.path))
    }

    fn flush(&mut self) -> Result<(), GalleryError> {
        self.file.flush().map_err(GalleryError::file("write", &self.path))
    }

    /// The contents survive a loss of power.
    fn finish(mut self) -> Result<(), GalleryError> {
        self.flush()?;
        self.file.get_ref().sync_all().map_err(GalleryError::file("write", &self.path))
    }
}
