//! The two number types that leave this crate: f64, and f32 for tensors.

/// `f32` or `f64`. The mathematics is done in f64; only large arrays come in both.
pub trait Scalar: rustfft::FftNum + Default + sealed::Sealed {
    /// Rounds to this type. What would be subnormal in f32, or near it, becomes zero:
    /// harmonics near the poles are full of such numbers, and arithmetic with them is slow.
    fn rounded(value: f64) -> Self;
    /// Widens to f64.
    fn widened(self) -> f64;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Scalar for f64 {
    #[inline(always)]
    fn rounded(value: f64) -> f64 {
        value
    }
    #[inline(always)]
    fn widened(self) -> f64 {
        self
    }
}

impl Scalar for f32 {
    #[inline(always)]
    fn rounded(value: f64) -> f32 {
        if value.abs() < 1e-30 { 0.0 } else { value as f32 }
    }
    #[inline(always)]
    fn widened(self) -> f64 {
        f64::from(self)
    }
}
