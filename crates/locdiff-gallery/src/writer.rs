//! Building and extending galleries, so that no reader ever opens an incomplete one.
//!
//! A new gallery is written into a hidden directory beside its place and renamed at the end. New rows of an
//! existing gallery become a new segment, which counts once `gallery.json` is replaced. A process that is
//! killed leaves the old gallery, and files that the next writer removes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use half::f16;
use half::slice::HalfFloatSliceExt;
use locdiff_sphere::LatLon;

use crate::manifest::{self, MANIFEST, Manifest, SegmentEntry};
use crate::quantize::normalized;
use crate::segment::Segment;
use crate::segment_writer::SegmentWriter;
use crate::{EncoderIdentity, GalleryError};

/// More segments than this are merged. Each costs a search some thousand candidates.
const MOST_SEGMENTS: usize = 8;
/// As many of the smallest segments become one. Sizes then grow geometrically, and few rows are written often.
const MERGED_SEGMENTS: usize = 5;
/// Begins the names of segments' directories.
const SEGMENT: &str = "segment-";
/// Ending of the directory in which a segment is written.
const UNFINISHED: &str = ".unfinished";
/// What is stored beside the segments and survives an append.
const KEPT: [&str; 2] = [MANIFEST, crate::gallery::LIKELIHOOD];

/// Writes rows into a new gallery, or into an existing one. Without [`finish`](Self::finish), nothing changes.
#[derive(Debug)]
pub struct GalleryWriter {
    /// Directory of the gallery.
    target: PathBuf,
    /// Where files are written: beside a new gallery, inside an existing one.
    workplace: PathBuf,
    /// The gallery that is extended, if there is one.
    existing: Option<Manifest>,
    encoder: EncoderIdentity,
    segment: Option<SegmentWriter>,
    /// Space for one row.
    row: Vec<f16>,
    /// Released when it is dropped.
    _lock: File,
}

impl GalleryWriter {
    /// Begins a new gallery. A directory that exists is never overwritten.
    pub fn create(
        directory: &Path,
        encoder: &EncoderIdentity,
    ) -> Result<GalleryWriter, GalleryError> {
        let exists = || GalleryError::Exists { path: directory.to_owned() };
        if directory.symlink_metadata().is_ok() {
            return Err(exists());
        }
        let name = directory.file_name().ok_or_else(exists)?;
        let workplace = directory.with_file_name(format!(".{}.unfinished", name.to_string_lossy()));
        fs::create_dir_all(&workplace).map_err(GalleryError::file("create", &workplace))?;
        GalleryWriter::begin(directory, workplace, None, encoder)
    }

    /// Begins to add rows to an existing gallery, which must be of the same encoder.
    pub fn append(
        directory: &Path,
        encoder: &EncoderIdentity,
    ) -> Result<GalleryWriter, GalleryError> {
        Manifest::read(directory)?.check_encoder(directory, encoder)?;
        GalleryWriter::begin(directory, directory.to_owned(), Some(directory), encoder)
    }

    fn begin(
        target: &Path,
        workplace: PathBuf,
        existing: Option<&Path>,
        encoder: &EncoderIdentity,
    ) -> Result<GalleryWriter, GalleryError> {
        let lock = manifest::lock(&workplace, target)?;
        // Read under the lock: another writer may just have finished.
        let existing = existing.map(Manifest::read).transpose()?;
        let is_listed = |name: &str| {
            existing.as_ref().is_some_and(|manifest| {
                let mut segments = manifest.segments.iter();
                // Only what writers leave behind is removed, not what users may have put there.
                let is_ours = name.starts_with(SEGMENT) || name == UNFINISHED;
                KEPT.contains(&name) || !is_ours || segments.any(|segment| segment.name == name)
            })
        };
        manifest::clear(&workplace, is_listed)?;
        let segment = SegmentWriter::create(&workplace.join(UNFINISHED), encoder.dimension)?;
        Ok(GalleryWriter {
            target: target.to_owned(),
            workplace,
            existing,
            segment: Some(segment),
            row: vec![f16::ZERO; encoder.dimension],
            encoder: encoder.clone(),
            _lock: lock,
        })
    }

