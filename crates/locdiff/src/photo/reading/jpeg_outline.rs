//! The markers of a JPEG, read before anything is decoded.

use super::error::PhotoError;
use super::format::PhotoFormat;

/// Scans of a progressive JPEG. Encoders write about ten; each costs a pass over the picture,
/// which an attacker gets for a few bytes.
pub(super) const MAX_SCANS: u64 = 100;

/// What the markers of a JPEG state, read without decoding it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct JpegOutline {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) components: u8,
    /// Of all components, in whole blocks.
    pub(super) coefficients: u64,
    /// The second byte of the start-of-frame marker: which kind of JPEG.
    pub(super) frame: u8,
    pub(super) scans: u64,
    /// Where the end-of-image marker stands. What follows it (another picture, a video) isn't
    /// part of the picture.
    pub(super) end: usize,
}

impl JpegOutline {
    /// Walks over the markers. A JPEG that stops before its end marker is refused here, as
    /// Pillow does: decoders would fill the rest with grey.
    pub(super) fn of(bytes: &[u8]) -> Result<JpegOutline, PhotoError> {
        let mut outline = JpegOutline::default();
        let damaged = |reason: &str| PhotoError::damaged(PhotoFormat::Jpeg, reason);
        let mut position = 2;
        loop {
            let Some((marker, after)) = next_marker(bytes, position) else {
                return Err(truncated(bytes));
            };
            position = after;
            if matches!(marker, 0x01 | 0xd0..=0xd8) {
                continue;
            }
            if marker == 0xd9 {
                outline.end = after - 2;
                break;
            }
            let segment = segment_at(bytes, position).ok_or_else(|| truncated(bytes))?;
            match marker {
                0xda => outline.scans += 1,
                // Start of frame, but for the tables that share its numbers.
                0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                    if outline.frame != 0 {
                        return Err(damaged("it has two frames"));
                    }
                    let [_, h1, h0, w1, w0, components, sampling @ ..] = segment else {
                        return Err(damaged("its frame header is too short"));
                    };
                    outline.frame = marker;
                    outline.height = u32::from(u16::from_be_bytes([*h1, *h0]));
                    outline.width = u32::from(u16::from_be_bytes([*w1, *w0]));
                    outline.components = *components;
                    outline.coefficients = coefficients(outline.width, outline.height, sampling);
                }
                _ => {}
            }
            position += segment.len() + 2;
        }
        if outline.frame == 0 || outline.scans == 0 {
            return Err(damaged("it has no picture before its end marker"));
        }
        if outline.width == 0 || outline.height == 0 {
            return Err(damaged("its width or height is zero"));
        }
        Ok(outline)
    }
}

/// A JPEG up to its first scan: what describes the picture stands there. Other files as they are.
pub(super) fn before_scans(bytes: &[u8]) -> &[u8] {
    if !bytes.starts_with(&[0xff, 0xd8]) {
        return bytes;
    }
    let mut position = 2;
    while let Some((marker, after)) = next_marker(bytes, position) {
        position = match marker {
            0x01 | 0xd0..=0xd8 => after,
            0xd9 | 0xda => return &bytes[..after - 2],
            _ => match segment_at(bytes, after) {
                Some(segment) => after + 2 + segment.len(),
                None => break,
            },
        };
    }
    bytes
}

/// `sampling` has three bytes for each component: its name, blocks across and down, its table.
fn coefficients(width: u32, height: u32, sampling: &[u8]) -> u64 {
    let (components, _) = sampling.as_chunks::<3>();
    let blocks = |&[_, blocks, _]: &[u8; 3]| (u64::from(blocks >> 4), u64::from(blocks & 15));
    let across = components.iter().map(|component| blocks(component).0).max().unwrap_or(1).max(1);
    let down = components.iter().map(|component| blocks(component).1).max().unwrap_or(1).max(1);
    let units = u64::from(width).div_ceil(8 * across) * u64::from(height).div_ceil(8 * down);
    64 * units * components.iter().map(blocks).map(|(across, down)| across * down).sum::<u64>()
}

fn truncated(bytes: &[u8]) -> PhotoError {
    let reason = format!("it ends early, after {} bytes, without its end marker", bytes.len());
    PhotoError::damaged(PhotoFormat::Jpeg, reason)
}

/// The next marker at or after a position, and the position after it. Between scans' headers
/// and the next marker lies compressed data, where `ff 00` is a byte and no marker.
fn next_marker(bytes: &[u8], mut position: usize) -> Option<(u8, usize)> {
    loop {
        position += first_ff(bytes.get(position..)?)?;
        match *bytes.get(position + 1)? {
            0xff => position += 1,
            0x00 => position += 2,
            marker => return Some((marker, position + 2)),
        }
    }
}

/// Where the first byte `ff` is: sixteen bytes at once, since this walks over whole files.
fn first_ff(bytes: &[u8]) -> Option<usize> {
    let (chunks, rest) = bytes.as_chunks::<16>();
    let has_ff =
        |chunk: &&[u8; 16]| chunk.iter().fold(false, |found, &byte| found | (byte == 0xff));
    let skipped = 16 * chunks.iter().take_while(|chunk| !has_ff(chunk)).count();
    let candidates = if skipped == 16 * chunks.len() { rest } else { &bytes[skipped..] };
    candidates.iter().position(|&byte| byte == 0xff).map(|offset| skipped + offset)
}

/// What a segment holds after its length.
fn segment_at(bytes: &[u8], position: usize) -> Option<&[u8]> {
    let length = bytes.get(position..position + 2)?;
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    bytes.get(position + 2..position + length.max(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_wherever_they_are() {
        for length in 0..70 {
            let mut bytes = vec![7; length];
            assert_eq!(first_ff(&bytes), None);
            for place in 0..length {
                bytes[place] = 0xff;
                assert_eq!(first_ff(&bytes), Some(place), "{length}");
                bytes[place] = 7;
            }
        }
        assert_eq!(next_marker(&[1, 0xff, 0, 0xff, 0xff, 0xd9, 4], 0), Some((0xd9, 6)));
        assert_eq!(next_marker(&[1, 0xff], 0), None);
    }

    #[test]
    fn an_end_marker_alone_is_no_picture() {
        let error = JpegOutline::of(b"\xff\xd8\xff\xd9").unwrap_err();
        assert!(error.to_string().contains("no picture"), "{error}");
        let error = JpegOutline::of(b"\xff\xd8\xff\xe0\0\x20JFIF").unwrap_err();
        assert!(error.to_string().contains("ends early, after 10 bytes"), "{error}");
    }
}
