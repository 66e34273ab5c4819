//! Retrieval: the place of the training view whose embedding is the nearest.

use anyhow::{Result, ensure};
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::models::earth_view::EarthView;
use locdiff_earth::View;
use locdiff_sphere::LatLon;
use rayon::prelude::*;

use crate::embeddings::Embedded;
use crate::sets::pixels;

/// Views that are compared with the whole gallery at a time.
const TOGETHER: usize = 32;

pub struct Gallery {
    places: Vec<LatLon>,
    /// `[embedding, place]`.
    embeddings: Tensor<2>,
}

impl Gallery {
    /// The first `count` of the views that were embedded.
    pub fn open(count: usize, size: usize) -> Result<Gallery> {
        let embedded = Embedded::open("train", size)?;
        ensure!(embedded.places.len() >= count, "only {} are embedded", embedded.places.len());
        let numbers: Vec<usize> = (0..count).collect();
        // All have the same length: the product is the likeness.
        let rows = embedded.rows(&numbers, &Device::flex());
        Ok(Gallery { places: embedded.places[..count].to_vec(), embeddings: rows.transpose() })
    }

    /// Each view is turned in four directions, as the model does, and the best match counts.
    pub fn nearest(&self, model: &EarthView, views: &[View]) -> Vec<LatLon> {
        views.chunks(TOGETHER).flat_map(|part| self.nearest_of_part(model, part)).collect()
    }

    fn nearest_of_part(&self, model: &EarthView, views: &[View]) -> Vec<LatLon> {
        let turned = model.in_four_directions(&pixels(views));
        let parts = turned.par_chunks(turned.len().div_ceil(2 * views.len()) * views.len());
        let encode = |part: &[u8]| model.network().encoder().forward(part);
        let queries: Tensor<2> = Tensor::cat(parts.map(encode).collect(), 0);
        let likeness: TensorData = queries.matmul(self.embeddings.clone()).into_data();
        let likeness: Vec<f32> = likeness.try_to_vec().expect("f32");
        let best = |rows: &[f32]| {
            let numbers = rows.iter().enumerate();
            let (at, _) = numbers.fold((0, f32::MIN), |best, (at, likeness)| {
                if *likeness > best.1 { (at, *likeness) } else { best }
            });
            self.places[at % self.places.len()]
        };
        likeness.par_chunks(likeness.len() / views.len()).map(best).collect()
    }
}
