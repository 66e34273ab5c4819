//! The Legendre half of a transform: between coefficients and the Fourier spectrum of each
//! pair of mirrored rings.
//!
//! Coefficients come in as cosine and sine rows (see [`triangle`]). Spectra are laid out as
//! the FFT needs them, `[function, pair, longitude]`, for the complex signal north + i·south: with
//! N_m = (a − i·b)/2 the spectrum of a northern ring with cosine and sine sums a and b, and
//! S_m that of the southern one, entry m is N_m + i·S_m and entry n − m is
//! conj(N_m) + i·conj(S_m). Even and odd degrees are summed apart, because
//! p_lm(π − θ) = (−1)^(l+m)·p_lm(θ) makes the southern ring from the same two sums.

use rustfft::num_complex::Complex;

use crate::direction::Colatitude;
use crate::legendre::{Legendre, Rows, UNSCALE};
use crate::simd::{Kernel, vectorised};
use crate::triangle::{self, LANES, lanes, lanes_mut};
use crate::{Grid, Scalar};

/// Functions that share one pass over the table, which is larger than the nearest cache.
pub(crate) const GROUP: usize = 4;
/// Tables beyond this are not kept; the recurrence runs anew for each transform. Reached
/// near degree 400 in f32, or 315 in f64, with 2·degree rings.
const LARGEST_TABLE_BYTES: usize = 128 << 20;

pub(crate) struct LegendreStage<T> {
    max_degree: usize,
    /// Orders that the longitudes can tell apart; higher ones must have no coefficients.
    orders: usize,
    longitudes: usize,
    /// Colatitude and weight per point of each northern ring.
    rings: Vec<(Colatitude, T)>,
    method: Method<T>,
}

enum Method<T> {
    /// The functions p_lm at each ring: `[ring, triangle]`.
    Table(Vec<T>),
    /// Computed on the fly.
    Recurrence(Box<Legendre>),
}

/// The coefficients of one function, by degree and order.
#[derive(Clone)]
pub(crate) struct Split<T> {
    cosines: Vec<T>,
    sines: Vec<T>,
}

impl<T: Scalar> Split<T> {
    pub(crate) fn new(max_degree: usize) -> Split<T> {
        let zeros = vec![T::zero(); triangle::len(max_degree)];
        Split { cosines: zeros.clone(), sines: zeros }
    }

    pub(crate) fn set(&mut self, coefficients: &[T]) {
        triangle::split(coefficients, &mut self.cosines, &mut self.sines);
    }

    pub(crate) fn write_to(&self, coefficients: &mut [T]) {
        triangle::join(&self.cosines, &self.sines, coefficients);
    }
}

/// Cosine and sine coefficients as vectors.
type SplitLanes<'a, T> = (&'a [[T; LANES]], &'a [[T; LANES]]);

/// Per order: sums over even and odd degrees of the cosine part, then of the sine part.
type Sums<T> = [[T; LANES]; 4];

impl<T: Scalar> LegendreStage<T> {
    pub(crate) fn new(grid: &Grid, max_degree: usize) -> LegendreStage<T> {
        let pairs = grid.northern.len();
        let rings = (0..pairs).map(|ring| {
            let theta = Colatitude::from_radians(grid.northern[ring].colatitude);
            (theta, T::rounded(grid.weight(ring)))
        });
        let rings: Vec<_> = rings.collect();
        let legendre = Legendre::new(max_degree);
        let method = if pairs * triangle::len(max_degree) * size_of::<T>() <= LARGEST_TABLE_BYTES {
            Method::Table(vectorised(MakeTable { legendre: &legendre, rings: &rings }))
        } else {
            Method::Recurrence(Box::new(legendre))
        };
        let longitudes = grid.longitudes();
        let orders = (max_degree + 1).min(longitudes.div_ceil(2));
        LegendreStage { max_degree, orders, longitudes, rings, method }
    }

