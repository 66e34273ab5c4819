//! Places and functions on the sphere as arrays.

use locdiff_sphere::{Basis, Decoder, Grid, LARGEST_DEGREE, LatLon, Transform, coefficient_count};
use numpy::ndarray::{ArrayView1, ArrayView2};
use numpy::{
    PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyReadonlyArray3,
};
use pyo3::prelude::*;

use crate::errors::wrong_option;

/// One axis of numbers.
pub(crate) type Numbers<'py> = Bound<'py, PyArray1<f64>>;

/// Places from latitudes and longitudes.
pub(crate) fn places(
    latitudes: &PyReadonlyArray1<'_, f64>,
    longitudes: &PyReadonlyArray1<'_, f64>,
) -> PyResult<Vec<LatLon>> {
    places_of(latitudes.as_array(), longitudes.as_array())
}

fn places_of(
    latitudes: ArrayView1<'_, f64>,
    longitudes: ArrayView1<'_, f64>,
) -> PyResult<Vec<LatLon>> {
    if latitudes.len() != longitudes.len() {
        let (north, east) = (latitudes.len(), longitudes.len());
        return Err(wrong_option(format!("{north} latitudes, but {east} longitudes")));
    }
    let pairs = latitudes.iter().zip(longitudes);
    pairs.map(|(lat, lon)| LatLon::new(*lat, *lon).map_err(wrong_option)).collect()
}

fn check_degree(max_degree: usize, least: usize) -> PyResult<()> {
    match (least..=LARGEST_DEGREE).contains(&max_degree) {
        true => Ok(()),
        false => Err(wrong_option(format!(
            "max_degree is {max_degree}: use {least} to {LARGEST_DEGREE}"
        ))),
    }
}

/// The degree that so many coefficients have.
fn degree_of(count: usize, least: usize) -> PyResult<usize> {
    let root = count.isqrt();
    if root == 0 || root * root != count {
        return Err(wrong_option(format!(
            "{count} coefficients are not (max_degree + 1)² for any max_degree"
        )));
    }
    check_degree(root - 1, least)?;
    Ok(root - 1)
}

fn check_finite(values: ArrayView2<'_, f64>) -> PyResult<()> {
    match values.iter().all(|value| value.is_finite()) {
        true => Ok(()),
        false => Err(wrong_option("coefficients must be finite numbers")),
    }
}

/// Harmonics at places, `[places, (max_degree + 1)²]`.
#[pyfunction]
pub(crate) fn encode<'py>(
    py: Python<'py>,
    latitudes: PyReadonlyArray1<'py, f64>,
    longitudes: PyReadonlyArray1<'py, f64>,
    max_degree: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    check_degree(max_degree, 0)?;
    let places = places(&latitudes, &longitudes)?;
    let count = coefficient_count(max_degree);
    let matrix = py.detach(|| {
        let mut matrix = vec![0.0; places.len() * count];
        Basis::new(max_degree).encode_into(&places, &mut matrix);
        matrix
    });
    PyArray1::from_vec(py, matrix).reshape([places.len(), count])
}

/// The highest place of each row of coefficients: latitudes, longitudes.
#[pyfunction]
pub(crate) fn decode<'py>(
    py: Python<'py>,
    coefficients: PyReadonlyArray2<'py, f64>,
) -> PyResult<(Numbers<'py>, Numbers<'py>)> {
    let array = coefficients.as_array();
    let max_degree = degree_of(array.ncols(), 1)?;
    check_finite(array)?;
    let values: Vec<f64> = array.iter().copied().collect();
    let places: Vec<LatLon> = py.detach(|| {
        let peaks = Decoder::new(max_degree).modes_of_batch(&values, 1);
        peaks.into_iter().map(|peaks| peaks[0].place).collect()
    });
    let latitudes = places.iter().map(|place| place.latitude()).collect();
    let longitudes = places.iter().map(|place| place.longitude()).collect();
    Ok((PyArray1::from_vec(py, latitudes), PyArray1::from_vec(py, longitudes)))
}

