//! Real photographs from the station, never trained on.

use std::path::PathBuf;

use anyhow::{Context, Result};
use locdiff_sphere::LatLon;

/// Pixels of the camera's sensor are 36 mm wide altogether; a square picture is cut from 24 mm.
const SENSOR_MM: f64 = 24.0;
const ALTITUDE_KM: f64 = 415.0;

pub struct Photograph {
    pub path: PathBuf,
    pub truth: LatLon,
    pub below: LatLon,
    pub tilt_degrees: f64,
    pub focal_length_mm: f64,
}

impl Photograph {
    /// About how wide the ground is that it shows.
    pub fn width_km(&self) -> f64 {
        let along = self.below.distance_km(self.truth);
        along.hypot(ALTITUDE_KM) * SENSOR_MM / self.focal_length_mm
    }
}

pub fn photographs() -> Result<Vec<Photograph>> {
    let data = std::env::var("LOCDIFF_DATA").context("LOCDIFF_DATA")?;
    let folder = PathBuf::from(data).join("astronaut");
    let table = std::fs::read_to_string(folder.join("photos.csv"))?;
    table
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let number =
                |at: usize| -> Result<f64> { Ok(fields.get(at).context("a field")?.parse()?) };
            Ok(Photograph {
                path: folder.join(fields[0]),
                truth: LatLon::new(number(1)?, number(2)?)?,
                below: LatLon::new(number(3)?, number(4)?)?,
                tilt_degrees: number(5)?,
                focal_length_mm: number(6)?,
            })
        })
        .collect()
}
