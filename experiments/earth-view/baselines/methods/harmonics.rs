//! Ours: the trunk gives the coefficients of an exponential density, trained by likelihood, and the
//! answer comes in one pass.

use std::sync::Arc;

use locdiff::diffusion::{Loss, Objective, Quadrature, coefficients_of};
use locdiff_sphere::coefficient_count;

use super::fitting::{Examples, batches, initialised, train, training_device};
use super::networks::Direct;
use super::waves::{WaveTables, Waves};
use super::{Answer, Baseline, FitOptions, Fitted};

/// L, as in earth-view.
const MAX_DEGREE: usize = 31;
/// Of the training's integrals: 417 km apart, which is enough for what embeddings tell, and cheap. The
/// grid turns from batch to batch, so that sharper peaks are seen in the mean.
const RINGS: usize = 48;

pub(super) fn fit(examples: &Examples<'_>, options: &FitOptions) -> Fitted {
    let start = vec![0.0; coefficient_count(MAX_DEGREE)];
    let network = initialised(options.seed, |device| Direct::init(examples.width, start, device));
    let quadrature = Quadrature::Transform(RINGS);
    let loss = Loss::new(Objective::Likelihood, quadrature, MAX_DEGREE, &training_device());
    let trained = train(network, examples, options, |network, embeddings, places, rng| {
        loss.mean(network.forward(embeddings), places, rng)
    });
    let tables = Arc::new(WaveTables::new(MAX_DEGREE));
    let width = examples.width;
    Fitted::direct(trained, |network| Harmonics { network, width, tables })
}

struct Harmonics {
    network: Direct,
    width: usize,
    tables: Arc<WaveTables>,
}

impl Baseline for Harmonics {
    fn answers(&self, embeddings: &[f32], _seed: u64) -> Vec<Box<dyn Answer>> {
        let outputs = batches(embeddings, self.width).map(|batch| self.network.forward(batch));
        let coefficients = outputs.flat_map(|output| coefficients_of(&output));
        let answer = |e| Box::new(Waves::new(self.tables.clone(), e)) as Box<dyn Answer>;
        coefficients.map(answer).collect()
    }
}
