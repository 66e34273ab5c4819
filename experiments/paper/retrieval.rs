//! Retrieval among MP16's places by GeoCLIP's embeddings: everywhere, or by the rule `paper` of hybrids around a model's prediction.

use anyhow::Result;
use locdiff::models::most_similar_near;
use locdiff_experiments::paper::Task;
use locdiff_gallery::{EncoderIdentity, Gallery, GalleryWriter};
use locdiff_sphere::LatLon;
use rayon::prelude::*;

/// As in the paper.
const NEAR_KM: f64 = 200.0;

pub struct Places {
    gallery: Gallery,
    /// Mapped into memory: it must outlive the gallery.
    _directory: tempfile::TempDir,
}

impl Places {
    pub fn new(task: &Task) -> Result<Places> {
        let simulation = &task.simulation;
        let encoder = EncoderIdentity {
            name: "geoclip".to_owned(),
            digest: "none".to_owned(),
            preprocessing: "simulated".to_owned(),
            dimension: simulation.width,
        };
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("gallery");
        let mut writer = GalleryWriter::create(&path, &encoder)?;
        let embeddings = simulation.embed(&simulation.gallery);
        let rows = embeddings.chunks_exact(simulation.width).zip(&simulation.gallery);
        for (row, (embedding, place)) in rows.enumerate() {
            writer.push(embedding, *place, &row.to_string())?;
        }
        writer.finish(|_| ())?;
        Ok(Places { gallery: Gallery::open(&path)?, _directory: directory })
    }

    /// The place whose embedding is nearest to each image, among those within 200 km of its candidates if there are some.
    /// If no place is, the first candidate stands.
    pub fn best(&self, images: &[f32], around: Option<&[Vec<LatLon>]>) -> Result<Vec<LatLon>> {
        let width = self.gallery.encoder().dimension;
        let best = |(row, image): (usize, &[f32])| {
            let candidates = around.map(|around| &around[row]);
            let hits = match candidates {
                Some(places) => most_similar_near(&self.gallery, image, places, NEAR_KM, 1)?,
                None => self.gallery.search(image, 1)?,
            };
            let place = hits.first().map(|hit| self.gallery.place(hit.row));
            Ok(place.or_else(|| Some(candidates?[0])).expect("places or candidates"))
        };
        images.par_chunks_exact(width).enumerate().map(best).collect()
    }
}
