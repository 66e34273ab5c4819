//! Scores of answers.

use locdiff_evaluate::{
    Evaluation, EvaluationOptions, Matching, Missing, Pairs, Rules, report_json,
};
use locdiff_sphere::{LatLon, Resampling};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::density::Density;
use crate::errors::wrong_option;
use crate::sphere::places;

/// The report of `locdiff evaluate --json` on answers, in which not-a-number is no answer. Densities, if they are given, are
/// one for each image.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub(crate) fn score(
    py: Python<'_>,
    latitudes: PyReadonlyArray1<'_, f64>,
    longitudes: PyReadonlyArray1<'_, f64>,
    true_latitudes: PyReadonlyArray1<'_, f64>,
    true_longitudes: PyReadonlyArray1<'_, f64>,
    densities: Option<Vec<PyRef<'_, Density>>>,
    rules: &str,
    missing: &str,
    resamples: usize,
    seed: u64,
) -> PyResult<String> {
    let rules = match rules {
        "locdiff" => Rules::default(),
        "geoclip" => Rules::GEOCLIP,
        "osv5m" => Rules::OSV5M,
        other => {
            let known = "use \"locdiff\", \"geoclip\" or \"osv5m\"";
            return Err(wrong_option(format!("rules {other:?}: {known}")));
        }
    };
    let missing = match missing {
        "refuse" => Missing::Refuse,
        "skip" => Missing::Skip,
        "worst" => Missing::Worst,
        other => {
            let known = "use \"refuse\", \"skip\" or \"worst\"";
            return Err(wrong_option(format!("missing {other:?}: {known}")));
        }
    };
    let truth = places(&true_latitudes, &true_longitudes)?;
    let (lat, lon) = (latitudes.as_array(), longitudes.as_array());
    if lat.len() != truth.len() || lon.len() != truth.len() {
        let (answers, images) = (lat.len().min(lon.len()), truth.len());
        return Err(wrong_option(format!("{answers} answers for {images} images")));
    }
    let densities: Option<Vec<locdiff_sphere::Density>> = densities
        .map(|densities| densities.iter().map(|density| density.inner().clone()).collect());
    if let Some(densities) = densities.as_ref().filter(|all| all.len() != truth.len()) {
        let (densities, images) = (densities.len(), truth.len());
        return Err(wrong_option(format!("{densities} densities for {images} images")));
    }
    let mut answers = Vec::new();
    for (index, truth) in truth.iter().enumerate() {
        if lat[index].is_nan() || lon[index].is_nan() {
            answers.push(None);
            continue;
        }
        let place = LatLon::new(lat[index], lon[index]).map_err(wrong_option)?;
        let outcome = densities.as_ref().map(|all| all[index].survey().outcome(*truth));
        answers.push(Some((place, outcome)));
    }
    let images = (1..=truth.len()).map(|row| format!("row {row}")).collect();
    let pairs = Pairs { images, truth, answers, matching: Matching::Order, unknown: 0 };
    let resampling = (resamples > 0).then(|| Resampling { resamples, ..Resampling::default() });
    let options = EvaluationOptions { rules, resampling, seed, ..EvaluationOptions::default() };
    py.detach(|| {
        let answered = pairs.answered(missing).map_err(wrong_option)?;
        let evaluation =
            Evaluation::of("answers", "arrays", answered, &options).map_err(wrong_option)?;
        Ok(report_json(&evaluation).to_string())
    })
}
