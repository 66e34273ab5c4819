use super::*;
use crate::fusion::Track;
use crate::library::{ContentHash, Kind, Prediction};

fn pins() -> Vec<Pin> {
    let at = |latitude, longitude| LatLon::new(latitude, longitude).unwrap();
    let time = Moment::from_iso("2024-05-01T12:00:00Z");
    vec![
        Pin {
            path: "a/<b> & \"c\", é\u{1}.jpg".to_owned(),
            place: at(-12.345_678_9, -0.000_000_1),
            source: PinSource::Estimate,
            time,
            radius_68_km: Some(12.345_67),
            confidence: Some(0.75),
            model: Some("earth-view 1".to_owned()),
        },
        Pin {
            path: "b.jpg".to_owned(),
            place: at(90.0, 179.5),
            source: PinSource::Gps,
            time: None,
            radius_68_km: None,
            confidence: None,
            model: None,
        },
    ]
}

#[test]
fn geojson_has_longitude_first() {
    let value: serde_json::Value = serde_json::from_str(&geojson(&pins())).unwrap();
    assert_eq!(value["features"][0]["geometry"]["coordinates"][1], -12.345_679);
    assert_eq!(value["features"][1]["geometry"]["coordinates"][0], 179.5);
    assert_eq!(value["features"][0]["properties"]["source"], "estimate");
    assert_eq!(value["features"][1]["properties"].get("model"), None);
}

#[test]
fn xml_is_well_formed_and_keeps_names() {
    for text in [kml(&pins()), gpx(&pins()), kml(&[]), gpx(&[])] {
        let document = roxmltree::Document::parse(&text).unwrap();
        let count = document
            .descendants()
            .filter(|node| matches!(node.tag_name().name(), "Placemark" | "wpt"))
            .count();
        assert!(count == 0 || text.contains("&lt;b&gt; &amp;"), "{text}");
    }
    assert!(kml(&pins()).contains("<coordinates>179.5,90</coordinates>"));
    assert!(kml(&pins()).contains("<coordinates>0,-12.345679</coordinates>"));
}

/// What is exported as GPX can be read as a track.
#[test]
fn gpx_is_read_back() {
    let track = Track::from_gpx(&gpx(&pins())).unwrap();
    assert_eq!(track.points().len(), 1);
    assert!(track.points()[0].place.distance_km(pins()[0].place) < 1e-3);
    assert_eq!(Some(track.points()[0].time_s), pins()[0].time.map(Moment::unix_s));
}

#[test]
fn csv_is_read_back() {
    let text = csv(&pins());
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<::csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(&rows[0][0], pins()[0].path);
    assert_eq!(&rows[0][4], "2024-05-01T12:00:00Z");
    assert_eq!(&rows[1][5], "");
}

#[test]
fn measurements_precede_decisions_and_estimates() {
    let at = |latitude| LatLon::new(latitude, 0.0).unwrap();
    let hash = ContentHash::of(b"x");
    let prediction = Prediction {
        hash,
        model: "m".to_owned(),
        version: "1".to_owned(),
        fused: false,
        calibrated: true,
        place: Some(at(3.0)),
        confidence: 0.5,
        radius_68_km: 1.0,
        radius_90_km: 2.0,
        candidates: Vec::new(),
        influences: Vec::new(),
        density: None,
        error: None,
    };
    let entry = |gps, decision| Entry {
        path: "a.jpg".to_owned(),
        hash,
        gps,
        time: None,
        camera: None,
        kind: Kind::Photo,
        prediction: Some(prediction.clone()),
        decision,
    };
    let pin =
        |gps, decision| Pin::of(&entry(gps, decision)).map(|p| (p.place.latitude(), p.source));
    assert_eq!(pin(Some(at(1.0)), Some(Decision::Moved(at(2.0)))), Some((1.0, PinSource::Gps)));
    assert_eq!(pin(None, Some(Decision::Moved(at(2.0)))), Some((2.0, PinSource::Hand)));
    assert_eq!(pin(None, Some(Decision::Accepted)), Some((3.0, PinSource::AcceptedEstimate)));
    assert_eq!(pin(None, None), Some((3.0, PinSource::Estimate)));
    assert_eq!(pin(None, Some(Decision::Rejected)), None);
}
