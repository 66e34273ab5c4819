//! Probability densities on the sphere: always normalised, always as logarithms.
//!
//! Convention: densities are per steradian on the unit sphere, so the uniform one is 1/4π
//! and its negative log-likelihood log 4π = 2.531 nats. Every kind that needs an integral
//! to be normalised has an estimate of the error of that. Tested against one-dimensional
//! integrals and fine grids (`tests/all/density`, `experiments/sphere/density-conformance`).

mod cell_tree;
mod cells;
mod combined;
mod functions;
mod invalid;
mod kernel_sums;
mod points;
#[cfg(feature = "serde")]
mod record;
mod restriction;

use std::fmt;
use std::sync::{Arc, OnceLock};

pub use cells::Cells;
pub use combined::{Mixture, Product};
pub use functions::{Exponential, Integrator, Linear, LogIntegral};
pub use invalid::InvalidDensity;
pub(crate) use points::POINTS_PER_CELL;
pub use points::{Kernel, PointMasses, SpreadPoints};
#[cfg(feature = "serde")]
pub use record::{DensityRecord, InvalidRecord, MixturePart, ProductFactor, RecordLimits};
pub(crate) use restriction::CUT_CELL;
pub use restriction::Restriction;

use crate::area::{Cover, Rectangle};
use crate::cells::{CellId, Tiling};
use crate::mesh::{Mesh, Sheet, Sheets, Surface};
use crate::{Area, Coefficients, CubeCell, Grid, LatLon, Survey, Transform, UNIFORM_NLL_NATS};

/// A probability density on the sphere.
///
/// ```
/// use locdiff_sphere::{Coefficients, Density, LatLon};
///
/// let lisbon = LatLon::new(38.72, -9.14)?;
/// let density = Density::exponential(&Coefficients::of(lisbon, 15));
/// let survey = density.survey();
/// assert!(survey.probability_within(lisbon, 500.0) > 0.8);
/// assert!(survey.region(0.9).contains(lisbon));
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Density {
    /// exp(e·Y − A(e)): what a network trained by likelihood gives.
    Exponential(Exponential),
    /// e·Y, clipped at zero and renormalised: means of encodings.
    Linear(Linear),
    /// Points with weights, spread by a kernel: a gallery.
    PointMasses(SpreadPoints),
    /// Constant on each of some cells: a classification.
    Cells(Cells),
    /// A weighted mean of densities: an ensemble.
    Mixture(Mixture),
    /// A weighted geometric mean of densities, or their plain product: fusion of evidence.
    Product(Product),
    /// A density on a part of the Earth, renormalised there: a constraint.
    Restriction(Restriction),
}

impl Density {
    /// The density exp(e·Y(u) − A(e)). For many of one degree make an [`Integrator`] once.
    ///
    /// # Panics
    /// If a coefficient is not finite.
    pub fn exponential(coefficients: &Coefficients) -> Density {
        Integrator::new(coefficients.max_degree()).exponential(coefficients)
    }

    /// The density max(e·Y(u), 0), renormalised; e₀₀ is set to 1/√4π, which no training
    /// determines. If it rings, smooth the coefficients first: [`Coefficients::smoothed`].
    ///
    /// # Panics
    /// If a coefficient is not finite.
    pub fn linear(coefficients: &Coefficients) -> Density {
        Integrator::new(coefficients.max_degree()).linear(coefficients)
    }

    /// The density that is constant on each of these disjoint cells and zero beyond them. Masses are
    /// scaled to sum to one.
    pub fn cells(cells: Vec<CubeCell>, masses: &[f64]) -> Result<Density, InvalidDensity> {
        Ok(Density::Cells(Cells::new(cells, masses)?))
    }

    /// The same density everywhere, 1/4π.
    pub fn uniform() -> Density {
        Density::exponential(&Coefficients::zeros(0))
    }

    /// The mean of densities with weights, which are scaled to sum to one.
    pub fn mixture(parts: Vec<(f64, Density)>) -> Result<Density, InvalidDensity> {
        Ok(Density::Mixture(Mixture::new(parts)?))
    }

