//! The allocator.

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// Networks allocate and free large arrays all the time; this allocator keeps them at hand.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc.h, which the bindings leave out.
const PURGE_DELAY: mi_option_t = 15;

/// Gives freed memory back to the system after half a minute instead of a second. Each step of
/// training, and each batch of pictures, asks for the same memory again, and fresh pages must be
/// cleared: up to a tenth of the time.
pub fn keep_for_a_while() {
    keep_for(30_000);
}

/// The same after a hundredth of a second, or when memory is freed next: for servers, whose memory has a limit. What was freed and is
/// not given back would be there twice.
pub(crate) fn give_back_soon() {
    keep_for(10);
}

#[expect(unsafe_code, reason = "an option of the allocator, set through its C interface")]
fn keep_for(milliseconds: std::ffi::c_long) {
    // SAFETY: sets one number in the allocator's table of options, which it checks the index of.
    unsafe { mi_option_set(PURGE_DELAY, milliseconds) };
}
