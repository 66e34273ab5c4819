//! Tracks of GPS receivers, in GPX 1.0 and 1.1, interpolated at the time of a picture.

use locdiff_sphere::{InvalidPlace, LatLon};

use super::Sighting;
use crate::moment::Moment;

/// Places from a receiver are right to about this, per axis.
const RECEIVER_KM: f64 = 0.01;
/// Between two points the way is not straight: a place in the middle is off by this part of their distance.
const DETOUR: f64 = 0.15;

/// Points with times, the earliest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    points: Vec<TrackPoint>,
}

/// Where a receiver was, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrackPoint {
    /// Seconds since 1970, UTC.
    pub time_s: f64,
    /// Position of the receiver at that time.
    pub place: LatLon,
}

/// Why a text is not a track.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTrack {
    /// The text is not XML.
    #[error("the GPX file is not valid XML: {0}")]
    Xml(#[from] roxmltree::Error),
    /// The root element is another.
    #[error("the root element is <{0}>, a GPX file has <gpx>")]
    Root(String),
    /// A coordinate is missing or not a number.
    #[error("a track point in line {line} has no valid `{attribute}`")]
    Coordinate {
        /// Line of the point in the file.
        line: u32,
        /// `lat` or `lon`.
        attribute: &'static str,
    },
    /// Coordinates are out of range.
    #[error("a track point in line {line}: {source}")]
    Place {
        /// Line of the point in the file.
        line: u32,
        /// What is wrong.
        source: InvalidPlace,
    },
    /// A time is not of the form 2024-05-01T12:00:00Z.
    #[error("a track point in line {line} has the time `{text}`: write 2024-05-01T12:00:00Z")]
    Time {
        /// Line of the time in the file.
        line: u32,
        /// The text that is not a time.
        text: String,
    },
    /// No point has a time.
    #[error("the GPX file has no track point with a time")]
    Empty,
}

impl Track {
    /// Points in any order.
    pub fn new(mut points: Vec<TrackPoint>) -> Result<Track, InvalidTrack> {
        if points.is_empty() {
            return Err(InvalidTrack::Empty);
        }
        points.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
        Ok(Track { points })
    }

    /// The track points and waypoints of a GPX file that have a time.
    pub fn from_gpx(text: &str) -> Result<Track, InvalidTrack> {
        let document = roxmltree::Document::parse(text)?;
        let root = document.root_element().tag_name().name();
        if root != "gpx" {
            return Err(InvalidTrack::Root(root.to_owned()));
        }
        let mut points = Vec::new();
        for node in document.descendants() {
            if !matches!(node.tag_name().name(), "trkpt" | "wpt") {
                continue;
            }
            let line = document.text_pos_at(node.range().start).row;
            let degrees = |attribute: &'static str| {
                let number = node.attribute(attribute).and_then(|text| text.trim().parse().ok());
                number.ok_or(InvalidTrack::Coordinate { line, attribute })
            };
            let place = LatLon::new(degrees("lat")?, degrees("lon")?)
                .map_err(|source| InvalidTrack::Place { line, source })?;
            let time = node.children().find(|child| child.tag_name().name() == "time");
            let Some(text) = time.and_then(|time| time.text()) else { continue };
            let moment = Moment::from_iso(text.trim())
                .ok_or_else(|| InvalidTrack::Time { line, text: text.trim().to_owned() })?;
            points.push(TrackPoint { time_s: moment.unix_s(), place });
        }
        Track::new(points)
    }

    /// The points, the earliest first.
    pub fn points(&self) -> &[TrackPoint] {
        &self.points
    }

    /// The place at a time between two points that are at most `gap_s` seconds apart, with its standard
    /// deviation in km.
    pub fn at(&self, time_s: f64, gap_s: f64) -> Option<(LatLon, f64)> {
        let next = self.points.partition_point(|point| point.time_s < time_s);
        let after = self.points.get(next)?;
        if after.time_s == time_s {
            return Some((after.place, RECEIVER_KM));
        }
        let before = self.points.get(next.checked_sub(1)?)?;
        let between = after.time_s - before.time_s;
        if between > gap_s {
            return None;
        }
        let part = (time_s - before.time_s) / between;
        let distance = before.place.distance_km(after.place);
        let place = before.place.destination(before.place.bearing_to(after.place), part * distance);
        // Largest in the middle, none at the ends.
        let detour = DETOUR * distance * 2.0 * (part * (1.0 - part)).sqrt();
        Some((place, RECEIVER_KM.hypot(detour)))
    }

    /// The place at a time, as a sighting to be fused.
    pub fn sighting(&self, time_s: f64, gap_s: f64) -> Option<Sighting> {
        let (place, error_km) = self.at(time_s, gap_s)?;
        Some(Sighting::known(time_s, place, error_km))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPX: &str = r#"<?xml version="1.0"?>
<gpx version="1.1" creator="test" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>
<trkpt lat="0.0" lon="179.9"><ele>4</ele><time>2024-05-01T12:00:00Z</time></trkpt>
<trkpt lat="0.0" lon="-179.9"><time>2024-05-01T14:10:00+02:00</time></trkpt>
<trkpt lat="1.0" lon="0"/>
</trkseg></trk></gpx>"#;

    #[test]
    fn a_track_is_interpolated_across_the_antimeridian() {
        let track = Track::from_gpx(GPX).unwrap();
        let [first, second] = track.points() else { panic!("{track:?}") };
        assert_eq!(second.time_s - first.time_s, 600.0);
        let (place, error_km) = track.at(first.time_s + 300.0, 3600.0).unwrap();
        assert!(place.distance_km(LatLon::new(0.0, 180.0).unwrap()) < 1e-6);
        assert!((error_km - 0.15 * 22.24).abs() < 0.02, "{error_km}");
        assert_eq!(track.at(second.time_s, 3600.0).unwrap().0, second.place);
        assert_eq!(track.at(first.time_s + 300.0, 100.0), None);
        assert_eq!(track.at(first.time_s - 1.0, 3600.0), None);
    }

    #[test]
    fn errors_name_the_line() {
        let cases = [
            ("<kml/>", "<kml>"),
            ("<gpx><trkpt lat='1'/></gpx>", "`lon`"),
            ("<gpx>\n<trkpt lat='91' lon='0'/></gpx>", "line 2"),
            ("<gpx><trkpt lat='1' lon='0'><time>noon</time></trkpt></gpx>", "`noon`"),
            ("<gpx/>", "no track point"),
            ("<gpx", "XML"),
        ];
        for (text, part) in cases {
            let error = Track::from_gpx(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
