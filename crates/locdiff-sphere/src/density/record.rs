//! Densities as they are stored and sent: one form for the program's JSON, for HTTP and for the page.
//!
//! Described for readers of other languages in `docs/density-record.md`. A record gives the log-density of what it was
//! made from to 1e-4 nats wherever that is not next to zero (`tests/all/record.rs`): coefficients are f32 numbers, as
//! networks give them, masses and weights have nine digits, and places are right to a centimetre.

mod limits;
mod reading;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

pub use limits::{InvalidRecord, RecordLimits};

use super::{Density, Integrator, Kernel, PointMasses};
use crate::cost::Estimate;
use crate::{Area, Coefficients, Cost, CubeCell, InvalidPlace, LARGEST_DEGREE, LatLon};

/// What leaving out points may change in the log-density.
const NEGLIGIBLE_NATS: f64 = 1e-5;

/// A density as plain numbers.
///
/// ```
/// use locdiff_sphere::{Coefficients, Density, DensityRecord, LatLon};
///
/// let lisbon = LatLon::new(38.72, -9.14)?;
/// let density = Density::exponential(&Coefficients::of(lisbon, 15));
/// let json = serde_json::to_string(&DensityRecord::of(&density))?;
/// assert!(json.starts_with(r#"{"kind":"exponential","max_degree":15,"coefficients":[0.2820948,"#));
///
/// let record: DensityRecord = serde_json::from_str(&json)?;
/// let error = record.density()?.log_density(lisbon) - density.log_density(lisbon);
/// assert!(error.abs() < 1e-4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", try_from = "reading::Fields")]
#[non_exhaustive]
pub enum DensityRecord {
    /// exp(Σ c·Y), normalised: [`Density::exponential`].
    Exponential {
        /// The largest degree, inclusive.
        max_degree: usize,
        /// (`max_degree` + 1)² numbers, that of degree l and order m at index l² + l + m.
        coefficients: Vec<f32>,
    },
    /// Σ c·Y where that is positive, normalised: [`Density::linear`].
    Linear {
        /// The largest degree, inclusive.
        max_degree: usize,
        /// (`max_degree` + 1)² numbers, that of degree l and order m at index l² + l + m.
        coefficients: Vec<f32>,
    },
    /// Points with masses, spread by a von Mises-Fisher kernel: [`PointMasses::spread`].
    Points {
        /// The kernel's standard deviation along each axis.
        kernel_km: f64,
        /// Degrees, the heaviest point first.
        latitudes: Vec<f64>,
        /// Degrees.
        longitudes: Vec<f64>,
        /// Not negative; scaled to sum to one.
        masses: Vec<f64>,
    },
    /// Constant on each of some disjoint cells and zero beyond them: [`Density::cells`].
    Cells {
        /// The cells, each as text: see [`CubeCell`].
        cells: Vec<CubeCell>,
        /// Not negative; scaled to sum to one.
        masses: Vec<f64>,
    },
    /// A weighted mean of densities: [`Density::mixture`].
    Mixture {
        /// The densities with their weights.
        parts: Vec<MixturePart>,
    },
    /// Densities multiplied, each to a power, and normalised: [`Density::product`].
    Product {
        /// The densities with their exponents.
        factors: Vec<ProductFactor>,
    },
}

/// A density in a mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixturePart {
    /// Not negative; all weights are scaled to sum to one.
    pub weight: f64,
    /// The density that has this weight.
    pub density: DensityRecord,
}

/// A density in a product.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProductFactor {
    /// The power, not negative.
    pub exponent: f64,
    /// The density that is raised to this power.
    pub density: DensityRecord,
}

impl DensityRecord {
    /// The record of a density. Areas are not part of records: of a restriction it is the record of what was
    /// restricted.
    pub fn of(density: &Density) -> DensityRecord {
        match density {
            Density::Exponential(density) => DensityRecord::exponential(density.coefficients()),
            Density::Linear(density) => DensityRecord::linear(density.coefficients()),
            Density::PointMasses(density) => {
                let points = density.points();
                let mut rows: Vec<(LatLon, f64)> =
                    points.places().iter().copied().zip(points.weights()).collect();
                rows.sort_by(|a, b| b.1.total_cmp(&a.1));
                let (negligible, mut rest) = (density.negligible_mass(NEGLIGIBLE_NATS), 0.0);
                while let Some((_, mass)) = rows.last()
                    && rest + mass <= negligible
                {
                    rest += mass;
                    rows.pop();
                }
                DensityRecord::Points {
                    kernel_km: density.kernel().width_km(),
                    latitudes: rows.iter().map(|(place, _)| degrees(place.latitude())).collect(),
                    longitudes: rows.iter().map(|(place, _)| degrees(place.longitude())).collect(),
                    masses: rows.iter().map(|(_, mass)| nine_digits(*mass)).collect(),
                }
            }
            Density::Cells(density) => DensityRecord::Cells {
                cells: density.cells().to_vec(),
                masses: density.masses().map(nine_digits).collect(),
            },
            Density::Mixture(density) => {
                let part = |(weight, density): (f64, &Density)| MixturePart {
                    weight: nine_digits(weight),
                    density: DensityRecord::of(density),
                };
                DensityRecord::Mixture { parts: density.parts().map(part).collect() }
            }
            Density::Product(density) => {
                let factor = |(exponent, density)| ProductFactor {
                    exponent,
                    density: DensityRecord::of(density),
                };
                DensityRecord::Product { factors: density.factors().map(factor).collect() }
            }
            Density::Restriction(density) => DensityRecord::of(density.whole()),
        }
    }

