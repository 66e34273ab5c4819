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

/// A row's first texel and its width.
type Span = (u32, u32);

/// Where each row lies in a level's texels.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    spans: Vec<Span>,
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

    /// The texels of each row.
    pub(crate) fn split<'a>(&self, mut texels: &'a mut [u32]) -> Vec<&'a mut [u32]> {
        let mut next = |&(_, width): &Span| {
            let row;
            (row, texels) = std::mem::take(&mut texels).split_at_mut(width as usize);
            row
        };
        self.spans.iter().map(&mut next).collect()
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
        let halved = |&count: &usize| Some(count.div_ceil(2)).filter(|&half| half >= FEWEST_ROWS);
        std::iter::successors(Some(rows), halved).collect()
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

/// Pixels sampled at once: enough to fill vectors, few enough to share their levels.
pub(crate) const LANES: usize = 16;

type Lanes<T> = [T; LANES];

/// The levels' rows and texels, at hand.
pub(crate) struct Sampler<'a> {
    levels: Vec<(&'a [Span], &'a [u32])>,
}

impl Sampler<'_> {
    /// Colours and land shares (0–255) at points: `down` is the part of the way from the north
    /// pole to the south pole, `round` the part of the turn from 180° W eastward, both in 0..1;
    /// `level` is how coarse.
    ///
    /// The arithmetic is written lane by lane, which the compiler turns into vectors; only the
    /// reading itself is one by one.
    #[inline(always)]
    pub(crate) fn at(&self, down: &Lanes<f32>, round: &Lanes<f32>, level: f32) -> [Lanes<f32>; 4] {
        let top = self.levels.len() - 1;
        let level = level.clamp(0.0, top as f32);
        let fine = level as usize;
        let between = ((level - fine as f32) * 256.0) as u32;
        let (low, high) = self.bilinear(fine, down, round);
        let (low_2, high_2) = self.bilinear((fine + 1).min(top), down, round);
        let mut out = [[0.0; LANES]; 4];
        for lane in 0..LANES {
            let low = mix(low[lane], low_2[lane], between);
            let high = mix(high[lane], high_2[lane], between);
            out[0][lane] = (low & 0xff) as i32 as f32;
            out[1][lane] = (high & 0xff) as i32 as f32;
            out[2][lane] = (low >> 16) as i32 as f32;
            out[3][lane] = (high >> 16) as i32 as f32;
        }
        out
    }

    /// Red and blue, green and land, in 16-bit lanes.
    #[inline(always)]
    fn bilinear(
        &self,
        level: usize,
        down: &Lanes<f32>,
        round: &Lanes<f32>,
    ) -> (Lanes<u32>, Lanes<u32>) {
        let (spans, texels) = self.levels[level];
        let (count, last) = (spans.len() as f32, spans.len() as u32 - 1);
        let (mut row, mut weight) = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            let y = (down[lane] * count - 0.5).max(0.0).min(last as f32);
            let (whole, part) = split(y);
            row[lane] = whole;
            weight[lane] = part;
        }
        let (low, high) = in_rows(spans, texels, &row, round);
        for row in &mut row {
            *row = (*row + 1).min(last);
        }
        let (mut low_2, mut high_2) = in_rows(spans, texels, &row, round);
        for lane in 0..LANES {
            low_2[lane] = mix(low[lane], low_2[lane], weight[lane]);
            high_2[lane] = mix(high[lane], high_2[lane], weight[lane]);
        }
        (low_2, high_2)
    }
}

