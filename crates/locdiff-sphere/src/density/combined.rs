//! Mixtures and products of densities.

use std::sync::{Arc, OnceLock};

use super::{Density, InvalidDensity, log_shares, log_sum_exp, resolved};
use crate::cells::{CellId, POINTS, Tiling};
use crate::mesh::{Coverage, Mesh, Sheet, Sheets, Surface};
use crate::{Coefficients, LatLon};

/// Σ w_i·q_i with weights that sum to one.
#[derive(Debug, Clone)]
pub struct Mixture {
    parts: Arc<[(f64, Density)]>,
    /// Built when it is first asked for.
    pub(super) mesh: OnceLock<Arc<Mesh>>,
}

impl Mixture {
    pub(super) fn new(parts: Vec<(f64, Density)>) -> Result<Mixture, InvalidDensity> {
        if parts.is_empty() {
            return Err(InvalidDensity::Empty("parts"));
        }
        let weights: Vec<f64> = parts.iter().map(|(weight, _)| *weight).collect();
        let logs = log_shares("weight", &weights)?;
        // Parts without weight would only cost time.
        let parts = logs.into_iter().zip(parts).filter(|(log, _)| *log > f64::NEG_INFINITY);
        let parts = parts.map(|(log, (_, density))| (log, density)).collect();
        Ok(Mixture { parts, mesh: OnceLock::new() })
    }

    /// The densities with their weights.
    pub fn parts(&self) -> impl Iterator<Item = (f64, &Density)> {
        self.parts.iter().map(|(log, density)| (log.exp(), density))
    }

    pub(super) fn log_density(&self, place: LatLon) -> f64 {
        let logs: Vec<f64> =
            self.parts.iter().map(|(log, density)| log + density.log_density(place)).collect();
        log_sum_exp(logs.iter().copied())
    }

    pub(super) fn normaliser_error(&self) -> f64 {
        self.parts().map(|(weight, density)| weight * density.normaliser_error()).sum()
    }

    pub(super) fn base(&self) -> u32 {
        self.parts.iter().map(|(_, density)| density.base()).max().unwrap_or(1)
    }

    pub(super) fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        let parts = self.parts.iter().map(|(log, density)| (*log, density.sheets(tiling)));
        Box::new(MixtureSheets(parts.collect()))
    }
}

struct MixtureSheets<'a>(Vec<(f64, Box<dyn Sheets + 'a>)>);

impl Sheets for MixtureSheets<'_> {
    fn must_split(&mut self, id: CellId) -> Option<f64> {
        // The weights of those parts that want it, together.
        let wanted = self
            .0
            .iter_mut()
            .filter_map(|(log, sheets)| sheets.must_split(id).map(|weight| weight * log.exp()));
        wanted.reduce(|sum, weight| sum + weight)
    }

    fn take_cost(&mut self) -> f64 {
        self.0.iter_mut().map(|(_, sheets)| 0.5 + sheets.take_cost()).sum()
    }

    fn sheet(&mut self, id: CellId) -> Sheet {
        let parts: Vec<(f64, Sheet)> =
            self.0.iter_mut().map(|(log, sheets)| (*log, sheets.sheet(id))).collect();
        // Most parts are somewhere else, and the same all over the cell.
        let (even, uneven): (Vec<_>, Vec<_>) = parts.iter().partition(|(_, sheet)| sheet.is_even());
        let even = log_sum_exp(even.iter().map(|(log, sheet)| log + sheet.values[0][0]));
        let value = |i: usize, j: usize| {
            let uneven = uneven.iter().map(|(log, sheet)| log + sheet.value_inside(i, j));
            if uneven.len() == 0 { even } else { log_sum_exp(uneven.chain([even])) }
        };
        Sheet {
            values: std::array::from_fn(|i| std::array::from_fn(|j| value(i, j))),
            coverage: if parts.iter().all(|(_, s)| matches!(s.coverage, Coverage::Nothing)) {
                Coverage::Nothing
            } else if parts.iter().any(|(_, sheet)| sheet.is_cut()) {
                Coverage::Mixed
            } else {
                Coverage::Full
            },
            summit: log_sum_exp(parts.iter().map(|(log, sheet)| log + sheet.summit)),
            stepped: parts.iter().any(|(_, sheet)| sheet.stepped),
            kinked: parts.iter().any(|(_, sheet)| sheet.reaches_zero()),
            missed: parts
                .iter()
                .map(|(_, sheet)| sheet.missed)
                .reduce(|a, b| Some(a?.max(b?)))
                .flatten(),
        }
    }
}