fn grid_of(rings: usize, longitudes: usize) -> PyResult<Grid> {
    match rings > 0 && longitudes > 0 {
        true => Ok(Grid::new(rings, longitudes)),
        false => Err(wrong_option("a grid needs at least one ring and one longitude")),
    }
}

/// Latitudes of rings, longitudes, and the weight of a point on each ring (steradians).
#[pyfunction]
pub(crate) fn grid<'py>(
    py: Python<'py>,
    rings: usize,
    longitudes: usize,
) -> PyResult<(Numbers<'py>, Numbers<'py>, Numbers<'py>)> {
    let grid = grid_of(rings, longitudes)?;
    let north = (0..rings).map(|ring| grid.place(ring, 0).latitude()).collect();
    let east = (0..longitudes).map(|index| 360.0 * index as f64 / longitudes as f64).collect();
    let weights = (0..rings).map(|ring| grid.weight(ring)).collect();
    let array = |values| PyArray1::from_vec(py, values);
    Ok((array(north), array(east), array(weights)))
}

/// Values on the grid of functions with these coefficients, `[functions, rings, longitudes]`.
#[pyfunction]
pub(crate) fn synthesis<'py>(
    py: Python<'py>,
    coefficients: PyReadonlyArray2<'py, f64>,
    rings: usize,
    longitudes: usize,
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let array = coefficients.as_array();
    let max_degree = degree_of(array.ncols(), 0)?;
    let grid = grid_of(rings, longitudes)?;
    if longitudes <= 2 * max_degree {
        return Err(wrong_option(format!(
            "{longitudes} longitudes are too few for max_degree {max_degree}: at least {}",
            2 * max_degree + 1
        )));
    }
    let rows = array.nrows();
    let given: Vec<f64> = array.iter().copied().collect();
    let values = py.detach(|| {
        let mut values = vec![0.0; rows * grid.len()];
        Transform::new(grid, max_degree).synthesize_into(&given, &mut values);
        values
    });
    PyArray1::from_vec(py, values).reshape([rows, rings, longitudes])
}

/// Coefficients of functions from their values on the grid, `[functions, (max_degree + 1)²]`.
#[pyfunction]
pub(crate) fn analysis<'py>(
    py: Python<'py>,
    values: PyReadonlyArray3<'py, f64>,
    max_degree: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    check_degree(max_degree, 0)?;
    let array = values.as_array();
    let &[rows, rings, longitudes] = array.shape() else { unreachable!("three axes") };
    let grid = grid_of(rings, longitudes)?;
    if rings <= max_degree || longitudes <= 2 * max_degree {
        return Err(wrong_option(format!(
            "a grid of {rings} × {longitudes} is too coarse for max_degree {max_degree}: at least {} × {}",
            max_degree + 1,
            2 * max_degree + 1
        )));
    }
    let given: Vec<f64> = array.iter().copied().collect();
    let count = coefficient_count(max_degree);
    let coefficients = py.detach(|| {
        let mut coefficients = vec![0.0; rows * count];
        Transform::new(grid, max_degree).analyze_into(&given, &mut coefficients);
        coefficients
    });
    PyArray1::from_vec(py, coefficients).reshape([rows, count])
}

/// Great-circle distances between pairs of places.
#[pyfunction]
pub(crate) fn distance_km<'py>(
    py: Python<'py>,
    latitudes: PyReadonlyArray1<'py, f64>,
    longitudes: PyReadonlyArray1<'py, f64>,
    other_latitudes: PyReadonlyArray1<'py, f64>,
    other_longitudes: PyReadonlyArray1<'py, f64>,
) -> PyResult<Numbers<'py>> {
    let (from, to) =
        (places(&latitudes, &longitudes)?, places(&other_latitudes, &other_longitudes)?);
    if from.len() != to.len() {
        let (from, to) = (from.len(), to.len());
        return Err(wrong_option(format!("distances between {from} and {to} places")));
    }
    let pairs = from.into_iter().zip(to);
    Ok(PyArray1::from_vec(py, pairs.map(|(from, to)| from.distance_km(to)).collect()))
}
