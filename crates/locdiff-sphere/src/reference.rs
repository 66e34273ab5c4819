//! Two slow ways to one harmonic, kept for tests and figures: a readable one that is
//! right, and the closed formula of the LocDiff paper, to show where it breaks.

use crate::LatLon;

/// Y_lm at a place by the textbook recurrence, one harmonic at a time.
///
/// Sectoral start, then up in the degree; loses about l²·ε near the poles.
///
/// # Panics
/// If |order| > degree.
pub fn harmonic(degree: usize, order: isize, place: LatLon) -> f64 {
    let m = order.unsigned_abs();
    assert!(m <= degree, "order {order} exceeds degree {degree}");
    let (sin_theta, cos_theta) = (90.0 - place.latitude()).to_radians().sin_cos();
    // P̃_mm = √((2m+1)!! / (4π (2m)!!)) · sin^m θ
    let mut sectoral = (1.0 / (4.0 * std::f64::consts::PI)).sqrt();
    for k in 1..=m {
        let k = k as f64;
        sectoral *= ((2.0 * k + 1.0) / (2.0 * k)).sqrt() * sin_theta;
    }
    let (mut last, mut current) = (0.0, sectoral);
    for l in m + 1..=degree {
        let (l, m) = (l as f64, m as f64);
        let a = ((4.0 * l * l - 1.0) / (l * l - m * m)).sqrt();
        let b = (((l - 1.0).powi(2) - m * m) / (4.0 * (l - 1.0).powi(2) - 1.0)).sqrt();
        (last, current) = (current, a * (cos_theta * current - b * last));
    }
    current * longitude_factor(order, place)
}

/// Y_lm at a place as the paper computes it: factorials, binomials and an alternating sum.
///
/// Correct in exact arithmetic. In f64 the sum cancels: from degree 39 on some values are
/// off by more than 1 % of √((2l+1)/4π), and by degree 63 by millions
/// (`experiments/sphere/figures`), which the paper takes for a limit of the encoding.
///
/// # Panics
/// If |order| > degree.
pub fn harmonic_by_paper_formula(degree: usize, order: isize, place: LatLon) -> f64 {
    let (l, m) = (degree, order.unsigned_abs());
    assert!(m <= l, "order {order} exceeds degree {degree}");
    let x = place.latitude().to_radians().sin();
    let mut sum = 0.0;
    for k in m..=l {
        sum += factorial(k) / factorial(k - m)
            * x.powi((k - m) as i32)
            * binomial(l as f64, k)
            * binomial(((l + k) as f64 - 1.0) / 2.0, l);
    }
    let legendre = 2.0_f64.powi(l as i32) * (1.0 - x * x).powf(m as f64 / 2.0) * sum;
    let norm = ((2 * l + 1) as f64 / (4.0 * std::f64::consts::PI) * factorial(l - m)
        / factorial(l + m))
    .sqrt();
    // The two signs (−1)^m, of the harmonic and of P_lm, cancel.
    norm * legendre * longitude_factor(order, place)
}

fn longitude_factor(order: isize, place: LatLon) -> f64 {
    let angle = order.unsigned_abs() as f64 * place.longitude().to_radians();
    match order {
        0 => 1.0,
        1.. => std::f64::consts::SQRT_2 * angle.cos(),
        _ => std::f64::consts::SQRT_2 * angle.sin(),
    }
}

fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

/// α over k for real α: α(α−1)…(α−k+1) / k!.
fn binomial(alpha: f64, k: usize) -> f64 {
    (0..k).map(|i| (alpha - i as f64) / (i + 1) as f64).product()
}
