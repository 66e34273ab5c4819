//! What the page sends and gets, as JSON, but for densities: those are `locdiff_sphere::DensityRecord`.

use locdiff_sphere::{Area, InvalidPlace, LatLon, MultiPolygon};
use serde::{Deserialize, Serialize};

use crate::Problem;

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

/// A corner of a polygon.
#[derive(Debug, Deserialize)]
pub(crate) struct CornerRecord {
    latitude: f64,
    longitude: f64,
}

impl CornerRecord {
    pub(crate) fn place(&self) -> Result<LatLon, InvalidPlace> {
        LatLon::new(self.latitude, self.longitude)
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
