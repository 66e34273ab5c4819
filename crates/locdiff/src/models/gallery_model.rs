//! A gallery as a model by itself: the density of a photograph's place, from the references that resemble it.

use std::fs;
use std::sync::Arc;

use locdiff_gallery::{Gallery, GalleryError, Hit, Likelihood};
use locdiff_sphere::Density;
use rayon::prelude::*;

use super::directory::{GALLERY, ModelDirectory};
use super::encoder_search::find_gallery_encoder;
use super::opening::{CannotOpen, OpenOptions};
use crate::checksum::Checksum;
use crate::encoders::{Embedder, EncoderRecord};
use crate::locate::{
    Inference, InvalidInference, Located, LocationModel, ModelIdentity, NotItsKind, Reference,
};
use crate::photo::{Crops, Photo};

/// The fitted numbers of a gallery.
const LIKELIHOOD: &str = "likelihood.json";

/// A gallery with a fitted likelihood, and the encoder that it is searched with.
pub struct GalleryModel {
    gallery: Gallery,
    likelihood: Likelihood,
    record: EncoderRecord,
    /// None if only embeddings will be asked about.
    encoder: Option<Arc<dyn Embedder>>,
    identity: ModelIdentity,
}

impl std::fmt::Debug for GalleryModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GalleryModel({:?}, {:?})", self.identity, self.likelihood)
    }
}

impl GalleryModel {
    /// The gallery in a directory, which must be fitted, with its encoder.
    pub fn open(
        directory: &ModelDirectory,
        options: &OpenOptions,
    ) -> Result<GalleryModel, CannotOpen> {
        let gallery = Gallery::open(directory.path())?;
        let likelihood = Likelihood::read(&gallery)?;
        let encoder = find_gallery_encoder(directory, &gallery, options)?;
        let identity = ModelIdentity {
            name: directory.name(),
            version: gallery_version(&gallery)?,
            description: format!(
                "a gallery of {} references, by embeddings of {}; fitted to {} photographs of {}",
                gallery.len(),
                gallery.encoder().name,
                likelihood.held_out_rows,
                likelihood.held_out,
            ),
            calibrated: false,
            prior: Some("photographs are taken where those of the gallery were".to_owned()),
        };
        let record = match &encoder {
            Some(encoder) => encoder.record().clone(),
            None => EncoderRecord::of_gallery(gallery.encoder()),
        };
        Ok(GalleryModel { gallery, likelihood, record, encoder, identity })
    }

    fn located(&self, query: &[f32]) -> Result<Located, GalleryError> {
        let hits = self.gallery.search(query, Likelihood::HITS)?;
        let density = self.likelihood.evidence(&self.gallery, &hits)?.density()?;
        let references = hits.iter().map(|hit| reference(&self.gallery, hit)).collect();
        Ok(Located { references, ..Located::from(density) })
    }
}

/// A hit, as answers name it.
pub(super) fn reference(gallery: &Gallery, hit: &Hit) -> Reference {
    Reference {
        id: gallery.id(hit.row).to_owned(),
        place: gallery.place(hit.row),
        similarity: f64::from(hit.similarity),
    }
}

/// Changes with the gallery's rows and with its fit.
pub(super) fn gallery_version(gallery: &Gallery) -> Result<String, GalleryError> {
    let mut version = Checksum::default();
    for (name, needed) in [(GALLERY, true), (LIKELIHOOD, false)] {
        let path = gallery.path().join(name);
        match fs::read(&path) {
            Ok(bytes) => version.update(bytes),
            Err(error) if needed => return Err(GalleryError::File { what: "read", path, error }),
            Err(_) => {}
        }
    }
    Ok(version.finish_short())
}

/// One query of several views: the mean of their directions.
pub(super) fn mean_direction(views: &[f32], width: usize) -> Vec<f32> {
    let mut sum = vec![0.0; width];
    for view in views.chunks_exact(width) {
        let length = view.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        sum.iter_mut().zip(view).for_each(|(sum, x)| *sum += x / length);
    }
    sum
}

impl LocationModel for GalleryModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn check(&self, inference: &Inference) -> Result<Vec<String>, InvalidInference> {
        inference.expect_one_pass(&self.identity.name, &[inference.views])?;
        Ok(Vec::new())
    }

    fn locate(&self, photos: &[Photo], inference: &Inference) -> Vec<Result<Located, NotItsKind>> {
        let Some(encoder) = &self.encoder else {
            let why = "the gallery was opened without its encoder";
            return photos.iter().map(|_| Err(NotItsKind::Other(why.to_owned()))).collect();
        };
        let crops = match inference.views {
            1 => Crops::Single,
            views => Crops::Random { count: views as u32, seed: inference.seed },
        };
        let embeddings = encoder.embed_photos(photos, &crops);
        let rows = embeddings.par_chunks_exact(inference.views * encoder.width());
        rows.map(|row| {
            let located = self.located(&mean_direction(row, encoder.width()));
            located.map_err(|error| NotItsKind::TellsNothing(error.to_string()))
        })
        .collect()
    }

    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        let Some(encoder) = &self.encoder else { return Vec::new() };
        let embeddings = encoder.embed_photos(photos, &Crops::Single);
        embeddings.chunks_exact(encoder.width()).map(<[f32]>::to_vec).collect()
    }

    fn locate_embeddings(
        &self,
        embeddings: &[f32],
        views: usize,
        _inference: &Inference,
    ) -> Option<Vec<Located>> {
        let width = self.gallery.encoder().dimension;
        // An embedding of no use is similar to nothing.
        let located = |row: &[f32]| {
            self.located(&mean_direction(row, width)).unwrap_or_else(|_| Density::uniform().into())
        };
        Some(embeddings.par_chunks_exact(views * width).map(located).collect())
    }

    fn takes_embeddings_of(&self) -> Option<(&EncoderRecord, usize)> {
        Some((&self.record, self.gallery.encoder().dimension))
    }
}