    /// Adds a photograph: its embedding, of any length but zero, its place, and its path or address.
    pub fn push(&mut self, embedding: &[f32], place: LatLon, id: &str) -> Result<(), GalleryError> {
        let segment = self.segment.as_mut().expect("rows are added before the end");
        let row = normalized(embedding, self.encoder.dimension).map_err(|reason| {
            let what = format!("the embedding of row {} ({id})", segment.rows());
            GalleryError::Embedding { what, reason }
        })?;
        self.row.convert_from_f32_slice(&row);
        segment.push(&self.row, place, id)
    }

    /// How many rows were added.
    pub fn rows(&self) -> usize {
        self.segment.as_ref().map_or(0, SegmentWriter::rows)
    }

    /// Sorts and publishes the rows. `progress` receives how many of them are sorted and written.
    pub fn finish(mut self, mut progress: impl FnMut(usize)) -> Result<(), GalleryError> {
        if self.rows() == 0 {
            return Err(GalleryError::Empty { path: self.target.clone() });
        }
        let segment = self.segment.take().expect("a writer ends once");
        let mut manifest = match self.existing.take() {
            Some(manifest) => manifest,
            None => Manifest::new(self.encoder.clone(), Vec::new()),
        };
        self.publish(segment, &mut manifest, &[], &mut progress)?;
        if manifest.segments.len() > MOST_SEGMENTS {
            self.merge(&mut manifest)?;
        }
        if self.workplace != self.target {
            fs::rename(&self.workplace, &self.target)
                .map_err(GalleryError::file("create", &self.target))?;
            let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
            manifest::sync_directory(parent.unwrap_or(Path::new(".")))?;
        }
        Ok(())
    }

    /// Gives a segment its name and lists it instead of some others.
    fn publish(
        &self,
        segment: SegmentWriter,
        manifest: &mut Manifest,
        replaced: &[SegmentEntry],
        progress: &mut dyn FnMut(usize),
    ) -> Result<(), GalleryError> {
        let number = |entry: &SegmentEntry| entry.name.strip_prefix(SEGMENT)?.parse::<u64>().ok();
        let last = manifest.segments.iter().filter_map(number).max().unwrap_or(0);
        let name = format!("{SEGMENT}{:06}", last + 1);
        let entry = segment.finish(name, progress)?;
        let path = self.workplace.join(&entry.name);
        fs::rename(self.workplace.join(UNFINISHED), &path)
            .map_err(GalleryError::file("create", &path))?;
        manifest::sync_directory(&self.workplace)?;
        manifest.segments.retain(|segment| !replaced.contains(segment));
        manifest.segments.push(entry);
        manifest.write(&self.workplace)
    }

    /// Makes one of the smallest segments.
    fn merge(&self, manifest: &mut Manifest) -> Result<(), GalleryError> {
        let mut by_rows = manifest.segments.clone();
        by_rows.sort_by_key(|entry| entry.rows);
        let merged = &by_rows[..MERGED_SEGMENTS];
        let dimension = self.encoder.dimension;
        let mut writer = SegmentWriter::create(&self.workplace.join(UNFINISHED), dimension)?;
        // In the order of the list, so that rows at one place stay in the order in which they came.
        for entry in manifest.segments.iter().filter(|entry| merged.contains(entry)) {
            writer.push_segment(&Segment::open(&self.workplace, entry, dimension)?)?;
        }
        self.publish(writer, manifest, merged, &mut |_| ())?;
        for entry in merged {
            let path = self.workplace.join(&entry.name);
            fs::remove_dir_all(&path).map_err(GalleryError::file("remove", &path))?;
        }
        Ok(())
    }
}

/// Removes what was not finished.
impl Drop for GalleryWriter {
    fn drop(&mut self) {
        // An error here has no one to go to, and the next writer removes what is left.
        let _ = fs::remove_dir_all(self.workplace.join(UNFINISHED));
        if self.workplace != self.target {
            let _ = fs::remove_dir_all(&self.workplace);
        }
    }
}
