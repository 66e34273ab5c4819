//! The tags of a TIFF, read before the decoder allocates what they claim.

/// Values of one tag: the strips or tiles of a picture, at most. The decoder takes 32 bytes for each.
const MOST_VALUES: u64 = 1 << 17;

/// The tag whose values are too many, or more than the file has bytes.
pub(super) fn impossible_tag(bytes: &[u8]) -> Option<u16> {
    let is_big_endian = bytes.starts_with(b"MM");
    let number = |at: usize, length: usize| -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(length)?)?;
        let digit = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(match is_big_endian {
            true => bytes.iter().fold(0, digit),
            false => bytes.iter().rev().fold(0, digit),
        })
    };
    // TIFF and BigTIFF: bytes of an offset, of the number of tags, and of a tag.
    let is_big = number(2, 2)? == 43;
    let (offset, count, tag) = if is_big { (8, 8, 20) } else { (4, 2, 12) };
    let table = usize::try_from(number(offset, offset)?).ok()?;
    let first = table.checked_add(count)?;
    let tags = usize::try_from(number(table, count)?).ok()?.min(bytes.len() / tag);
    (0..tags).map_while(|k| first.checked_add(k * tag)).find_map(|at| {
        let (kind, values) = (number(at + 2, 2)?, number(at + 4, offset)?);
        let size = match kind {
            1 | 2 | 6 | 7 => 1,
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            _ => 8,
        };
        let is_possible = values.saturating_mul(size) <= bytes.len() as u64
            && (size == 1 || values <= MOST_VALUES);
        (!is_possible).then(|| number(at, 2))?.map(|tag| tag as u16)
    })
}
