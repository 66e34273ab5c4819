//! Opening a gallery directory, and searching it through memory-mapped files.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use locdiff_sphere::{Area, Density, InvalidDensity, LatLon};

use crate::coverage::Coverage;
use crate::manifest::Manifest;
use crate::prior;
use crate::quantize::{Query, normalized};
use crate::restriction;
use crate::search::{Best, Hit, candidates};
use crate::segment::{HALVES, Segment};
use crate::{EncoderIdentity, GalleryError};

/// The file of the fitted likelihood.
pub(crate) const LIKELIHOOD: &str = "likelihood.json";
/// A photograph is in the gallery if a reference is as near and as similar.
const SAME_PLACE_KM: f64 = 0.001;
const SAME_SIMILARITY: f32 = 0.9999;
/// How often opening begins again because a writer has just replaced segments.
const ATTEMPTS: usize = 4;
/// How many rows the distance between neighbors is measured at.
const SAMPLED_ROWS: usize = 1000;

/// Photographs with known places, to be searched by embedding.
#[derive(Debug)]
pub struct Gallery {
    path: PathBuf,
    manifest: Manifest,
    segments: Vec<Segment>,
    /// The number of each segment's first row.
    starts: Vec<usize>,
    rows: usize,
    prior: Kept<Density>,
    coverage: Kept<Arc<Coverage>>,
}

/// What was made last, and for which width of the kernel.
#[derive(Debug)]
struct Kept<T>(Mutex<Option<(f64, T)>>);

impl<T: Clone> Kept<T> {
    /// Other threads that need it wait.
    fn get<E>(&self, width_km: f64, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((width, made)) = &*kept
            && *width == width_km
        {
            return Ok(made.clone());
        }
        let made = make()?;
        *kept = Some((width_km, made.clone()));
        Ok(made)
    }
}

/// Size, encoder and segments of a gallery.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Info {
    /// How many photographs there are.
    pub rows: usize,
    /// How many segments they are stored in.
    pub segments: usize,
    /// Bytes of all segments.
    pub bytes: u64,
    /// Half of the photographs have another one within this distance; `None` if there is only one.
    pub median_nearest_km: Option<f64>,
}

impl Gallery {
    /// Opens a gallery: checks formats and sizes, and maps the files without reading them.
    pub fn open(directory: &Path) -> Result<Gallery, GalleryError> {
        for _ in 1..ATTEMPTS {
            match Gallery::open_once(directory) {
                // A merge may have removed segments after the list was read.
                Err(GalleryError::File { path, error, .. })
                    if error.kind() == std::io::ErrorKind::NotFound
                        && path.parent() != Some(directory) => {}
                result => return result,
            }
        }
        Gallery::open_once(directory)
    }

    fn open_once(directory: &Path) -> Result<Gallery, GalleryError> {
        let manifest = Manifest::read(directory)?;
        let dimension = manifest.encoder.dimension;
        let open = |entry| Segment::open(directory, entry, dimension);
        let segments: Vec<Segment> =
            manifest.segments.iter().map(open).collect::<Result<_, _>>()?;
        let mut rows = 0;
        let starts = segments.iter().map(|segment| {
            rows += segment.rows();
            rows - segment.rows()
        });
        let starts = starts.collect();
        let (prior, coverage) = (Kept(Mutex::default()), Kept(Mutex::default()));
        Ok(Gallery {
            path: directory.to_owned(),
            manifest,
            segments,
            starts,
            rows,
            prior,
            coverage,
        })
    }

    /// Directory of the gallery.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The encoder whose embeddings it contains, and can be asked with.
    pub fn encoder(&self) -> &EncoderIdentity {
        &self.manifest.encoder
    }

    /// An error that names both encoders, if they are not the same.
    pub fn check_encoder(&self, encoder: &EncoderIdentity) -> Result<(), GalleryError> {
        self.manifest.check_encoder(&self.path, encoder)
    }

