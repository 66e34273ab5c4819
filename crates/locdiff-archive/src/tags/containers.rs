//! Exif in JPEG and PNG files: found, replaced or inserted. All other bytes stay as they are.

use std::ops::Range;

use super::tiff;
use super::{PlaceTag, Replace, TagError};

const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const EXIF_HEADER: &[u8] = b"Exif\0\0";
/// A JPEG segment stores its own length in 16 bits.
const LONGEST_SEGMENT: usize = 65_535;

/// The file with a place in its Exif data. One that it has already and that may not be replaced is an error.
pub fn with_place(file: &[u8], tag: &PlaceTag, replace: Replace) -> Result<Vec<u8>, TagError> {
    let container = Container::of(file)?;
    let structure = match container.exif(file)? {
        Some(found) => tiff::with_place(&file[found.tiff], tag, replace)?,
        None => tiff::new(tag)?,
    };
    let (replaced, segment) = match container {
        Container::Jpeg => {
            let length = 2 + EXIF_HEADER.len() + structure.len();
            if length > LONGEST_SEGMENT {
                return Err(TagError::Full);
            }
            let length = (length as u16).to_be_bytes();
            let segment = [&[0xff, 0xe1], length.as_slice(), EXIF_HEADER, &structure].concat();
            (container.exif(file)?.map(|found| found.whole), segment)
        }
        Container::Png => {
            let body = [b"eXIf", structure.as_slice()].concat();
            let (length, check) = (structure.len() as u32, crc32fast::hash(&body));
            let chunk = [&length.to_be_bytes(), body.as_slice(), &check.to_be_bytes()].concat();
            (container.exif(file)?.map(|found| found.whole), chunk)
        }
    };
    let replaced = match replaced {
        Some(range) => range,
        None => {
            let at = container.insertion(file)?;
            at..at
        }
    };
    Ok([&file[..replaced.start], &segment, &file[replaced.end..]].concat())
}

/// Whether a JPEG or PNG file has a place in its Exif data.
pub fn has_place(file: &[u8]) -> Result<bool, TagError> {
    let found = Container::of(file)?.exif(file)?;
    found.map_or(Ok(false), |found| tiff::has_place(&file[found.tiff]))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Container {
    Jpeg,
    Png,
}

/// Exif data in a file.
struct Found {
    /// The segment or chunk.
    whole: Range<usize>,
    /// The TIFF structure in it.
    tiff: Range<usize>,
}

impl Container {
    fn of(file: &[u8]) -> Result<Container, TagError> {
        if file.starts_with(&[0xff, 0xd8]) {
            Ok(Container::Jpeg)
        } else if file.starts_with(PNG_SIGNATURE) {
            Ok(Container::Png)
        } else {
            Err(TagError::Format)
        }
    }

    fn exif(self, file: &[u8]) -> Result<Option<Found>, TagError> {
        let parts = self.parts(file)?;
        let found = parts.into_iter().find_map(|part| match self {
            Container::Jpeg if part.kind == [0xe1; 4] => {
                let body = &file[part.body.clone()];
                let start = part.body.start + EXIF_HEADER.len();
                body.starts_with(EXIF_HEADER)
                    .then_some(Found { whole: part.whole, tiff: start..part.body.end })
            }
            Container::Png if part.kind == *b"eXIf" => {
                Some(Found { whole: part.whole, tiff: part.body })
            }
            _ => None,
        });
        Ok(found)
    }

    /// Where new Exif data belongs: after the JFIF header, or before the pixels.
    fn insertion(self, file: &[u8]) -> Result<usize, TagError> {
        let parts = self.parts(file)?;
        Ok(match self {
            Container::Jpeg => match parts.first() {
                Some(part) if part.kind == [0xe0; 4] => part.whole.end,
                _ => 2,
            },
            Container::Png => {
                let pixels = parts.iter().find(|part| part.kind == *b"IDAT");
                pixels.ok_or(TagError::Damaged("it has no pixels"))?.whole.start
            }
        })
    }

    /// The segments before a JPEG's pixels, or a PNG's chunks.
    fn parts(self, file: &[u8]) -> Result<Vec<Part>, TagError> {
        match self {
            Container::Jpeg => jpeg_segments(file),
            Container::Png => png_chunks(file),
        }
    }
}

struct Part {
    /// A chunk's name, or a segment's marker four times.
    kind: [u8; 4],
    whole: Range<usize>,
    body: Range<usize>,
}

fn jpeg_segments(file: &[u8]) -> Result<Vec<Part>, TagError> {
    let damaged = TagError::Damaged("it ends before its pixels");
    let mut parts = Vec::new();
    let mut at = 2;
    loop {
        let Some([0xff, marker, rest @ ..]) = file.get(at..) else { return Err(damaged) };
        match marker {
            // Fill bytes.
            0xff => at += 1,
            // Start of scan, end of image.
            0xda | 0xd9 => return Ok(parts),
            // Without a body.
            0x01 | 0xd0..=0xd7 => at += 2,
            _ => {
                let Some([high, low]) = rest.first_chunk::<2>() else { return Err(damaged) };
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                if length < 2 || rest.len() < length {
                    return Err(damaged);
                }
                let end = at + 2 + length;
                parts.push(Part { kind: [*marker; 4], whole: at..end, body: at + 4..end });
                at = end;
            }
        }
    }
}

fn png_chunks(file: &[u8]) -> Result<Vec<Part>, TagError> {
    let damaged = TagError::Damaged("a chunk lies beyond its end");
    let mut parts = Vec::new();
    let mut at = PNG_SIGNATURE.len();
    while at < file.len() {
        let Some(header) = file.get(at..at + 8) else { return Err(damaged) };
        let length = u32::from_be_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = [header[4], header[5], header[6], header[7]];
        let (start, end) = (at + 8, at + 12 + length);
        if end > file.len() {
            return Err(damaged);
        }
        parts.push(Part { kind, whole: at..end, body: start..start + length });
        at = end;
        if kind == *b"IEND" {
            // Some cameras write more behind it.
            break;
        }
    }
    Ok(parts)
}
