//! What records may hold: those that come from others may be meant to take hours, or all memory.

use super::DensityRecord;
use crate::{InvalidCoefficients, InvalidDensity, InvalidPlace, coefficient_count};

/// The most that a record may ask for.
///
/// Within the defaults, densities that models give take milliseconds. The worst that others can think of (noise of
/// every degree in many parts) take some ten seconds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordLimits {
    /// The largest degree of exponential and linear densities.
    pub max_degree: usize,
    /// The largest coefficient by amount: beyond it a density is one point for every purpose.
    pub largest_coefficient: f32,
    /// Coefficients of all parts together.
    pub max_coefficients: usize,
    /// The narrowest kernel of points.
    pub smallest_kernel_km: f64,
    /// The widest kernel of points.
    pub largest_kernel_km: f64,
    /// Points of all parts together.
    pub max_points: usize,
    /// Points times km of their kernel, for all parts together: in a wide kernel every point matters everywhere.
    pub max_point_km: f64,
    /// Cells of all parts together.
    pub max_cells: usize,
    /// Densities that mixtures and products are made of, all together.
    pub max_parts: usize,
    /// How deep mixtures and products may hold each other.
    pub max_depth: usize,
    /// The largest exponent of a product.
    pub largest_exponent: f64,
}

impl RecordLimits {
    /// For records that this program wrote itself: any amount, but only valid numbers.
    pub fn unlimited() -> RecordLimits {
        RecordLimits {
            max_degree: u16::MAX.into(),
            max_coefficients: usize::MAX,
            max_points: usize::MAX,
            max_point_km: f64::INFINITY,
            max_cells: usize::MAX,
            max_parts: usize::MAX,
            max_depth: usize::MAX,
            ..RecordLimits::default()
        }
    }
}

impl Default for RecordLimits {
    fn default() -> RecordLimits {
        RecordLimits {
            max_degree: 127,
            largest_coefficient: 1e4,
            // As many as 32 views of a network of degree 47 give.
            max_coefficients: 32 * coefficient_count(47),
            smallest_kernel_km: 1.0,
            largest_kernel_km: 5000.0,
            max_points: 100_000,
            max_point_km: 2e7,
            max_cells: 50_000,
            // earth-view weighs some fifty windows, before and after registration.
            max_parts: 256,
            max_depth: 4,
            largest_exponent: 100.0,
        }
    }
}

