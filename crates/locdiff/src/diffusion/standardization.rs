//! Conditions centered and scaled by mean and deviation of the training rows.

use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};

use crate::tensors::InvalidWeights;

/// Numbers that hardly vary in training are divided by at least this part of the mean deviation: should they vary later, they
/// are not blown up.
const LEAST_DEVIATION: f64 = 0.01;

/// The mean and the standard deviation of each number of an embedding over the training set.
#[derive(Debug, Clone, PartialEq)]
pub struct Standardization {
    mean: Vec<f32>,
    deviation: Vec<f32>,
}

impl Standardization {
    /// Measures rows of some width, one after the other.
    ///
    /// # Panics
    /// If there is no row, or not a whole number of them.
    pub fn of(embeddings: &[f32], width: usize) -> Standardization {
        let rows = embeddings.len() / width;
        assert!(rows > 0 && rows * width == embeddings.len(), "whole rows of {width} numbers");
        let (mut sums, mut squares) = (vec![0.0_f64; width], vec![0.0_f64; width]);
        for row in embeddings.chunks_exact(width) {
            for (k, number) in row.iter().enumerate() {
                sums[k] += f64::from(*number);
                squares[k] += f64::from(*number) * f64::from(*number);
            }
        }
        let mean: Vec<f64> = sums.iter().map(|sum| sum / rows as f64).collect();
        let deviations = mean.iter().zip(&squares);
        let deviations: Vec<f64> = deviations
            .map(|(mean, square)| (square / rows as f64 - mean * mean).max(0.0).sqrt())
            .collect();
        let typical = deviations.iter().sum::<f64>() / width as f64;
        let least = if typical > 0.0 { LEAST_DEVIATION * typical } else { 1.0 };
        Standardization {
            deviation: deviations.iter().map(|deviation| deviation.max(least) as f32).collect(),
            mean: mean.iter().map(|mean| *mean as f32).collect(),
        }
    }

    /// Numbers of an embedding.
    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// Rows with mean 0 and deviation 1, if they are like those of training.
    pub fn apply(&self, embeddings: &mut [f32]) {
        for row in embeddings.chunks_exact_mut(self.width()) {
            for ((number, mean), deviation) in row.iter_mut().zip(&self.mean).zip(&self.deviation) {
                *number = (*number - mean) / deviation;
            }
        }
    }

    /// Writes a safetensors file of `mean` and `deviation`.
    pub fn save(&self, path: &Path) -> Result<(), InvalidWeights> {
        let bytes = |numbers: &[f32]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
        };
        let parts = [("deviation", bytes(&self.deviation)), ("mean", bytes(&self.mean))];
        let views = parts.iter().map(|(name, bytes)| {
            let view = TensorView::new(Dtype::F32, vec![self.width()], bytes);
            (*name, view.expect("the bytes are those of the shape"))
        });
        let file = serialize(views, None).map_err(|error| InvalidWeights::Format {
            path: path.into(),
            reason: error.to_string(),
        })?;
        std::fs::write(path, file).map_err(|source| InvalidWeights::File {
            what: "write",
            path: path.into(),
            source,
        })
    }

    /// Reads what [`Standardization::save`] wrote.
    pub fn open(path: &Path) -> Result<Standardization, InvalidWeights> {
        let file = std::fs::read(path).map_err(|source| InvalidWeights::File {
            what: "read",
            path: path.into(),
            source,
        })?;
        let wrong = |reason: String| InvalidWeights::Format { path: path.to_owned(), reason };
        let tensors = SafeTensors::deserialize(&file).map_err(|error| wrong(error.to_string()))?;
        let numbers = |name: &str| -> Result<Vec<f32>, InvalidWeights> {
            let view = tensors.tensor(name).map_err(|error| wrong(error.to_string()))?;
            if view.dtype() != Dtype::F32 || view.shape().len() != 1 {
                return Err(wrong(format!("{name} is {:?} {:?}", view.dtype(), view.shape())));
            }
            let (numbers, _) = view.data().as_chunks::<4>();
            Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        };
        let (mean, deviation) = (numbers("mean")?, numbers("deviation")?);
        if mean.len() != deviation.len() || mean.is_empty() {
            let lengths = format!("{} means, {} deviations", mean.len(), deviation.len());
            return Err(wrong(lengths));
        }
        let is_fine = mean.iter().all(|number| number.is_finite())
            && deviation.iter().all(|number| number.is_finite() && *number > 0.0);
        if !is_fine {
            return Err(wrong("means must be finite, and deviations positive".to_owned()));
        }
        Ok(Standardization { mean, deviation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_centered_and_scaled_and_files_hold_it() {
        let mut rows: Vec<f32> =
            (0..300).flat_map(|k| [5.0 + (k % 7) as f32, -2.0 * (k % 11) as f32, 3.0]).collect();
        let fitted = Standardization::of(&rows, 3);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("condition.safetensors");
        fitted.save(&path).unwrap();
        assert_eq!(Standardization::open(&path).unwrap(), fitted);
        fitted.apply(&mut rows);
        let again = Standardization::of(&rows, 3);
        assert!(again.mean.iter().all(|mean| mean.abs() < 1e-5), "{again:?}");
        assert!(again.deviation[..2].iter().all(|d| (d - 1.0).abs() < 1e-4), "{again:?}");
        // What never varied in training is not blown up if it varies later.
        let mut moved = [5.0, -2.0, 3.1];
        fitted.apply(&mut moved);
        assert!(moved[2].is_finite() && moved[2].abs() < 10.0, "{moved:?}");
        std::fs::write(&path, "x").unwrap();
        assert!(Standardization::open(&path).unwrap_err().to_string().contains("condition"));
    }
}