    /// From coefficients of up to [`GROUP`] functions to their spectra. Entries between the
    /// highest order and its mirror image are left alone.
    pub(crate) fn synthesize(&self, functions: &[Split<T>], spectrum: &mut [Complex<T>]) {
        if let Ok(functions) = functions.try_into() {
            vectorised(Synthesize::<T, GROUP> { stage: self, functions, spectrum });
            return;
        }
        let size = self.rings.len() * self.longitudes;
        for (function, spectrum) in functions.iter().zip(spectrum.chunks_exact_mut(size)) {
            let functions = std::array::from_ref(function);
            vectorised(Synthesize { stage: self, functions, spectrum });
        }
    }

    /// From the spectra of up to [`GROUP`] functions to their coefficients.
    pub(crate) fn analyze(&self, spectrum: &[Complex<T>], functions: &mut [Split<T>]) {
        if let Ok(functions) = <&mut [Split<T>; GROUP]>::try_from(&mut *functions) {
            vectorised(Analyze { stage: self, functions, spectrum });
            return;
        }
        let size = self.rings.len() * self.longitudes;
        for (function, spectrum) in functions.iter_mut().zip(spectrum.chunks_exact(size)) {
            let functions = std::array::from_mut(function);
            vectorised(Analyze { stage: self, functions, spectrum });
        }
    }

    /// Writes a block of orders of one pair's spectrum.
    #[inline(always)]
    fn write_orders(&self, spectrum: &mut [Complex<T>], block: usize, sums: &Sums<T>) {
        let half = T::rounded(0.5);
        let [even_cos, odd_cos, even_sin, odd_sin] = sums;
        let (mut low, mut high) = ([Complex::default(); LANES], [Complex::default(); LANES]);
        for i in 0..LANES {
            // North a, b and south c, d; blocks begin at even orders.
            let sign = if i % 2 == 0 { half } else { -half };
            let (a, b) = (half * (even_cos[i] + odd_cos[i]), half * (even_sin[i] + odd_sin[i]));
            let (c, d) = (sign * (even_cos[i] - odd_cos[i]), sign * (even_sin[i] - odd_sin[i]));
            low[i] = Complex::new(a + d, c - b);
            high[LANES - 1 - i] = Complex::new(a - d, c + b);
        }
        let first = block * LANES;
        let count = self.orders.saturating_sub(first).min(LANES);
        if count == 0 {
            return;
        }
        if first == 0 {
            // The constant has no mirror image to share its two halves with.
            low[0] = low[0] + low[0];
        }
        spectrum[first..first + count].copy_from_slice(&low[..count]);
        // Order m goes to n − m as well, which for m = 0 is no entry of its own.
        let skip = usize::from(first == 0);
        let end = self.longitudes + 1 - first - skip;
        spectrum[end - (count - skip)..end].copy_from_slice(&high[LANES - count..LANES - skip]);
    }

    /// Reads a block of orders: what even and odd degrees see of the two rings.
    #[inline(always)]
    fn read_orders(&self, spectrum: &[Complex<T>], block: usize, weight: T) -> Sums<T> {
        let half = T::rounded(0.5) * weight;
        let mut sums = [[T::zero(); LANES]; 4];
        let first = block * LANES;
        for i in 0..self.orders.saturating_sub(first).min(LANES) {
            let m = first + i;
            let here = spectrum[m];
            let there = if m == 0 { here } else { spectrum[self.longitudes - m] };
            let sign = if i % 2 == 0 { half } else { -half };
            let (a, b) = (half * (here.re + there.re), half * (there.im - here.im));
            let (c, d) = (sign * (here.im + there.im), sign * (here.re - there.re));
            [sums[0][i], sums[1][i]] = [a + c, a - c];
            [sums[2][i], sums[3][i]] = [b + d, b - d];
        }
        sums
    }
}

struct MakeTable<'a, T> {
    legendre: &'a Legendre,
    rings: &'a [(Colatitude, T)],
}

