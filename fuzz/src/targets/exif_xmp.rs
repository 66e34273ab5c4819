//! Metadata of pictures and sidecars, and tracks: read, and places written into them.

use locdiff::photo::{ExifFacts, Photo, ReadOptions, gps_of};
use locdiff_archive::Moment;
use locdiff_archive::fusion::Track;
use locdiff_archive::tags::{
    PlaceTag, Replace, XmpFacts, edited_sidecar, embedded_xmp, has_place, new_sidecar,
    place_in_sidecar, with_place,
};
use locdiff_sphere::LatLon;

use crate::{Target, contents};

const LONGEST: usize = 8 << 10;

pub(super) const TARGET: Target = Target {
    name: "exif_xmp",
    reads: "Exif and XMP of pictures, XMP sidecars, GPX tracks",
    longest: LONGEST,
    most_bytes: 64 << 20,
    run,
    seeds,
};

fn tag() -> PlaceTag {
    PlaceTag::chosen(LatLon::new(-33.8568, 151.2153).expect("a place"))
}

fn run(input: &[u8]) {
    let facts = ExifFacts::of(input);
    assert_eq!(facts.gps, gps_of(input));
    if let Some((latitude, longitude)) = facts.gps {
        LatLon::new(latitude, longitude).expect("a place that is read is a place");
    }
    if let Some(time) = &facts.time {
        let _ = Moment::from_exif(time, facts.time_fraction.as_deref(), facts.time_zone.as_deref());
    }
    if let Some(text) = embedded_xmp(input) {
        let _ = XmpFacts::of(text);
    }
    if let Ok(text) = std::str::from_utf8(input) {
        check_text(text);
    }
    check_place(input);
}

fn check_text(text: &str) {
    let _ = Moment::from_iso(text);
    let _ = Track::from_gpx(text);
    if let Ok(facts) = XmpFacts::of(text) {
        assert!(facts.place.is_none() || facts.has_coordinates);
    }
    for replace in [Replace::Nothing, Replace::Own, Replace::Everything] {
        let Ok(edited) = edited_sidecar(text, &tag(), replace) else { continue };
        let place = place_in_sidecar(&edited).expect("what was written is XML");
        assert!(place.is_some_and(|place| place.distance_km(tag().place) < 0.001));
    }
}

/// A place that was written can be read, and the picture stays as it was.
fn check_place(input: &[u8]) {
    let before = has_place(input);
    let Ok(written) = with_place(input, &tag(), Replace::Everything) else { return };
    assert!(before.is_ok());
    assert!(has_place(&written).is_ok_and(|has| has), "the place that was written is not there");
    if before.is_ok_and(|before| before) {
        assert!(with_place(input, &tag(), Replace::Nothing).is_err(), "a place was overwritten");
    }
    let options = ReadOptions { max_pixels: 1 << 16, max_time: None, ..ReadOptions::default() };
    if let Ok(photo) = Photo::decode(input, &options) {
        let again = Photo::decode(&written, &options);
        assert!(again.is_ok_and(|again| again == photo), "the picture has changed");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = contents("parity/photo/files", LONGEST, |path| {
        let name = path.to_string_lossy();
        ["gps-", "orientation-", "adobe.tif", "rgb.png"].iter().any(|part| name.contains(part))
    });
    let with_places: Vec<Vec<u8>> = seeds
        .iter()
        .filter_map(|seed| with_place(seed, &tag(), Replace::Everything).ok())
        .collect();
    seeds.extend(with_places);
    seeds.push(new_sidecar(&tag()).into_bytes());
    let sidecar = r#"<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:e="http://ns.adobe.com/exif/1.0/" e:GPSLatitude="48,51.5N"><e:GPSLongitude>2,21.1E</e:GPSLongitude>
<e:DateTimeOriginal>2024-05-01T12:00:00.5+02:00</e:DateTimeOriginal></rdf:Description></rdf:RDF></x:xmpmeta>"#;
    seeds.push(sidecar.into());
    let track = r#"<gpx><trk><trkseg><trkpt lat="48.8" lon="2.3"><time>2024-05-01T12:00:00Z</time></trkpt>
<wpt lat="-1" lon="179.5"><time>2024-05-01T12:00:05.25+02:00</time></wpt></trkseg></trk></gpx>"#;
    seeds.push(track.into());
    seeds
}
