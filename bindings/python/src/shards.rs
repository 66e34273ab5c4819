//! Batches of embeddings from Parquet shards, by the loader of `locdiff train`.

use std::sync::{Mutex, PoisonError};

use locdiff_train::{DataError, Dataset, OnBadShard, Part, Split, Stream, StreamOptions};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::errors::wrong_option;

/// Embeddings `[rows, width]`, latitudes and longitudes.
type Rows<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// The rows of one rank of a shuffled stream of batches.
#[pyclass(frozen, module = "locdiff._native")]
pub(crate) struct Shards {
    data: Dataset,
    stream: Mutex<Stream>,
    rank: usize,
    world: usize,
}

#[pymethods]
impl Shards {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
    fn new(
        py: Python<'_>,
        path: &str,
        batch: usize,
        seed: u64,
        epochs: Option<u64>,
        validation_share: f64,
        rank: usize,
        world: usize,
        position: Option<&str>,
    ) -> PyResult<Shards> {
        if batch == 0 || world == 0 || !batch.is_multiple_of(world) {
            let reason = format!("batch is {batch}: use a multiple of the {world} ranks");
            return Err(wrong_option(reason));
        }
        if rank >= world {
            return Err(wrong_option(format!("rank is {rank}: there are {world} ranks, from 0")));
        }
        if !(0.0..1.0).contains(&validation_share) {
            let reason = format!("validation_share is {validation_share}: use a share below 1");
            return Err(wrong_option(reason));
        }
        let part = match validation_share {
            0.0 => Part::All,
            share => Part::Train(Split { share, seed }),
        };
        let options = StreamOptions { batch, seed, part, epochs, ..StreamOptions::default() };
        let position = position.map(serde_json::from_str).transpose().map_err(wrong_option)?;
        py.detach(|| {
            let data = Dataset::open(path, OnBadShard::Fail).map_err(unreadable)?;
            let stream = match position {
                Some(position) => data.stream_from(options, &position),
                None => data.stream(options),
            };
            let stream = Mutex::new(stream.map_err(unreadable)?);
            Ok(Shards { data, stream, rank, world })
        })
    }

    /// The record of the encoder, as JSON.
    #[getter]
    fn encoder(&self) -> PyResult<String> {
        serde_json::to_string(&self.data.layout().encoder).map_err(wrong_option)
    }

    /// The length of an embedding.
    #[getter]
    fn width(&self) -> usize {
        self.data.layout().width
    }

    /// Rows in all shards.
    #[getter]
    fn rows(&self) -> u64 {
        self.data.rows()
    }

    /// Where the stream goes on, as JSON: the same for all ranks.
    #[getter]
    fn position(&self) -> PyResult<String> {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::to_string(stream.position()).map_err(wrong_option)
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Rows<'py>>> {
        let next = py.detach(|| {
            let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            stream.next().transpose()
        });
        let Some(batch) = next.map_err(unreadable)? else { return Ok(None) };
        // The last batch may be smaller. All ranks take as many rows, so that none waits for another.
        let count = batch.places.len() / self.world;
        if count == 0 {
            return Ok(None);
        }
        let (width, first) = (self.width(), self.rank * count);
        let places = &batch.places[first..first + count];
        let embeddings = batch.embeddings[first * width..(first + count) * width].to_vec();
        let embeddings =
            Array2::from_shape_vec((count, width), embeddings).map_err(wrong_option)?;
        let latitudes = places.iter().map(|place| place.latitude()).collect::<Vec<_>>();
        let longitudes = places.iter().map(|place| place.longitude()).collect::<Vec<_>>();
        Ok(Some((
            embeddings.into_pyarray(py),
            latitudes.into_pyarray(py),
            longitudes.into_pyarray(py),
        )))
    }
}

fn unreadable(error: DataError) -> PyErr {
    PyOSError::new_err(error.to_string())
}
