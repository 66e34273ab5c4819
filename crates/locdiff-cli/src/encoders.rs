//! Image encoders by name or by path.

use std::path::Path;

use anyhow::{Context, bail};
use locdiff::ModelHome;
use locdiff::encoders::ImageEncoder;
use locdiff::tensors::device_by_name;

/// An encoder from a directory or file of weights, or one that `locdiff model` has
/// imported or fetched. Never uses the network.
pub(crate) fn open(name: &str, device: &str) -> anyhow::Result<ImageEncoder> {
    let device = device_by_name(device)?;
    let path = Path::new(name);
    if path.exists() {
        return Ok(ImageEncoder::open(path, &device)?);
    }
    let Some(directory) = ModelHome::from_env()?.encoder(name) else { bail!("{}", not_here(name)) };
    ImageEncoder::open(&directory, &device).with_context(|| format!("encoder `{name}`"))
}

#[cfg(feature = "hub")]
fn not_here(name: &str) -> String {
    match name.parse::<locdiff::encoders::hub::Encoder>() {
        Err(error) => format!("there is no directory or file `{name}`, and {error}"),
        Ok(_) => format!(
            "encoder `{name}` is not on this machine: get it with `locdiff model fetch {name}`, or \
             give the directory where it is"
        ),
    }
}

#[cfg(not(feature = "hub"))]
fn not_here(name: &str) -> String {
    format!(
        "there is no directory or file `{name}`, and this program was built without the feature \
         `hub`, which finds encoders by name"
    )
}
