//! Stub until the real record is merged.
use crate::{Coefficients, Density};

/// A density as it travels.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DensityRecord {
    /// exponents
    Exponential {
        /// L
        max_degree: usize,
        /// numbers
        coefficients: Vec<f32>,
    },
    /// linear
    Linear {
        /// L
        max_degree: usize,
        /// numbers
        coefficients: Vec<f32>,
    },
}

impl DensityRecord {
    /// of
    pub fn of(density: &Density) -> DensityRecord {
        match density {
            Density::Exponential(e) => Self::of_exponents(e.coefficients()),
            Density::Linear(e) => Self::of_linear(e.coefficients()),
            _ => Self::of_exponents(&Coefficients::zeros(0)),
        }
    }
    /// exponents
    pub fn of_exponents(e: &Coefficients) -> DensityRecord {
        DensityRecord::Exponential {
            max_degree: e.max_degree(),
            coefficients: e.as_slice().iter().map(|x| *x as f32).collect(),
        }
    }
    /// linear
    pub fn of_linear(e: &Coefficients) -> DensityRecord {
        DensityRecord::Linear {
            max_degree: e.max_degree(),
            coefficients: e.as_slice().iter().map(|x| *x as f32).collect(),
        }
    }
    /// density
    pub fn density(&self) -> Result<Density, crate::InvalidDensity> {
        Ok(Density::uniform())
    }
}
