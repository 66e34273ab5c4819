//! The laws of the sphere and its densities. One program, because each that is linked costs as much as all of its tests.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

mod areas;
mod cells;
mod density;
mod integral;
mod laws;
mod paper;
mod parity;
#[cfg(feature = "serde")]
mod record;
mod scores;
mod survey;
