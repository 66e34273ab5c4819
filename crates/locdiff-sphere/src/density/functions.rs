//! Densities from functions F = e·Y: exponential and linear.
//!
//! exp F is not band-limited: a clean encoding at degree 47 is a peak of 20 km, far below the
//! spacing of any grid that resolves F. So both kinds are integrated on an adaptive mesh of
//! cells (`mesh.rs`), the coarsest about one wavelength of F wide.

use std::f64::consts::PI;
use std::sync::Arc;

use super::Density;
use crate::cells::{CellId, Tiling};
use crate::derivatives::SplitFunction;
use crate::mesh::{Mesh, Sheet, Sheets, Surface};
use crate::wave_field::WaveField;
use crate::{Basis, Coefficients, LatLon};

/// The logarithm of an integral, in nats, and the estimated error of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogIntegral {
    /// log ∫ exp F.
    pub value: f64,
    /// Estimate of the absolute error of `value`, in nats.
    pub error: f64,
}

/// Makes densities of one maximum degree, whose tables are made once.
///
/// ```
/// use locdiff_sphere::{Coefficients, Integrator};
///
/// // exp 0 over the sphere: its area.
/// let integral = Integrator::new(5).log_integral_exp(&Coefficients::zeros(5));
/// assert!((integral.value - (4.0 * std::f64::consts::PI).ln()).abs() < 1e-12);
/// ```
#[derive(Debug, Clone)]
pub struct Integrator {
    basis: Arc<Basis>,
}

impl Integrator {
    /// Prepares densities up to `max_degree`.
    ///
    /// # Panics
    /// If `max_degree` is beyond [`crate::LARGEST_DEGREE`].
    pub fn new(max_degree: usize) -> Integrator {
        Integrator { basis: Arc::new(Basis::new(max_degree)) }
    }

    /// The basis of the functions.
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    /// A(e) = log ∫ exp(e·Y(u)) du.
    ///
    /// # Panics
    /// If the coefficients have another maximum degree or are not finite.
    pub fn log_integral_exp(&self, coefficients: &Coefficients) -> LogIntegral {
        let (function, constant) = self.without_constant(coefficients);
        let surface = Waves { basis: &self.basis, function: &function, link: Link::Exponential };
        let mesh = Mesh::build(&surface).expect("an exponential is positive");
        assert!(mesh.log_integral.is_finite(), "coefficients are too large to integrate exp F");
        LogIntegral { value: mesh.log_integral + constant, error: mesh.error }
    }

    /// The density exp(e·Y(u) − A(e)).
    ///
    /// # Panics
    /// If the coefficients have another maximum degree or are not finite.
    pub fn exponential(&self, coefficients: &Coefficients) -> Density {
        let (function, constant) = self.without_constant(coefficients);
        let surface = Waves { basis: &self.basis, function: &function, link: Link::Exponential };
        let mesh = Arc::new(Mesh::build(&surface).expect("an exponential is positive"));
        assert!(mesh.log_integral.is_finite(), "coefficients are too large to integrate exp F");
        Density::Exponential(Exponential {
            basis: self.basis.clone(),
            coefficients: coefficients.clone(),
            function,
            constant,
            mesh,
        })
    }

    /// The density max(e·Y(u), 0), renormalised, with e₀₀ = 1/√4π.
    ///
    /// # Panics
    /// If the coefficients have another maximum degree or are not finite.
    pub fn linear(&self, coefficients: &Coefficients) -> Density {
        self.assert_valid(coefficients);
        let mut coefficients = coefficients.clone();
        coefficients.as_mut_slice()[0] = 1.0 / (4.0 * PI).sqrt();
        let function = SplitFunction::new(coefficients.as_slice());
        let surface = Waves { basis: &self.basis, function: &function, link: Link::Identity };
        let mesh =
            Mesh::build(&surface).expect("a function of positive mean is somewhere positive");
        let mesh = Arc::new(mesh);
        Density::Linear(Linear { basis: self.basis.clone(), coefficients, function, mesh })
    }

    /// The function without its constant part, and that part: without it the others keep
    /// their digits.
    fn without_constant(&self, coefficients: &Coefficients) -> (SplitFunction, f64) {
        self.assert_valid(coefficients);
        let mut function = coefficients.as_slice().to_vec();
        let constant = std::mem::take(&mut function[0]) / (4.0 * PI).sqrt();
        (SplitFunction::new(&function), constant)
    }

