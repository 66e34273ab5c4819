//! What the page sends and gets, as JSON.

use locdiff_sphere::{Area, Coefficients, Density, Kernel, LatLon, MultiPolygon, PointMasses};
use serde::{Deserialize, Serialize};

use crate::Problem;

/// A density as the server writes it.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum DensityRecord {
    Exponential { max_degree: usize, coefficients: Vec<f64> },
    Points { kernel_km: f64, latitudes: Vec<f64>, longitudes: Vec<f64>, masses: Vec<f64> },
}

/// exp of larger functions leaves f64; no model that means anything comes near.
const LARGEST_COEFFICIENT: f64 = 1e5;

impl DensityRecord {
    pub(crate) fn density(self) -> Result<Density, Problem> {
        match self {
            DensityRecord::Exponential { max_degree, coefficients } => {
                let coefficients = Coefficients::from_vec(coefficients)?;
                if coefficients.max_degree() != max_degree {
                    let count = coefficients.as_slice().len();
                    return Err(Problem::Degree { max_degree, count });
                }
                let largest = coefficients.as_slice().iter().fold(0.0_f64, |a, b| a.max(b.abs()));
                if largest > LARGEST_COEFFICIENT {
                    return Err(Problem::Large(largest));
                }
                Ok(Density::exponential(&coefficients))
            }
            DensityRecord::Points { kernel_km, latitudes, longitudes, masses } => {
                if latitudes.len() != longitudes.len() {
                    let (latitudes, longitudes) = (latitudes.len(), longitudes.len());
                    return Err(Problem::Lengths { latitudes, longitudes });
                }
                let pairs = latitudes.iter().zip(&longitudes);
                let places: Result<Vec<LatLon>, _> =
                    pairs.map(|(latitude, longitude)| LatLon::new(*latitude, *longitude)).collect();
                Ok(PointMasses::new(places?, &masses)?.spread(Kernel::new(kernel_km)?))
            }
        }
    }
}

/// A part of the Earth. Polygons are those of a GeoJSON `MultiPolygon`: longitude first.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum AreaRecord {
    Circle { latitude: f64, longitude: f64, radius_km: f64 },
    Box { south: f64, west: f64, north: f64, east: f64 },
    Polygons { coordinates: Vec<Vec<Vec<[f64; 2]>>> },
}

impl AreaRecord {
    pub(crate) fn area(self) -> Result<Area, Problem> {
        Ok(match self {
            AreaRecord::Circle { latitude, longitude, radius_km } => {
                Area::circle(LatLon::new(latitude, longitude)?, radius_km)?
            }
            AreaRecord::Box { south, west, north, east } => {
                Area::bounding_box(south, west, north, east)?
            }
            AreaRecord::Polygons { coordinates } => Area::polygons(MultiPolygon::new(coordinates)?),
        })
    }
}

/// The numbers beside the map: the same as the program's, but for the names of places.
#[derive(Debug, Serialize)]
pub(crate) struct SummaryRecord {
    pub(crate) candidates: Vec<CandidateRecord>,
    pub(crate) radius_50_km: f64,
    pub(crate) radius_90_km: f64,
    pub(crate) area_50_km2: f64,
    pub(crate) area_90_km2: f64,
    pub(crate) kernel_km: Option<f64>,
    #[serde(flatten)]
    pub(crate) scale: ScaleRecord,
}

/// What is needed to draw a density, and known sooner than all else.
#[derive(Debug, Serialize)]
pub(crate) struct ScaleRecord {
    /// The largest log-density: the top of the colour scale.
    pub(crate) top_log_density: f64,
    /// What of the whole density lies in the area that it was restricted to; 1 without one.
    pub(crate) share: f64,
    pub(crate) normaliser_error: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct CandidateRecord {
    pub(crate) latitude: f64,
    pub(crate) longitude: f64,
    pub(crate) mass: f64,
    pub(crate) radius_km: f64,
}
