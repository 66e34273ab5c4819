//! Where a model's image encoder is on this machine.

use std::path::Path;
use std::sync::Arc;

use super::directory::ModelDirectory;
use super::earth_view::{EarthViewEncoder, NAME as BUILT_IN, built_in_embedder};
use super::home::ModelHome;
use super::opening::{CannotOpen, EncoderSource, OpenOptions};
use crate::encoders::{Embedder, EncoderRecord, ImageEncoder, InvalidEncoder, Reading};
use burn::tensor::Device;
use locdiff_gallery::Gallery;

/// A model's own encoder, if it has one: a directory in the model's.
const OWN: &str = "encoder";

/// An encoder by name or path: `earth-view`, a directory or file of weights, or one that `locdiff model` has imported or fetched. `None` if it is not on this machine. Never uses the network.
pub fn open_encoder(
    name: &str,
    home: &ModelHome,
    device: &Device,
) -> Result<Option<Arc<dyn Embedder>>, InvalidEncoder> {
    if name == BUILT_IN {
        return Ok(Some(Arc::new(built_in_embedder(device))));
    }
    if Path::new(name).exists() {
        return Ok(Some(open_path(Path::new(name), &Reading::Published, device)?));
    }
    let Some(directory) = home.encoder(name) else { return Ok(None) };
    let bare = name.split('@').next().unwrap_or(name);
    // The hub's cache keeps a commit's files under its name.
    let revision = directory.file_name().and_then(|name| name.to_str());
    let revision = revision.filter(|name| name.len() == 40 && directory != home.model(bare));
    let encoder = ImageEncoder::open_as(&Reading::of(bare), &directory, device)?;
    Ok(Some(Arc::new(encoder.named(bare, revision))))
}

impl OpenOptions {
    /// An installed encoder by name; `None` if it is not on this machine.
    pub(super) fn installed_encoder(
        &self,
        name: &str,
    ) -> Result<Option<Arc<dyn Embedder>>, CannotOpen> {
        let (home, device) = (self.home()?, self.device()?);
        let key = (home.directory().to_owned(), name.to_owned(), self.device.clone());
        Ok(self.shared.get_or_open(key, || open_encoder(name, &home, &device))?)
    }
}

fn open_path(
    path: &Path,
    reading: &Reading,
    device: &Device,
) -> Result<Arc<dyn Embedder>, InvalidEncoder> {
    Ok(match EarthViewEncoder::open(path, device) {
        Some(encoder) => Arc::new(encoder?),
        None => Arc::new(ImageEncoder::open_as(reading, path, device)?),
    })
}

/// The encoder of a model, checked to be the one that it was trained with; `None` if it isn't needed.
pub(super) fn find_encoder(
    directory: &ModelDirectory,
    record: &EncoderRecord,
    options: &OpenOptions,
) -> Result<Option<Arc<dyn Embedder>>, CannotOpen> {
    let model = &directory.name();
    let checked = |encoder: Arc<dyn Embedder>| match record.check(encoder.record()) {
        Ok(()) => Ok(Some(encoder)),
        Err(error) => Err(CannotOpen::OtherEncoder { model: model.to_owned(), error }),
    };
    let reading = record.name.as_deref().map(Reading::of).unwrap_or_default();
    match &options.encoder {
        EncoderSource::NotNeeded => return Ok(None),
        EncoderSource::Path(path) => return checked(open_given(path, &reading, model, options)?),
        EncoderSource::Installed => {}
    }
    if !record.is_known() {
        let (model, encoder) = (model.to_owned(), record.identity.clone());
        return Err(CannotOpen::UnknownEncoder { model, encoder });
    }
    let own = directory.path().join(OWN);
    if own.is_dir() {
        return checked(open_path(&own, &reading, &options.device()?)?);
    }
    let missing = |remedy: String| CannotOpen::Missing {
        model: model.to_owned(),
        missing: format!("its image encoder, {record}, is not on this machine"),
        remedy,
    };
    let Some(name) = &record.name else {
        return Err(missing("Give the encoder's directory with --encoder PATH".to_owned()));
    };
    let revision = record.revision.as_ref().map_or(String::new(), |commit| format!("@{commit}"));
    let found = match options.installed_encoder(&format!("{name}{revision}"))? {
        // Another commit may have the same weights.
        None => options.installed_encoder(name)?,
        found => found,
    };
    match found {
        Some(encoder) => checked(encoder),
        None => {
            let command = record.command().unwrap_or_default();
            Err(missing(format!(
                "Get it with `{command}`, or give its directory with --encoder PATH"
            )))
        }
    }
}

/// The encoder that somebody gave, by path or name.
fn open_given(
    path: &Path,
    reading: &Reading,
    model: &str,
    options: &OpenOptions,
) -> Result<Arc<dyn Embedder>, CannotOpen> {
    let name = path.to_string_lossy();
    let missing = || CannotOpen::Missing {
        model: model.to_owned(),
        missing: format!("there is no encoder `{name}`"),
        remedy: "Give the directory of an encoder, or the name of an installed one".to_owned(),
    };
    if path.exists() {
        return Ok(open_path(path, reading, &options.device()?)?);
    }
    options.installed_encoder(&name)?.ok_or_else(missing)
}

/// The encoder of a gallery, checked to be the one that made its embeddings; `None` if it isn't needed.
pub(super) fn find_gallery_encoder(
    directory: &ModelDirectory,
    gallery: &Gallery,
    options: &OpenOptions,
) -> Result<Option<Arc<dyn Embedder>>, CannotOpen> {
    let (model, wanted, own) = (directory.name(), gallery.encoder(), directory.path().join(OWN));
    let reading = Reading::of(&wanted.name);
    let encoder = match &options.encoder {
        EncoderSource::NotNeeded => return Ok(None),
        EncoderSource::Path(path) => open_given(path, &reading, &model, options)?,
        EncoderSource::Installed if own.is_dir() => open_path(&own, &reading, &options.device()?)?,
        EncoderSource::Installed => {
            let record = EncoderRecord::of_gallery(wanted);
            let command =
                record.command().map(|command| format!("Get it with `{command}`, or give"));
            let missing = || CannotOpen::Missing {
                model,
                missing: format!("its image encoder, {wanted}, is not on this machine"),
                remedy: format!(
                    "{} its directory with --encoder PATH",
                    command.unwrap_or_else(|| "Give".to_owned())
                ),
            };
            options.installed_encoder(&wanted.name)?.ok_or_else(missing)?
        }
    };
    gallery.check_encoder(&encoder.record().for_gallery(encoder.width()))?;
    Ok(Some(encoder))
}
