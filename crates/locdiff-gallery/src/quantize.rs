//! A row in three precisions: a sketch of one bit per number, 8 bits with a step per row, 16-bit floats.
//!
//! The two coarse forms are made of the 16-bit one, so that merging segments loses nothing: rows are
//! written again as they were written first. Each row of bytes has a bound of its error, by which a search
//! can tell which rows could still be among the best.

use half::f16;

use crate::simd::{BYTES_MULTIPLE, Kernel, vectorized};

/// The largest byte.
const LEVELS: f32 = 127.0;
/// The largest number of a query in integers, if the sum of all products fits.
const QUERY_LEVELS: f32 = 8191.0;

/// How far the length of a row of 16-bit floats may be from 1.
const HALF_ROUNDING: f32 = 5e-4;

/// The numbers of a row, scaled to length 1; what is wrong otherwise.
pub(crate) fn normalized(embedding: &[f32], dimension: usize) -> Result<Vec<f32>, String> {
    if embedding.len() != dimension {
        return Err(format!("has {} numbers, the encoder makes {dimension}", embedding.len()));
    }
    if let Some(position) = embedding.iter().position(|number| !number.is_finite()) {
        return Err(format!(
            "is {} at position {position}, it must be finite",
            embedding[position]
        ));
    }
    let length = embedding.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if length == 0.0 {
        return Err("is zero everywhere and has no direction".to_owned());
    }
    Ok(embedding.iter().map(|x| (f64::from(*x) / length) as f32).collect())
}

/// How many words a sketch has.
pub(crate) fn sketch_words(dimension: usize) -> usize {
    dimension.div_ceil(64)
}

/// How many bytes a row of 8-bit numbers has, with padding.
pub(crate) fn bytes_width(dimension: usize) -> usize {
    dimension.next_multiple_of(BYTES_MULTIPLE)
}

/// Signs of the differences from the mean, one bit each.
pub(crate) fn sketch(row: &[f32], mean: &[f32], words: &mut [u64]) {
    words.fill(0);
    for (k, (x, mean)) in row.iter().zip(mean).enumerate() {
        words[k / 64] |= u64::from(x > mean) << (k % 64);
    }
}

/// What multiplies a row's bytes, and the length of what rounding took from the row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub step: f32,
    pub error: f32,
}

/// Rounds a row to bytes.
pub(crate) fn bytes(row: &[f32], bytes: &mut [i8]) -> Scale {
    bytes.fill(0);
    let mut scale = Scale { step: 0.0, error: 0.0 };
    vectorized(Rounding { row, bytes, scale: &mut scale });
    scale
}

struct Rounding<'a> {
    row: &'a [f32],
    bytes: &'a mut [i8],
    scale: &'a mut Scale,
}

impl Kernel for Rounding<'_> {
    #[inline(always)]
    fn run(self) {
        let (row, rest) = self.row.as_chunks::<16>();
        let mut largest = [0.0_f32; 16];
        for row in row {
            for k in 0..16 {
                largest[k] = largest[k].max(row[k].abs());
            }
        }
        let largest = largest.iter().chain(rest).fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let step = (largest / LEVELS).max(f32::MIN_POSITIVE);
        let (bytes, rest_bytes) = self.bytes[..self.row.len()].as_chunks_mut::<16>();
        let mut squares = [0.0_f32; 16];
        for (bytes, row) in bytes.iter_mut().zip(row) {
            for k in 0..16 {
                let level = (row[k] / step).round_ties_even().clamp(-LEVELS, LEVELS);
                bytes[k] = level as i8;
                squares[k] += (row[k] - level * step) * (row[k] - level * step);
            }
        }
        for (byte, x) in rest_bytes.iter_mut().zip(rest) {
            let level = (x / step).round_ties_even().clamp(-LEVELS, LEVELS);
            *byte = level as i8;
            squares[0] += (x - level * step) * (x - level * step);
        }
        // Rounded up, far more than these sums are rounded, so that it stays a bound.
        let error = squares.iter().sum::<f32>().sqrt() * 1.001 + 1e-6;
        *self.scale = Scale { step, error };
    }
}

