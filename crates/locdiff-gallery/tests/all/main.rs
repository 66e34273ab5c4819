//! The laws of galleries, against slow references.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

mod durability;
mod made;
mod searching;
