//! Pillow's antialiased bicubic resizing, of just the part that is wanted.
//!
//! Pillow's `BICUBIC` is the cubic convolution with a = −0.5, widened when pictures shrink, with
//! weights of 22 bits. It goes across, rounds to 8 bits, and goes down; the other way round for
//! pictures that lose far more rows than columns (since Pillow 13). So does this, and the numbers
//! are the same. (fast_image_resize has weights of 15 bits and always goes down first: up to three
//! levels off where edges overshoot.)

use super::picture::Photo;
use crate::tensors::fused::vectorised;

/// A rectangle of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) left: u64,
    pub(super) top: u64,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Photo {
    /// The size at which the shortest side has a length, as transformers and torchvision have
    /// it: the longest is rounded down.
    pub(super) fn size_with_shortest(&self, side: u32) -> (u64, u64) {
        let longest = |long: u32, short: u32| u64::from(side) * u64::from(long) / u64::from(short);
        let side = u64::from(side);
        match (self.width(), self.height()) {
            (width, height) if width <= height => (side, longest(height, width)),
            (width, height) => (longest(width, height), side),
        }
    }

    /// The largest square in the middle, as torchvision's `center_crop` cuts it: halves of pixels are rounded to even.
    pub(super) fn middle_square(&self) -> Area {
        let (width, height) = (self.width(), self.height());
        let side = width.min(height);
        let before = |length: u32| (f64::from(length - side) / 2.0).round_ties_even() as u64;
        Area { left: before(width), top: before(height), width: side, height: side }
    }

    /// The square in the middle of the picture, resized to so many pixels along a side: red, green
    /// and blue bytes, row by row.
    pub fn square(&self, side: u32) -> Vec<u8> {
        let (width, height) = self.size_with_shortest(side);
        let (left, top) = ((width - u64::from(side)) / 2, (height - u64::from(side)) / 2);
        self.resized_area((width, height), Area { left, top, width: side, height: side })
    }

    /// The whole picture, made smaller if its longest side has more pixels than this.
    pub fn shrunk_to(&self, longest: u32) -> Photo {
        let side = self.width().max(self.height());
        if side <= longest.max(1) {
            return self.clone();
        }
        let scaled = |pixels: u32| {
            let scaled = u64::from(pixels) * u64::from(longest.max(1)) / u64::from(side);
            (scaled as u32).max(1)
        };
        let (width, height) = (scaled(self.width()), scaled(self.height()));
        let all = Area { left: 0, top: 0, width, height };
        let rgb = self.resized_area((u64::from(width), u64::from(height)), all);
        Photo::from_rgb(width, height, rgb).expect("as many pixels as were asked for")
    }

    /// RGB of an area of the picture resized to `width`×`height`. Nothing outside the area is
    /// computed: a panorama costs no more than a square.
    pub(super) fn resized_area(&self, (width, height): (u64, u64), area: Area) -> Vec<u8> {
        let all = Area { left: 0, top: 0, width: self.width(), height: self.height() };
        let across = Span::new(area.left, area.width, self.width(), width);
        let down = Span::new(area.top, area.height, self.height(), height);
        resample(&self.view(all), across, down)
    }

    /// An area of the picture, cut out and then resized to a square: unlike in
    /// [`resized_area`](Photo::resized_area), pixels beside the area have no influence.
    pub(super) fn cut_and_resized(&self, area: Area, side: u32) -> Vec<u8> {
        let across = Span::new(0, side, area.width, u64::from(side));
        let down = Span::new(0, side, area.height, u64::from(side));
        resample(&self.view(area), across, down)
    }

    fn view(&self, area: Area) -> View<'_> {
        View { rgb: self.rgb(), stride: 3 * self.width() as usize, area }
    }
}

/// A rectangle of a picture.
struct View<'a> {
    rgb: &'a [u8],
    /// Bytes from row to row.
    stride: usize,
    area: Area,
}

impl<'a> View<'a> {
    /// A whole picture of some width in pixels.
    fn of_rows(rgb: &'a [u8], width: usize) -> View<'a> {
        let height = (rgb.len() / (3 * width)) as u32;
        let area = Area { left: 0, top: 0, width: width as u32, height };
        View { rgb, stride: 3 * width, area }
    }

    fn row(&self, row: usize) -> &[u8] {
        let start = (self.area.top as usize + row) * self.stride + 3 * self.area.left as usize;
        &self.rgb[start..][..3 * self.area.width as usize]
    }
}

/// One direction of resizing: some of the pixels that a line of the source becomes.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// Pixels of the whole source.
    source: usize,
    /// Pixels that the whole source becomes.
    resized: u64,
    /// Pixels of the source per pixel of the result.
    scale: f64,
    first: usize,
    pixels: usize,
}

/// A pixel of the result: where its pixels of the source begin, and their weights.
struct Taps {
    first: usize,
    weights: Vec<i32>,
}

/// Bits of Pillow's weights: 32, without those of a pixel, a sign and the overshoot.
const WEIGHT_BITS: u32 = 22;

impl Span {
    fn new(first: u64, pixels: u32, source: u32, resized: u64) -> Span {
        let scale = f64::from(source) / resized as f64;
        let (first, pixels) = (first as usize, pixels as usize);
        Span { source: source as usize, resized, scale, first, pixels }
    }

    /// Pixels that are lost; below zero if there become more.
    fn loss(&self) -> i64 {
        self.source as i64 - self.resized as i64
    }

    /// Whether pixels stay as they are.
    fn is_copy(&self) -> bool {
        self.scale == 1.0
    }

