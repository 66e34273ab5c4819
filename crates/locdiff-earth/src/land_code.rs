//! Shares of land in few bytes, band by band.
//!
//! A band of rows is cut into blocks of 16 × 16 texels, each of which is sea, land or mixed. Only
//! texels of mixed blocks are coded one by one, each given what its neighbors are.

use crate::range_coder::{Chance, Coder};

/// Width and height of a block: four units of JPEG.
pub(crate) const BLOCK: usize = 16;
/// Shares are coded in this many steps: 4 bits.
pub(crate) const WHOLE: u8 = 15;

/// What a block or a texel is: the number of its context.
const SEA: u8 = 0;
const MIXED: u8 = 1;
const LAND: u8 = 2;

/// The land of up to 16 rows, all of one width.
#[derive(Clone, Debug, Default)]
pub(crate) struct LandBand {
    pub(crate) width: usize,
    /// 0 to [`WHOLE`], row by row.
    pub(crate) shares: Vec<u8>,
    /// How each block is covered.
    covers: Vec<u8>,
}

impl LandBand {
    pub(crate) fn new(width: usize, shares: Vec<u8>) -> Self {
        let covers = (0..width.div_ceil(BLOCK))
            .map(|block| {
                let columns = columns_of(block, width);
                let all = |wanted: u8| {
                    shares
                        .chunks(width)
                        .all(|row| row[columns.clone()].iter().all(|&s| s == wanted))
                };
                if all(0) {
                    SEA
                } else if all(WHOLE) {
                    LAND
                } else {
                    MIXED
                }
            })
            .collect();
        Self { width, shares, covers }
    }

    /// A band that is to be decoded.
    pub(crate) fn unknown(width: usize, rows: usize) -> Self {
        let covers = vec![SEA; width.div_ceil(BLOCK)];
        Self { width, shares: vec![0; width * rows], covers }
    }

    pub(crate) fn block_count(&self) -> usize {
        self.covers.len()
    }

    pub(crate) fn has_land(&self, block: usize) -> bool {
        self.covers[block] != SEA
    }
}

fn columns_of(block: usize, width: usize) -> std::ops::Range<usize> {
    block * BLOCK..((block + 1) * BLOCK).min(width)
}

/// The column of `width` at the middle of a column of `of` columns around the globe.
///
/// A narrow row stretched to a wider one and back is the same: a column of the narrow one contains
/// the middle of the wide column that lies at its own middle.
pub(crate) fn column_at(column: usize, of: usize, width: usize) -> usize {
    (2 * column + 1) * width / (2 * of)
}

fn class(share: u8) -> usize {
    usize::from(match share {
        0 => SEA,
        WHOLE => LAND,
        _ => MIXED,
    })
}

/// What was learned about coasts so far.
#[derive(Debug)]
pub(crate) struct LandModel {
    /// Is it sea? If not, is it land? Given the blocks to the left, above, and above right.
    blocks: [[Chance; 2]; 27],
    /// The same of texels: given the two to the left, and above left, above, and above right.
    texels: [[Chance; 2]; 243],
    /// A tree of four bits, given the sum of the shares to the left and above.
    shares: [[Chance; 16]; 8],
    /// Blocks and last row of the band above.
    above: LandBand,
}

impl LandModel {
    pub(crate) fn new() -> Self {
        Self {
            blocks: [[Chance::EVEN; 2]; 27],
            texels: [[Chance::EVEN; 2]; 243],
            shares: [[Chance::EVEN; 16]; 8],
            above: LandBand::unknown(1, 1),
        }
    }

