//! Gigabytes of texels in large pages.
//!
//! A view reads a few texels from each of many rows, which lie far apart. With pages of 4 kB the
//! processor spends most of that time finding out where each page is; pages of 2 MB are few enough
//! to be remembered. Linux gives them on request to anonymous maps; elsewhere nothing changes.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// A fixed number of texels.
#[derive(Debug)]
pub(crate) struct Texels {
    memory: MmapMut,
}

impl Texels {
    /// All zero.
    ///
    /// # Panics
    /// Without enough memory, as a vector does.
    #[expect(clippy::expect_used, reason = "as a vector without memory")]
    pub(crate) fn zero(count: usize) -> Self {
        let memory =
            MmapMut::map_anon(4 * count.max(1)).expect("not enough memory for the imagery");
        // Only a wish: without large pages everything works, more slowly.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Self { memory }
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
