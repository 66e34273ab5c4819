//! Loops compiled for the vector instructions of the machine they run on.

use pulp::{Arch, Simd, WithSimd};

struct Work<F>(F);

impl<R, F: FnMut() -> R> WithSimd for Work<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// Runs a closure that is marked `#[inline(always)]`, compiled for this machine.
///
/// Closures handed to `dispatch` directly are called through a wrapper of `FnOnce` that is not
/// always inlined: their loops then stay as they are for the oldest machine.
#[inline(always)]
pub(crate) fn vectorized<R>(work: impl FnMut() -> R) -> R {
    Arch::new().dispatch(Work(work))
}
