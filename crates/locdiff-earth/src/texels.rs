//! Gigabytes of texels in large pages.
//!
//! A view reads a few texels from each of many rows, which lie far apart. With pages of 4 kB the
//! processor spends most of that time finding out where each page is; pages of 2 MB are few enough
//! to be remembered. Linux gives them on request to anonymous maps; elsewhere nothing changes.
//!
//! Sparse texels are in small pages: pages that are never written take no memory, and two thirds of
//! the Earth are sea, which is zero.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// A fixed number of texels.
#[derive(Debug)]
pub(crate) struct Texels {
    memory: MmapMut,
    sparse: bool,
}

impl Texels {
    /// All zero.
    ///
    /// # Panics
    /// Without enough memory, as a vector does.
    pub(crate) fn zero(count: usize) -> Self {
        Self::new(count, false)
    }

    /// All zero, and without memory where nothing else is written.
    ///
    /// # Panics
    /// As [`Texels::zero`].
    pub(crate) fn sparse(count: usize) -> Self {
        Self::new(count, true)
    }

    /// All zero, in the same kind of memory as these.
    pub(crate) fn zero_alike(&self, count: usize) -> Self {
        Self::new(count, self.sparse)
    }

    #[expect(clippy::expect_used, reason = "as a vector without memory")]
    fn new(count: usize, sparse: bool) -> Self {
        let memory =
            MmapMut::map_anon(4 * count.max(1)).expect("not enough memory for the imagery");
        // Only a wish: without large pages everything works, more slowly.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(if sparse {
            memmap2::Advice::NoHugePage
        } else {
            memmap2::Advice::HugePage
        });
        Self { memory, sparse }
    }
}

impl Deref for Texels {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        bytemuck::cast_slice(&self.memory)
    }
}

impl DerefMut for Texels {
    fn deref_mut(&mut self) -> &mut [u32] {
        bytemuck::cast_slice_mut(&mut self.memory)
    }
}
