//! Image encoders by name or by path.

use std::sync::Arc;

use anyhow::{Context, bail};
use locdiff::ModelHome;
use locdiff::encoders::Embedder;
use locdiff::models::open_encoder;
use locdiff::tensors::device_by_name;

/// One from a directory or file of weights, or one that `locdiff model` has
/// imported or fetched. Never uses the network.
pub(crate) fn open(name: &str, device: &str) -> anyhow::Result<Arc<dyn Embedder>> {
    let device = device_by_name(device)?;
    let found = open_encoder(name, &ModelHome::from_env()?, &device)
        .with_context(|| format!("encoder `{name}`"))?;
    match found {
        Some(encoder) => Ok(encoder),
        None => bail!("{}", not_here(name)),
    }
}

#[cfg(feature = "hub")]
fn not_here(name: &str) -> String {
    match name.parse::<locdiff::encoders::hub::Encoder>() {
        Err(error) => format!("there is no directory or file `{name}`, and {error}"),
        Ok(_) => format!(
            "encoder `{name}` is not on this machine: get it with `locdiff model fetch {name}`, or \
             give its directory"
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
