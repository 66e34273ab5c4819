//! Embeddings straight from pages of plain numbers.
//!
//! The general reader makes an object of every half-precision number. In a page with the
//! encoding PLAIN the numbers lie one after another in little-endian order, so that copying
//! them is all there is to do, if no list or number is null and every list has the same length.
//! The page's levels tell: run-length encoded, so that checking them costs next to nothing.
//! Whatever doesn't look like that (dictionaries, nulls, other encodings) is left to the general
//! reader; compression is undone by the page reader and so no obstacle.

use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::source::Pieces;

/// Fills `numbers` with the values of a column of lists, each of `stride` numbers of
/// `number_bytes`. False if the column isn't plain; then `numbers` holds nothing of use.
pub(crate) fn read_plain_lists(
    pieces: &Pieces,
    column: &ColumnChunkMetaData,
    rows: usize,
    stride: usize,
    number_bytes: usize,
    numbers: &mut [u8],
) -> Result<bool, ParquetError> {
    let description = column.column_descr();
    let plain = column.dictionary_page_offset().is_none() && description.max_rep_level() == 1;
    if !plain || cfg!(target_endian = "big") {
        return Ok(false);
    }
    let max_definition = description.max_def_level() as u8;
    let mut pages = SerializedPageReader::new(Arc::new(pieces.clone()), column, rows, None)?;
    let mut filled = 0;
    while let Some(page) = pages.get_next_page()? {
        let Some(plain) = PlainPage::of(&page) else { return Ok(false) };
        let size = plain.count * number_bytes;
        let lists = Lists { done: filled / number_bytes, stride };
        let fits = plain.numbers.len() == size && filled + size <= numbers.len();
        if !fits
            || !lists.match_repetitions(plain.repetitions, plain.count)
            || !all_are(plain.definitions, max_definition, plain.count)
        {
            return Ok(false);
        }
        numbers[filled..filled + size].copy_from_slice(plain.numbers);
        filled += size;
    }
    Ok(filled == numbers.len())
}

/// The parts of a data page.
struct PlainPage<'a> {
    repetitions: &'a [u8],
    definitions: &'a [u8],
    numbers: &'a [u8],
    count: usize,
}

impl<'a> PlainPage<'a> {
    fn of(page: &'a Page) -> Option<PlainPage<'a>> {
        match page {
            Page::DataPage {
                buf,
                num_values,
                encoding: Encoding::PLAIN,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                ..
            } => {
                let (repetitions, rest) = split_levels(buf)?;
                let (definitions, numbers) = split_levels(rest)?;
                Some(PlainPage { repetitions, definitions, numbers, count: *num_values as usize })
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding: Encoding::PLAIN,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let (repetitions, rest) = buf.split_at_checked(*rep_levels_byte_len as usize)?;
                let (definitions, numbers) =
                    rest.split_at_checked(*def_levels_byte_len as usize)?;
                Some(PlainPage { repetitions, definitions, numbers, count: *num_values as usize })
            }
            _ => None,
        }
    }
}

/// Levels of the first kind of page are preceded by their size.
fn split_levels(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (size, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*size) as usize)
}

/// Lists of `stride` numbers, of which `done` numbers have gone by.
struct Lists {
    done: usize,
    stride: usize,
}

impl Lists {
    /// A repetition level is 0 where a list begins and 1 within.
    fn match_repetitions(&self, levels: &[u8], count: usize) -> bool {
        let mut at = self.done % self.stride;
        for_each_run(levels, 1, count, |level, length| {
            let matches = match level {
                0 => at == 0 && (length == 1 || self.stride == 1),
                _ => at > 0 && at + length <= self.stride,
            };
            at = (at + length) % self.stride;
            matches
        })
    }
}

/// Whether all levels are the highest: no list is empty, nothing is null.
fn all_are(levels: &[u8], max_level: u8, count: usize) -> bool {
    let bit_width = u8::BITS - max_level.leading_zeros();
    for_each_run(levels, bit_width, count, |level, _| level == max_level)
}

/// Walks the runs of Parquet's hybrid of run-length and bit-packed encoding, for levels of up to
/// eight bits, until `visit` returns false. False then, or if there are less than `count` levels.
fn for_each_run(
    mut bytes: &[u8],
    bit_width: u32,
    count: usize,
    mut visit: impl FnMut(u8, usize) -> bool,
) -> bool {
    let mut left = count;
    while left > 0 {
        let Some(header) = take_varint(&mut bytes) else { return false };
        if header & 1 == 0 {
            let Some((level, rest)) = bytes.split_first() else { return false };
            let length = left.min((header >> 1) as usize);
            if length == 0 || !visit(*level, length) {
                return false;
            }
            bytes = rest;
            left -= length;
        } else {
            // Groups of eight levels, the lowest bits first.
            let groups = (header >> 1) as usize;
            let size = groups.saturating_mul(bit_width as usize);
            let Some((packed, rest)) = bytes.split_at_checked(size) else { return false };
            let length = left.min(groups.saturating_mul(8));
            let bit = |at: usize| (packed[at / 8] >> (at % 8)) & 1;
            for at in 0..length {
                let start = at * bit_width as usize;
                let bits = (0..bit_width).map(|place| bit(start + place as usize) << place);
                if !visit(bits.sum(), 1) {
                    return false;
                }
            }
            if length == 0 {
                return false;
            }
            bytes = rest;
            left -= length;
        }
    }
    true
}

/// A number in groups of seven bits, the lowest first.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(bytes: &[u8], bit_width: u32, count: usize) -> Option<Vec<u8>> {
        let mut levels = Vec::new();
        for_each_run(bytes, bit_width, count, |level, length| {
            levels.extend(std::iter::repeat_n(level, length));
            true
        })
        .then_some(levels)
    }

    /// The example of the Parquet specification, and a run.
    #[test]
    fn levels_are_decoded() {
        let packed = [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(runs(&packed, 3, 8), Some(vec![0, 1, 2, 3, 4, 5, 6, 7]));
        assert_eq!(runs(&[0b1010, 3], 2, 5), Some(vec![3; 5]));
        // 200 = 0b1_1001000 needs two bytes as a header of a run: 400 = 0b11_0010000.
        assert_eq!(runs(&[0b1001_0000, 0b11, 1], 1, 200), Some(vec![1; 200]));
        assert_eq!(runs(&[0b1010, 3], 2, 6), None);
        assert_eq!(runs(&[0b11, 0b1000_1000], 3, 8), None);
    }

    #[test]
    fn only_lists_of_the_right_length_match() {
        // 0 1 1 | 0 1 1, bit-packed.
        let levels = [0b11, 0b11_0110];
        assert!(Lists { done: 0, stride: 3 }.match_repetitions(&levels, 6));
        assert!(Lists { done: 9, stride: 3 }.match_repetitions(&levels, 6));
        assert!(!Lists { done: 1, stride: 3 }.match_repetitions(&levels, 6));
        assert!(!Lists { done: 0, stride: 2 }.match_repetitions(&levels, 6));
        assert!(!Lists { done: 0, stride: 6 }.match_repetitions(&levels, 6));
    }
}