    /// The record of the density exp(Σ c·Y), which need not exist yet.
    pub fn exponential(coefficients: &Coefficients) -> DensityRecord {
        let max_degree = coefficients.max_degree();
        DensityRecord::Exponential { max_degree, coefficients: single(coefficients) }
    }

    /// The record of the density Σ c·Y, which need not exist yet.
    pub fn linear(coefficients: &Coefficients) -> DensityRecord {
        let max_degree = coefficients.max_degree();
        DensityRecord::Linear { max_degree, coefficients: single(coefficients) }
    }

    /// What it costs to survey the density, restricted to areas if there are any, before anything is computed: see
    /// [`Density::expected_cost`]. Of a record that is invalid it is some number.
    pub fn expected_cost(&self, within: &[&Area]) -> Cost {
        self.estimate(within).restricted_to(within).cost()
    }

    fn estimate(&self, within: &[&Area]) -> Estimate {
        match self {
            DensityRecord::Exponential { max_degree, coefficients } => {
                let number =
                    |k: usize| coefficients.get(k).map_or(0.0, |number| f64::from(*number));
                Estimate::of_function((*max_degree).min(LARGEST_DEGREE), number)
            }
            DensityRecord::Linear { max_degree, .. } => {
                Estimate::of_linear((*max_degree).min(LARGEST_DEGREE))
            }
            DensityRecord::Points { kernel_km, latitudes, longitudes, masses } => {
                let total = masses.iter().sum::<f64>().max(f64::MIN_POSITIVE);
                let points = latitudes.iter().zip(longitudes).zip(masses);
                let points = points.filter_map(|((latitude, longitude), mass)| {
                    Some((LatLon::new(*latitude, *longitude).ok()?, mass / total))
                });
                let kernel = Kernel::new(*kernel_km).unwrap_or_default();
                Estimate::of_points(kernel, latitudes.len(), points, within)
            }
            DensityRecord::Cells { cells, .. } => Estimate::of_cells(cells.len()),
            DensityRecord::Mixture { parts } => {
                Estimate::of_parts(parts.iter().map(|part| part.density.estimate(within)))
            }
            DensityRecord::Product { factors } => {
                Estimate::of_parts(factors.iter().map(|factor| factor.density.estimate(within)))
            }
        }
    }

    /// Whether the record is within limits, before anything is computed.
    pub fn check(&self, limits: &RecordLimits) -> Result<(), InvalidRecord> {
        limits.check(self)
    }

    /// The density itself, if it is within [`RecordLimits::default`].
    pub fn density(&self) -> Result<Density, InvalidRecord> {
        self.density_within(&RecordLimits::default())
    }

    /// The density itself, if it is within limits. Nothing is computed before everything was checked.
    pub fn density_within(&self, limits: &RecordLimits) -> Result<Density, InvalidRecord> {
        self.check(limits)?;
        self.build(&mut HashMap::new())
    }

    fn build(
        &self,
        integrators: &mut HashMap<usize, Integrator>,
    ) -> Result<Density, InvalidRecord> {
        let mut function = |coefficients: &[f32]| {
            let numbers = coefficients.iter().map(|number| f64::from(*number)).collect();
            let coefficients = Coefficients::from_vec(numbers)?;
            let degree = coefficients.max_degree();
            let integrator = integrators.entry(degree).or_insert_with(|| Integrator::new(degree));
            Ok::<_, InvalidRecord>((integrator.clone(), coefficients))
        };
        Ok(match self {
            DensityRecord::Exponential { coefficients, .. } => {
                let (integrator, coefficients) = function(coefficients)?;
                integrator.exponential(&coefficients)
            }
            DensityRecord::Linear { coefficients, .. } => {
                let (integrator, coefficients) = function(coefficients)?;
                integrator.linear(&coefficients)
            }
            DensityRecord::Points { kernel_km, latitudes, longitudes, masses } => {
                let pairs = latitudes.iter().zip(longitudes);
                let places: Result<Vec<LatLon>, InvalidPlace> =
                    pairs.map(|(latitude, longitude)| LatLon::new(*latitude, *longitude)).collect();
                PointMasses::new(places?, masses)?.spread(Kernel::new(*kernel_km)?)
            }
            DensityRecord::Cells { cells, masses } => Density::cells(cells.clone(), masses)?,
            DensityRecord::Mixture { parts } => {
                let part = |part: &MixturePart| Ok((part.weight, part.density.build(integrators)?));
                Density::mixture(parts.iter().map(part).collect::<Result<_, InvalidRecord>>()?)?
            }
            DensityRecord::Product { factors } => {
                let factor = |f: &ProductFactor| Ok((f.exponent, f.density.build(integrators)?));
                Density::product(factors.iter().map(factor).collect::<Result<_, InvalidRecord>>()?)?
            }
        })
    }
}

fn single(coefficients: &Coefficients) -> Vec<f32> {
    let largest = f64::from(f32::MAX);
    coefficients.as_slice().iter().map(|number| number.clamp(-largest, largest) as f32).collect()
}

/// To a centimeter: the narrowest kernel of records is far wider.
fn degrees(number: f64) -> f64 {
    (number * 1e7).round() / 1e7
}

/// A number that is written with at most nine digits, as many as tell two f32 numbers apart.
fn nine_digits(number: f64) -> f64 {
    format!("{number:.8e}").parse().unwrap_or(number)
}
