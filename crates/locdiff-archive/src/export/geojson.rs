//! GeoJSON: one point feature for each picture.

use serde_json::{Map, Value, json};

use super::Pin;

/// A feature collection. Coordinates are longitude, latitude.
pub fn geojson(pins: &[Pin]) -> String {
    let features: Vec<Value> = pins.iter().map(feature).collect();
    json!({ "type": "FeatureCollection", "features": features }).to_string()
}

fn feature(pin: &Pin) -> Value {
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    let mut properties = Map::new();
    properties.insert("path".to_owned(), json!(pin.path));
    properties.insert("source".to_owned(), json!(pin.source.name()));
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            properties.insert(name.to_owned(), value);
        }
    };
    add("time", pin.time.map(|time| json!(time.to_string())));
    add("radius_68_km", pin.radius_68_km.map(|km| json!((km * 1e3).round() / 1e3)));
    add("confidence", pin.confidence.map(|mass| json!(rounded(mass))));
    add("model", pin.model.as_ref().map(|model| json!(model)));
    json!({
        "type": "Feature",
        "geometry": {
            "type": "Point",
            "coordinates": [rounded(pin.place.longitude()), rounded(pin.place.latitude())],
        },
        "properties": properties,
    })
}