    /// Encodes a band, or decodes it into one that is unknown.
    pub(crate) fn code<C: Coder>(&mut self, coder: &mut C, band: &mut LandBand) {
        self.code_blocks(coder, band);
        let width = band.width;
        // The row above the first is the last row of the band above, in this band's columns.
        let above = &self.above.shares;
        let first: Vec<u8> = (0..width).map(|x| above[column_at(x, width, above.len())]).collect();
        for y in 0..band.shares.len() / width {
            let (before, row) = band.shares.split_at_mut(y * width);
            let up = if y == 0 { &first[..] } else { &before[(y - 1) * width..] };
            for block in 0..band.covers.len() {
                let columns = columns_of(block, width);
                match band.covers[block] {
                    SEA => {}
                    LAND => row[columns].fill(WHOLE),
                    _ => columns.for_each(|x| self.code_texel(coder, up, row, x)),
                }
            }
        }
        let last = band.shares[band.shares.len() - width..].to_vec();
        self.above = LandBand { width, shares: last, covers: band.covers.clone() };
    }

    fn code_blocks<C: Coder>(&mut self, coder: &mut C, band: &mut LandBand) {
        let count = band.covers.len();
        let above = |block: usize| {
            self.above.covers[column_at(block.min(count - 1), count, self.above.covers.len())]
        };
        let mut left = SEA;
        for block in 0..count {
            let context = left + 3 * (above(block) + 3 * above(block + 1));
            let [sea, land] = &mut self.blocks[usize::from(context)];
            let cover = &mut band.covers[block];
            *cover = if coder.bit(sea, *cover == SEA) {
                SEA
            } else if coder.bit(land, *cover == LAND) {
                LAND
            } else {
                MIXED
            };
            left = *cover;
        }
    }

    #[inline(always)]
    fn code_texel<C: Coder>(&mut self, coder: &mut C, up: &[u8], row: &mut [u8], x: usize) {
        let before = |row: &[u8], steps: usize| x.checked_sub(steps).map_or(0, |x| row[x]);
        let (left, north) = (before(row, 1), up[x]);
        let north_east = up[(x + 1).min(up.len() - 1)];
        let context = [before(row, 2), left, before(up, 1), north, north_east]
            .iter()
            .fold(0, |sum, &share| 3 * sum + class(share));
        let [sea, land] = &mut self.texels[context];
        let share = row[x];
        row[x] = if coder.bit(sea, share == 0) {
            0
        } else if coder.bit(land, share == WHOLE) {
            WHOLE
        } else {
            let tree = &mut self.shares[usize::from((left + north) / 4)];
            let path = [3, 2, 1, 0].iter().fold(1, |node, &place| {
                2 * node + usize::from(coder.bit(&mut tree[node], share >> place & 1 == 1))
            });
            (path - 16) as u8
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range_coder::{Decoder, Encoder};

    #[test]
    fn narrow_rows_come_back_from_wide_ones() {
        for (narrow, wide) in [(1, 1), (4, 100), (97, 100), (100, 100), (99, 100), (1000, 1023)] {
            for column in 0..narrow {
                let stretched = column_at(column, narrow, wide);
                assert_eq!(column_at(stretched, wide, narrow), column, "{narrow} of {wide}");
            }
        }
    }

    #[test]
    fn bands_come_back() {
        let share = |x: usize, y: usize, width: usize| {
            let turn = x as f64 / width as f64 * std::f64::consts::TAU;
            ((3.0 * turn).sin() * 30.0 + y as f64 - 10.0).clamp(0.0, 15.0) as u8
        };
        let bands: Vec<LandBand> = [(4, 16), (50, 16), (333, 16), (400, 3)]
            .iter()
            .map(|&(width, rows)| {
                let shares = (0..rows * width).map(|at| share(at % width, at / width, width));
                LandBand::new(width, shares.collect())
            })
            .collect();
        let (mut encoder, mut model) = (Encoder::new(), LandModel::new());
        bands.iter().for_each(|band| model.code(&mut encoder, &mut band.clone()));
        let bytes = encoder.finish();
        let (mut decoder, mut model) = (Decoder::new(&bytes), LandModel::new());
        for band in &bands {
            let mut decoded = LandBand::unknown(band.width, band.shares.len() / band.width);
            model.code(&mut decoder, &mut decoded);
            assert_eq!(
                (decoded.shares, decoded.covers),
                (band.shares.clone(), band.covers.clone())
            );
        }
        assert!(decoder.is_at_end());
    }
}
