//! Which encoder a gallery is of, and where it is on this machine.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use burn::tensor::Device;
use locdiff::encoders::{Embedder, EncoderRecord};
use locdiff::models::geoclip::{GeoClip, GeoClipEmbedder};
use locdiff::{ModelHome, OpenOptions};
use locdiff_gallery::{EncoderIdentity, Gallery, GalleryError};

use crate::encoders;

/// What a gallery of GeoCLIP's encodings of places stores.
pub(super) fn identity_of_geoclip(geoclip: &GeoClip) -> EncoderIdentity {
    let record = EncoderRecord {
        name: Some(GeoClipEmbedder::NAME.to_owned()),
        sha256: Some(geoclip.weights_sha256()),
        ..EncoderRecord::of_identity(GeoClipEmbedder::NAME)
    };
    record.for_gallery(geoclip.location_encoder.width())
}

/// An image encoder by name or path; `geoclip` is GeoCLIP's image side.
pub(super) fn open(name: &str, device: &str) -> anyhow::Result<Arc<dyn Embedder>> {
    if name == GeoClipEmbedder::NAME {
        let options = OpenOptions { device: device.to_owned(), ..OpenOptions::default() };
        let directory = ModelHome::from_env()?.model(name);
        return Ok(Arc::new(GeoClipEmbedder::open(&directory, &options)?));
    }
    encoders::open(name, device)
}

/// The encoder of a gallery: the one that was named, or the one whose name the gallery stores.
pub(super) fn of_gallery(
    gallery: &Gallery,
    given: Option<&str>,
    device: &str,
) -> anyhow::Result<Arc<dyn Embedder>> {
    let stored = gallery.encoder();
    let encoder = match given {
        Some(name) => open(name, device)?,
        None => open(&stored.name, device).with_context(|| {
            let path = gallery.path().display();
            format!("the encoder of the gallery {path} (give the directory of the encoder with --encoder)")
        })?,
    };
    check(gallery, &encoder.record().for_gallery(encoder.width()))?;
    Ok(encoder)
}

/// Rejects another encoder than the gallery's; the message has the remedy.
pub(crate) fn check(gallery: &Gallery, found: &EncoderIdentity) -> anyhow::Result<()> {
    gallery.check_encoder(found).map_err(|error| match &error {
        GalleryError::OtherEncoder { expected, .. } => anyhow::anyhow!(
            "{error}. Embed with `--encoder {}`, or build another gallery for the other encoder",
            expected.name
        ),
        _ => error.into(),
    })
}

/// GeoCLIP's location encoder, for a list of coordinates. CLIP itself isn't needed.
pub(super) fn open_geoclip(device: &Device) -> anyhow::Result<GeoClip> {
    let directory = ModelHome::from_env()?.model(GeoClipEmbedder::NAME);
    anyhow::ensure!(
        directory.join("config.json").is_file(),
        "GeoCLIP is not in {}: get it with `pip download geoclip==1.3.0 --no-deps` and `locdiff model import geoclip \
         geoclip-1.3.0-py3-none-any.whl`, or, together with its image encoder, `locdiff model fetch geoclip`",
        directory.display()
    );
    Ok(GeoClip::open(&directory, device)?)
}

/// Opens a gallery; the error has the remedy if there is none.
pub(super) fn open_gallery(directory: &Path) -> anyhow::Result<Gallery> {
    Gallery::open(directory).map_err(|error| match &error {
        GalleryError::File { error: cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => {
            anyhow::anyhow!(
                "there is no gallery in {0}: make one with `locdiff gallery build --data PATH --out {0}`",
                directory.display()
            )
        }
        _ => error.into(),
    })
}