    /// The normalised product of densities, each to the power of its exponent.
    ///
    /// Exponents of 1 multiply independent evidence (on a uniform prior); exponents that sum
    /// to one pool opinions. Exponentials combine exactly into one exponential.
    pub fn product(factors: Vec<(f64, Density)>) -> Result<Density, InvalidDensity> {
        combined::product(factors)
    }

    /// This density on an area only, renormalised there.
    pub fn restricted_to(&self, area: Area) -> Result<Density, InvalidDensity> {
        Ok(Density::Restriction(Restriction::new(self.clone(), area)?))
    }

    /// Logarithm of the density per steradian at a place; −∞ where it is zero.
    pub fn log_density(&self, place: LatLon) -> f64 {
        match self {
            Density::Exponential(density) => density.log_density(place),
            Density::Linear(density) => density.log_density(place),
            Density::PointMasses(density) => density.log_density(place),
            Density::Cells(density) => density.log_density(place),
            Density::Mixture(density) => density.log_density(place),
            Density::Product(density) => density.log_density(place),
            Density::Restriction(density) => density.log_density(place),
        }
    }

    /// Logarithms of the density on a grid, `[ring, longitude]`.
    pub fn log_density_on(&self, grid: &Grid) -> Vec<f64> {
        // One transform where there is one; place by place otherwise.
        let function = match self {
            Density::Exponential(density) => Some(density.coefficients()),
            Density::Linear(density) => Some(density.coefficients()),
            _ => None,
        };
        if let Some(function) = function
            && grid.longitudes() > 2 * function.max_degree()
        {
            let mut values =
                Transform::new(grid.clone(), function.max_degree()).synthesize(function);
            match self {
                Density::Linear(density) => {
                    for value in &mut values {
                        *value = value.max(0.0).ln() - density.log_normaliser();
                    }
                }
                Density::Exponential(density) => {
                    values.iter_mut().for_each(|value| *value -= density.log_normaliser());
                }
                _ => unreachable!("only functions get here"),
            }
            return values;
        }
        let places = (0..grid.rings()).flat_map(|ring| {
            (0..grid.longitudes()).map(move |longitude| grid.place(ring, longitude))
        });
        places.map(|place| self.log_density(place)).collect()
    }

    /// Estimated error of the logarithm of the normaliser, in nats: every log-density is
    /// off by at most about this.
    pub fn normaliser_error(&self) -> f64 {
        match self {
            Density::Exponential(density) => density.mesh.error,
            Density::Linear(density) => density.mesh.error,
            Density::PointMasses(_) | Density::Cells(_) => 0.0,
            Density::Mixture(density) => density.normaliser_error(),
            Density::Product(density) => density.mesh.error,
            Density::Restriction(density) => density.normaliser_error(),
        }
    }

    /// Negative log-likelihood of a place, in nats.
    pub fn nll_nats(&self, place: LatLon) -> f64 {
        -self.log_density(place)
    }

    /// Log-density at a place minus that of the uniform density, in nats.
    pub fn gain_nats(&self, place: LatLon) -> f64 {
        UNIFORM_NLL_NATS - self.nll_nats(place)
    }

    /// Width in km of the kernel that spreads point masses, if there are any: what the
    /// density shows below that width comes from the kernel.
    pub fn kernel_km(&self) -> Option<f64> {
        match self {
            Density::Exponential(_) | Density::Linear(_) | Density::Cells(_) => None,
            Density::PointMasses(points) => Some(points.kernel().width_km()),
            Density::Mixture(mixture) => widest(mixture.parts().map(|(_, density)| density)),
            Density::Product(product) => widest(product.factors().map(|(_, density)| density)),
            Density::Restriction(restriction) => restriction.whole().kernel_km(),
        }
    }