impl<T: Scalar> Kernel for MakeTable<'_, T> {
    type Output = Vec<T>;

    #[inline(always)]
    fn run(self) -> Vec<T> {
        let max_degree = self.legendre.max_degree();
        let mut table = Vec::with_capacity(self.rings.len() * triangle::len(max_degree));
        let mut rows = Rows::new(max_degree);
        for (theta, _) in self.rings {
            let mut walk = self.legendre.walk(*theta, &mut rows);
            while let Some((_, p)) = walk.next() {
                table.extend(p.iter().map(|p| T::rounded(p * UNSCALE)));
            }
        }
        table
    }
}

struct Synthesize<'a, T, const N: usize> {
    stage: &'a LegendreStage<T>,
    functions: &'a [Split<T>; N],
    spectrum: &'a mut [Complex<T>],
}

impl<T: Scalar, const N: usize> Kernel for Synthesize<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let stage = self.stage;
        let blocks = stage.max_degree / LANES + 1;
        match &stage.method {
            // Blocks outside: the functions' coefficients of one block fit the nearest cache.
            Method::Table(table) => {
                let functions = self.functions.each_ref();
                let functions = functions.map(|f| (lanes(&f.cosines), lanes(&f.sines)));
                for block in 0..blocks {
                    let tables = table.chunks_exact(triangle::len(stage.max_degree));
                    for (pair, table) in tables.enumerate() {
                        let sums = sum_degrees(stage.max_degree, block, lanes(table), &functions);
                        write_group(stage, self.spectrum, pair, block, &sums);
                    }
                }
            }
            Method::Recurrence(legendre) => {
                let mut rows = Rows::new(stage.max_degree);
                let mut row = vec![T::zero(); triangle::row_len(stage.max_degree)];
                for (pair, (theta, _)) in stage.rings.iter().enumerate() {
                    let mut sums = vec![[[[T::zero(); LANES]; 4]; N]; blocks];
                    let mut walk = legendre.walk(*theta, &mut rows);
                    while let Some((l, p)) = walk.next() {
                        let p = unscaled(p, &mut row);
                        for (n, function) in self.functions.iter().enumerate() {
                            let cosines = lanes(triangle::row(&function.cosines, l));
                            let sines = lanes(triangle::row(&function.sines, l));
                            for (block, p) in lanes(p).iter().enumerate() {
                                let sums = &mut sums[block][n];
                                add_product(&mut sums[l % 2], p, &cosines[block]);
                                add_product(&mut sums[2 + l % 2], p, &sines[block]);
                            }
                        }
                    }
                    for (block, sums) in sums.iter().enumerate() {
                        write_group(stage, self.spectrum, pair, block, sums);
                    }
                }
            }
        }
    }
}

/// Writes a block of orders of one pair of rings for each function.
#[inline(always)]
fn write_group<T: Scalar, const N: usize>(
    stage: &LegendreStage<T>,
    spectrum: &mut [Complex<T>],
    pair: usize,
    block: usize,
    sums: &[Sums<T>; N],
) {
    for (function, sums) in sums.iter().enumerate() {
        let start = (function * stage.rings.len() + pair) * stage.longitudes;
        stage.write_orders(&mut spectrum[start..start + stage.longitudes], block, sums);
    }
}

/// Sums over even and odd degrees for one block of orders, held in registers.
#[inline(always)]
fn sum_degrees<T: Scalar, const N: usize>(
    max_degree: usize,
    block: usize,
    table: &[[T; LANES]],
    functions: &[SplitLanes<'_, T>; N],
) -> [Sums<T>; N] {
    let mut sums = [[[T::zero(); LANES]; 4]; N];
    // Orders of this block appear from degree block · LANES on, which is even.
    let mut l = block * LANES;
    let mut at = triangle::row_start(l) / LANES + block;
    while l <= max_degree {
        let even = table[at];
        for (sums, (cosines, sines)) in sums.iter_mut().zip(functions) {
            add_product(&mut sums[0], &even, &cosines[at]);
            add_product(&mut sums[2], &even, &sines[at]);
        }
        at += l / LANES + 1;
        if l < max_degree {
            let odd = table[at];
            for (sums, (cosines, sines)) in sums.iter_mut().zip(functions) {
                add_product(&mut sums[1], &odd, &cosines[at]);
                add_product(&mut sums[3], &odd, &sines[at]);
            }
            at += (l + 1) / LANES + 1;
        }
        l += 2;
    }
    sums
}

/// What even and odd degrees see of one pair of rings of one function.
#[inline(always)]
fn read_one<T: Scalar>(
    stage: &LegendreStage<T>,
    spectrum: &[Complex<T>],
    pair: usize,
    block: usize,
    function: usize,
) -> Sums<T> {
    let start = (function * stage.rings.len() + pair) * stage.longitudes;
    stage.read_orders(&spectrum[start..start + stage.longitudes], block, stage.rings[pair].1)
}

struct Analyze<'a, T, const N: usize> {
    stage: &'a LegendreStage<T>,
    functions: &'a mut [Split<T>; N],
    spectrum: &'a [Complex<T>],
}

