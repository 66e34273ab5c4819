//! exp, sine and cosine of many f32 at once, in forms that the compiler vectorises.
//!
//! Cephes' polynomials after a reduction by "add and subtract a large number", which rounds
//! without a branch. Accurate to 2 ulp or 2e-7, for |x| ≤ 8,000 in the sines; tests compare
//! with f64.

/// 1.5·2²³: adding it rounds to a whole number, which then stands in the lowest bits.
const ROUND: f32 = 12_582_912.0;

/// Runs a loop compiled for the widest instructions of this machine. All that it calls must be
/// `#[inline(always)]`: what isn't inlined is compiled for the oldest machine. So is a closure that could be called twice,
/// because it is called through a wrapper that isn't always inlined: this one can't.
#[macro_export]
macro_rules! vectorised {
    ($loop:expr) => {{
        struct Once;
        let once = Once;
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let _moved = once;
                $loop
            },
        )
    }};
}
pub(crate) use vectorised;

/// e^x; zero below −60, where a share of a sum no longer counts: products with still smaller
/// numbers would not be normal, and so a hundred times slower.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let small = x < -60.0;
    let x = x.clamp(-60.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts: the first has few bits, so its product with n is exact.
    let r = x - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = p * r + coefficient;
    }
    let power = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    let value = (p * r * r + r + 1.0) * f32::from_bits(power);
    if small { 0.0 } else { value }
}

/// erf x, and the e^(−x²) that it takes: Abramowitz and Stegun, 7.1.26, off by 1.5e-7 and some rounding.
#[inline(always)]
pub(crate) fn erf_and_exp(x: f32) -> (f32, f32) {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let mut p = 1.061_405_4;
    for coefficient in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        p = p * t + coefficient;
    }
    let power = exp(-x * x);
    ((1.0 - p * t * power).copysign(x), power)
}

/// Sine and cosine.
#[inline(always)]
pub(crate) fn sin_cos(x: f32) -> (f32, f32) {
    let shifted = x * std::f32::consts::FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    let quadrant = shifted.to_bits();
    // π/2 in three parts.
    let r = x - n * 1.570_312_5 - n * 4.837_513e-4 - n * 7.549_79e-8;
    let square = r * r;
    let sine =
        ((-1.951_529_6e-4 * square + 8.332_161e-3) * square - 1.666_665_5e-1) * square * r + r;
    let cosine =
        ((2.443_315_7e-5 * square - 1.388_731_6e-3) * square + 4.166_664_6e-2) * square * square
            - 0.5 * square
            + 1.0;
    let swapped = quadrant & 1 == 1;
    let (s, c) = if swapped { (cosine, sine) } else { (sine, cosine) };
    let sine_sign = (quadrant & 2) << 30;
    let cosine_sign = (quadrant.wrapping_add(1) & 2) << 30;
    (f32::from_bits(s.to_bits() ^ sine_sign), f32::from_bits(c.to_bits() ^ cosine_sign))
}

#[cfg(test)]
mod tests {
    use super::{erf_and_exp, exp, sin_cos};

    #[test]
    fn exp_agrees_with_f64() {
        for k in -600_000..880_000 {
            let x = k as f32 * 1e-4;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 3e-7, "exp({x}): relative error {error:e}");
        }
        assert_eq!([exp(-60.1), exp(-1e30), exp(f32::NEG_INFINITY)], [0.0; 3]);
    }

    #[test]
    fn sines_agree_with_f64() {
        for k in -800_000..800_000 {
            let x = k as f32 * 0.01003;
            let (s, c) = sin_cos(x);
            let (sine, cosine) = f64::from(x).sin_cos();
            let error = (f64::from(s) - sine).abs().max((f64::from(c) - cosine).abs());
            // The reduction's own rounding grows with x.
            let allowed = 2e-7 + f64::from(x.abs()) * 1e-10;
            assert!(error < allowed, "x = {x}: error {error:e}");
        }
    }

    #[test]
    fn erf_agrees_with_its_series() {
        // 2/√π·Σ (−1)ⁿ x²ⁿ⁺¹ / (n!·(2n+1)); in f64 good to 1e-9 up to 4, where erf is 1 − 2e-8.
        let series = |x: f64| {
            let (mut term, mut sum) = (x, x);
            for n in 1..200 {
                term *= -x * x / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            std::f64::consts::FRAC_2_SQRT_PI * sum
        };
        for k in -4_000..4_000 {
            let x = k as f32 * 1e-3;
            let error = f64::from(erf_and_exp(x).0) - series(f64::from(x));
            assert!(error.abs() < 6e-7, "erf({x}): error {error:e}");
        }
        assert_eq!(erf_and_exp(30.0).0, 1.0);
        assert_eq!(erf_and_exp(-30.0).0, -1.0);
    }

    #[test]
    fn not_a_number_stays_one() {
        assert!(sin_cos(f32::NAN).0.is_nan() && exp(f32::NAN).is_nan());
    }
}
