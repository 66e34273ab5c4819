//! AVIF for a libheif that was built without: see `libheif/build`.

use std::ffi::c_int;
use std::sync::Once;

#[link(name = "heif-av1")]
#[expect(unsafe_code, reason = "a function of a C library")]
unsafe extern "C" {
    fn locdiff_register_av1() -> c_int;
}

/// Adds the decoder, once. Without it AVIF images are rejected with a reason, so nothing is lost if it fails.
#[expect(unsafe_code, reason = "a function of a C library")]
pub(crate) fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: takes nothing, and adds a decoder to libheif's list, which it guards by a lock.
        unsafe { locdiff_register_av1() };
    });
}