impl<T: Scalar, const N: usize> Kernel for Analyze<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let stage = self.stage;
        for function in self.functions.iter_mut() {
            function.cosines.fill(T::zero());
            function.sines.fill(T::zero());
        }
        let blocks = stage.max_degree / LANES + 1;
        match &stage.method {
            Method::Table(table) => {
                for block in 0..blocks {
                    let tables = table.chunks_exact(triangle::len(stage.max_degree));
                    for (pair, table) in tables.enumerate() {
                        let table = lanes(table);
                        for (n, function) in self.functions.iter_mut().enumerate() {
                            let seen = read_one(stage, self.spectrum, pair, block, n);
                            let cosines = lanes_mut(&mut function.cosines);
                            let sines = lanes_mut(&mut function.sines);
                            let mut at = triangle::row_start(block * LANES) / LANES + block;
                            for l in block * LANES..stage.max_degree + 1 {
                                add_product(&mut cosines[at], &table[at], &seen[l % 2]);
                                add_product(&mut sines[at], &table[at], &seen[2 + l % 2]);
                                at += l / LANES + 1;
                            }
                        }
                    }
                }
            }
            Method::Recurrence(legendre) => {
                let mut rows = Rows::new(stage.max_degree);
                let mut row = vec![T::zero(); triangle::row_len(stage.max_degree)];
                for (pair, (theta, _)) in stage.rings.iter().enumerate() {
                    let seen: Vec<[Sums<T>; N]> = (0..blocks)
                        .map(|block| {
                            std::array::from_fn(|n| read_one(stage, self.spectrum, pair, block, n))
                        })
                        .collect();
                    let mut walk = legendre.walk(*theta, &mut rows);
                    while let Some((l, p)) = walk.next() {
                        let p = unscaled(p, &mut row);
                        let first = triangle::row_start(l) / LANES;
                        for (n, function) in self.functions.iter_mut().enumerate() {
                            let cosines = &mut lanes_mut(&mut function.cosines)[first..];
                            let sines = &mut lanes_mut(&mut function.sines)[first..];
                            for (block, p) in lanes(p).iter().enumerate() {
                                let seen = &seen[block][n];
                                add_product(&mut cosines[block], p, &seen[l % 2]);
                                add_product(&mut sines[block], p, &seen[2 + l % 2]);
                            }
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn add_product<T: Scalar>(sum: &mut [T; LANES], a: &[T; LANES], b: &[T; LANES]) {
    let mut result = [T::zero(); LANES];
    for i in 0..LANES {
        result[i] = sum[i] + a[i] * b[i];
    }
    *sum = result;
}

/// The row without its scale, in the transform's number type.
#[inline(always)]
fn unscaled<'a, T: Scalar>(p: &[f64], row: &'a mut [T]) -> &'a [T] {
    let row = &mut row[..p.len()];
    for (out, p) in lanes_mut(row).iter_mut().zip(lanes(p)) {
        let mut result = [T::zero(); LANES];
        for i in 0..LANES {
            result[i] = T::rounded(p[i] * UNSCALE);
        }
        *out = result;
    }
    row
}
