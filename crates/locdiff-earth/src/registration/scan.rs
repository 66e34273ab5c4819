//! The coarse search: all warps within the guess's error, in steps that lose little.
//!
//! For each turn, scale and stretch the map is resampled once into the picture's frame, a few
//! pixels larger to each side; shifts by whole pixels are then plain products of rows.

use super::fields::Fields;
use super::warp::{Reference, Warp, likeness_of};

/// Shifts to each side, in pixels of the picture.
const REACH: usize = 3;
/// Turns to each side and their step, radians.
const TURNS: i32 = 3;
const TURN_STEP: f32 = 0.055;
/// Scales to each side and the step of their logarithm.
const SCALES: i32 = 3;
const SCALE_STEP: f32 = 0.06;
/// The stretch that oblique views are tried with, in four directions.
const STRETCH: f32 = 1.4;
const DIRECTIONS: [[f32; 2]; 5] = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]];

/// A warp and its likeness.
pub(crate) type Scored = (f32, Warp);

/// The picture at the scan's resolution, plane by plane.
#[derive(Clone, Debug)]
pub(crate) struct Planes {
    side: usize,
    planes: [Vec<f32>; 4],
    energies: [f32; 2],
}

impl Planes {
    pub(crate) fn of(fields: &Fields) -> Self {
        let plane = |i: usize| fields.values.iter().map(|value| value[i]).collect();
        Self { side: fields.side, planes: std::array::from_fn(plane), energies: fields.energies() }
    }

    /// The best shift of every turn, scale and stretch, best first.
    #[inline(always)]
    pub(crate) fn scan(&self, map: &Reference) -> Vec<Scored> {
        let wide = self.side + 2 * REACH;
        let mut window = Window { wide, planes: std::array::from_fn(|_| vec![0.0; wide * wide]) };
        let mut found = Vec::new();
        for direction in DIRECTIONS {
            let stretch = direction.map(|value| value * 0.5 * STRETCH.ln());
            for turn in -TURNS..=TURNS {
                for scale in -SCALES..=SCALES {
                    let warp = Warp {
                        turn: turn as f32 * TURN_STEP,
                        scale: scale as f32 * SCALE_STEP,
                        stretch,
                        ..Warp::default()
                    };
                    window.fill(self.side, map, &warp);
                    found.push(self.best_shift(&window, map, warp));
                }
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found
    }

    #[inline(always)]
    fn best_shift(&self, window: &Window, map: &Reference, warp: Warp) -> Scored {
        let side = self.side;
        let squares = [window.square_sums(0, side), window.square_sums(2, side)];
        let mut best = (f32::MIN, 0, 0);
        for down in 0..=2 * REACH {
            for right in 0..=2 * REACH {
                let mut products = [0.0; 4];
                for (product, (own, other)) in
                    products.iter_mut().zip(self.planes.iter().zip(&window.planes))
                {
                    *product = product_of(own, other, side, window.wide, down, right);
                }
                let at = down * (2 * REACH + 1) + right;
                let likeness = likeness_of(
                    [products[0] + products[1], products[2] + products[3]],
                    [squares[0][at], squares[1][at]],
                    self.energies,
                );
                if likeness > best.0 {
                    best = (likeness, down, right);
                }
            }
        }
        let (likeness, down, right) = best;
        let [to_east, to_north] = warp.matrix(map.heading);
        let x = (right as f32 - REACH as f32) / side as f32;
        let y = (REACH as f32 - down as f32) / side as f32;
        let east = to_east[0] * x + to_east[1] * y;
        let north = to_north[0] * x + to_north[1] * y;
        (likeness, Warp { east, north, ..warp })
    }
}

/// The sum of products of a picture and the part of a window that begins at a row and a column.
#[inline(always)]
fn product_of(
    own: &[f32],
    other: &[f32],
    side: usize,
    wide: usize,
    down: usize,
    right: usize,
) -> f32 {
    const PARTS: usize = 8;
    let mut sums = [0.0f32; PARTS];
    for (row, line) in own.chunks_exact(side).enumerate() {
        let under = &other[(row + down) * wide + right..][..side];
        for (a, b) in line.chunks_exact(PARTS).zip(under.chunks_exact(PARTS)) {
            for i in 0..PARTS {
                sums[i] += a[i] * b[i];
            }
        }
    }
    sums.iter().sum()
}

/// The map in the picture's frame, `REACH` pixels larger to each side.
struct Window {
    wide: usize,
    planes: [Vec<f32>; 4],
}

impl Window {
    #[inline(always)]
    fn fill(&mut self, side: usize, map: &Reference, warp: &Warp) {
        let (pixels, middle) = map.pixels();
        let matrix = warp.matrix(map.heading).map(|row| row.map(|v| v * pixels / side as f32));
        let [to_east, to_north] = matrix;
        let (sin, cos) = (map.heading + warp.turn).sin_cos();
        let (sin_2, cos_2) = (2.0 * sin * cos, cos * cos - sin * sin);
        let half = 0.5 * (self.wide as f32 - 1.0);
        for row in 0..self.wide {
            let y = half - row as f32;
            for column in 0..self.wide {
                let x = column as f32 - half;
                let [a, b, c, d] = map.at(
                    middle + to_east[0] * x + to_east[1] * y,
                    middle - to_north[0] * x - to_north[1] * y,
                );
                let at = row * self.wide + column;
                self.planes[0][at] = cos * a - sin * b;
                self.planes[1][at] = sin * a + cos * b;
                self.planes[2][at] = cos_2 * c - sin_2 * d;
                self.planes[3][at] = sin_2 * c + cos_2 * d;
            }
        }
    }

    /// The energy of a field under the picture for each shift, rows first.
    #[inline(always)]
    fn square_sums(&self, field: usize, side: usize) -> Vec<f32> {
        const SHIFTS: usize = 2 * REACH + 1;
        let (x, y) = (&self.planes[field], &self.planes[field + 1]);
        let square = |at: usize| x[at] * x[at] + y[at] * y[at];
        // Of each row, for each shift to the right.
        let mut rows = vec![[0.0f32; SHIFTS]; self.wide];
        for (row, sums) in rows.iter_mut().enumerate() {
            let start = row * self.wide;
            let mut sum: f32 = (start..start + side).map(square).sum();
            for (right, out) in sums.iter_mut().enumerate() {
                *out = sum;
                if right + 1 < SHIFTS {
                    sum += square(start + right + side) - square(start + right);
                }
            }
        }
        (0..SHIFTS)
            .flat_map(|down| {
                let mut sums = [0.0f32; SHIFTS];
                for row in &rows[down..down + side] {
                    for (sum, value) in sums.iter_mut().zip(row) {
                        *sum += value;
                    }
                }
                sums
            })
            .collect()
    }
}

/// The best of a scan that differ from each other, at most `most`.
pub(crate) fn distinct(found: &[Scored], most: usize) -> Vec<Scored> {
    let mut kept: Vec<Scored> = Vec::with_capacity(most);
    for &(likeness, warp) in found {
        let near = |other: &Warp| {
            (warp.east - other.east).hypot(warp.north - other.north) < 0.05
                && (warp.turn - other.turn).abs() < 1.5 * TURN_STEP
                && (warp.scale - other.scale).abs() < 1.5 * SCALE_STEP
                && warp.stretch == other.stretch
        };
        if kept.len() < most && !kept.iter().any(|(_, other)| near(other)) {
            kept.push((likeness, warp));
        }
    }
    kept
}
