//! Weights of several modules in one small file: matrices in 8 bits, everything else as f32.
//!
//! A safetensors file. A matrix `NAME` is i8, to be multiplied column by column with
//! `NAME.steps`; what belongs to one module has the module's name before its own. Words about
//! it all stand in the file's header.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use burn::module::Module;
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};

use crate::tensors::weights::{InvalidWeights, Weights, collect, replace};

const STEPS: &str = ".steps";

/// Weights of several modules, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackedWeights {
    tensors: Weights,
}

impl PackedWeights {
    /// Adds a module's weights.
    pub fn add<M: Module>(&mut self, part: &str, module: &M) {
        let named = collect(module).into_iter();
        self.tensors.extend(named.map(|(name, tensor)| (format!("{part}.{name}"), tensor)));
    }

    /// Adds plain numbers.
    pub fn add_numbers(&mut self, name: &str, shape: Vec<usize>, numbers: Vec<f32>) {
        self.tensors.insert(name.to_owned(), (shape, numbers));
    }

    /// Plain numbers.
    pub fn numbers(&self, name: &str) -> Option<&[f32]> {
        self.tensors.get(name).map(|(_, numbers)| numbers.as_slice())
    }

    /// How many numbers there are.
    pub fn count(&self) -> usize {
        self.tensors.values().map(|(_, numbers)| numbers.len()).sum()
    }

    /// The module with these weights, which must have its names and shapes.
    pub fn apply<M: Module>(&self, part: &str, module: M) -> Result<M, InvalidWeights> {
        let error = |name: &str, reason: String| InvalidWeights::Format {
            path: PathBuf::from(format!("{part}.{name}")),
            reason,
        };
        let mut values = BTreeMap::new();
        for (name, (shape, _)) in collect(&module) {
            match self.tensors.get(&format!("{part}.{name}")) {
                None => return Err(error(&name, "it is not in the file".to_owned())),
                Some((found, _)) if *found != shape => {
                    return Err(error(&name, format!("it is {found:?}, not {shape:?}")));
                }
                Some((_, numbers)) => values.insert(name, numbers.clone()),
            };
        }
        Ok(replace(module, values))
    }

    /// The file's bytes.
    pub fn to_bytes(&self, about: &[(&str, &str)]) -> Vec<u8> {
        let mut packed: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
        let floats = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        for (name, (shape, numbers)) in &self.tensors {
            if let [_, columns] = shape[..] {
                let (steps, small) = in_steps(numbers, columns);
                packed.push((name.clone() + STEPS, Dtype::F32, vec![columns], floats(&steps)));
                packed.push((name.clone(), Dtype::I8, shape.clone(), small));
            } else {
                packed.push((name.clone(), Dtype::F32, shape.clone(), floats(numbers)));
            }
        }
        let views = packed.iter().map(|(name, kind, shape, bytes)| {
            let view = TensorView::new(*kind, shape.clone(), bytes);
            (name.clone(), view.expect("the bytes are those of the shape"))
        });
        let about: HashMap<String, String> =
            about.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        serialize(views, Some(about)).expect("names and shapes are plain")
    }

    /// What a file holds, and the words about it.
    pub fn from_bytes(
        bytes: &[u8],
    ) -> Result<(PackedWeights, HashMap<String, String>), InvalidWeights> {
        let wrong = |reason: String| InvalidWeights::Format { path: "weights".into(), reason };
        let (_, header) =
            SafeTensors::read_metadata(bytes).map_err(|error| wrong(error.to_string()))?;
        let file = SafeTensors::deserialize(bytes).map_err(|error| wrong(error.to_string()))?;
        let floats = |view: &TensorView<'_>| -> Vec<f32> {
            view.data().as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect()
        };
        let mut tensors = Weights::new();
        for (name, view) in file.tensors() {
            if name.ends_with(STEPS) {
                continue;
            }
            let numbers = match view.dtype() {
                Dtype::F32 => floats(&view),
                Dtype::I8 => {
                    let steps = file.tensor(&format!("{name}{STEPS}"));
                    let steps = floats(&steps.map_err(|error| wrong(error.to_string()))?);
                    let columns = view.shape().last().copied().unwrap_or(0);
                    if columns == 0 || steps.len() != columns {
                        return Err(wrong(format!("{name} has {} steps", steps.len())));
                    }
                    let rows = view.data().chunks_exact(columns);
                    let number = |(byte, step): (&u8, &f32)| f32::from(*byte as i8) * step;
                    rows.flat_map(|row| row.iter().zip(&steps).map(number)).collect()
                }
                other => return Err(wrong(format!("{name} is {other:?}"))),
            };
            tensors.insert(name, (view.shape().to_vec(), numbers));
        }
        Ok((PackedWeights { tensors }, header.metadata().clone().unwrap_or_default()))
    }
}

/// A step for each column, and numbers as multiples of it.
fn in_steps(numbers: &[f32], columns: usize) -> (Vec<f32>, Vec<u8>) {
    let mut steps = vec![0.0_f32; columns];
    for row in numbers.chunks_exact(columns) {
        steps.iter_mut().zip(row).for_each(|(step, x)| *step = step.max(x.abs() / 127.0));
    }
    let small = |(x, step): (&f32, &f32)| {
        if *step == 0.0 { 0 } else { (x / step).round() as i8 as u8 }
    };
    let small = numbers.chunks_exact(columns).flat_map(|row| row.iter().zip(&steps).map(small));
    let small = small.collect();
    (steps, small)
}

#[cfg(test)]
mod tests {
    use burn::nn::LinearConfig;
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn numbers_come_back_to_half_a_step() {
        let device = Device::flex();
        let module = LinearConfig::new(40, 30).init(&device);
        let mut packed = PackedWeights::default();
        packed.add("layer", &module);
        packed.add_numbers("mean", vec![3], vec![0.1, -7.0, 1e-9]);
        let bytes = packed.to_bytes(&[("words", "a test")]);
        let (read, about) = PackedWeights::from_bytes(&bytes).unwrap();
        assert_eq!(about["words"], "a test");
        assert_eq!(read.numbers("mean"), Some(&[0.1, -7.0, 1e-9][..]));
        let other = LinearConfig::new(40, 30).init(&device);
        let back = read.apply("layer", other).unwrap();
        let numbers = |tensor: burn::tensor::Tensor<2>| -> Vec<f32> {
            tensor.into_data().try_to_vec().unwrap()
        };
        let (before, after) = (numbers(module.weight.val()), numbers(back.weight.val()));
        for column in 0..30 {
            let of = |numbers: &[f32]| -> Vec<f32> {
                numbers.iter().copied().skip(column).step_by(30).collect()
            };
            let (before, after) = (of(&before), of(&after));
            let largest = before.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            for (before, after) in before.iter().zip(&after) {
                assert!((before - after).abs() <= 0.501 * largest / 127.0);
            }
        }
        // A third of the numbers' size as f32, with the steps.
        assert!(bytes.len() < 40 * 30 * 4 / 2);
        let narrow = LinearConfig::new(40, 29).init(&device);
        assert!(read.apply("layer", narrow).unwrap_err().to_string().contains("it is ["));
        assert!(PackedWeights::from_bytes(&bytes[..100]).is_err());
    }
}
