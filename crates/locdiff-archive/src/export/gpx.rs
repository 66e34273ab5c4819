//! GPX 1.1: one waypoint for each picture.

use std::fmt::Write;

use super::xml_text::escaped;
use super::{Pin, degrees};

/// A GPX document with one waypoint per picture.
pub fn gpx(pins: &[Pin]) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <gpx version=\"1.1\" creator=\"locdiff\" xmlns=\"http://www.topografix.com/GPX/1/1\">\n",
    );
    for pin in pins {
        let time = pin.time.map(|time| format!("<time>{time}</time>")).unwrap_or_default();
        // Into a text: it can't fail.
        let _ = writeln!(
            text,
            "<wpt lat=\"{}\" lon=\"{}\">{time}<name>{}</name><desc>{}</desc><src>{}</src></wpt>",
            degrees(pin.place.latitude()),
            degrees(pin.place.longitude()),
            escaped(pin.name()),
            escaped(&pin.path),
            pin.source.name(),
        );
    }
    text.push_str("</gpx>\n");
    text
}
