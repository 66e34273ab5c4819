//! Regression: the trunk gives a vector, and the mean distance to the truth's unit vector is
//! minimised. Not its square: the median in space is less drawn to the middle of the Earth than the mean.

use super::bumps::Bumps;
use super::fitting::{
    Examples, batches, initialised, place_towards, train, training_device, triples_of, vectors_of,
};
use super::networks::Direct;
use super::{Answer, Baseline, FitOptions, Fitted};

pub(super) fn fit(examples: &Examples<'_>, options: &FitOptions) -> Fitted {
    let network =
        initialised(options.seed, |device| Direct::init(examples.width, vec![0.0; 3], device));
    let device = training_device();
    let trained = train(network, examples, options, |network, embeddings, places, _| {
        let difference = network.forward(embeddings) - vectors_of(places, &device);
        (difference.square().sum_dim(1) + 1e-6).sqrt().mean()
    });
    let width = examples.width;
    Fitted::direct(trained, |network| Regression { network, width })
}

struct Regression {
    network: Direct,
    width: usize,
}

impl Baseline for Regression {
    fn answers(&self, embeddings: &[f32], _seed: u64) -> Vec<Box<dyn Answer>> {
        let outputs = batches(embeddings, self.width).map(|batch| self.network.forward(batch));
        let points = outputs.flat_map(triples_of);
        let answer = |point| {
            let place = locdiff_sphere::UnitVector::from(place_towards(point)).to_array();
            Box::new(Bumps::samples(std::iter::once(place))) as Box<dyn Answer>
        };
        points.map(answer).collect()
    }
}
