//! The widest vector instructions of the machine that runs the program.
//!
//! The loops of this crate are written so that the compiler vectorises them; `pulp`
//! compiles each kernel once per instruction set and picks at run time, so one binary
//! serves every machine and nothing here is unsafe.

/// A piece of work worth compiling for several instruction sets. Everything that `run`
/// calls must be `#[inline(always)]`: what isn't inlined keeps the baseline instructions.
pub(crate) trait Kernel {
    type Output;
    fn run(self) -> Self::Output;
}

/// Runs the kernel compiled for the best instruction set at hand.
pub(crate) fn vectorised<K: Kernel>(kernel: K) -> K::Output {
    struct Adapter<K>(K);
    impl<K: Kernel> pulp::WithSimd for Adapter<K> {
        type Output = K::Output;
        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _simd: S) -> K::Output {
            self.0.run()
        }
    }
    pulp::Arch::new().dispatch(Adapter(kernel))
}
