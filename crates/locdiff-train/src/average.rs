//! Moving averages of weights.

use std::collections::BTreeMap;

use burn::backend::Flex;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use rayon::prelude::*;

use locdiff::tensors::{NamedMapper, NamedVisitor, is_cpu, map_named, slice_of, visit_named};
use locdiff::vectorised;

const CHUNK: usize = 16_384;

/// A module moved a share of the way towards another of the same shape: share 1 gives the
/// other one. Called after each step with share 1 − decay it is the exponential moving
/// average of the weights.
pub fn moved_towards<M: Module>(average: M, towards: &M, share: f64) -> M {
    let Collect { values } = visit_named(towards, Collect { values: BTreeMap::new() });
    map_named(average, Blend { values, share })
}

struct Collect {
    values: BTreeMap<String, Tensor<1>>,
}

impl NamedVisitor for Collect {
    fn visit<const D: usize>(&mut self, name: &str, param: &Param<Tensor<D>>) {
        let value = param.val();
        let value = if value.device().is_autodiff() { value.inner() } else { value };
        self.values.insert(name.to_owned(), value.flatten(0, D - 1));
    }
}

struct Blend {
    values: BTreeMap<String, Tensor<1>>,
    share: f64,
}

impl NamedMapper for Blend {
    fn map<const D: usize>(&mut self, name: &str, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(towards) = self.values.remove(name) else { return param };
        param.map(|average| {
            let shape = average.dims();
            let average = average.flatten::<1>(0, D - 1);
            let blended = if is_cpu(&average.device()) {
                blend_on_cpu(average, towards, self.share as f32)
            } else {
                average.clone() + (towards - average) * self.share
            };
            blended.reshape(shape)
        })
    }
}

fn blend_on_cpu(average: Tensor<1>, towards: Tensor<1>, share: f32) -> Tensor<1> {
    let primitive = |tensor: Tensor<1>| {
        let primitive = tensor.try_into_primitive::<Flex>();
        primitive.expect("a tensor of the CPU without gradients").to_contiguous()
    };
    let (mut average, towards) = (primitive(average), primitive(towards));
    let numbers: &mut [f32] = average.storage_mut();
    let chunks = numbers.par_chunks_mut(CHUNK).zip(slice_of(&towards).par_chunks(CHUNK));
    chunks.for_each(|(average, towards)| {
        vectorised!({
            for (average, towards) in average.iter_mut().zip(towards) {
                *average += (towards - *average) * share;
            }
        });
    });
    Tensor::from_primitive::<Flex>(average)
}

#[cfg(test)]
mod tests {
    use burn::nn::LinearConfig;
    use burn::tensor::{Device, Tolerance};

    use super::*;

    #[test]
    fn the_average_forgets_exponentially() {
        let device = Device::flex();
        let start = LinearConfig::new(30, 20).init(&device);
        let training = LinearConfig::new(30, 20).init(&device.clone().autodiff());
        let mut average = start.clone();
        for _ in 0..3 {
            average = moved_towards(average, &training, 0.1);
        }
        // What is left of the start after three steps with decay 0.9.
        let kept = 0.9_f32.powi(3);
        let expected = start.weight.val() * kept + training.weight.val().inner() * (1.0 - kept);
        let tolerance = Tolerance::absolute(1e-6);
        let average = average.weight.val().into_data();
        average.assert_approx_eq::<f32>(&expected.into_data(), tolerance);
        let whole = moved_towards(start, &training, 1.0).weight.val().into_data();
        whole.assert_approx_eq::<f32>(&training.weight.val().inner().into_data(), tolerance);
    }
}
