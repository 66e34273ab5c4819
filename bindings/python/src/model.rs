//! A model, asked about images.

use std::path::PathBuf;

use locdiff::locate::{AnswerOptions, ModelFacts, answer_all};
use locdiff::models::EncoderSource;
use locdiff::{Constraint, Geolocator, InferenceOptions, ModelHome, OpenOptions};
use locdiff_sphere::LatLon;
use numpy::{PyArray2, PyReadonlyArray3};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::answer::Answer;
use crate::errors::{OptionError, cannot_open, wrong_option};
use crate::images::{Given, read, together};
use crate::process::{compute, expect_threads};
use crate::table::Batches;

/// A model that was opened.
#[pyclass(frozen, module = "locdiff._native")]
pub(crate) struct Model {
    geolocator: Geolocator,
    /// For each call; else all that there are.
    threads: Option<usize>,
}

/// An area: a GeoJSON document, or as `--within` takes it.
pub(crate) fn area(text: &str) -> PyResult<Constraint> {
    match text.trim_start().starts_with('{') {
        true => Constraint::from_geojson(text, "GeoJSON").map_err(wrong_option),
        false => text.parse().map_err(wrong_option),
    }
}

fn options(json: &str) -> PyResult<InferenceOptions> {
    serde_json::from_str(json).map_err(|error| {
        // Where in the text that we have written ourselves is of no use.
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        OptionError::new_err(format!("options of the model: {text}"))
    })
}

#[pymethods]
impl Model {
    /// Opens a model by name or directory.
    #[staticmethod]
    #[pyo3(signature = (name, device, encoder, home, threads, options_json, progress))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn open(
        py: Python<'_>,
        name: &str,
        device: String,
        encoder: Option<PathBuf>,
        home: Option<PathBuf>,
        threads: Option<usize>,
        options_json: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Model> {
        expect_threads()?;
        let options = options(options_json)?;
        let opening = OpenOptions {
            device,
            encoder: encoder.map_or(EncoderSource::Installed, EncoderSource::Path),
            home: home.map(ModelHome::at),
            ..OpenOptions::default()
        };
        let mut failed = None;
        let opened = py.detach(|| {
            locdiff_cli::keep_for_a_while();
            // The first name of a place takes a third of a second: meanwhile the model is opened.
            std::thread::spawn(|| LatLon::new(0.0, 0.0).map(locdiff::geography::place_name));
            Geolocator::open_with(name, &opening, &mut |done, total| {
                if let (Some(progress), None) = (&progress, &failed) {
                    failed = Python::attach(|py| progress.call1(py, (done, total)).err());
                }
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let geolocator = opened.map_err(cannot_open)?.with(&options).map_err(wrong_option)?;
        Ok(Model { geolocator, threads })
    }

    /// The same model, asked in another way, or within areas.
    fn with_options(&self, options_json: &str, within: Option<Vec<String>>) -> PyResult<Model> {
        let mut geolocator = self.geolocator.with(&options(options_json)?).map_err(wrong_option)?;
        if let Some(within) = within {
            let areas: PyResult<Vec<Constraint>> = within.iter().map(|text| area(text)).collect();
            geolocator = geolocator.within(&areas?);
        }
        Ok(Model { geolocator, threads: self.threads })
    }

    /// The model's identity and inference settings, as JSON.
    fn describe(&self) -> String {
        let mut facts = serde_json::to_value(ModelFacts::new(self.geolocator.identity(), None))
            .unwrap_or_default();
        facts["inference"] = serde_json::to_value(self.geolocator.inference()).unwrap_or_default();
        facts["warnings"] = self.geolocator.warnings().into();
        facts.to_string()
    }

    /// What the model makes of each image: an answer or an exception.
    fn locate<'py>(
        &self,
        py: Python<'py>,
        images: Vec<Given>,
        top: usize,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let options = AnswerOptions { top, ..AnswerOptions::default() };
        let mut answers = Vec::with_capacity(images.len());
        for batch in images.chunks(together()) {
            let answered = compute(py, self.threads, || {
                let read = batch.par_iter().map(read).collect();
                answer_all(&self.geolocator, read, &options)
            })?;
            for (given, answered) in batch.iter().zip(answered) {
                let (name, path, ..) = given;
                let path = path.as_ref().map(|path| path.display().to_string());
                answers.push(match answered {
                    Ok(answered) => Bound::new(py, Answer::new(answered, top))?.into_any(),
                    Err(problem) => problem
                        .exception(name.as_deref().or(path.as_deref()))
                        .into_value(py)
                        .into_bound(py)
                        .into_any(),
                });
            }
            py.check_signals()?;
        }
        Ok(answers)
    }

    /// What the model makes of the rows of an Arrow table, a few at a time.
    fn locate_table(
        &self,
        table: &Bound<'_, PyAny>,
        column: &str,
        prefix: &str,
        top: usize,
    ) -> PyResult<Batches> {
        expect_threads()?;
        Batches::new(self.geolocator.clone(), self.threads, table, column, prefix, top)
    }

    /// What the model makes of embeddings `[images, views, width]`.
    fn locate_embeddings(
        &self,
        py: Python<'_>,
        embeddings: PyReadonlyArray3<'_, f32>,
        top: usize,
    ) -> PyResult<Vec<Answer>> {
        let array = embeddings.as_array();
        let &[_, views, width] = array.shape() else { unreachable!("three axes") };
        if let Some((_, wanted)) = self.geolocator.takes_embeddings_of()
            && wanted != width
        {
            return Err(wrong_option(format!(
                "the model needs embeddings of {wanted} numbers, these have {width}"
            )));
        }
        let values: Vec<f32> = array.iter().copied().collect();
        let options = AnswerOptions { top, ..AnswerOptions::default() };
        let answered = compute(py, self.threads, || {
            let estimates = self.geolocator.locate_embeddings(&values, views)?;
            Some(estimates.into_par_iter().map(|estimate| Answer::of(estimate, &options)).collect())
        })?;
        let name = &self.geolocator.identity().name;
        answered.ok_or_else(|| wrong_option(format!("model `{name}` needs images, not embeddings")))
    }

    /// What the model's encoder makes of each image, `[images, width]`.
    fn embed<'py>(
        &self,
        py: Python<'py>,
        images: Vec<Given>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let mut rows = Vec::with_capacity(images.len());
        for batch in images.chunks(together()) {
            let read: Vec<_> = compute(py, self.threads, || batch.par_iter().map(read).collect())?;
            let mut photos = Vec::new();
            for (given, read) in batch.iter().zip(read) {
                photos.push(read.map_err(|problem| problem.exception(given.0.as_deref()))?.photo);
            }
            rows.extend(compute(py, self.threads, || self.geolocator.embed(&photos))?);
            py.check_signals()?;
        }
        Ok(PyArray2::from_vec2(py, &rows)?)
    }
}
