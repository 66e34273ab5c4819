//! The minimum of a function of a few numbers, without derivatives (Nelder and Mead 1965).

/// Moves a simplex downhill from `start`, with first steps of the given lengths, until its values agree to
/// `tolerance` or `most` values were computed. Returns the best point and its value.
pub(crate) fn minimum<const N: usize>(
    mut function: impl FnMut([f64; N]) -> f64,
    start: [f64; N],
    steps: [f64; N],
    tolerance: f64,
    most: usize,
) -> ([f64; N], f64) {
    let corner = |k: usize| -> [f64; N] {
        std::array::from_fn(|axis| start[axis] + if axis + 1 == k { steps[axis] } else { 0.0 })
    };
    let mut simplex: Vec<([f64; N], f64)> =
        (0..=N).map(|k| (corner(k), function(corner(k)))).collect();
    let mut computed = N + 1;
    while computed < most {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (best, worst) = (simplex[0], simplex[N]);
        if worst.1 - best.1 < tolerance {
            break;
        }
        let others = &simplex[..N];
        let middle: [f64; N] = std::array::from_fn(|axis| {
            others.iter().map(|(point, _)| point[axis]).sum::<f64>() / N as f64
        });
        // On the line through the worst corner and the middle of the others.
        let mut at = |reach: f64| {
            computed += 1;
            let point =
                std::array::from_fn(|axis| middle[axis] + reach * (middle[axis] - worst.0[axis]));
            (point, function(point))
        };
        let reflected = at(1.0);
        let next = if reflected.1 < best.1 {
            let farther = at(2.0);
            if farther.1 < reflected.1 { Some(farther) } else { Some(reflected) }
        } else if reflected.1 < simplex[N - 1].1 {
            Some(reflected)
        } else {
            let nearer = at(if reflected.1 < worst.1 { 0.5 } else { -0.5 });
            (nearer.1 < worst.1.min(reflected.1)).then_some(nearer)
        };
        match next {
            Some(next) => simplex[N] = next,
            None => {
                for corner in &mut simplex[1..] {
                    let point = std::array::from_fn(|axis| 0.5 * (best.0[axis] + corner.0[axis]));
                    *corner = (point, function(point));
                    computed += 1;
                }
            }
        }
    }
    simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
    simplex[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_bottom_of_a_bent_valley() {
        let rosenbrock = |[x, y]: [f64; 2]| (1.0 - x).powi(2) + 100.0 * (y - x * x).powi(2);
        let (point, value) = minimum(rosenbrock, [-1.2, 1.0], [0.5, 0.5], 1e-14, 2000);
        assert!(value < 1e-10 && (point[0] - 1.0).abs() < 1e-4, "{point:?} {value}");
    }

    #[test]
    fn it_finds_the_bottom_of_a_slanted_bowl() {
        let bowl = |x: [f64; 4]| {
            (0..4).map(|k| (k + 1) as f64 * (x[k] - x[(k + 1) % 4] - k as f64).powi(2)).sum::<f64>()
                + x.iter().map(|x| x * x).sum::<f64>()
        };
        let (point, value) = minimum(bowl, [3.0; 4], [1.0; 4], 1e-13, 4000);
        for axis in 0..4 {
            for step in [-1e-3, 1e-3] {
                let mut other = point;
                other[axis] += step;
                assert!(bowl(other) > value);
            }
        }
    }
}