    /// Measures the density all over the sphere: regions, modes, probabilities of areas,
    /// entropy, samples and decisions come from there.
    pub fn survey(&self) -> Survey<'_> {
        let mesh = match self {
            Density::Exponential(density) => density.mesh.clone(),
            Density::Linear(density) => density.mesh.clone(),
            Density::Product(density) => density.mesh.clone(),
            Density::Restriction(density) => density.mesh.clone(),
            Density::PointMasses(density) => self.kept_mesh(&density.mesh),
            Density::Cells(density) => self.kept_mesh(&density.mesh),
            Density::Mixture(density) => self.kept_mesh(&density.mesh),
        };
        Survey::new(self, mesh)
    }

    /// The same density, prepared to be looked at closely in an area, if that makes a difference.
    fn focused_on(&self, area: &Area) -> Option<Density> {
        match self {
            Density::PointMasses(points) => Some(Density::PointMasses(points.focused_on(area))),
            Density::Cells(cells) => Some(Density::Cells(cells.focused_on(area))),
            _ => None,
        }
    }

    /// The mesh that was built before, or one that is built now, and kept unless a budget cut it short.
    fn kept_mesh(&self, kept: &OnceLock<Arc<Mesh>>) -> Arc<Mesh> {
        if let Some(mesh) = kept.get() {
            return Arc::clone(mesh);
        }
        let mesh = Arc::new(Mesh::build(self).expect("a density is somewhere positive"));
        if mesh.cut_short { mesh } else { Arc::clone(kept.get_or_init(|| mesh)) }
    }

    /// Whether [`Density::log_density`] is normalised without an integral, so that a mesh of it is a check.
    pub(crate) fn is_normalised_by_itself(&self) -> bool {
        matches!(self, Density::PointMasses(_) | Density::Cells(_) | Density::Mixture(_))
    }

    /// The middles of those cells of piecewise constant parts that hold a place: the density has no other
    /// place there that is more of a top.
    pub(crate) fn plateaus(&self, place: LatLon) -> Vec<LatLon> {
        match self {
            Density::Cells(cells) => {
                cells.cell_at(place).map(CubeCell::centre).into_iter().collect()
            }
            Density::Mixture(density) => {
                density.parts().flat_map(|(_, part)| part.plateaus(place)).collect()
            }
            Density::Product(density) => {
                density.factors().flat_map(|(_, factor)| factor.plateaus(place)).collect()
            }
            Density::Restriction(density) => density.whole().plateaus(place),
            Density::Exponential(_) | Density::Linear(_) | Density::PointMasses(_) => Vec::new(),
        }
    }

    /// Where the density may be positive in a rectangle.
    pub(crate) fn cover(&self, rectangle: &Rectangle) -> Cover {
        match self {
            Density::Restriction(density) => match density.area().cover(rectangle) {
                Cover::Outside => Cover::Outside,
                Cover::Inside => density.whole().cover(rectangle),
                Cover::Cut => match density.whole().cover(rectangle) {
                    Cover::Outside => Cover::Outside,
                    _ => Cover::Cut,
                },
            },
            Density::Product(density) => {
                let covers = density.factors().map(|(_, factor)| factor.cover(rectangle));
                covers.fold(Cover::Inside, |all, cover| match (all, cover) {
                    (Cover::Outside, _) | (_, Cover::Outside) => Cover::Outside,
                    (Cover::Inside, Cover::Inside) => Cover::Inside,
                    _ => Cover::Cut,
                })
            }
            Density::Mixture(density) => {
                let covers = density.parts().map(|(_, part)| part.cover(rectangle));
                covers.reduce(|a, b| if a == b { a } else { Cover::Cut }).unwrap_or(Cover::Inside)
            }
            _ => Cover::Inside,
        }
    }

    /// Whether the density may be positive at a place.
    pub(crate) fn allows(&self, place: LatLon) -> bool {
        match self {
            Density::Restriction(density) => density.allows(place),
            Density::Product(density) => density.factors().all(|(_, factor)| factor.allows(place)),
            Density::Mixture(density) => density.parts().any(|(_, part)| part.allows(place)),
            _ => true,
        }
    }
}

