//! What a model makes of one image.

use locdiff::Estimate;
use locdiff::locate::{AnswerOptions, Answered, ChosenBecause, ImageFacts};
use locdiff_cli::{Colors, View, answer_map};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::density::Density;
use crate::errors::{NoAnswerError, wrong_option};
use crate::model::area;
use crate::stored::{self, density_record};

/// The answer of a model for one image; `locdiff.Answer` wraps it.
#[pyclass(frozen, module = "locdiff._native")]
pub(crate) struct Answer {
    answered: Answered,
    top: usize,
    /// The record of an answer that was stored: computed again from a stored density, last digits may differ.
    stored: Option<String>,
}

impl Answer {
    pub(crate) fn new(answered: Answered, top: usize) -> Answer {
        Answer { answered, top, stored: None }
    }

    /// An answer about something without an image, such as an embedding.
    pub(crate) fn of(estimate: Estimate, options: &AnswerOptions) -> Answer {
        let nothing =
            ImageFacts { name: None, sha256: None, bytes: None, width: None, height: None };
        let because = ChosenBecause::Named;
        Answer::new(Answered::new(estimate, because, nothing, None, options), options.top)
    }
}

#[pymethods]
impl Answer {
    /// The record of `locdiff predict --json`.
    fn json(&self) -> PyResult<String> {
        if let Some(stored) = &self.stored {
            return Ok(stored.clone());
        }
        serde_json::to_string(&self.answered.record).map_err(wrong_option)
    }

    /// The density's record before it was restricted, and candidates at most: with the record and the areas, what
    /// `restored` takes.
    fn parts(&self) -> PyResult<(String, usize)> {
        Ok((density_record(self.answered.estimate.density())?, self.top))
    }

    /// An answer of another process again.
    #[staticmethod]
    fn restored(
        py: Python<'_>,
        json: String,
        density: &str,
        within: Vec<String>,
        top: usize,
    ) -> PyResult<Answer> {
        let answered = py.detach(|| stored::answered(&json, density, &within, top))?;
        Ok(Answer { answered, top, stored: Some(json) })
    }

    /// A GeoJSON feature collection, as `locdiff predict --geojson` prints it.
    fn geojson(&self, py: Python<'_>, levels: Vec<f64>) -> PyResult<String> {
        for level in &levels {
            check_level(*level)?;
        }
        let Answered { record, estimate, .. } = &self.answered;
        let features = py.detach(|| record.features(estimate, &levels));
        Ok(serde_json::json!({ "type": "FeatureCollection", "features": features }).to_string())
    }

    /// The density, restricted if the answer is.
    fn density(&self) -> Density {
        Density::new(self.answered.estimate.density().clone())
    }

    /// The same answer within an area.
    fn within(&self, py: Python<'_>, text: &str) -> PyResult<Answer> {
        let constraint = area(text)?;
        let Answered { record, estimate, gps } = &self.answered;
        py.detach(|| {
            let restricted = estimate.restricted_to(&constraint);
            let restricted = restricted
                .map_err(|error| NoAnswerError::new_err(format!("within {constraint}: {error}")))?;
            let options = AnswerOptions { top: self.top, ..AnswerOptions::default() };
            let facts = record.image.clone();
            let answered = Answered::new(restricted, ChosenBecause::Named, facts, *gps, &options);
            Ok(Answer::new(answered, self.top))
        })
    }

    /// A map of the answer as PNG or SVG.
    fn plot<'py>(
        &self,
        py: Python<'py>,
        projection: Option<&str>,
        svg: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let view = match projection {
            None => None,
            Some("globe") => Some(View::Globe),
            Some("equal-earth") => Some(View::EqualEarth),
            Some(other) => {
                let known = "use \"globe\" or \"equal-earth\"";
                return Err(wrong_option(format!("projection {other:?}: {known}")));
            }
        };
        let drawn = py.detach(|| {
            let map = answer_map(&self.answered, view, Colors::Dark, None);
            let picture = map.map_err(wrong_option)?.draw();
            Ok::<_, PyErr>(if svg { picture.svg().into_bytes() } else { picture.png() })
        });
        Ok(PyBytes::new(py, &drawn?))
    }
}

/// Levels of regions are probabilities.
pub(crate) fn check_level(level: f64) -> PyResult<()> {
    match (0.0..=1.0).contains(&level) {
        true => Ok(()),
        false => Err(wrong_option(format!("the level of a region is {level}: use 0 to 1"))),
    }
}
