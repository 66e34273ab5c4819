//! Warps: where each point of a picture lies on the map, and how alike both are under a warp.

use super::fields::Fields;

/// A warp from picture coordinates (−1/2 to 1/2, x to the right, y up) to a map in guessed widths
/// from the guessed middle, x east, y north.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Warp {
    /// East and north of the guessed middle, in guessed widths.
    pub(crate) east: f32,
    pub(crate) north: f32,
    /// Turn beyond the guess, clockwise, radians.
    pub(crate) turn: f32,
    /// Logarithm of the scale beyond the guess.
    pub(crate) scale: f32,
    /// A stretch that keeps the area: logarithm of half its factor, at a doubled angle in the
    /// picture.
    pub(crate) stretch: [f32; 2],
    /// Perspective: how much farther away, per width to the right and up.
    pub(crate) tilt: [f32; 2],
}

impl Warp {
    pub(crate) const COUNT: usize = 8;

    pub(crate) fn from_numbers(n: &[f32; Self::COUNT]) -> Self {
        Self {
            east: n[0],
            north: n[1],
            turn: n[2],
            scale: n[3],
            stretch: [n[4], n[5]],
            tilt: [n[6], n[7]],
        }
    }

    pub(crate) fn numbers(&self) -> [f32; Self::COUNT] {
        let [a, b] = self.stretch;
        [self.east, self.north, self.turn, self.scale, a, b, self.tilt[0], self.tilt[1]]
    }

    /// The linear part, without perspective: rows for east and north. `heading` is the guessed one.
    #[inline(always)]
    pub(crate) fn matrix(&self, heading: f32) -> [[f32; 2]; 2] {
        let [a, b] = self.stretch;
        let size = (a * a + b * b).sqrt();
        // The exponential of a symmetric matrix without trace.
        let (even, odd) = (size.cosh(), if size > 1e-6 { size.sinh() / size } else { 1.0 });
        let scale = self.scale.exp();
        let (along, across) = (scale * (even + odd * a), scale * (even - odd * a));
        let skew = scale * odd * b;
        let (sin, cos) = (heading + self.turn).sin_cos();
        [
            [cos * along + sin * skew, cos * skew + sin * across],
            [cos * skew - sin * along, cos * across - sin * skew],
        ]
    }

    /// Where a point of the picture lies.
    pub(crate) fn apply(&self, heading: f32, x: f32, y: f32) -> [f32; 2] {
        let [to_east, to_north] = self.matrix(heading);
        let farther = 1.0 / (1.0 - self.tilt[0] * x - self.tilt[1] * y);
        [
            self.east + (to_east[0] * x + to_east[1] * y) * farther,
            self.north + (to_north[0] * x + to_north[1] * y) * farther,
        ]
    }
}

/// A map's fields, north up, around the guessed middle.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) fields: Fields,
    /// Its width in guessed widths.
    pub(crate) span: f32,
    /// The guessed heading, radians.
    pub(crate) heading: f32,
}

impl Reference {
    /// The fields at a place of the map in pixels from the upper left pixel's center, nothing
    /// beyond its edge.
    #[inline(always)]
    pub(crate) fn at(&self, x: f32, y: f32) -> [f32; 4] {
        let side = self.fields.side;
        let last = (side - 1) as f32;
        if !(x >= 0.0 && y >= 0.0 && x < last && y < last) {
            return [0.0; 4];
        }
        let (column, row) = (x as i32 as usize, y as i32 as usize);
        let (right, down) = (x - column as f32, y - row as f32);
        let start = row * side + column;
        let (Some([a, b]), Some([c, d])) = (
            self.fields.values[start..].first_chunk(),
            self.fields.values[start + side..].first_chunk(),
        ) else {
            return [0.0; 4];
        };
        let lower_right = right * down;
        let weights = [1.0 - right - down + lower_right, right - lower_right, down - lower_right];
        let mut mixed = [0.0; 4];
        for i in 0..4 {
            mixed[i] =
                weights[0] * a[i] + weights[1] * b[i] + weights[2] * c[i] + lower_right * d[i];
        }
        mixed
    }

    /// Turns guessed widths into the map's pixels: factor and middle.
    #[inline(always)]
    pub(crate) fn pixels(&self) -> (f32, f32) {
        let side = self.fields.side as f32;
        (side / self.span, 0.5 * (side - 1.0))
    }
}

/// The least energy of a map, as a share of the picture's: a map with nothing on it is like nothing.
const LEAST_ENERGY: f32 = 0.15;

/// Normalized correlation from sums of products and energies, the mean of both fields.
#[inline(always)]
pub(crate) fn likeness_of(products: [f32; 2], map: [f32; 2], picture: [f32; 2]) -> f32 {
    let part = |i: usize| {
        products[i] / (map[i].max(LEAST_ENERGY * picture[i]) * picture[i]).max(1e-9).sqrt()
    };
    0.5 * (part(0) + part(1))
}

/// How alike a picture and the map under a warp are: 1 for the same, about 0 for chance.
#[inline(always)]
pub(crate) fn likeness(picture: &Fields, energies: [f32; 2], map: &Reference, warp: &Warp) -> f32 {
    let side = picture.side;
    let (pixels, middle) = map.pixels();
    let [to_east, to_north] = warp.matrix(map.heading);
    let (east, north) = (pixels * warp.east + middle, middle - pixels * warp.north);
    let step = 1.0 / side as f32;
    let (mut products, mut crossed, mut squares) = ([0.0f32; 4], [0.0f32; 4], [0.0f32; 4]);
    for (row, line) in picture.values.chunks_exact(side).enumerate() {
        let y = 0.5 - (row as f32 + 0.5) * step;
        for (column, value) in line.iter().enumerate() {
            let x = (column as f32 + 0.5) * step - 0.5;
            let farther = pixels / (1.0 - warp.tilt[0] * x - warp.tilt[1] * y);
            let found = map.at(
                east + (to_east[0] * x + to_east[1] * y) * farther,
                north - (to_north[0] * x + to_north[1] * y) * farther,
            );
            for i in 0..4 {
                products[i] += value[i] * found[i];
                crossed[i] += value[i] * found[i ^ 1];
                squares[i] += found[i] * found[i];
            }
        }
    }
    // Turning the map's vectors into the picture's frame turns the sums, no need to turn each.
    let (sin, cos) = (map.heading + warp.turn).sin_cos();
    let (sin_2, cos_2) = (2.0 * sin * cos, cos * cos - sin * sin);
    let luminance = cos * (products[0] + products[1]) + sin * (crossed[1] - crossed[0]);
    let tensor = cos_2 * (products[2] + products[3]) + sin_2 * (crossed[3] - crossed[2]);
    likeness_of([luminance, tensor], [squares[0] + squares[1], squares[2] + squares[3]], energies)
}
