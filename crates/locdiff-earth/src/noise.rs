//! Noise, made once and looked up: tiles that repeat, in four characters, each with its reductions.
//!
//! A view is a small part of the globe with weather of its own, so noise in the plane that touches
//! the globe at the view's centre has no seam to show, and costs a quarter of noise in space.

use std::sync::OnceLock;

use crate::pyramid::{LANES, split};
use crate::random::Random;

const SIDE: usize = 256;
const REDUCTIONS: usize = 6;

/// What noise looks like.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Character {
    /// Blotches of all sizes.
    Billows = 0,
    /// Streaks and filaments.
    Ridges = 1,
    /// Cells, as convection makes.
    Cells = 2,
    /// Broad swells with little detail.
    Swells = 3,
}

/// Values spread evenly over 0–255, so that a threshold is a coverage.
struct Tile {
    // Each value with its neighbours to the right, below, and below to the right, as one number.
    reductions: Vec<Vec<u32>>,
}

/// A tile laid over the ground: from km east and north of the view's centre to its columns and rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    from_east: [f32; 2],
    from_north: [f32; 2],
    offset: [f32; 2],
    character: Character,
    reduction: usize,
}

impl Layer {
    /// A layer that repeats after `period_km`, `stretch` times longer in one direction, averaged
    /// over pixels of `pixel_km`.
    pub(crate) fn random(
        random: &mut Random,
        character: Character,
        period_km: f64,
        stretch: f64,
        pixel_km: f64,
    ) -> Self {
        let (sin, cos) = random.between(0.0, std::f64::consts::TAU).sin_cos();
        let texel_km = period_km / SIDE as f64;
        let reduction = (pixel_km / texel_km).log2().clamp(0.0, (REDUCTIONS - 1) as f64) as usize;
        let size = (SIDE >> reduction) as f64;
        let (long, short) = (size / (period_km * stretch), size / period_km);
        // Far from zero, so that no coordinate is negative: the wrap is then a plain mask.
        let mut offset = || (65_536.0 + random.between(0.0, size)) as f32;
        Self {
            from_east: [(cos * long) as f32, (-sin * short) as f32],
            from_north: [(sin * long) as f32, (cos * short) as f32],
            offset: [offset(), offset()],
            character,
            reduction,
        }
    }

    /// The noise (0–1) at points, km east and north of the centre, moved by parts of the period.
    #[inline(always)]
    pub(crate) fn at(
        &self,
        tiles: &Tiles,
        east: &[f32; LANES],
        north: &[f32; LANES],
        warp: &[f32; LANES],
    ) -> [f32; LANES] {
        let size = SIDE >> self.reduction;
        let (mask, row_bits) = (size as u32 - 1, size.trailing_zeros());
        let texels = &tiles.tiles[self.character as usize].reductions[self.reduction][..];
        let (mut at, mut right, mut below) = ([0; LANES], [0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let shift = warp[lane] * size as f32;
            let place = |axis: usize| {
                self.from_east[axis] * east[lane]
                    + self.from_north[axis] * north[lane]
                    + self.offset[axis]
            };
            let (column, column_part) = split(place(0) + shift);
            let (row, row_part) = split(place(1) + 0.7 * shift);
            at[lane] = ((row & mask) << row_bits) + (column & mask);
            right[lane] = column_part as i32 as f32 * (1.0 / 256.0);
            below[lane] = row_part as i32 as f32 * (1.0 / 256.0);
        }
        let four: [u32; LANES] = std::array::from_fn(|lane| texels[at[lane] as usize]);
        let mut out = [0.0; LANES];
        for lane in 0..LANES {
            let value = |shift: u32| ((four[lane] >> shift) & 0xff) as i32 as f32;
            let top = value(0) + (value(8) - value(0)) * right[lane];
            let bottom = value(16) + (value(24) - value(16)) * right[lane];
            out[lane] = (top + (bottom - top) * below[lane]) * (1.0 / 255.0);
        }
        out
    }
}

/// All tiles; made at first use, the same in every process.
pub(crate) struct Tiles {
    tiles: [Tile; 4],
}

impl Tiles {
    pub(crate) fn shared() -> &'static Self {
        static TILES: OnceLock<Tiles> = OnceLock::new();
        TILES.get_or_init(|| {
            let mut random = Random::new(0x0c10_0d5e);
            Self {
                tiles: [
                    Tile::new(fractal(&mut random, 4, 6, 0.55, |value| value)),
                    Tile::new(fractal(&mut random, 4, 6, 0.6, |value| {
                        1.0 - (2.0 * value - 1.0).abs()
                    })),
                    Tile::new(cells(&mut random)),
                    Tile::new(fractal(&mut random, 3, 5, 0.35, |value| value)),
                ],
            }
        })
    }
}

