//! The allocator of the program (mimalloc), and when freed memory is returned to the system.

use std::ffi::c_long;
use std::sync::Once;
use std::thread;
use std::time::Duration;

use libmimalloc_sys::{mi_collect, mi_option_set, mi_option_t, mi_thread_init};

/// Networks allocate and free large arrays all the time; this allocator keeps them at hand.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc.h, which the bindings leave out.
const PURGE_DELAY: mi_option_t = 15;

/// How often servers give freed memory back.
const GIVE_BACK: Duration = Duration::from_millis(20);

/// Gives freed memory back to the system after half a minute instead of a second. Each step of
/// training, and each batch of pictures, asks for the same memory again, and fresh pages must be
/// cleared: up to a tenth of the time.
pub fn keep_for_a_while() {
    keep_for_ms(30_000);
}

/// For servers, whose memory has a limit: freed memory that is not returned still counts, beside what is allocated next. Holds until
/// the process ends.
///
/// A thread of its own returns freed memory to the system. mimalloc lets only one thread do this at a time. If that thread has the
/// lowest priority and the processors are busy, it takes up to half a minute, and until then no other thread returns memory.
/// What other threads keep at hand for their next allocations stays: some megabytes.
///
/// On Linux, transparent huge pages are switched off for this process. A huge page stays in memory as long as any part of it is in use.
pub(crate) fn give_back_soon() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        #[cfg(target_os = "linux")]
        if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
            tracing::warn!(
                "cannot switch off transparent huge pages: memory may exceed its limit ({error})"
            );
        }
        // So long that no other thread begins.
        keep_for_ms(3_600_000);
        let begun = thread::Builder::new().name("memory".to_owned()).spawn(give_back);
        if let Err(error) = begun {
            keep_for_ms(10);
            tracing::warn!(
                "cannot start the thread that returns freed memory: memory may exceed its limit ({error})"
            );
        }
    });
}

#[expect(unsafe_code, reason = "functions of the allocator's C interface")]
fn give_back() {
    // SAFETY: may be called by any thread. Without it, `mi_collect` does nothing in a thread that has not allocated.
    unsafe { mi_thread_init() };
    loop {
        thread::sleep(GIVE_BACK);
        // SAFETY: may be called by any thread at any time.
        unsafe { mi_collect(true) };
    }
}

#[expect(unsafe_code, reason = "an option of the allocator, set through its C interface")]
fn keep_for_ms(milliseconds: c_long) {
    // SAFETY: sets one number in the allocator's table of options, which it checks the index of. Formally a race with threads that
    // read it, but an aligned word: they find the old number or the new one.
    unsafe { mi_option_set(PURGE_DELAY, milliseconds) };
}