    fn assert_valid(&self, coefficients: &Coefficients) {
        coefficients.assert_fits(&self.basis);
        let finite = coefficients.as_slice().iter().all(|c| c.is_finite());
        assert!(finite, "coefficients must be finite");
    }
}

/// exp(e·Y(u) − A(e)).
#[derive(Debug, Clone)]
pub struct Exponential {
    basis: Arc<Basis>,
    coefficients: Coefficients,
    function: SplitFunction,
    /// e₀₀·Y₀₀, which the function lacks.
    constant: f64,
    pub(super) mesh: Arc<Mesh>,
}

impl Exponential {
    /// The coefficients e.
    pub fn coefficients(&self) -> &Coefficients {
        &self.coefficients
    }

    /// The logarithm A(e) of the integral of exp(e·Y).
    pub fn log_normaliser(&self) -> f64 {
        self.mesh.log_integral + self.constant
    }

    pub(super) fn mesh_log(&self) -> f64 {
        self.mesh.log_integral
    }

    pub(super) fn log_density(&self, place: LatLon) -> f64 {
        self.coefficients.value_at(&self.basis, place) - self.log_normaliser()
    }

    pub(super) fn base(&self) -> u32 {
        base_of(self.coefficients.max_degree())
    }

    pub(super) fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        let field = WaveField::new(&self.basis, &self.function, tiling);
        Box::new(WaveSheets { field, link: Link::Exponential })
    }
}

/// max(e·Y(u), 0), renormalised.
#[derive(Debug, Clone)]
pub struct Linear {
    basis: Arc<Basis>,
    coefficients: Coefficients,
    function: SplitFunction,
    pub(super) mesh: Arc<Mesh>,
}

impl Linear {
    /// e, with e₀₀ = 1/√4π.
    pub fn coefficients(&self) -> &Coefficients {
        &self.coefficients
    }

    /// log ∫ max(e·Y, 0): 0 if the function is nowhere negative, and the larger the more it
    /// rings.
    pub fn log_normaliser(&self) -> f64 {
        self.mesh.log_integral
    }

    pub(super) fn mesh_log(&self) -> f64 {
        self.mesh.log_integral
    }

    pub(super) fn log_density(&self, place: LatLon) -> f64 {
        self.coefficients.value_at(&self.basis, place).max(0.0).ln() - self.log_normaliser()
    }

    pub(super) fn base(&self) -> u32 {
        base_of(self.coefficients.max_degree())
    }

    pub(super) fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        let field = WaveField::new(&self.basis, &self.function, tiling);
        Box::new(WaveSheets { field, link: Link::Identity })
    }
}

/// Cells of one wavelength: their points resolve a function of this degree.
fn base_of(max_degree: usize) -> u32 {
    max_degree.div_ceil(2).max(2) as u32
}

/// What makes a density of a function.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Link {
    Exponential,
    Identity,
}

struct Waves<'a> {
    basis: &'a Basis,
    function: &'a SplitFunction,
    link: Link,
}

impl Surface for Waves<'_> {
    fn base(&self) -> u32 {
        base_of(self.basis.max_degree())
    }

    fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        let field = WaveField::new(self.basis, self.function, tiling);
        Box::new(WaveSheets { field, link: self.link })
    }
}

struct WaveSheets<'a> {
    field: WaveField<'a>,
    link: Link,
}

impl Sheets for WaveSheets<'_> {
    fn take_cost(&mut self) -> f64 {
        self.field.take_cost()
    }

    fn sheet(&mut self, id: CellId) -> Sheet {
        let mut values = self.field.values(id);
        match self.link {
            // Whatever the points, nothing of a constant is missed.
            Link::Exponential if self.field.max_degree() == 0 => {
                Sheet { missed: Some(0.0), ..Sheet::open(values) }
            }
            Link::Exponential => Sheet::with_summit(values),
            Link::Identity => {
                for value in values.as_flattened_mut() {
                    *value = value.max(0.0).ln();
                }
                // The points resolve the function, which is the density itself.
                Sheet::open(values)
            }
        }
    }
}
