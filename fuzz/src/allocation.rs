//! Memory that targets take, counted by the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An allocation of this size fails, which ends the process: no input is worth it.
const LARGEST: usize = 4 << 30;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    if now > PEAK.load(Relaxed) {
        PEAK.fetch_max(now, Relaxed);
    }
}

#[expect(unsafe_code, reason = "an allocator that counts can only be written so")]
// SAFETY: everything is left to the system's allocator; the counters neither allocate nor have destructors. A null
// pointer is how an allocator says that there is no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGEST {
            return std::ptr::null_mut();
        }
        count(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above, and the memory came from there.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGEST {
            return std::ptr::null_mut();
        }
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if new_size >= LARGEST {
            return std::ptr::null_mut();
        }
        count(new_size);
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above, and the memory came from there.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// What some work returns, and the most bytes that it had allocated at a time, on all threads.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Relaxed);
    let outer = PEAK.swap(before, Relaxed);
    let done = work();
    let peak = PEAK.load(Relaxed);
    // Whoever measures around this has not missed anything.
    PEAK.fetch_max(outer, Relaxed);
    (done, peak.saturating_sub(before))
}
