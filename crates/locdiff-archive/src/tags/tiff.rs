//! The TIFF structure inside of Exif: a GPS directory is appended, and nothing else moves.
//!
//! All values of Exif are at offsets from the structure's start, and makers' notes contain offsets that nobody but the
//! maker can read. So the old bytes stay where they are. The new GPS directory goes to the end; if the main directory has
//! no room for a pointer to it, a copy of that directory with one more entry goes to the end as well. Only the 4 bytes
//! that point to the directory change.

use super::{PlaceTag, Replace, TagError};

const GPS_POINTER: u16 = 0x8825;
const LONG: u16 = 4;
/// Tags of the GPS directory that are written.
const WRITTEN: [u16; 8] = [0x00, 0x01, 0x02, 0x03, 0x04, 0x12, 0x1b, 0x1f];
/// Status, mode and precision of a measurement: of a directory without a place, they are not about the new one.
const MEASURED: [u16; 3] = [0x09, 0x0a, 0x0b];
/// Bytes of an entry.
const ENTRY: usize = 12;

/// A TIFF structure with nothing but a place.
pub(super) fn new(tag: &PlaceTag) -> Result<Vec<u8>, TagError> {
    // Big-endian, an empty main directory at 8.
    let empty = [b'M', b'M', 0, 42, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0];
    with_place(&empty, tag, Replace::Nothing)
}

/// Whether a structure has a latitude.
pub(super) fn has_place(tiff: &[u8]) -> Result<bool, TagError> {
    let tiff = Tiff::new(tiff)?;
    let gps = tiff.gps()?.map_or_else(Vec::new, |gps| gps.entries);
    Ok(gps.iter().any(|entry| tiff.order.u16(&entry[..2]) == 0x02))
}

/// The structure with a place. One that it has already and that may not be replaced is an error.
pub(super) fn with_place(
    bytes: &[u8],
    tag: &PlaceTag,
    replace: Replace,
) -> Result<Vec<u8>, TagError> {
    if replace == Replace::Nothing && has_place(bytes)? {
        return Err(TagError::HasPlace);
    }
    let tiff = Tiff::new(bytes)?;
    let order = tiff.order;
    let mut written = bytes.to_vec();
    // Directories begin at even offsets.
    written.resize(written.len().next_multiple_of(2), 0);
    let mut gps = tiff.gps()?.map_or_else(Vec::new, |gps| gps.entries);
    gps.retain(|entry| {
        let tag = order.u16(&entry[..2]);
        !WRITTEN.contains(&tag)
            && match replace {
                Replace::Nothing => !MEASURED.contains(&tag),
                Replace::Own => true,
                Replace::Everything => false,
            }
    });
    let gps_at = written.len();
    append_gps(&mut written, order, gps, tag);
    let pointer = order.bytes32(gps_at as u32);
    let main = tiff.directory(tiff.main_at)?;
    if let Some(index) = main.entries.iter().position(|e| order.u16(&e[..2]) == GPS_POINTER) {
        let value_at = tiff.main_at + 2 + ENTRY * index + 8;
        written[value_at..value_at + 4].copy_from_slice(&pointer);
        return Ok(written);
    }
    let mut entries = main.entries;
    let mut entry = [0; ENTRY];
    entry[..2].copy_from_slice(&order.bytes16(GPS_POINTER));
    entry[2..4].copy_from_slice(&order.bytes16(LONG));
    entry[4..8].copy_from_slice(&order.bytes32(1));
    entry[8..].copy_from_slice(&pointer);
    let place = entries.partition_point(|entry| order.u16(&entry[..2]) < GPS_POINTER);
    entries.insert(place, entry);
    written.resize(written.len().next_multiple_of(2), 0);
    let main_at = written.len();
    append_directory(&mut written, order, &entries, main.next);
    written[4..8].copy_from_slice(&order.bytes32(main_at as u32));
    Ok(written)
}

/// Appends a GPS directory and its values; `kept` are entries that stay.
fn append_gps(written: &mut Vec<u8>, order: Order, kept: Vec<[u8; ENTRY]>, tag: &PlaceTag) {
    const BYTE: u16 = 1;
    const ASCII: u16 = 2;
    const RATIONAL: u16 = 5;
    const UNDEFINED: u16 = 7;
    let letter = |negative: bool, letters: [u8; 2]| vec![letters[usize::from(negative)], 0];
    let (latitude, longitude) = (tag.place.latitude(), tag.place.longitude());
    let method = [b"ASCII\0\0\0", ascii(&tag.checked_method()).as_slice()].concat();
    let error = rational(order, tag.error_m(), 100);
    let values: [(u16, u16, Vec<u8>); 8] = [
        (0x00, BYTE, vec![2, 3, 0, 0]),
        (0x01, ASCII, letter(latitude < 0.0, *b"NS")),
        (0x02, RATIONAL, angle(order, latitude)),
        (0x03, ASCII, letter(longitude < 0.0, *b"EW")),
        (0x04, RATIONAL, angle(order, longitude)),
        (0x12, ASCII, b"WGS-84\0".to_vec()),
        (0x1b, UNDEFINED, method),
        (0x1f, RATIONAL, error),
    ];
    let directory_at = written.len();
    let count = kept.len() + values.len();
    let mut data_at = directory_at + 2 + ENTRY * count + 4;
    let mut data = Vec::new();
    let mut entries = kept;
    for (tag, kind, bytes) in values {
        let size = if kind == RATIONAL { 8 } else { 1 };
        let mut entry = [0; ENTRY];
        entry[..2].copy_from_slice(&order.bytes16(tag));
        entry[2..4].copy_from_slice(&order.bytes16(kind));
        entry[4..8].copy_from_slice(&order.bytes32((bytes.len() / size) as u32));
        if bytes.len() <= 4 {
            entry[8..8 + bytes.len()].copy_from_slice(&bytes);
        } else {
            entry[8..].copy_from_slice(&order.bytes32(data_at as u32));
            data.extend(&bytes);
            if bytes.len() % 2 == 1 {
                data.push(0);
            }
            data_at = directory_at + 2 + ENTRY * count + 4 + data.len();
        }
        entries.push(entry);
    }
    entries.sort_by_key(|entry| order.u16(&entry[..2]));
    append_directory(written, order, &entries, 0);
    written.extend(data);
}

