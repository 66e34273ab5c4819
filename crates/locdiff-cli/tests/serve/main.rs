//! `locdiff serve` as its users meet it: a process, sockets, signals.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

mod chain;
mod client;
mod densities;
mod examples;
mod flow;
mod hybrid;
#[cfg(target_os = "linux")]
mod memory;
mod refusals;
mod requests;
mod schema;
mod stopping;
mod strangers;