/// Why a record is no density, or none that is accepted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRecord {
    /// The degree is too large.
    #[error("max_degree is {found}: it may be {limit} at most")]
    Degree {
        /// As stated.
        found: usize,
        /// Largest degree that is accepted.
        limit: usize,
    },
    /// Coefficients and degree contradict each other.
    #[error("max_degree {max_degree} needs {expected} coefficients, but there are {found}")]
    CoefficientCount {
        /// As stated.
        max_degree: usize,
        /// (`max_degree` + 1)².
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A coefficient is too large, or not a number.
    #[error("coefficient {index} is {value:e}: it must be between -{limit:e} and {limit:e}")]
    Coefficient {
        /// Index of the coefficient, l² + l + m.
        index: usize,
        /// The coefficient that was sent.
        value: f32,
        /// Largest absolute value that is accepted.
        limit: f32,
    },
    /// Lists of points have different lengths.
    #[error(
        "{latitudes} latitudes, {longitudes} longitudes and {masses} masses: there must be one of each \
         for each point"
    )]
    PointLengths {
        /// Number of latitudes.
        latitudes: usize,
        /// Number of longitudes.
        longitudes: usize,
        /// Number of masses.
        masses: usize,
    },
    /// The kernel is too narrow, too wide, or not a number.
    #[error("kernel_km is {found}: it must be between {smallest} and {largest}")]
    Kernel {
        /// As stated.
        found: f64,
        /// The narrowest.
        smallest: f64,
        /// The widest.
        largest: f64,
    },
    /// Too many points for so wide a kernel.
    #[error("points times kernel_km are {found:e}: they may be {limit:e} at most")]
    PointKm {
        /// Of all parts together.
        found: f64,
        /// Largest product that is accepted.
        limit: f64,
    },
    /// There is too much of something.
    #[error("there are {found} {what}: there may be {limit} at most")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How much of it, in all parts together.
        found: usize,
        /// Largest number that is accepted.
        limit: usize,
    },
    /// Mixtures and products hold each other too often.
    #[error("mixtures and products are nested more than {limit} deep")]
    Depth {
        /// Deepest nesting that is accepted.
        limit: usize,
    },
    /// An exponent is too large, or not a number.
    #[error("exponent {found} of a product: it must be between 0 and {limit}")]
    Exponent {
        /// As stated.
        found: f64,
        /// Largest exponent that is accepted.
        limit: f64,
    },
    /// Not coefficients.
    #[error(transparent)]
    Coefficients(#[from] InvalidCoefficients),
    /// Not a place.
    #[error(transparent)]
    Place(#[from] InvalidPlace),
    /// Not a density.
    #[error(transparent)]
    Density(#[from] InvalidDensity),
}

/// What the parts of a record that were seen so far have together.
#[derive(Default)]
struct Totals {
    coefficients: usize,
    points: usize,
    point_km: f64,
    cells: usize,
    parts: usize,
}

impl RecordLimits {
    pub(super) fn check(&self, record: &DensityRecord) -> Result<(), InvalidRecord> {
        self.check_part(record, 0, &mut Totals::default())
    }

    fn check_part(
        &self,
        record: &DensityRecord,
        depth: usize,
        totals: &mut Totals,
    ) -> Result<(), InvalidRecord> {
        if depth > self.max_depth {
            return Err(InvalidRecord::Depth { limit: self.max_depth });
        }
        // The whole is no part.
        totals.parts += usize::from(depth > 0);
        at_most("parts", totals.parts, self.max_parts)?;
        match record {
            DensityRecord::Exponential { max_degree, coefficients }
            | DensityRecord::Linear { max_degree, coefficients } => {
                totals.coefficients += coefficients.len();
                at_most("coefficients", totals.coefficients, self.max_coefficients)?;
                self.check_coefficients(*max_degree, coefficients)
            }
            DensityRecord::Points { kernel_km, latitudes, longitudes, masses } => {
                let [latitudes, longitudes, masses] = [latitudes, longitudes, masses].map(Vec::len);
                if latitudes != longitudes || latitudes != masses {
                    return Err(InvalidRecord::PointLengths { latitudes, longitudes, masses });
                }
                let (smallest, largest) = (self.smallest_kernel_km, self.largest_kernel_km);
                if !(smallest..=largest).contains(kernel_km) {
                    return Err(InvalidRecord::Kernel { found: *kernel_km, smallest, largest });
                }
                totals.points += masses;
                at_most("points", totals.points, self.max_points)?;
                totals.point_km += masses as f64 * kernel_km;
                if totals.point_km > self.max_point_km {
                    let (found, limit) = (totals.point_km, self.max_point_km);
                    return Err(InvalidRecord::PointKm { found, limit });
                }
                Ok(())
            }
            DensityRecord::Cells { cells, .. } => {
                totals.cells += cells.len();
                at_most("cells", totals.cells, self.max_cells)
            }
            DensityRecord::Mixture { parts } => {
                parts.iter().try_for_each(|part| self.check_part(&part.density, depth + 1, totals))
            }
            DensityRecord::Product { factors } => factors.iter().try_for_each(|factor| {
                if !(0.0..=self.largest_exponent).contains(&factor.exponent) {
                    let (found, limit) = (factor.exponent, self.largest_exponent);
                    return Err(InvalidRecord::Exponent { found, limit });
                }
                self.check_part(&factor.density, depth + 1, totals)
            }),
        }
    }

    fn check_coefficients(&self, max_degree: usize, numbers: &[f32]) -> Result<(), InvalidRecord> {
        if max_degree > self.max_degree {
            return Err(InvalidRecord::Degree { found: max_degree, limit: self.max_degree });
        }
        let (found, expected) = (numbers.len(), coefficient_count(max_degree));
        if found != expected {
            return Err(InvalidRecord::CoefficientCount { max_degree, expected, found });
        }
        let limit = self.largest_coefficient;
        match numbers.iter().position(|number| !(-limit..=limit).contains(number)) {
            None => Ok(()),
            Some(index) => Err(InvalidRecord::Coefficient { index, value: numbers[index], limit }),
        }
    }
}

fn at_most(what: &'static str, found: usize, limit: usize) -> Result<(), InvalidRecord> {
    if found <= limit { Ok(()) } else { Err(InvalidRecord::TooMany { what, found, limit }) }
}
