//! From a source's rows of pixels to the texels of level 0: widths, land share, clean coasts.

use crate::land_mask::LandMask;
use crate::pyramid::{Level, Rows, in_order, overlaps, packed};

/// A row of texels from a row of pixels around the globe (red, green, blue each).
pub(crate) fn row_from_colours(
    colours: &[f32],
    rows: &Rows,
    row: usize,
    mask: &LandMask,
) -> Vec<u32> {
    let width = rows.width(row);
    let pixels = colours.len() / 3;
    let across = pixels as f64 / width as f64;
    let (top, bottom) = (row as f64 / rows.count() as f64, (row + 1) as f64 / rows.count() as f64);
    let land = mask.shares(top, bottom, width);
    (0..width)
        .map(|column| {
            let mut sum = [0.0f32, 0.0, 0.0, land[column] * 255.0];
            for (at, weight) in overlaps(column as f64 * across, (column + 1) as f64 * across) {
                let at = at.min(pixels - 1);
                for channel in 0..3 {
                    sum[channel] += weight as f32 * colours[at * 3 + channel];
                }
            }
            packed(sum)
        })
        .collect()
}

/// How far paint of the sea reaches into the land, in texels: sources and mask don't agree to the
/// pixel, and JPEG smears colour. Land nearer than this to the sea takes its colour from inland.
const SMEAR_TEXELS: i64 = 2;
/// How far inland is looked for.
const REACH_TEXELS: i64 = 4;
/// Islands too small to have an inside: a dull green, as seen through air.
const SMALL_ISLAND: [u8; 3] = [62, 74, 52];

/// Level 0 without paint of the sea: coasts coloured from inland, colours multiplied by the land
/// share, sea zero.
pub(crate) fn without_sea(painted: Level) -> Level {
    let Level { rows, texels } = painted;
    let cleaned = in_order(rows.count(), rows.texel_count(), |row| {
        let around = Around { rows: &rows, texels: &texels[..], row };
        (0..rows.width(row))
            .map(|column| {
                let texel = texels[rows.range(row).start + column].to_le_bytes();
                let land = texel[3];
                if land == 0 {
                    return 0;
                }
                let colour = if around.is_inland(0, column as i64) {
                    [texel[0], texel[1], texel[2]]
                } else {
                    around.inland_colour(column as i64)
                };
                let share = f32::from(land) / 255.0;
                let [r, g, b] = colour.map(|value| f32::from(value) * share);
                packed([r, g, b, f32::from(land)])
            })
            .collect()
    });
    Level { rows, texels: cleaned }
}

struct Around<'a> {
    rows: &'a Rows,
    texels: &'a [u32],
    row: usize,
}

impl Around<'_> {
    /// The texel `down` rows below and at a column of this row, moved by `across`.
    #[inline(always)]
    fn texel(&self, down: i64, column: i64, across: i64) -> u32 {
        let row = (self.row as i64 + down).clamp(0, self.rows.count() as i64 - 1) as usize;
        let width = self.rows.width(row) as i64;
        let column = if row == self.row {
            column
        } else {
            (2 * column + 1) * width / (2 * self.rows.width(self.row) as i64)
        };
        self.texels[self.rows.range(row).start + (column + across).rem_euclid(width) as usize]
    }

    fn is_inland(&self, down: i64, column: i64) -> bool {
        let all_land = |down: i64, across: i64| self.texel(down, column, across) >> 24 == 255;
        (-SMEAR_TEXELS..=SMEAR_TEXELS).all(|step| all_land(down, step) && all_land(down + step, 0))
            && [-1, 1].iter().all(|&y| all_land(down + y, -1) && all_land(down + y, 1))
    }

    fn inland_colour(&self, column: i64) -> [u8; 3] {
        let mean = |counts: &dyn Fn(i64, i64) -> bool| {
            let (mut sum, mut weights) = ([0.0f32; 3], 0.0f32);
            for down in -REACH_TEXELS..=REACH_TEXELS {
                for across in -REACH_TEXELS..=REACH_TEXELS {
                    if counts(down, across) {
                        let weight = 1.0 / (down * down + across * across).max(1) as f32;
                        let texel = self.texel(down, column, across).to_le_bytes();
                        (0..3).for_each(|c| sum[c] += weight * f32::from(texel[c]));
                        weights += weight;
                    }
                }
            }
            (weights > 0.0).then(|| sum.map(|value| (value / weights + 0.5) as u8))
        };
        mean(&|down, across| self.is_inland(down, column + across)).unwrap_or(SMALL_ISLAND)
    }
}