/// Numbers as 32-bit floats.
pub(crate) fn widen(row: &[f16], numbers: &mut [f32]) {
    use half::slice::HalfFloatSliceExt;
    row.convert_to_f32_slice(numbers);
}

/// A query in the forms that rows are compared with.
pub(crate) struct Query {
    pub numbers: Vec<f32>,
    /// Padded like a row of bytes.
    pub integers: Vec<i16>,
    /// What multiplies the integers, and the length of what rounding took.
    pub scale: Scale,
}

impl Query {
    pub(crate) fn new(numbers: Vec<f32>) -> Query {
        let width = bytes_width(numbers.len());
        // The largest sum of products: every number at its largest.
        let levels = QUERY_LEVELS.min((i32::MAX as f32 / (LEVELS * width as f32)).floor() - 1.0);
        let largest = numbers.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let step = (largest / levels).max(f32::MIN_POSITIVE);
        let mut integers = vec![0; width];
        let mut squares = 0.0_f64;
        for (integer, x) in integers.iter_mut().zip(&numbers) {
            *integer = (x / step).round().clamp(-levels, levels) as i16;
            squares += (f64::from(*x) - f64::from(*integer) * f64::from(step)).powi(2);
        }
        let scale = Scale { step, error: (squares.sqrt() * (1.0 + 1e-6)) as f32 + 1e-6 };
        Query { numbers, integers, scale }
    }

    /// The similarity by integers, and how far it may be off: |q·x − q̃·x̃| ≤ |q||x − x̃| + |q − q̃||x̃|. Lengths are 1, but
    /// for the rounding of 16-bit floats, by which the cosine differs from the product.
    #[inline(always)]
    pub(crate) fn similarity(&self, product: i32, row: Scale) -> (f32, f32) {
        let similarity = product as f32 * (self.scale.step * row.step);
        let error = row.error * 1.001 + self.scale.error * (1.001 + row.error);
        (similarity, error + HALF_ROUNDING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seed: usize, dimension: usize) -> Vec<f32> {
        let numbers: Vec<f32> = (0..dimension)
            .map(|k| ((seed * 977 + k * k * 31 + k * 7) as f32).sin() + 0.2)
            .collect();
        normalized(&numbers, dimension).unwrap()
    }

    #[test]
    fn errors_of_integers_are_bounded() {
        for dimension in [2, 63, 512, 5000] {
            for seed in 0..20 {
                let query = Query::new(row(seed + 100, dimension));
                let row = row(seed, dimension);
                let mut rounded = vec![0; bytes_width(dimension)];
                let scale = bytes(&row, &mut rounded);
                let product = rounded.iter().zip(&query.integers);
                let product = product.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
                let (similarity, error) = query.similarity(product, scale);
                let exact: f64 = row
                    .iter()
                    .zip(&query.numbers)
                    .map(|(a, b)| f64::from(*a) * f64::from(*b))
                    .sum();
                assert!((f64::from(similarity) - exact).abs() <= f64::from(error));
                assert!(error < 0.02, "{dimension}: {error}");
            }
        }
    }

    #[test]
    fn rows_without_a_direction_are_rejected() {
        assert!(normalized(&[0.0, 0.0], 2).unwrap_err().contains("zero everywhere"));
        assert!(normalized(&[0.0, f32::NAN], 2).unwrap_err().contains("NaN at position 1"));
        assert!(normalized(&[1.0], 2).unwrap_err().contains("has 1 numbers, the encoder makes 2"));
        // Squares that a 32-bit float could not represent.
        for scale in [1e30, 1e-30] {
            let numbers = normalized(&[3.0 * scale, 4.0 * scale], 2).unwrap();
            assert!((numbers[0] - 0.6).abs() < 1e-6 && (numbers[1] - 0.8).abs() < 1e-6);
        }
    }

    #[test]
    fn sketches_are_signs_of_differences_from_the_mean() {
        let mut words = [u64::MAX; 2];
        let mut row = vec![0.0; 70];
        (row[3], row[69]) = (0.5, 0.2);
        sketch(&row, &vec![0.1; 70], &mut words);
        assert_eq!(words, [1 << 3, 1 << 5]);
    }
}
