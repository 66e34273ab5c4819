//! Laws of data sets and their streams. No network, no data from outside.

mod damage;
mod foreign;
mod laws;
mod positions;
#[cfg(feature = "s3")]
mod s3;
mod sets;
