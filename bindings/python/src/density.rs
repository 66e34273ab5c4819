//! Densities on the sphere.

use locdiff_sphere::{
    Area, Coefficients, DensityRecord, Kernel, LatLon, PointMasses, coefficient_count,
};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::answer::check_level;
use crate::errors::wrong_option;
use crate::model::area;
use crate::sphere::{Numbers, places};
use crate::stored::density_record;

/// A probability density on the Earth; `locdiff.Density` wraps it.
#[pyclass(frozen, module = "locdiff._native")]
pub(crate) struct Density {
    density: locdiff_sphere::Density,
}

impl Density {
    pub(crate) fn new(density: locdiff_sphere::Density) -> Density {
        Density { density }
    }

    pub(crate) fn inner(&self) -> &locdiff_sphere::Density {
        &self.density
    }
}

/// A credible region: level, probability, area in km², and its outline as GeoJSON if it has one.
type Region = (f64, f64, f64, Option<String>);

/// A peak: latitude, longitude, mass, and log-density at the top.
type Mode = (f64, f64, f64, f64);

fn parts(parts: Vec<(f64, PyRef<'_, Density>)>) -> Vec<(f64, locdiff_sphere::Density)> {
    parts.into_iter().map(|(weight, part)| (weight, part.density.clone())).collect()
}

fn coefficients(values: PyReadonlyArray1<'_, f64>) -> PyResult<Coefficients> {
    let values: Vec<f64> = values.as_array().iter().copied().collect();
    let coefficients = Coefficients::from_vec(values).map_err(wrong_option)?;
    debug_assert_eq!(coefficients.as_slice().len(), coefficient_count(coefficients.max_degree()));
    Ok(coefficients)
}

#[pymethods]
impl Density {
    /// exp(e·Y), normalized.
    #[staticmethod]
    fn exponential(py: Python<'_>, values: PyReadonlyArray1<'_, f64>) -> PyResult<Density> {
        let coefficients = coefficients(values)?;
        Ok(Density::new(py.detach(|| locdiff_sphere::Density::exponential(&coefficients))))
    }

    /// max(e·Y, 0), normalized.
    #[staticmethod]
    fn linear(py: Python<'_>, values: PyReadonlyArray1<'_, f64>) -> PyResult<Density> {
        let coefficients = coefficients(values)?;
        Ok(Density::new(py.detach(|| locdiff_sphere::Density::linear(&coefficients))))
    }

    /// Points with weights, spread by a kernel.
    #[staticmethod]
    fn points(
        latitudes: PyReadonlyArray1<'_, f64>,
        longitudes: PyReadonlyArray1<'_, f64>,
        weights: PyReadonlyArray1<'_, f64>,
        kernel_km: f64,
    ) -> PyResult<Density> {
        let weights: Vec<f64> = weights.as_array().iter().copied().collect();
        let masses =
            PointMasses::new(places(&latitudes, &longitudes)?, &weights).map_err(wrong_option)?;
        Ok(Density::new(masses.spread(Kernel::new(kernel_km).map_err(wrong_option)?)))
    }

    /// The uniform density, 1/4π everywhere.
    #[staticmethod]
    fn uniform() -> Density {
        Density::new(locdiff_sphere::Density::uniform())
    }

    /// The weighted mean of densities.
    #[staticmethod]
    fn mixture(weighted: Vec<(f64, PyRef<'_, Density>)>) -> PyResult<Density> {
        locdiff_sphere::Density::mixture(parts(weighted)).map(Density::new).map_err(wrong_option)
    }

    /// A product of powers, normalized.
    #[staticmethod]
    fn product(powers: Vec<(f64, PyRef<'_, Density>)>) -> PyResult<Density> {
        locdiff_sphere::Density::product(parts(powers)).map(Density::new).map_err(wrong_option)
    }

    /// From the record that docs/density-record.md describes.
    #[staticmethod]
    fn from_record(json: &str) -> PyResult<Density> {
        let record: DensityRecord = serde_json::from_str(json).map_err(wrong_option)?;
        record.density().map(Density::new).map_err(wrong_option)
    }

    /// The record that docs/density-record.md describes.
    fn record(&self) -> PyResult<String> {
        serde_json::to_string(&DensityRecord::of(&self.density)).map_err(wrong_option)
    }

    /// The record before the density was restricted; fails if parts of it are restricted.
    fn unrestricted_record(&self) -> PyResult<String> {
        density_record(&self.density)
    }

    /// On an area only, renormalized there.
    fn within(&self, py: Python<'_>, text: &str) -> PyResult<Density> {
        let area = area(text)?.area().clone();
        let restricted = py.detach(|| self.density.restricted_to(area));
        restricted.map(Density::new).map_err(wrong_option)
    }

    /// Natural logarithms of the density per steradian.
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        latitudes: PyReadonlyArray1<'py, f64>,
        longitudes: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Numbers<'py>> {
        let places = places(&latitudes, &longitudes)?;
        let values: Vec<f64> =
            py.detach(|| places.into_iter().map(|place| self.density.log_density(place)).collect());
        Ok(PyArray1::from_vec(py, values))
    }

    /// Places drawn from the density.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        seed: u64,
    ) -> (Numbers<'py>, Numbers<'py>) {
        let drawn =
            py.detach(|| self.density.survey().sample(count, &mut ChaCha8Rng::seed_from_u64(seed)));
        let (latitudes, longitudes): (Vec<f64>, Vec<f64>) =
            drawn.into_iter().map(|place| (place.latitude(), place.longitude())).unzip();
        (PyArray1::from_vec(py, latitudes), PyArray1::from_vec(py, longitudes))
    }

    /// The probability that the place lies within a radius of another.
    fn probability_in_circle(
        &self,
        py: Python<'_>,
        latitude: f64,
        longitude: f64,
        radius_km: f64,
    ) -> PyResult<f64> {
        let centre = LatLon::new(latitude, longitude).map_err(wrong_option)?;
        let area = Area::circle(centre, radius_km).map_err(wrong_option)?;
        Ok(py.detach(|| self.density.survey().probability_in(&area)))
    }

    /// The probability of a box, which may cross the antimeridian.
    fn probability_in_box(
        &self,
        py: Python<'_>,
        south: f64,
        west: f64,
        north: f64,
        east: f64,
    ) -> PyResult<f64> {
        let area = Area::bounding_box(south, west, north, east).map_err(wrong_option)?;
        Ok(py.detach(|| self.density.survey().probability_in(&area)))
    }

    /// The probability of a country, of polygons, or of whatever `--within` takes.
    fn probability_in_area(&self, py: Python<'_>, text: &str) -> PyResult<f64> {
        let constraint = area(text)?;
        Ok(py.detach(|| self.density.survey().probability_in(constraint.area())))
    }

    /// Nats, over steradians.
    fn entropy_nats(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.density.survey().entropy_nats())
    }

    /// Kullback-Leibler divergence from another density, in nats.
    fn divergence_nats(&self, py: Python<'_>, other: PyRef<'_, Density>) -> f64 {
        let other = &other.density;
        py.detach(|| self.density.survey().divergence_from(other))
    }

    /// The smallest region that holds so much.
    fn region(&self, py: Python<'_>, level: f64) -> PyResult<Region> {
        check_level(level)?;
        Ok(py.detach(|| {
            let survey = self.density.survey();
            let region = survey.region(level);
            let outline = region.outline().map(|outline| outline.to_geojson());
            (level, region.probability(), region.area_km2(), outline)
        }))
    }

    /// Which places lie in the smallest region that holds so much.
    fn region_contains<'py>(
        &self,
        py: Python<'py>,
        level: f64,
        latitudes: PyReadonlyArray1<'py, f64>,
        longitudes: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        check_level(level)?;
        let places = places(&latitudes, &longitudes)?;
        let inside: Vec<bool> = py.detach(|| {
            let survey = self.density.survey();
            let region = survey.region(level);
            places.into_iter().map(|place| region.contains(place)).collect()
        });
        Ok(PyArray1::from_vec(py, inside))
    }

    /// Radius of the circle around a place that holds so much.
    fn radius_km(
        &self,
        py: Python<'_>,
        latitude: f64,
        longitude: f64,
        probability: f64,
    ) -> PyResult<f64> {
        check_level(probability)?;
        let place = LatLon::new(latitude, longitude).map_err(wrong_option)?;
        Ok(py.detach(|| self.density.survey().radius_km(place, probability)))
    }

    /// Peaks, the heaviest first.
    fn modes(&self, py: Python<'_>) -> Vec<Mode> {
        py.detach(|| {
            let survey = self.density.survey();
            let modes = survey.modes();
            let row = |mode: &locdiff_sphere::Mode| {
                (mode.place.latitude(), mode.place.longitude(), mode.mass, mode.log_density)
            };
            modes.modes.iter().map(row).collect()
        })
    }

    /// Width of the kernel that spread points, if there were any.
    fn kernel_km(&self) -> Option<f64> {
        self.density.kernel_km()
    }

    /// The kind of density and its size, for `repr`.
    fn describe(&self) -> String {
        self.density.to_string()
    }
}
