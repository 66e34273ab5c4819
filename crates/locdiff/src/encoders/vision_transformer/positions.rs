//! Positional embeddings for another number of patches than in training, by bicubic
//! interpolation as PyTorch's `interpolate` does it (`align_corners=False`).

/// Which of PyTorch's two bicubic filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    /// Four taps with a = −0.75, however far apart: CLIP and DINOv2.
    Plain,
    /// a = −0.5, widened when there are fewer patches than before: DINOv2 with registers.
    Antialiased,
}

/// A square of `side × side` vectors, resampled to `new_side × new_side`.
pub(super) fn resample(
    values: &[f32],
    side: usize,
    new_side: usize,
    width: usize,
    filter: Filter,
) -> Vec<f32> {
    if side == new_side {
        return values.to_vec();
    }
    let taps: Vec<Vec<(usize, f64)>> =
        (0..new_side).map(|k| taps_of(k, side, new_side, filter)).collect();
    let mut new = Vec::with_capacity(new_side * new_side * width);
    for rows in &taps {
        for columns in &taps {
            let mut sum = vec![0.0_f64; width];
            for (row, row_weight) in rows {
                for (column, column_weight) in columns {
                    let from = &values[(row * side + column) * width..][..width];
                    let weight = row_weight * column_weight;
                    sum.iter_mut().zip(from).for_each(|(sum, v)| *sum += weight * f64::from(*v));
                }
            }
            new.extend(sum.iter().map(|value| *value as f32));
        }
    }
    new
}

/// Old indices and their weights for a new index.
fn taps_of(k: usize, side: usize, new_side: usize, filter: Filter) -> Vec<(usize, f64)> {
    let scale = side as f64 / new_side as f64;
    let last = side as isize - 1;
    match filter {
        Filter::Plain => {
            let centre = scale * (k as f64 + 0.5) - 0.5;
            let floor = centre.floor();
            (-1..=2)
                .map(|tap: isize| {
                    // Beyond the border the border is repeated.
                    let index = (floor as isize + tap).clamp(0, last) as usize;
                    (index, cubic(centre - floor - tap as f64, -0.75))
                })
                .collect()
        }
        Filter::Antialiased => {
            let centre = scale * (k as f64 + 0.5);
            let stretch = scale.max(1.0);
            let support = 2.0 * stretch;
            let first = ((centre - support + 0.5) as isize).max(0);
            let end = ((centre + support + 0.5) as isize).min(side as isize);
            let weight = |index: isize| cubic((index as f64 - centre + 0.5) / stretch, -0.5);
            let total: f64 = (first..end).map(weight).sum();
            (first..end).map(|index| (index as usize, weight(index) / total)).collect()
        }
    }
}

/// Keys' cubic convolution kernel.
fn cubic(x: f64, a: f64) -> f64 {
    let x = x.abs();
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * a
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_stays_constant() {
        for filter in [Filter::Plain, Filter::Antialiased] {
            for new_side in [2, 5, 16, 37] {
                let new = resample(&[0.7; 9 * 9 * 2], 9, new_side, 2, filter);
                assert_eq!(new.len(), new_side * new_side * 2);
                assert!(
                    new.iter().all(|value| (value - 0.7).abs() < 1e-6),
                    "{filter:?} {new_side}"
                );
            }
        }
    }
}
