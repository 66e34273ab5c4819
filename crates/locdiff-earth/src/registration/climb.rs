//! Nelder and Mead's simplex search: no derivatives, at home on bumpy ground.

/// The highest point found from a start, and its value. `steps` is how far the first simplex
/// reaches; numbers with a step of zero stay as they are.
#[inline(always)]
pub(crate) fn climb<const N: usize>(
    start: [f32; N],
    steps: [f32; N],
    evaluations: usize,
    mut height: impl FnMut(&[f32; N]) -> f32,
) -> ([f32; N], f32) {
    /// A simplex whose values differ by less has arrived.
    const FLAT: f32 = 2e-5;
    let mut simplex = vec![(height(&start), start)];
    for i in (0..N).filter(|&i| steps[i] != 0.0) {
        let mut corner = start;
        corner[i] += steps[i];
        simplex.push((height(&corner), corner));
    }
    let corners = simplex.len();
    let free = (corners - 1) as f32;
    let mut used = corners;
    // The usual coefficients, adapted to the number of dimensions (Gao and Han 2012).
    let (expand, contract, shrink) = (1.0 + 2.0 / free, 0.75 - 0.5 / free, 1.0 - 1.0 / free);
    loop {
        simplex.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (best, worst) = (simplex[0].0, simplex[corners - 1]);
        if used >= evaluations || best - worst.0 < FLAT {
            return (simplex[0].1, best);
        }
        let mut middle = [0.0; N];
        for (_, corner) in &simplex[..corners - 1] {
            for i in 0..N {
                middle[i] += corner[i] / free;
            }
        }
        let mut along = |factor: f32| {
            used += 1;
            let point = std::array::from_fn(|i| middle[i] + factor * (middle[i] - worst.1[i]));
            (height(&point), point)
        };
        let reflected = along(1.0);
        let replacement = if reflected.0 > best {
            let expanded = along(expand);
            Some(if expanded.0 > reflected.0 { expanded } else { reflected })
        } else if reflected.0 > simplex[corners - 2].0 {
            Some(reflected)
        } else {
            let inward = along(if reflected.0 > worst.0 { contract } else { -contract });
            (inward.0 > worst.0.max(reflected.0)).then_some(inward)
        };
        if let Some(point) = replacement {
            simplex[corners - 1] = point;
            continue;
        }
        let top = simplex[0].1;
        for corner in &mut simplex[1..] {
            corner.1 = std::array::from_fn(|i| top[i] + shrink * (corner.1[i] - top[i]));
            corner.0 = height(&corner.1);
            used += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_of_a_hill_is_found_and_fixed_numbers_stay() {
        let height =
            |p: &[f32; 3]| -(p[0] - 1.0).powi(2) - 3.0 * (p[1] + 2.0 + p[0]).powi(2) + p[2];
        let (top, value) = climb([0.0, 0.0, 5.0], [0.3, 0.3, 0.0], 400, height);
        assert!((top[0] - 1.0).abs() < 0.02 && (top[1] + 3.0).abs() < 0.02, "{top:?}");
        assert!(top[2] == 5.0 && (value - 5.0).abs() < 1e-3);
    }
}
