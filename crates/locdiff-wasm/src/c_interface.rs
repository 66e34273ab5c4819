//! The exported functions: numbers in, numbers out, and texts and values in memory.
//!
//! A call that gives a text or values leaves them in a buffer that stays until the next call;
//! `locdiff_output` and `locdiff_output_len` say where. A call that fails gives 0 and leaves a message
//! there. The page runs one instance on one thread, and so the state is that thread's.

use std::cell::RefCell;

use crate::{Maps, Problem, Tile};

#[derive(Default)]
struct State {
    maps: Maps,
    output: Vec<u8>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Runs a request, keeps what it gives or why it failed, and returns its number (1 for texts).
fn answered(request: impl FnOnce(&mut Maps) -> Result<(u32, Vec<u8>), Problem>) -> u32 {
    STATE.with_borrow_mut(|state| match request(&mut state.maps) {
        Ok((number, output)) => {
            state.output = output;
            number
        }
        Err(problem) => {
            state.output = problem.to_string().into_bytes();
            0
        }
    })
}

/// Memory of `len` bytes for an input. Give it back with `locdiff_deallocate`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn locdiff_allocate(len: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; len].into_boxed_slice()).cast()
}

/// Gives memory back.
///
/// # Safety
/// `memory` must come from `locdiff_allocate(len)` with the same `len`, and be given back once.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn locdiff_deallocate(memory: *mut u8, len: usize) {
    // SAFETY: the caller promises that this is the box which `locdiff_allocate` let go of.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(memory, len)) });
}

/// Where the last call's output begins.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn locdiff_output() -> *const u8 {
    STATE.with_borrow(|state| state.output.as_ptr())
}

/// Length of the last call's output in bytes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn locdiff_output_len() -> usize {
    STATE.with_borrow(|state| state.output.len())
}

/// Opens a density from JSON; its number.
///
/// # Safety
/// `json` must point at `len` readable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn locdiff_open(json: *const u8, len: usize) -> u32 {
    // SAFETY: the caller promises so many readable bytes.
    let json = unsafe { text(json, len) };
    answered(|maps| Ok((maps.open(&json)?, Vec::new())))
}

/// Restricts a density to an area from JSON; the number of the restricted one.
///
/// # Safety
/// `json` must point at `len` readable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn locdiff_restrict(number: u32, json: *const u8, len: usize) -> u32 {
    // SAFETY: the caller promises so many readable bytes.
    let json = unsafe { text(json, len) };
    answered(|maps| Ok((maps.restrict(number, &json)?, Vec::new())))
}

/// A first look at a density in an area from JSON; its number, and as a text whether it is final: `true` or `false`.
///
/// # Safety
/// `json` must point at `len` readable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn locdiff_restrict_coarsely(
    number: u32,
    json: *const u8,
    len: usize,
) -> u32 {
    // SAFETY: the caller promises so many readable bytes.
    let json = unsafe { text(json, len) };
    answered(|maps| {
        let look = maps.restrict_coarsely(number, &json)?;
        Ok((look.number, look.is_final.to_string().into_bytes()))
    })
}

/// Frees a density.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn locdiff_release(number: u32) {
    STATE.with_borrow_mut(|state| state.maps.release(number));
}

/// Candidates, radii and areas as JSON.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn locdiff_summary(number: u32, candidates: u32) -> u32 {
    answered(|maps| Ok((1, maps.summary(number, candidates as usize)?.into_bytes())))
}

/// The top of the colour scale and what else drawing needs, as JSON.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn locdiff_scale(number: u32) -> u32 {
    answered(|maps| Ok((1, maps.scale(number)?.into_bytes())))
}

/// The regions that hold 50 % and 90 %, as GeoJSON.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn locdiff_regions(number: u32) -> u32 {
    answered(|maps| Ok((1, maps.regions(number, &[0.9, 0.5])?.into_bytes())))
}

/// The polygon between corners from JSON, as a GeoJSON geometry.
///
/// # Safety
/// `json` must point at `len` readable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn locdiff_outline(json: *const u8, len: usize) -> u32 {
    // SAFETY: the caller promises so many readable bytes.
    let json = unsafe { text(json, len) };
    answered(|maps| Ok((1, maps.outline(&json)?.into_bytes())))
}

/// Whether a density was restricted to areas that hold a place: `true` or `false`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn locdiff_allows(number: u32, latitude: f64, longitude: f64) -> u32 {
    answered(|maps| Ok((1, maps.allows(number, latitude, longitude)?.to_string().into_bytes())))
}

/// Log-densities of a tile, as little-endian f32, row by row from the north.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn locdiff_tile(number: u32, zoom: u32, x: u32, y: u32, size: u32) -> u32 {
    answered(|maps| {
        let values = maps.tile(number, Tile { zoom, x, y, size })?;
        Ok((1, values.iter().flat_map(|value| value.to_le_bytes()).collect()))
    })
}

/// # Safety
/// `start` must point at `len` readable bytes.
unsafe fn text(start: *const u8, len: usize) -> String {
    // SAFETY: as the caller promises; the bytes are copied before anything else runs.
    let bytes = unsafe { std::slice::from_raw_parts(start, len) };
    String::from_utf8_lossy(bytes).into_owned()
}
