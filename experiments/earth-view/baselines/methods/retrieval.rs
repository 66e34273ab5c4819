//! Retrieval: the training rows whose embeddings are nearest by cosine, all of them looked at.

use burn::tensor::{Device, Tensor};
use locdiff_sphere::{LatLon, UnitVector};

use super::bumps::{Bump, Bumps};
use super::fitting::{Examples, matrix_of, numbers_of};
use super::{Answer, Baseline, Fitted};

/// Neighbours that an answer keeps.
const NEIGHBOURS: usize = 64;
/// What cosines are multiplied by to be logarithms of weights; powers of it are tried in calibration.
const COSINE_SCALE: f64 = 20.0;
/// Rows per product: their cosines with all training rows are in memory at once.
const ROWS: usize = 64;

pub(super) fn fit(examples: &Examples<'_>) -> Fitted {
    let gallery =
        matrix_of(normalised(examples.embeddings, examples.width), examples.width, &Device::flex());
    let places = examples.places.to_vec();
    let model = Retrieval { gallery: gallery.transpose(), places, width: examples.width };
    Fitted::of(0, model)
}

fn normalised(embeddings: &[f32], width: usize) -> Vec<f32> {
    let mut values = embeddings.to_vec();
    for row in values.chunks_exact_mut(width) {
        let length = row.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        row.iter_mut().for_each(|x| *x /= length);
    }
    values
}

struct Retrieval {
    /// `[width, training rows]`
    gallery: Tensor<2>,
    places: Vec<LatLon>,
    width: usize,
}

impl Baseline for Retrieval {
    fn answers(&self, embeddings: &[f32], _seed: u64) -> Vec<Box<dyn Answer>> {
        let mut answers: Vec<Box<dyn Answer>> = Vec::new();
        for part in embeddings.chunks(ROWS * self.width) {
            let queries = matrix_of(normalised(part, self.width), self.width, &Device::flex());
            let cosines = numbers_of(queries.matmul(self.gallery.clone()));
            for cosines in cosines.chunks_exact(self.places.len()) {
                answers.push(Box::new(self.nearest(cosines)));
            }
        }
        answers
    }
}

impl Retrieval {
    fn nearest(&self, cosines: &[f32]) -> Bumps {
        let mut rows: Vec<usize> = (0..cosines.len()).collect();
        let count = NEIGHBOURS.min(rows.len());
        let descending = |a: &usize, b: &usize| cosines[*b].total_cmp(&cosines[*a]);
        rows.select_nth_unstable_by(count - 1, descending);
        rows.truncate(count);
        let bump = |row: usize| Bump {
            log_weight: COSINE_SCALE * f64::from(cosines[row]),
            centre: UnitVector::from(self.places[row]).to_array(),
            variance: None,
        };
        Bumps::new(rows.into_iter().map(bump).collect())
    }
}