impl Tile {
    fn new(values: Vec<f32>) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        let mut finest = vec![0u8; values.len()];
        for (rank, &at) in order.iter().enumerate() {
            finest[at] = (rank * 256 / values.len()) as u8;
        }
        let mut reductions = vec![finest];
        for step in 1..REDUCTIONS {
            let (fine, size) = (&reductions[step - 1], SIDE >> step);
            let mean = |at: usize| {
                let corner = 2 * (at / size) * 2 * size + 2 * (at % size);
                let sum: u16 = [0, 1, 2 * size, 2 * size + 1]
                    .iter()
                    .map(|step| u16::from(fine[corner + step]))
                    .sum();
                ((sum + 2) / 4) as u8
            };
            reductions.push((0..size * size).map(mean).collect());
        }
        Self { reductions: reductions.iter().map(|values| with_neighbours(values)).collect() }
    }
}

fn with_neighbours(values: &[u8]) -> Vec<u32> {
    let size = values.len().isqrt();
    let value = |row: usize, column: usize| values[(row % size) * size + column % size];
    (0..values.len())
        .map(|at| {
            let (row, column) = (at / size, at % size);
            u32::from_le_bytes([
                value(row, column),
                value(row, column + 1),
                value(row + 1, column),
                value(row + 1, column + 1),
            ])
        })
        .collect()
}

/// Octaves of smooth random values; the first has `first` of them on a side.
fn fractal(
    random: &mut Random,
    first: usize,
    octaves: usize,
    fade: f32,
    shape: impl Fn(f32) -> f32,
) -> Vec<f32> {
    let mut sum = vec![0.0f32; SIDE * SIDE];
    let mut weight = 1.0;
    for octave in 0..octaves {
        let count = first << octave;
        let lattice: Vec<f32> = (0..count * count).map(|_| random.unit() as f32).collect();
        for (at, sum) in sum.iter_mut().enumerate() {
            let position = |pixel: usize| {
                let place = (pixel * count) as f32 / SIDE as f32;
                let (cell, part) = (place as usize, place.fract());
                (cell, (cell + 1) % count, part * part * part * (part * (part * 6.0 - 15.0) + 10.0))
            };
            let ((x, x_next, right), (y, y_next, below)) =
                (position(at % SIDE), position(at / SIDE));
            let value = |x: usize, y: usize| lattice[y * count + x];
            let top = value(x, y) * (1.0 - right) + value(x_next, y) * right;
            let bottom = value(x, y_next) * (1.0 - right) + value(x_next, y_next) * right;
            *sum += weight * shape(top * (1.0 - below) + bottom * below);
        }
        weight *= fade;
    }
    sum
}

/// Cells around scattered points, in two sizes, roughened.
fn cells(random: &mut Random) -> Vec<f32> {
    let mut sum = fractal(random, 6, 5, 0.6, |value| 0.5 * value);
    for (count, weight) in [(9usize, 0.7f32), (22, 0.5)] {
        let points: Vec<[f32; 2]> =
            (0..count * count).map(|_| [random.unit() as f32, random.unit() as f32]).collect();
        for (at, sum) in sum.iter_mut().enumerate() {
            let scale = count as f32 / SIDE as f32;
            let (x, y) = ((at % SIDE) as f32 * scale, (at / SIDE) as f32 * scale);
            let mut nearest = f32::MAX;
            for step in 0..9 {
                let column = x as usize + count + step % 3 - 1;
                let row = y as usize + count + step / 3 - 1;
                let point = points[(row % count) * count + column % count];
                let across = column as f32 - count as f32 + point[0] - x;
                let down = row as f32 - count as f32 + point[1] - y;
                nearest = nearest.min(across * across + down * down);
            }
            *sum += weight * (1.0 - nearest.sqrt());
        }
    }
    sum
}
