//! The Earth's colours at every resolution, on a reduced grid.
//!
//! Level 0 has `rows` rows of equal height in latitude; each row has as many texels as its circle
//! of latitude is long, so that texels are as wide as high everywhere: no waste towards the poles
//! (a third of the memory of web Mercator, two thirds of a plain grid), and one footprint is right
//! for both directions. Each further level halves the rows. All of it is sampled with trilinear
//! interpolation; a row that is narrower than its neighbour does no harm, as each row is asked in
//! its own columns.
//!
//! A texel is red, green, blue, land share (bytes, low first). By day the colours are multiplied
//! by the land share: filtered that way, nothing painted on the sea ever mixes into the land.

use rayon::prelude::*;

use crate::texels::Texels;

/// The coarsest level has at most this many rows.
const FEWEST_ROWS: usize = 24;

#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) rows: Rows,
    pub(crate) texels: Texels,
}

/// Where each row lies in a level's texels.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    // Offset and width.
    spans: Vec<(u32, u32)>,
}

impl Rows {
    pub(crate) fn new(count: usize) -> Self {
        let mut offset = 0;
        let spans = (0..count)
            .map(|row| {
                let from_pole = (row as f64 + 0.5) / count as f64 * std::f64::consts::PI;
                let width = ((2 * count) as f64 * from_pole.sin()).ceil().max(4.0) as u32;
                offset += width;
                (offset - width, width)
            })
            .collect();
        Self { spans }
    }

    pub(crate) fn count(&self) -> usize {
        self.spans.len()
    }

    pub(crate) fn width(&self, row: usize) -> usize {
        self.spans[row].1 as usize
    }

    pub(crate) fn range(&self, row: usize) -> std::ops::Range<usize> {
        let (offset, width) = self.spans[row];
        offset as usize..(offset + width) as usize
    }

    pub(crate) fn texel_count(&self) -> usize {
        self.range(self.count() - 1).end
    }
}

/// Level 0 and its reductions.
#[derive(Debug)]
pub(crate) struct Pyramid {
    pub(crate) levels: Vec<Level>,
}

impl Pyramid {
    /// The numbers of rows of each level when the finest has `rows`.
    pub(crate) fn row_counts(rows: usize) -> Vec<usize> {
        std::iter::successors(Some(rows), |&rows| Some(rows.div_ceil(2)))
            .take_while(|&count| count == rows || count >= FEWEST_ROWS)
            .collect()
    }

    pub(crate) fn over(finest: Level) -> Self {
        let counts = Self::row_counts(finest.rows.count());
        let mut levels = vec![finest];
        for &count in &counts[1..] {
            let next = reduced(&levels[levels.len() - 1], count);
            levels.push(next);
        }
        Self { levels }
    }

    /// Ready to be sampled often.
    pub(crate) fn sampler(&self) -> Sampler<'_> {
        let levels = self.levels.iter();
        Sampler { levels: levels.map(|level| (&level.rows.spans[..], &level.texels[..])).collect() }
    }
}

/// The levels' rows and texels, at hand.
pub(crate) struct Sampler<'a> {
    levels: Vec<(&'a [(u32, u32)], &'a [u32])>,
}

impl Sampler<'_> {
    /// Colour and land share (0–255) at a point: `down` is the part of the way from the north pole
    /// to the south pole, `round` the part of the turn from 180° W eastward, both in 0..1;
    /// `level` says how coarse.
    #[inline(always)]
    pub(crate) fn at(&self, down: f32, round: f32, level: f32) -> [f32; 4] {
        let top = self.levels.len() - 1;
        let level = level.clamp(0.0, top as f32);
        let fine = level as usize;
        let between = ((level - fine as f32) * 256.0) as u32;
        let (low, high) = self.bilinear(fine, down, round);
        let (low_2, high_2) = self.bilinear((fine + 1).min(top), down, round);
        let (low, high) = (mix(low, low_2, between), mix(high, high_2, between));
        [(low & 0xff) as f32, (high & 0xff) as f32, (low >> 16) as f32, (high >> 16) as f32]
    }

    /// Red and blue, green and land, in 16-bit lanes.
    #[inline(always)]
    fn bilinear(&self, level: usize, down: f32, round: f32) -> (u32, u32) {
        let (spans, texels) = self.levels[level];
        let last = spans.len() - 1;
        let y = (down * spans.len() as f32 - 0.5).clamp(0.0, last as f32);
        let row = y as u32 as usize;
        let weight = ((y - row as f32) * 256.0) as u32;
        let (low, high) = in_row(texels, spans[row], round);
        let (low_2, high_2) = in_row(texels, spans[(row + 1).min(last)], round);
        (mix(low, low_2, weight), mix(high, high_2, weight))
    }
}

