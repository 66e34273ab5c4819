//! Pictures with places as files for maps: GeoJSON (RFC 7946), KML 2.2, GPX 1.1 and CSV.
//!
//! What is exported of a picture is where it is: GPS if the camera wrote it, else the user's pin, else the prediction unless
//! the user rejected it. [`Pin::source`] tells which, so that an estimate never looks like a measurement.

mod csv_table;
mod geojson;
mod gpx;
mod kml;
mod xml_text;

use locdiff_sphere::LatLon;

pub use csv_table::csv;
pub use geojson::geojson;
pub use gpx::gpx;
pub use kml::kml;

use crate::Moment;
use crate::library::{Decision, Entry};

/// A picture on a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Pin {
    /// Path of the picture, as the library stores it.
    pub path: String,
    /// The accepted, measured or estimated place: `source` tells which.
    pub place: LatLon,
    /// Whether the place was measured, accepted or estimated.
    pub source: PinSource,
    /// When the picture was taken.
    pub time: Option<Moment>,
    /// A circle of this radius contains the truth with 68 %, if the place is an estimate.
    pub radius_68_km: Option<f64>,
    /// The probability, or score, of the best candidate, if the place is an estimate.
    pub confidence: Option<f64>,
    /// The model and its version, if the place is an estimate.
    pub model: Option<String>,
}

/// How a place is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PinSource {
    /// The camera, or a sidecar of another program.
    Gps,
    /// The user put the pin there.
    Hand,
    /// An estimate that the user accepted.
    AcceptedEstimate,
    /// An estimate that nobody looked at.
    Estimate,
}

impl PinSource {
    /// As it is written into files.
    pub fn name(self) -> &'static str {
        match self {
            PinSource::Gps => "gps",
            PinSource::Hand => "hand",
            PinSource::AcceptedEstimate => "accepted estimate",
            PinSource::Estimate => "estimate",
        }
    }
}

impl Pin {
    /// Where a picture is, if that is known.
    pub fn of(entry: &Entry) -> Option<Pin> {
        let (place, source) = match (entry.gps, entry.decision) {
            (Some(place), _) => (place, PinSource::Gps),
            (None, Some(Decision::Moved(place))) => (place, PinSource::Hand),
            (None, Some(Decision::Accepted)) => (entry.place()?, PinSource::AcceptedEstimate),
            (None, _) => (entry.place()?, PinSource::Estimate),
        };
        let estimated = matches!(source, PinSource::AcceptedEstimate | PinSource::Estimate);
        let prediction = entry.prediction.as_ref().filter(|_| estimated);
        Some(Pin {
            path: entry.path.clone(),
            place,
            source,
            time: entry.time,
            radius_68_km: prediction.map(|prediction| prediction.radius_68_km),
            confidence: prediction.map(|prediction| prediction.confidence),
            model: prediction.map(|p| format!("{} {}", p.model, p.version)),
        })
    }

    /// The file's name without its folders.
    fn name(&self) -> &str {
        self.path.rsplit(['/', '\\']).next().unwrap_or(&self.path)
    }
}

/// Degrees with as many digits as mean something: a millionth is 11 cm.
fn degrees(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests;
