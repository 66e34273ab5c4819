//! CSV: one row for each picture, with a header.

use super::{Pin, degrees};

const COLUMNS: [&str; 8] =
    ["path", "latitude", "longitude", "source", "time", "radius_68_km", "confidence", "model"];

/// One line per picture, with a header.
pub fn csv(pins: &[Pin]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Into memory: it can't fail.
    let _ = writer.write_record(COLUMNS);
    for pin in pins {
        let number = |number: Option<f64>, digits: usize| {
            number.map(|number| format!("{number:.digits$}")).unwrap_or_default()
        };
        let _ = writer.write_record([
            pin.path.clone(),
            degrees(pin.place.latitude()),
            degrees(pin.place.longitude()),
            pin.source.name().to_owned(),
            pin.time.map(|time| time.to_string()).unwrap_or_default(),
            number(pin.radius_68_km, 3),
            number(pin.confidence, 6),
            pin.model.clone().unwrap_or_default(),
        ]);
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
