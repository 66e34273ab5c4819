//! KML 2.2: one placemark for each picture, with its time.

use std::fmt::Write;

use super::xml_text::escaped;
use super::{Pin, degrees};

/// A KML document with one placemark per picture.
pub fn kml(pins: &[Pin]) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<kml xmlns=\"http://www.opengis.net/kml/2.2\"><Document>\n",
    );
    for pin in pins {
        let mut about = format!("{} ({})", pin.path, pin.source.name());
        if let Some(km) = pin.radius_68_km {
            // Into a text: it can't fail.
            let _ = write!(about, ", 68 % within {km:.1} km");
        }
        if let Some(model) = &pin.model {
            let _ = write!(about, ", model {model}");
        }
        let time = pin.time.map(|time| format!("<TimeStamp><when>{time}</when></TimeStamp>"));
        let _ = writeln!(
            text,
            "<Placemark><name>{}</name><description>{}</description>{}<Point><coordinates>{},{}</coordinates></Point></Placemark>",
            escaped(pin.name()),
            escaped(&about),
            time.unwrap_or_default(),
            degrees(pin.place.longitude()),
            degrees(pin.place.latitude()),
        );
    }
    text.push_str("</Document></kml>\n");
    text
}