#[inline(always)]
fn in_row(texels: &[u32], (offset, width): (u32, u32), round: f32) -> (u32, u32) {
    let x = round * width as f32 - 0.5;
    let x = if x < 0.0 { x + width as f32 } else { x };
    let column = (x as u32).min(width - 1);
    let next = if column + 1 == width { 0 } else { column + 1 };
    let weight = ((x - column as f32) * 256.0) as u32;
    let (a, b) = (texels[(offset + column) as usize], texels[(offset + next) as usize]);
    (
        mix(a & 0x00ff_00ff, b & 0x00ff_00ff, weight),
        mix((a >> 8) & 0x00ff_00ff, (b >> 8) & 0x00ff_00ff, weight),
    )
}

/// Two pairs of bytes in 16-bit lanes, mixed with a weight of 0..256.
#[inline(always)]
fn mix(a: u32, b: u32, weight: u32) -> u32 {
    ((a * (256 - weight) + b * weight + 0x0080_0080) >> 8) & 0x00ff_00ff
}

/// A coarser level: each texel is the mean over its area.
fn reduced(fine: &Level, row_count: usize) -> Level {
    let rows = Rows::new(row_count);
    let ratio = fine.rows.count() as f64 / row_count as f64;
    let row_texels = |row: usize| {
        let width = rows.width(row);
        let mut sums = vec![[0.0f32; 4]; width];
        for (fine_row, weight) in overlaps(row as f64 * ratio, (row + 1) as f64 * ratio) {
            if fine_row >= fine.rows.count() {
                continue;
            }
            let texels = &fine.texels[fine.rows.range(fine_row)];
            let across = texels.len() as f64 / width as f64;
            for (column, sum) in sums.iter_mut().enumerate() {
                let (start, end) = (column as f64 * across, (column + 1) as f64 * across);
                for (at, part) in overlaps(start, end) {
                    let texel = texels[at.min(texels.len() - 1)].to_le_bytes();
                    for (sum, byte) in sum.iter_mut().zip(texel) {
                        *sum += (weight * part) as f32 * f32::from(byte);
                    }
                }
            }
        }
        sums.into_iter().map(packed).collect::<Vec<_>>()
    };
    let texels = in_order(row_count, rows.texel_count(), row_texels);
    Level { rows, texels }
}

/// The whole numbers that the interval `start..end` touches, each with its share of the interval.
#[inline(always)]
pub(crate) fn overlaps(start: f64, end: f64) -> impl Iterator<Item = (usize, f64)> {
    // An end a rounding error beyond a whole number touches nothing more.
    let last = (end - 1e-9) as usize;
    let scale = 1.0 / (end - start);
    (start as usize..=last).map(move |at| {
        (at, (end.min(at as f64 + 1.0) - start.max(at as f64)).max(0.0) * scale)
    })
}

pub(crate) fn packed(colour: [f32; 4]) -> u32 {
    u32::from_le_bytes(colour.map(|value| (value + 0.5) as u8))
}

/// Rows made in parallel, put one after another.
pub(crate) fn in_order(
    rows: usize,
    texel_count: usize,
    make: impl Fn(usize) -> Vec<u32> + Sync,
) -> Texels {
    const BLOCK: usize = 256;
    let mut texels = Texels::zero(texel_count);
    let mut end = 0;
    for start in (0..rows).step_by(BLOCK) {
        let block: Vec<Vec<u32>> =
            (start..(start + BLOCK).min(rows)).into_par_iter().map(&make).collect();
        for row in block {
            texels[end..end + row.len()].copy_from_slice(&row);
            end += row.len();
        }
    }
    texels
}
