//! Memory layout of everything that has a degree l and an order m = 0..=l.
//!
//! Rows of one degree after another, each padded to a multiple of [`LANES`] orders. The
//! padding holds zeros, so that inner loops run over whole vectors, without remainders:
//! rows are short, and a scalar remainder would cost more than the row.

use crate::Scalar;

/// Orders that one step of an inner loop treats together: one AVX-512 vector of f32.
pub(crate) const LANES: usize = 16;

/// Padded length of the row of degree l.
#[inline(always)]
pub(crate) const fn row_len(l: usize) -> usize {
    (l / LANES + 1) * LANES
}

/// Index of the first entry of the row of degree l.
#[inline(always)]
pub(crate) const fn row_start(l: usize) -> usize {
    let full = l / LANES;
    LANES * (full + 1) * (l - LANES / 2 * full)
}

/// Entries of all rows up to and including a degree.
pub(crate) const fn len(max_degree: usize) -> usize {
    row_start(max_degree + 1)
}

/// The entries of degree l.
#[inline(always)]
pub(crate) fn row<T>(entries: &[T], l: usize) -> &[T] {
    &entries[row_start(l)..row_start(l) + row_len(l)]
}

/// The padded row as vectors.
#[inline(always)]
pub(crate) fn lanes<T>(row: &[T]) -> &[[T; LANES]] {
    row.as_chunks().0
}

/// The padded row as vectors, to change.
#[inline(always)]
pub(crate) fn lanes_mut<T>(row: &mut [T]) -> &mut [[T; LANES]] {
    row.as_chunks_mut().0
}

/// Sorts coefficients (l² + l + m) into cosine (m ≥ 0) and sine (m < 0) rows.
pub(crate) fn split<T: Scalar>(coefficients: &[T], cosines: &mut [T], sines: &mut [T]) {
    let zero = T::zero();
    for l in 0..coefficients.len().isqrt() {
        let (negative, positive) = coefficients[l * l..(l + 1) * (l + 1)].split_at(l);
        let start = row_start(l);
        // Everything is written, the padding too: it may hold NaN from an earlier analysis.
        cosines[start..start + l + 1].copy_from_slice(positive);
        cosines[start + l + 1..start + row_len(l)].fill(zero);
        sines[start] = zero;
        sines[start + l + 1..start + row_len(l)].fill(zero);
        for (sine, coefficient) in
            sines[start + 1..start + l + 1].iter_mut().zip(negative.iter().rev())
        {
            *sine = *coefficient;
        }
    }
}

/// The reverse of [`split`].
pub(crate) fn join<T: Copy>(cosines: &[T], sines: &[T], coefficients: &mut [T]) {
    for l in 0..coefficients.len().isqrt() {
        let (negative, positive) = coefficients[l * l..(l + 1) * (l + 1)].split_at_mut(l);
        let start = row_start(l);
        positive.copy_from_slice(&cosines[start..start + l + 1]);
        for (coefficient, sine) in negative.iter_mut().rev().zip(&sines[start + 1..start + l + 1]) {
            *coefficient = *sine;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_each_other() {
        for l in 0..200 {
            assert_eq!(row_start(l) + row_len(l), row_start(l + 1));
            assert!(row_len(l) > l && row_len(l) <= l + LANES);
        }
    }
}
