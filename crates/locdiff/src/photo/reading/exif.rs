//! The facts in a picture's Exif data that matter here: which way is up, where and when the camera recorded to be,
//! and which camera it was.

use std::io::Cursor;

use exif::{Context, Exif, In, Reader, Tag, Value};

use super::jpeg_outline::before_scans;

/// Latitude and longitude in degrees that the camera wrote into a picture (JPEG, PNG, WebP,
/// TIFF, HEIC or AVIF).
///
/// `None` if there is no such thing, or it can't be true: numbers out of range, a position
/// that the camera itself calls void, or exactly 0° N 0° E, which is what a receiver without a
/// fix writes.
pub fn gps_of(bytes: &[u8]) -> Option<(f64, f64)> {
    gps(&exif_of(bytes)?)
}

fn gps(exif: &Exif) -> Option<(f64, f64)> {
    if text(exif, Tag::GPSStatus).is_some_and(|status| status.starts_with(b"V")) {
        return None;
    }
    let latitude = angle(exif, Tag::GPSLatitude, Tag::GPSLatitudeRef, b"NS", 90.0)?;
    let longitude = angle(exif, Tag::GPSLongitude, Tag::GPSLongitudeRef, b"EW", 180.0)?;
    (latitude != 0.0 || longitude != 0.0).then_some((latitude, longitude))
}

/// What a camera wrote about a picture. Texts are as they stand there, without blanks around them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExifFacts {
    /// As [`gps_of`].
    pub gps: Option<(f64, f64)>,
    /// How that position was found: `GPS`, `CELLID`, or what a program wrote.
    pub gps_method: Option<String>,
    /// When it was taken: `2024:05:01 12:00:00`.
    pub time: Option<String>,
    /// Digits of that second's fraction.
    pub time_fraction: Option<String>,
    /// The zone of that time: `+02:00`. Many cameras record none.
    pub time_zone: Option<String>,
    /// Make and model.
    pub camera: Option<String>,
}

impl ExifFacts {
    /// Of the bytes of a file; empty if there is no Exif data in it.
    pub fn of(bytes: &[u8]) -> ExifFacts {
        let Some(exif) = exif_of(bytes) else { return ExifFacts::default() };
        let word = |tag| {
            let text =
                String::from_utf8_lossy(text(&exif, tag)?).trim_matches(['\0', ' ']).to_owned();
            (!text.is_empty()).then_some(text)
        };
        // When it was taken, or when a film or print was scanned. Not when the file was last edited.
        let taken = [
            (Tag::DateTimeOriginal, Tag::SubSecTimeOriginal, Tag::OffsetTimeOriginal),
            (Tag::DateTimeDigitized, Tag::SubSecTimeDigitized, Tag::OffsetTimeDigitized),
        ];
        let taken = taken
            .into_iter()
            .find_map(|(time, fraction, zone)| Some((word(time)?, word(fraction), word(zone))));
        let (time, time_fraction, time_zone) = match taken {
            Some((time, fraction, zone)) => (Some(time), fraction, zone),
            None => (None, None, None),
        };
        let camera = match (word(Tag::Make), word(Tag::Model)) {
            // Most models begin with the make.
            (Some(make), Some(model)) if !model.starts_with(&make) => {
                Some(format!("{make} {model}"))
            }
            (make, model) => model.or(make),
        };
        let gps_method = exif.get_field(Tag::GPSProcessingMethod, In::PRIMARY).and_then(|field| {
            let Value::Undefined(bytes, _) = &field.value else { return None };
            // Eight bytes name the character code.
            let text = String::from_utf8_lossy(bytes.get(8..)?);
            Some(text.trim_matches(['\0', ' ']).to_owned())
        });
        ExifFacts { gps: gps(&exif), gps_method, time, time_fraction, time_zone, camera }
    }
}

/// The orientation that Exif states, from 1 to 8; 1 (upright) if it states none.
pub(super) fn orientation_of(bytes: &[u8]) -> u8 {
    let orientation = exif_of(bytes)
        .and_then(|exif| exif.get_field(Tag::Orientation, In::PRIMARY)?.value.get_uint(0));
    orientation
        .and_then(|value| u8::try_from(value).ok())
        .filter(|v| (1..=8).contains(v))
        .unwrap_or(1)
}

/// The ICC profile of a TIFF, which the crate `tiff` doesn't give away.
pub(super) fn tiff_profile_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let exif = exif_of(bytes)?;
    match &exif.get_field(Tag(Context::Tiff, 34675), In::PRIMARY)?.value {
        Value::Undefined(profile, _) | Value::Byte(profile) => Some(profile.clone()),
        _ => None,
    }
}

/// Whether a TIFF is a camera's raw file, whose first picture is a thumbnail.
pub(super) fn is_digital_negative(bytes: &[u8]) -> bool {
    let version = Tag(Context::Tiff, 50706);
    exif_of(bytes).is_some_and(|exif| exif.get_field(version, In::PRIMARY).is_some())
}

fn exif_of(bytes: &[u8]) -> Option<Exif> {
    // The reader would go on through all pixels, and find what no other program does.
    let bytes = before_scans(bytes);
    // Makers' notes are often broken; the fields that aren't are as good as ever.
    Reader::new()
        .continue_on_error(true)
        .read_from_container(&mut Cursor::new(bytes))
        .or_else(|error| error.distill_partial_result(|_| ()))
        .ok()
}

fn text(exif: &Exif, tag: Tag) -> Option<&[u8]> {
    match &exif.get_field(tag, In::PRIMARY)?.value {
        Value::Ascii(lines) => lines.first().map(Vec::as_slice),
        _ => None,
    }
}

/// Degrees, minutes and seconds with their direction; the first letter is the positive one.
fn angle(exif: &Exif, tag: Tag, direction: Tag, letters: &[u8; 2], limit: f64) -> Option<f64> {
    let Value::Rational(parts) = &exif.get_field(tag, In::PRIMARY)?.value else {
        return None;
    };
    let part = |index: usize| match parts.get(index) {
        // Some write only degrees, or 0/0 for seconds they don't have.
        None => Some(0.0),
        Some(part) if index > 0 && part.num == 0 => Some(0.0),
        Some(part) => (part.denom != 0).then(|| part.to_f64()),
    };
    let (degrees, minutes, seconds) = (part(0)?, part(1)?, part(2)?);
    if parts.is_empty() || minutes >= 60.0 || seconds >= 60.0 {
        return None;
    }
    let size = degrees + minutes / 60.0 + seconds / 3600.0;
    let letter = text(exif, direction)?.first()?.to_ascii_uppercase();
    let sign = match letters.iter().position(|&known| known == letter)? {
        0 => 1.0,
        _ => -1.0,
    };
    (size <= limit).then_some(sign * size)
}