    /// Number of photographs.
    #[expect(clippy::len_without_is_empty, reason = "a gallery is never empty")]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Where a photograph was taken. Rows of hits have places.
    ///
    /// # Panics
    /// If there is no such row, or the file of places is damaged there.
    pub fn place(&self, row: usize) -> LatLon {
        let (segment, row) = self.find(row);
        segment.place(row).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The path or address of a photograph. Rows of hits have ids.
    ///
    /// # Panics
    /// If there is no such row, or the file of ids is damaged there.
    pub fn id(&self, row: usize) -> &str {
        let (segment, row) = self.find(row);
        segment.id(row).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The embedding of a photograph, of length 1 but for the rounding to 16 bits.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn embedding(&self, row: usize) -> Vec<f32> {
        let (segment, row) = self.find(row);
        let mut numbers = vec![0.0; self.encoder().dimension];
        segment.embedding(row, &mut numbers);
        numbers
    }

    /// The photographs most similar to a query, best first: almost always the best ones of all (98 of 100 or
    /// more at a million rows), because sketches choose what is compared.
    pub fn search(&self, query: &[f32], count: usize) -> Result<Vec<Hit>, GalleryError> {
        let query = self.query(query)?;
        let count = count.min(self.rows);
        let mut best = Best::new(&query, count);
        if count > 0 {
            for (number, segment) in self.segments.iter().enumerate() {
                let rows = candidates(segment, &query, count);
                best.compare(number, segment, rows.into_iter());
            }
        }
        self.readable(best.finish(&self.segments, &self.starts))
    }

    /// The photographs in any of the areas that are most similar to a query, best first. All of them are
    /// compared, so that the result is exact.
    pub fn search_within(
        &self,
        query: &[f32],
        areas: &[Area],
        count: usize,
    ) -> Result<Vec<Hit>, GalleryError> {
        let query = self.query(query)?;
        let count = count.min(self.rows);
        let mut best = Best::new(&query, count);
        if count > 0 {
            for (number, segment) in self.segments.iter().enumerate() {
                let ranges = restriction::ranges(segment.keys(), areas, |row| segment.place(row))?;
                let rows = ranges.into_iter().flatten().map(|row| row as u32);
                best.compare(number, segment, rows);
            }
        }
        self.readable(best.finish(&self.segments, &self.starts))
    }

    /// Hits whose rows are not damaged.
    fn readable(&self, hits: Vec<Hit>) -> Result<Vec<Hit>, GalleryError> {
        for hit in &hits {
            let (segment, row) = self.find(hit.row);
            segment.place(row)?;
            segment.id(row)?;
            if !hit.similarity.is_finite() {
                let reason = format!("row {row} is not an embedding");
                return Err(segment.damaged(HALVES, reason));
            }
        }
        Ok(hits)
    }

    /// Sizes, and how dense the photographs are. Takes some milliseconds.
    pub fn info(&self) -> Result<Info, GalleryError> {
        Ok(Info {
            rows: self.rows,
            segments: self.segments.len(),
            bytes: self.segments.iter().map(Segment::size_bytes).sum(),
            median_nearest_km: self.median_nearest_km()?,
        })
    }

    /// Where the photographs were taken, for references that are spread by `width_km`.
    pub(crate) fn prior(&self, width_km: f64) -> Result<Density, InvalidDensity> {
        let keys = || self.segments.iter().map(Segment::keys);
        self.prior.get(width_km, || prior::prior(keys(), width_km))
    }

    /// Of which parts of the Earth it has references, for references that are spread by `width_km`; without those in an area.
    pub(crate) fn coverage(&self, width_km: f64, removed: Option<&Area>) -> Arc<Coverage> {
        let make = || Coverage::of(self.segments.iter().map(Segment::keys), width_km, removed);
        match removed {
            Some(_) => Arc::new(make()),
            None => {
                let made = self.coverage.get(width_km, || Ok::<_, Infallible>(Arc::new(make())));
                made.unwrap_or_else(|never| match never {})
            }
        }
    }

    /// Whether a hit is the photograph of this id, or one as near and as similar.
    pub(crate) fn is_itself(&self, hit: &Hit, place: LatLon, id: &str) -> bool {
        self.id(hit.row) == id
            || hit.similarity > SAME_SIMILARITY
                && self.place(hit.row).distance_km(place) < SAME_PLACE_KM
    }

    fn query(&self, query: &[f32]) -> Result<Query, GalleryError> {
        let numbers = normalized(query, self.encoder().dimension);
        let invalid = |reason| GalleryError::Embedding { what: "the query".to_owned(), reason };
        numbers.map(Query::new).map_err(invalid)
    }

    fn find(&self, row: usize) -> (&Segment, usize) {
        assert!(row < self.rows, "row {row} of a gallery of {} rows", self.rows);
        let number = self.starts.partition_point(|start| *start <= row) - 1;
        (&self.segments[number], row - self.starts[number])
    }

    fn median_nearest_km(&self) -> Result<Option<f64>, GalleryError> {
        if self.rows < 2 {
            return Ok(None);
        }
        let step = self.rows.div_ceil(SAMPLED_ROWS);
        let mut distances = Vec::new();
        for row in (0..self.rows).step_by(step) {
            distances.extend(self.nearest_km(row)?);
        }
        distances.sort_by(f64::total_cmp);
        Ok(distances.get(distances.len() / 2).copied())
    }

    /// The distance to the nearest other photograph; `None` beyond what a circle can be.
    fn nearest_km(&self, row: usize) -> Result<Option<f64>, GalleryError> {
        let (segment, own) = self.find(row);
        let place = segment.place(own)?;
        let mut radius_km = 0.1;
        while let Ok(circle) = Area::circle(place, radius_km) {
            let areas = std::slice::from_ref(&circle);
            let mut nearest = f64::INFINITY;
            for (segment, start) in self.segments.iter().zip(&self.starts) {
                let ranges = restriction::ranges(segment.keys(), areas, |row| segment.place(row))?;
                for other in ranges.into_iter().flatten().filter(|other| start + other != row) {
                    nearest = nearest.min(segment.place(other)?.distance_km(place));
                }
            }
            if nearest.is_finite() {
                return Ok(Some(nearest));
            }
            radius_km *= 4.0;
        }
        Ok(None)
    }
}