/// Π q_i^α_i, normalised.
#[derive(Debug, Clone)]
pub struct Product {
    factors: Arc<[(f64, Density)]>,
    pub(super) mesh: Arc<Mesh>,
}

/// The product, simplified if all factors are exponentials.
pub(super) fn product(factors: Vec<(f64, Density)>) -> Result<Density, InvalidDensity> {
    if factors.is_empty() {
        return Err(InvalidDensity::Empty("factors"));
    }
    let exponents: Vec<f64> = factors.iter().map(|(exponent, _)| *exponent).collect();
    log_shares("exponent", &exponents)?;
    // Factors to the power of zero are 1 everywhere.
    let factors: Vec<(f64, Density)> = factors.into_iter().filter(|(e, _)| *e > 0.0).collect();
    let exponentials: Option<Vec<_>> = factors
        .iter()
        .map(|(exponent, factor)| match factor {
            Density::Exponential(factor) => Some((*exponent, factor.coefficients())),
            _ => None,
        })
        .collect();
    if let Some(exponentials) = exponentials {
        let max_degree = exponentials.iter().map(|(_, e)| e.max_degree()).max().unwrap_or(0);
        let mut sum = Coefficients::zeros(max_degree);
        for (exponent, e) in exponentials {
            for (sum, e) in sum.as_mut_slice().iter_mut().zip(e.as_slice()) {
                *sum += exponent * e;
            }
        }
        return Ok(Density::exponential(&sum));
    }
    let unnormalised = Factors(&factors);
    let mesh = Mesh::build(&unnormalised)
        .ok_or(InvalidDensity::Nowhere("wherever one of the factors is"))?;
    resolved(&mesh)?;
    Ok(Density::Product(Product { factors: factors.into(), mesh: Arc::new(mesh) }))
}

impl Product {
    /// The densities with their exponents.
    pub fn factors(&self) -> impl Iterator<Item = (f64, &Density)> {
        self.factors.iter().map(|(exponent, density)| (*exponent, density))
    }

    pub(super) fn log_density(&self, place: LatLon) -> f64 {
        let logs = self.factors().map(|(exponent, factor)| exponent * factor.log_density(place));
        logs.sum::<f64>() - self.mesh.log_integral
    }

    pub(super) fn base(&self) -> u32 {
        Factors(&self.factors).base()
    }

    pub(super) fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        product_sheets(&self.factors, tiling)
    }
}

/// The product before it is normalised.
struct Factors<'a>(&'a [(f64, Density)]);

impl Surface for Factors<'_> {
    fn base(&self) -> u32 {
        self.0.iter().map(|(_, density)| density.base()).max().unwrap_or(1)
    }

    fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        product_sheets(self.0, tiling)
    }
}

fn product_sheets(factors: &[(f64, Density)], tiling: Tiling) -> Box<dyn Sheets + '_> {
    let factors = factors.iter().map(|(exponent, density)| (*exponent, density.sheets(tiling)));
    Box::new(ProductSheets(factors.collect()))
}

struct ProductSheets<'a>(Vec<(f64, Box<dyn Sheets + 'a>)>);

impl Sheets for ProductSheets<'_> {
    fn must_split(&mut self, id: CellId) -> Option<f64> {
        self.0.iter_mut().filter_map(|(_, sheets)| sheets.must_split(id)).max_by(f64::total_cmp)
    }

    fn take_cost(&mut self) -> f64 {
        self.0.iter_mut().map(|(_, sheets)| 0.5 + sheets.take_cost()).sum()
    }

    fn sheet(&mut self, id: CellId) -> Sheet {
        let mut product = Sheet::open([[0.0; POINTS]; POINTS]);
        // How far the factors may rise between the points, together.
        let mut rise = f64::NEG_INFINITY;
        for (exponent, sheets) in &mut self.0 {
            let sheet = sheets.sheet(id);
            for i in 0..POINTS {
                for j in 0..POINTS {
                    product.values[i][j] += *exponent * sheet.values[i][j];
                }
            }
            product.coverage = product.coverage.and(&sheet.coverage);
            product.stepped |= sheet.stepped;
            let highest = sheet.highest();
            if sheet.summit > highest && highest > f64::NEG_INFINITY {
                rise = rise.max(0.0) + *exponent * (sheet.summit - highest);
            }
        }
        if matches!(product.coverage, Coverage::Nothing) {
            return Sheet::nothing();
        }
        let highest = product.highest();
        if highest > f64::NEG_INFINITY {
            product.summit = highest + rise;
        }
        product
    }
}
