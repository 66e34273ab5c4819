//! What is read from a file without a model: place, time, camera, and whether it is a photo.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use locdiff::Photo;
use locdiff::photo::{ExifFacts, ReadOptions};
use locdiff_archive::Moment;
use locdiff_archive::graphics::{Thumbnail, kind_of};
use locdiff_archive::library::{Facts, Kind, Scanned};
use locdiff_archive::tags::{XmpFacts, embedded_xmp, has_place, is_ours, sidecars_of};
use locdiff_sphere::LatLon;

use super::walking::Found;

/// Larger files are not read.
const MAX_BYTES: u64 = 1 << 30;
/// Pixels along the side of the thumbnail for the rule for graphics.
const SIDE: u32 = 96;

/// Reads a file. Times without a zone are of `zone`.
pub(super) fn read(found: &Found, zone: &str) -> io::Result<Scanned> {
    if found.size > MAX_BYTES {
        return Err(io::Error::other("larger than 1 GiB"));
    }
    let bytes = fs::read(&found.path)?;
    let exif = ExifFacts::of(&bytes);
    let claims = claims(&found.path, &bytes, &exif);
    let (time, fraction) = (exif.time.as_deref(), exif.time_fraction.as_deref());
    let taken = |zone: &str| Moment::from_exif(time?, fraction, Some(zone));
    let mut facts = Facts::of_bytes(&found.name, found.modified_ns, &bytes);
    facts.size = found.size;
    // What this program wrote was not measured.
    facts.gps = claims.iter().filter(|claim| !claim.is_ours()).find_map(|claim| claim.place);
    facts.time = exif.time_zone.as_deref().and_then(taken).or_else(|| taken(zone));
    facts.time = facts.time.or_else(|| claims.iter().find_map(|claim| claim.time));
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

/// Place and time from one part of a picture's metadata.
pub(super) struct Claim {
    /// The sidecar; none if it is inside of the picture.
    pub(super) sidecar: Option<PathBuf>,
    /// Whether there are coordinates. They may make no place, or the camera calls them void.
    pub(super) has_coordinates: bool,
    pub(super) place: Option<LatLon>,
    method: Option<String>,
    time: Option<Moment>,
}

impl Claim {
    /// Whether this program wrote the place.
    pub(super) fn is_ours(&self) -> bool {
        self.place.zip(self.method.as_deref()).is_some_and(|(place, method)| is_ours(place, method))
    }

    fn of_xmp(sidecar: Option<PathBuf>, xmp: XmpFacts) -> Claim {
        let XmpFacts { place, has_coordinates, method, time } = xmp;
        Claim { sidecar, has_coordinates, place, method, time }
    }
}

/// The sidecars, the Exif data and the XMP of a picture: what somebody wrote beside it later counts more.
pub(super) fn claims(picture: &Path, bytes: &[u8], exif: &ExifFacts) -> Vec<Claim> {
    // A damaged sidecar is ignored here; writing a place into it reports the damage.
    let beside = sidecars_of(picture).into_iter().filter_map(|path| {
        // Pipes would be waited for, and devices may have no end.
        fs::metadata(&path).ok().filter(|file| file.is_file() && file.len() <= MAX_BYTES)?;
        let xmp = XmpFacts::of(&fs::read_to_string(&path).ok()?).ok()?;
        Some(Claim::of_xmp(Some(path), xmp))
    });
    let place = exif.gps.and_then(|(latitude, longitude)| LatLon::new(latitude, longitude).ok());
    let inside = Claim {
        sidecar: None,
        has_coordinates: place.is_some() || has_place(bytes).unwrap_or(false),
        place,
        method: exif.gps_method.clone(),
        time: None,
    };
    let embedded = embedded_xmp(bytes).and_then(|packet| XmpFacts::of(packet).ok());
    let embedded = embedded.map(|xmp| Claim::of_xmp(None, xmp));
    beside.chain([inside]).chain(embedded).collect()
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
