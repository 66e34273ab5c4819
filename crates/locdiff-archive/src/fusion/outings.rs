//! Which pictures belong to one outing: those without long gaps between them.

use std::ops::Range;

/// Cuts rising times where more than `gap_s` seconds pass between two of them.
///
/// ```
/// use locdiff_archive::fusion::outings;
///
/// assert_eq!(outings(&[0.0, 60.0, 90_000.0], 43_200.0), [0..2, 2..3]);
/// ```
pub fn outings(times_s: &[f64], gap_s: f64) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for next in 1..=times_s.len() {
        if next == times_s.len() || times_s[next] - times_s[next - 1] > gap_s {
            ranges.push(start..next);
            start = next;
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_picture_is_in_one_outing() {
        assert_eq!(outings(&[], 10.0), []);
        assert_eq!(outings(&[5.0], 10.0), std::slice::from_ref(&(0..1)));
        assert_eq!(outings(&[0.0, 10.0, 20.5, 21.0, 40.0], 10.0), [0..2, 2..4, 4..5]);
    }
}
