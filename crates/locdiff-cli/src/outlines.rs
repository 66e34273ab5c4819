//! Polygons as outlines on a map.

use locdiff_map::Outline;
use locdiff_sphere::{LatLon, MultiPolygon};

/// The rings of all polygons.
pub(crate) fn outline(polygons: &MultiPolygon) -> anyhow::Result<Outline> {
    let rings: Result<Vec<Vec<LatLon>>, _> = polygons
        .coordinates()
        .iter()
        .flatten()
        .map(|ring| {
            ring.iter().map(|[longitude, latitude]| LatLon::new(*latitude, *longitude)).collect()
        })
        .collect();
    Ok(Outline::new(rings?))
}