    fn taps(&self) -> Vec<Taps> {
        let stretch = self.scale.max(1.0);
        let taps_of = |k: usize| {
            let centre = ((self.first + k) as f64 + 0.5) * self.scale;
            let first = (centre - 2.0 * stretch + 0.5).max(0.0) as usize;
            let end = ((centre + 2.0 * stretch + 0.5) as usize).min(self.source);
            // In Pillow's order of operations: the last bit decides some grey levels.
            let weight = |k: usize| catmull_rom((k as f64 - centre + 0.5) * (1.0 / stretch));
            let total: f64 = (first..end).map(weight).sum();
            let whole = |weight: f64| (weight / total * f64::from(1 << WEIGHT_BITS)).round() as i32;
            Taps { first, weights: (first..end).map(|k| whole(weight(k))).collect() }
        };
        (0..self.pixels).map(taps_of).collect()
    }
}

/// Keys' cubic convolution with a = −0.5.
fn catmull_rom(x: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 {
        (1.5 * x - 2.5) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5
    } else {
        0.0
    }
}

/// In Pillow's order: across first, unless many more rows than columns are lost.
fn resample(source: &View<'_>, across: Span, down: Span) -> Vec<u8> {
    if down.is_copy() {
        return resample_across(source, down.first, down.pixels, across);
    }
    let taps = down.taps();
    if down.loss() > 0 && down.loss() > 2 * across.loss() {
        let low = resample_down(source, 0, &taps);
        let low = View::of_rows(&low, across.source);
        return resample_across(&low, 0, down.pixels, across);
    }
    let end_of = |taps: &Taps| taps.first + taps.weights.len();
    let first = taps.iter().map(|taps| taps.first).min().unwrap_or_default();
    let end = taps.iter().map(end_of).max().unwrap_or_default();
    let narrow = resample_across(source, first, end - first, across);
    resample_down(&View::of_rows(&narrow, across.pixels), first, &taps)
}

/// Some rows of the source, resized across.
fn resample_across(source: &View<'_>, first_row: usize, rows: usize, across: Span) -> Vec<u8> {
    let width = 3 * across.pixels;
    let mut output = vec![0; width * rows];
    let outputs = output.chunks_exact_mut(width).enumerate();
    if across.is_copy() {
        for (k, output) in outputs {
            output.copy_from_slice(&source.row(first_row + k)[3 * across.first..][..width]);
        }
        return output;
    }
    let taps: Vec<Taps> =
        across.taps().into_iter().map(|taps| taps.of_bytes(3 * across.source)).collect();
    for (k, output) in outputs {
        let row = source.row(first_row + k);
        vectorised!({
            for (pixel, taps) in output.as_chunks_mut::<3>().0.iter_mut().zip(&taps) {
                *pixel = weighed_pixel(&row[taps.first..][..taps.weights.len()], &taps.weights);
            }
        });
    }
    output
}

/// Bytes that are multiplied at once: whole pixels, and whole vectors of the processor.
const LANES: usize = 48;

impl Taps {
    /// For the bytes of pixels: red, green and blue have the same weights. Filled up with zeros to
    /// a multiple of the lanes, before or behind, wherever the row of `length` bytes goes on.
    fn of_bytes(self, length: usize) -> Taps {
        let mut weights: Vec<i32> = self.weights.iter().flat_map(|weight| [*weight; 3]).collect();
        let first = 3 * self.first;
        let missing = weights.len().next_multiple_of(LANES) - weights.len();
        let behind = missing.min(length - first - weights.len());
        let before = missing - behind;
        if before > first {
            // The whole row is shorter.
            return Taps { first, weights };
        }
        weights.resize(weights.len() + behind, 0);
        weights.splice(0..0, std::iter::repeat_n(0, before));
        Taps { first: first - before, weights }
    }
}

/// The sum of bytes times weights, for each of the three colours.
#[inline(always)]
fn weighed_pixel(bytes: &[u8], weights: &[i32]) -> [u8; 3] {
    let mut lanes = [0_i32; LANES];
    let (byte_chunks, byte_rest) = bytes.as_chunks::<LANES>();
    let (weight_chunks, weight_rest) = weights.as_chunks::<LANES>();
    for (bytes, weights) in byte_chunks.iter().zip(weight_chunks) {
        for k in 0..LANES {
            lanes[k] += i32::from(bytes[k]) * weights[k];
        }
    }
    for (lane, (byte, weight)) in lanes.iter_mut().zip(byte_rest.iter().zip(weight_rest)) {
        *lane += i32::from(*byte) * weight;
    }
    // Halves have the same colours.
    for k in 0..24 {
        lanes[k] += lanes[k + 24];
    }
    for k in 0..12 {
        lanes[k] += lanes[k + 12];
    }
    for k in 0..6 {
        lanes[k] += lanes[k + 6];
    }
    let half = 1 << (WEIGHT_BITS - 1);
    [0, 1, 2].map(|colour| level(half + lanes[colour] + lanes[colour + 3]))
}

#[inline(always)]
fn level(sum: i32) -> u8 {
    (sum >> WEIGHT_BITS).clamp(0, 255) as u8
}

/// The source, whose first row is called `first_row`, resized down.
fn resample_down(source: &View<'_>, first_row: usize, taps: &[Taps]) -> Vec<u8> {
    let width = 3 * source.area.width as usize;
    let mut output = vec![0; width * taps.len()];
    let mut sums = vec![0_i32; width];
    for (output, taps) in output.chunks_exact_mut(width).zip(taps) {
        vectorised!({
            sums.fill(1 << (WEIGHT_BITS - 1));
            for (k, weight) in taps.weights.iter().enumerate() {
                let row = source.row(taps.first - first_row + k);
                sums.iter_mut().zip(row).for_each(|(sum, n)| *sum += weight * i32::from(*n));
            }
            output.iter_mut().zip(&sums).for_each(|(to, sum)| *to = level(*sum));
        });
    }
    output
}