fn widest<'a>(parts: impl Iterator<Item = &'a Density>) -> Option<f64> {
    parts.filter_map(Density::kernel_km).max_by(f64::total_cmp)
}

/// The normalised log-density, cell by cell.
impl Surface for Density {
    fn base(&self) -> u32 {
        match self {
            Density::Exponential(density) => density.base(),
            Density::Linear(density) => density.base(),
            Density::PointMasses(density) => density.base(),
            Density::Cells(density) => density.base(),
            Density::Mixture(density) => density.base(),
            Density::Product(density) => density.base(),
            Density::Restriction(density) => density.base(),
        }
    }

    fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        let shifted = |sheets, log_normaliser| Box::new(Shifted { sheets, log_normaliser });
        match self {
            Density::Exponential(density) => shifted(density.sheets(tiling), density.mesh_log()),
            Density::Linear(density) => shifted(density.sheets(tiling), density.mesh_log()),
            Density::PointMasses(density) => density.sheets(tiling),
            Density::Cells(density) => density.sheets(tiling),
            Density::Mixture(density) => density.sheets(tiling),
            Density::Product(density) => shifted(density.sheets(tiling), density.mesh.log_integral),
            Density::Restriction(density) => {
                shifted(density.sheets(tiling), density.mesh.log_integral)
            }
        }
    }
}

/// A surface brought down by its normaliser.
struct Shifted<'a> {
    sheets: Box<dyn Sheets + 'a>,
    log_normaliser: f64,
}

impl Sheets for Shifted<'_> {
    fn must_split(&mut self, id: CellId) -> Option<f64> {
        self.sheets.must_split(id)
    }

    fn take_cost(&mut self) -> f64 {
        self.sheets.take_cost()
    }

    fn sheet(&mut self, id: CellId) -> Sheet {
        let mut sheet = self.sheets.sheet(id);
        for value in sheet.values.as_flattened_mut() {
            *value -= self.log_normaliser;
        }
        sheet.summit -= self.log_normaliser;
        sheet
    }
}

/// Refuses a mesh whose error would make probabilities meaningless, unless it was to be coarse.
fn resolved(mesh: &Mesh) -> Result<(), InvalidDensity> {
    // Also if it is not a number.
    if mesh.error < 0.1 || mesh.cut_short {
        Ok(())
    } else {
        Err(InvalidDensity::Unresolved(mesh.error))
    }
}

/// log Σ exp of two or more numbers, without overflow.
pub(crate) fn log_sum_exp(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let highest = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if highest == f64::NEG_INFINITY {
        return highest;
    }
    highest + logs.map(|log| (log - highest).exp()).sum::<f64>().ln()
}

/// The weights scaled to sum to one, as logarithms.
fn log_shares(what: &'static str, weights: &[f64]) -> Result<Vec<f64>, InvalidDensity> {
    let sum: f64 = weights.iter().sum();
    let bad = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0));
    let bad = bad.or(if sum > 0.0 && sum.is_finite() { None } else { Some(0) });
    if let Some(index) = bad {
        return Err(InvalidDensity::Weight { what, index, value: weights[index] });
    }
    Ok(weights.iter().map(|weight| (weight / sum).ln()).collect())
}

impl fmt::Display for Density {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Density::Exponential(d) => {
                write!(f, "exponential density of degree {}", d.coefficients().max_degree())
            }
            Density::Linear(d) => {
                write!(f, "linear density of degree {}", d.coefficients().max_degree())
            }
            Density::PointMasses(d) => write!(
                f,
                "{} point masses, spread by a kernel of {} km",
                d.points().len(),
                d.kernel().width_km()
            ),
            Density::Cells(d) => {
                write!(f, "piecewise constant density on {} cells", d.cells().len())
            }
            Density::Mixture(d) => write!(f, "mixture of {} densities", d.parts().count()),
            Density::Product(d) => write!(f, "product of {} densities", d.factors().count()),
            Density::Restriction(d) => write!(f, "{}, restricted to an area", d.whole()),
        }
    }
}