#[inline(always)]
fn in_rows(
    spans: &[Span],
    texels: &[u32],
    row: &Lanes<u32>,
    round: &Lanes<f32>,
) -> (Lanes<u32>, Lanes<u32>) {
    let (mut offset, mut width) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        (offset[lane], width[lane]) = spans[row[lane] as usize];
    }
    let (mut left, mut right, mut weight) = ([0; LANES], [0; LANES], [0; LANES]);
    for lane in 0..LANES {
        let x = round[lane] * width[lane] as i32 as f32 - 0.5;
        let x = if x < 0.0 { x + width[lane] as i32 as f32 } else { x };
        let (column, part) = split(x);
        let column = column.min(width[lane] - 1);
        let next = if column + 1 == width[lane] { 0 } else { column + 1 };
        left[lane] = offset[lane] + column;
        right[lane] = offset[lane] + next;
        weight[lane] = part;
    }
    let (mut a, mut b) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        a[lane] = texels[left[lane] as usize];
        b[lane] = texels[right[lane] as usize];
    }
    let (mut low, mut high) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        let (a, b) = (a[lane], b[lane]);
        low[lane] = mix(a & 0x00ff_00ff, b & 0x00ff_00ff, weight[lane]);
        high[lane] = mix((a >> 8) & 0x00ff_00ff, (b >> 8) & 0x00ff_00ff, weight[lane]);
    }
    (low, high)
}

/// A number in 0..2²² as a whole number and 256ths of a rest of 0 to 256. At a whole number it may
/// come out as the one below and a full rest, which interpolates to the same.
///
/// Adding 2²³ leaves a float's whole part in its lowest bits: cheaper than a cast, which must mind
/// numbers that never come here.
#[inline(always)]
pub(crate) fn split(x: f32) -> (u32, u32) {
    const SHIFT: f32 = 8_388_608.0;
    let shifted = (x - 0.5).max(0.0) + SHIFT;
    let part = x - (shifted - SHIFT);
    let whole = shifted.to_bits() & 0x007f_ffff;
    (whole, (part * 256.0 + SHIFT).to_bits() & 0x1ff)
}

/// Two pairs of bytes in 16-bit lanes, mixed with a weight of 0 to 256.
#[inline(always)]
fn mix(a: u32, b: u32, weight: u32) -> u32 {
    ((a * (256 - weight) + b * weight + 0x0080_0080) >> 8) & 0x00ff_00ff
}

/// A coarser level: each texel is the mean over its area.
pub(crate) fn reduced(fine: &Level, row_count: usize) -> Level {
    // Columns at a time. Where there is only sea, they cost a look at its texels, and no memory.
    const STEP: usize = 64;
    let rows = Rows::new(row_count);
    let ratio = fine.rows.count() as f64 / row_count as f64;
    let mut texels = fine.texels.zero_alike(rows.texel_count());
    rows.split(&mut texels).into_par_iter().enumerate().for_each(|(row, made)| {
        let width = made.len();
        for (step, made) in made.chunks_mut(STEP).enumerate() {
            let columns = step * STEP..step * STEP + made.len();
            let mut sums = [[0.0f32; 4]; STEP];
            let mut is_zero = true;
            for (fine_row, weight) in overlaps(row as f64 * ratio, (row + 1) as f64 * ratio) {
                if fine_row >= fine.rows.count() {
                    continue;
                }
                let texels = &fine.texels[fine.rows.range(fine_row)];
                let across = texels.len() as f64 / width as f64;
                let start = (columns.start as f64 * across) as usize;
                let end = ((columns.end as f64 * across) as usize + 1).min(texels.len());
                if texels[start..end].iter().fold(0, |any, texel| any | texel) == 0 {
                    continue;
                }
                is_zero = false;
                for (column, sum) in columns.clone().zip(&mut sums) {
                    let (start, end) = (column as f64 * across, (column + 1) as f64 * across);
                    for (at, part) in overlaps(start, end) {
                        let texel = texels[at.min(texels.len() - 1)].to_le_bytes();
                        for (sum, byte) in sum.iter_mut().zip(texel) {
                            *sum += (weight * part) as f32 * f32::from(byte);
                        }
                    }
                }
            }
            if !is_zero {
                made.iter_mut().zip(sums).for_each(|(made, sum)| *made = packed(sum));
            }
        }
    });
    Level { rows, texels }
}

/// The whole numbers that the interval `start..end` touches, each with its share of the interval.
#[inline(always)]
pub(crate) fn overlaps(start: f64, end: f64) -> impl Iterator<Item = (usize, f64)> {
    // An end a rounding error beyond a whole number touches nothing more.
    let last = (end - 1e-9) as usize;
    let scale = 1.0 / (end - start);
    (start as usize..=last)
        .map(move |at| (at, (end.min(at as f64 + 1.0) - start.max(at as f64)).max(0.0) * scale))
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
