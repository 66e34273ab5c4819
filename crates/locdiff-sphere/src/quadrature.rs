//! Gauss-Legendre quadrature in the colatitude.
//!
//! Nodes are the zeros of P_n(cos θ), found by Newton's method in θ with the difference
//! form of the recurrence, so that nodes near the poles keep their relative precision.
//! Tested against mpmath (`parity/sphere/gauss_legendre_mpmath.json`).

use crate::direction::Colatitude;

/// One node: colatitude in radians and its weight; the weights of all nodes sum to 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Node {
    pub(crate) colatitude: f64,
    pub(crate) weight: f64,
}

/// The nodes with θ ≤ π/2, from the pole to the equator: ⌈n/2⌉ of them. The others mirror
/// them.
pub(crate) fn northern_nodes(n: usize) -> Vec<Node> {
    (0..n.div_ceil(2)).map(|index| node(n, index)).collect()
}

fn node(n: usize, index: usize) -> Node {
    let count = n as f64;
    // Near enough (O(n⁻³)) for Newton to need two or three steps.
    let guess = std::f64::consts::PI * (4.0 * index as f64 + 3.0) / (4.0 * count + 2.0);
    let mut theta = guess + (1.0 / (8.0 * count * count)) / guess.tan();
    if 2 * index + 1 == n {
        theta = std::f64::consts::FRAC_PI_2;
    }
    let mut slope = legendre_and_slope(n, theta).1;
    if 2 * index + 1 != n {
        for _ in 0..6 {
            let (value, here) = legendre_and_slope(n, theta);
            let step = value / here;
            theta -= step;
            slope = here;
            if step.abs() <= 1e-16 * theta {
                break;
            }
        }
    }
    Node { colatitude: theta, weight: 2.0 / (slope * slope) }
}

/// P_n(cos θ) and its derivative by θ.
fn legendre_and_slope(n: usize, theta: f64) -> (f64, f64) {
    let Colatitude { sin, one_minus_cos: z } = Colatitude::from_radians(theta);
    let (mut last, mut value, mut difference) = (0.0, 1.0, 0.0);
    for k in 1..=n {
        let k = k as f64;
        difference = ((k - 1.0) * difference - (2.0 * k - 1.0) * z * value) / k;
        (last, value) = (value, value + difference);
    }
    // sin θ · dP_n/dθ = n (cos θ · P_n − P_(n−1))
    (value, n as f64 * ((1.0 - z) * value - last) / sin)
}