fn append_directory(written: &mut Vec<u8>, order: Order, entries: &[[u8; ENTRY]], next: u32) {
    written.extend(order.bytes16(entries.len() as u16));
    entries.iter().for_each(|entry| written.extend(entry));
    written.extend(order.bytes32(next));
}

/// Only characters that ASCII has.
fn ascii(text: &str) -> Vec<u8> {
    let printable = |c: char| if (' '..='~').contains(&c) { c as u8 } else { b'?' };
    text.chars().map(printable).collect()
}

/// Degrees, minutes and ten-thousandths of a second: 3 mm.
fn angle(order: Order, degrees: f64) -> Vec<u8> {
    let units = (degrees.abs() * 3600.0 * 1e4).round() as u64;
    let (whole, rest) = (units / 36_000_000, units % 36_000_000);
    let (minutes, seconds) = (rest / 600_000, rest % 600_000);
    let parts = [(whole, 1), (minutes, 1), (seconds, 10_000)];
    let parts = parts.map(|(n, d)| [order.bytes32(n as u32), order.bytes32(d)].concat());
    parts.concat()
}

fn rational(order: Order, value: f64, denominator: u32) -> Vec<u8> {
    // Of meters around the Earth, hundredths don't fit.
    let denominator = if value * f64::from(denominator) > 4e9 { 1 } else { denominator };
    let numerator = (value * f64::from(denominator)).round() as u32;
    [order.bytes32(numerator), order.bytes32(denominator)].concat()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Big,
    Little,
}

impl Order {
    /// # Panics
    /// If there are not two bytes.
    fn u16(self, bytes: &[u8]) -> u16 {
        let bytes = [bytes[0], bytes[1]];
        match self {
            Order::Big => u16::from_be_bytes(bytes),
            Order::Little => u16::from_le_bytes(bytes),
        }
    }

    /// # Panics
    /// If there are not four bytes.
    fn u32(self, bytes: &[u8]) -> u32 {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        match self {
            Order::Big => u32::from_be_bytes(bytes),
            Order::Little => u32::from_le_bytes(bytes),
        }
    }

    fn bytes16(self, number: u16) -> [u8; 2] {
        match self {
            Order::Big => number.to_be_bytes(),
            Order::Little => number.to_le_bytes(),
        }
    }

    fn bytes32(self, number: u32) -> [u8; 4] {
        match self {
            Order::Big => number.to_be_bytes(),
            Order::Little => number.to_le_bytes(),
        }
    }
}

struct Tiff<'a> {
    bytes: &'a [u8],
    order: Order,
    main_at: usize,
}

struct Directory {
    entries: Vec<[u8; ENTRY]>,
    next: u32,
}

impl<'a> Tiff<'a> {
    fn new(bytes: &'a [u8]) -> Result<Tiff<'a>, TagError> {
        let order = match bytes.get(..4) {
            Some([b'M', b'M', 0, 42]) => Order::Big,
            Some([b'I', b'I', 42, 0]) => Order::Little,
            _ => return Err(TagError::Damaged("its Exif data has no TIFF header")),
        };
        let offset =
            bytes.get(4..8).ok_or(TagError::Damaged("its Exif data ends in the header"))?;
        Ok(Tiff { bytes, order, main_at: order.u32(offset) as usize })
    }

    fn directory(&self, at: usize) -> Result<Directory, TagError> {
        let damaged = TagError::Damaged("a directory of its Exif data lies beyond the end");
        let from = |from: usize| self.bytes.get(from..);
        let Some(count) = from(at).and_then(|rest| rest.get(..2)) else { return Err(damaged) };
        let count = usize::from(self.order.u16(count));
        let entries_at = at + 2;
        let Some(bytes) = from(entries_at).and_then(|rest| rest.get(..ENTRY * count)) else {
            return Err(damaged);
        };
        let entries = bytes.chunks_exact(ENTRY).map(|entry| {
            let mut copy = [0; ENTRY];
            copy.copy_from_slice(entry);
            copy
        });
        // Some writers forget the offset of the next directory at the end.
        let next = from(entries_at + ENTRY * count).and_then(|rest| rest.get(..4));
        let next = next.map_or(0, |bytes| self.order.u32(bytes));
        Ok(Directory { entries: entries.collect(), next })
    }

    /// The GPS directory, if there is one.
    fn gps(&self) -> Result<Option<Directory>, TagError> {
        let main = self.directory(self.main_at)?;
        let pointer = main.entries.iter().find(|e| self.order.u16(&e[..2]) == GPS_POINTER);
        pointer.map(|entry| self.directory(self.order.u32(&entry[8..]) as usize)).transpose()
    }
}
