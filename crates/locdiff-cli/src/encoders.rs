//! Image encoders by name or by path.

use std::path::Path;

use anyhow::{Context, bail};
use locdiff::{ImageEncoder, device_by_name};

/// An encoder from a directory or file of weights, or one that `locdiff model fetch` has
/// fetched. Never uses the network.
pub(crate) fn open(name: &str, device: &str) -> anyhow::Result<ImageEncoder> {
    let device = device_by_name(device)?;
    let path = Path::new(name);
    if path.exists() {
        return Ok(ImageEncoder::open(path, &device)?);
    }
    let directory = fetched(name)?;
    ImageEncoder::open(&directory, &device).with_context(|| format!("encoder `{name}`"))
}

#[cfg(feature = "hub")]
fn fetched(name: &str) -> anyhow::Result<std::path::PathBuf> {
    use locdiff::hub::{Encoder, Hub};
    let encoder: Encoder = match name.parse() {
        Ok(encoder) => encoder,
        Err(error) => bail!("there is no directory or file `{name}`, and {error}"),
    };
    match Hub::from_env()?.cached(&encoder) {
        Some(model) => Ok(model.directory),
        None => bail!(
            "encoder `{name}` is not on this machine: get it with `locdiff model fetch {name}`, or \
             give the directory where it is"
        ),
    }
}

#[cfg(not(feature = "hub"))]
fn fetched(name: &str) -> anyhow::Result<std::path::PathBuf> {
    bail!(
        "there is no directory or file `{name}`, and this program was built without the feature \
         `hub`, which finds encoders by name"
    )
}
