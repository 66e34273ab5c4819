//! What a file tells without a model: place, time, camera, and whether it is a photo.

use std::fs;
use std::io;

use locdiff::Photo;
use locdiff::photo::{ExifFacts, ReadOptions};
use locdiff_archive::Moment;
use locdiff_archive::graphics::{Thumbnail, kind_of};
use locdiff_archive::library::{Facts, Kind, Scanned};
use locdiff_archive::tags::{XmpFacts, embedded_xmp, is_our_method};
use locdiff_sphere::LatLon;

use super::walking::{Found, sidecars};

/// Larger files are not read.
const MAX_BYTES: u64 = 1 << 30;
/// Pixels along the side of the thumbnail that the rule for graphics looks at.
const SIDE: u32 = 96;

/// Reads a file. Times without a zone are of `zone`.
pub(super) fn read(found: &Found, zone: &str) -> io::Result<Scanned> {
    if found.size > MAX_BYTES {
        return Err(io::Error::other("larger than 1 GiB"));
    }
    let bytes = fs::read(&found.path)?;
    let exif = ExifFacts::of(&bytes);
    let beside = sidecars(&found.path).into_iter().find_map(|path| {
        // A sidecar that is damaged says nothing; writing a place into it will tell.
        XmpFacts::of(&fs::read_to_string(path).ok()?).ok()
    });
    let inside = embedded_xmp(&bytes).and_then(|packet| XmpFacts::of(packet).ok());
    let exif_place = exif.gps.and_then(|(lat, lon)| LatLon::new(lat, lon).ok());
    let xmp = [beside, inside].map(Option::unwrap_or_default);
    // What somebody wrote beside a picture later counts more. What this program wrote was not measured.
    let places = [
        (xmp[0].place, &xmp[0].method),
        (exif_place, &exif.gps_method),
        (xmp[1].place, &xmp[1].method),
    ];
    let measured = |(place, method): (Option<LatLon>, &Option<String>)| {
        place.filter(|_| !method.as_deref().is_some_and(is_our_method))
    };
    let (time, fraction) = (exif.time.as_deref(), exif.time_fraction.as_deref());
    let taken = |zone: &str| Moment::from_exif(time?, fraction, Some(zone));
    let mut facts = Facts::of_bytes(&found.name, found.modified_ns, &bytes);
    facts.size = found.size;
    facts.gps = places.into_iter().find_map(measured);
    facts.time = exif.time_zone.as_deref().and_then(taken).or_else(|| taken(zone));
    facts.time = facts.time.or(xmp[0].time).or(xmp[1].time);
    facts.camera = exif.camera;
    let error = match kind(&bytes, &facts) {
        Ok(kind) => {
            facts.kind = kind;
            None
        }
        Err(reason) => Some(reason),
    };
    Ok(Scanned { facts, error })
}

/// Photo or graphic; or why it can't be read.
fn kind(bytes: &[u8], facts: &Facts) -> Result<Kind, String> {
    let options = ReadOptions { fast_decode: Some(2 * SIDE), ..ReadOptions::default() };
    Photo::examine(bytes, &options).map_err(|error| error.reason())?;
    // What a camera wrote into is a photo, whatever it looks like: no need to decode it.
    if facts.camera.is_some() || facts.gps.is_some() {
        return Ok(Kind::Photo);
    }
    let photo = Photo::decode(bytes, &options).map_err(|error| error.reason())?;
    let side = SIDE as usize;
    let thumbnail = Thumbnail::new(side, side, &photo.square(SIDE));
    Ok(thumbnail.map_or(Kind::Photo, |thumbnail| kind_of(&thumbnail, false)))
}
