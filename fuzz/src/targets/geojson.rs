//! Areas of `--within`: GeoJSON, and words.

use std::f64::consts::PI;

use locdiff::Constraint;
use locdiff_sphere::{EARTH_RADIUS_KM, LatLon};

use crate::Target;

/// Rounding of sums of areas.
const SLACK: f64 = 1e-6;

pub(super) const TARGET: Target = Target {
    name: "geojson",
    reads: "GeoJSON and texts of `--within`",
    longest: 4 << 10,
    most_bytes: 64 << 20,
    run,
    seeds,
};

fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for constraint in [
        Constraint::from_geojson(text, "area").ok(),
        // Countries are looked up by similar names, which takes long for long texts that no option may have.
        Constraint::from_words(text.get(..80).unwrap_or(text)).ok(),
    ]
    .into_iter()
    .flatten()
    {
        let area = constraint.area();
        let whole = 4.0 * PI * EARTH_RADIUS_KM * EARTH_RADIUS_KM;
        let km2 = area.area_km2();
        assert!(km2 >= -SLACK && km2 <= whole * (1.0 + SLACK), "an area of {km2} km²");
        for (latitude, longitude) in
            [(90.0, 0.0), (-90.0, 0.0), (0.0, 180.0), (0.0, -180.0), (0.0, 0.0), (45.5, 10.25)]
        {
            let _ = area.contains(LatLon::new(latitude, longitude).expect("a place"));
        }
        let _ = constraint.to_string();
    }
}

fn seeds() -> Vec<Vec<u8>> {
    [
        r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[2,4],[4,4],[4,2],[2,2]]]}"#,
        r#"{"type":"Feature","properties":{"name":"x"},"geometry":{"type":"MultiPolygon","coordinates":[[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]],[[[-180,-90],[180,-90],[180,-80],[-180,-80],[-180,-90]]]]}}"#,
        r#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":null,"geometry":{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2,3]},{"type":"Polygon","coordinates":[[[0,80],[90,80],[180,80],[-90,80],[0,80]]]}]}}]}"#,
        "land",
        "Portugal",
        "12.3,45.6,2500km",
        "35,-10,60,30",
        "-90,-180,90,180",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}
