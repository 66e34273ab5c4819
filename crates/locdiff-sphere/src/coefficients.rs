//! The coefficients of a function on the sphere: what is encoded, diffused and decoded.

use crate::{Basis, EARTH_RADIUS_KM, LatLon, coefficient_count};

/// A function F(u) = Σ c_lm·Y_lm(u), or the SHDD encoding of a place (c_lm = Y_lm(place)).
///
/// Coefficient (l, m) sits at index l² + l + m; see [`Basis`] for the convention.
///
/// ```
/// use locdiff_sphere::{Coefficients, Decoder, LatLon};
///
/// let place = LatLon::new(-33.8568, 151.2153)?;
/// let coefficients = Coefficients::of(place, 47);
/// let decoded = Decoder::new(47).mode(&coefficients);
/// assert!(decoded.place.distance_km(place) < 0.001);
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Coefficients {
    max_degree: usize,
    values: Vec<f64>,
}

/// Why a list of numbers is not a set of coefficients.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCoefficients {
    /// The length is not a square (max_degree + 1)².
    #[error(
        "{0} coefficients are not (max_degree + 1)² for any max_degree: the nearest lengths are {1} and {2}"
    )]
    Length(usize, usize, usize),
    /// A coefficient is infinite or not a number.
    #[error("coefficient {index} is {value}, not a finite number")]
    NotFinite {
        /// Its index, l² + l + m.
        index: usize,
        /// The infinite or undefined number.
        value: f64,
    },
}

impl Coefficients {
    /// The SHDD encoding of a place. For many places make a [`Basis`] once.
    pub fn of(place: LatLon, max_degree: usize) -> Coefficients {
        Basis::new(max_degree).encode(place)
    }

    /// The function that is zero everywhere; as an exponential density it is uniform.
    pub fn zeros(max_degree: usize) -> Coefficients {
        Coefficients { max_degree, values: vec![0.0; coefficient_count(max_degree)] }
    }

    /// Takes (max_degree + 1)² finite numbers; the degree follows from the length.
    pub fn from_vec(values: Vec<f64>) -> Result<Coefficients, InvalidCoefficients> {
        let side = values.len().isqrt();
        if side == 0 || side * side != values.len() {
            let below = side.max(1);
            return Err(InvalidCoefficients::Length(
                values.len(),
                below * below,
                (below + 1) * (below + 1),
            ));
        }
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(InvalidCoefficients::NotFinite { index, value: values[index] });
        }
        Ok(Coefficients { max_degree: side - 1, values })
    }

    pub(crate) fn from_valid(max_degree: usize, values: Vec<f64>) -> Coefficients {
        debug_assert_eq!(values.len(), coefficient_count(max_degree));
        Coefficients { max_degree, values }
    }

    /// The highest degree, inclusive.
    pub fn max_degree(&self) -> usize {
        self.max_degree
    }

    /// The coefficients by index l² + l + m.
    pub fn as_slice(&self) -> &[f64] {
        &self.values
    }

    /// The coefficients by index l² + l + m, to change.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// The coefficients as a plain vector.
    pub fn into_vec(self) -> Vec<f64> {
        self.values
    }

    /// The coefficient of degree l and order m.
    ///
    /// # Panics
    /// If |m| > l or l exceeds the maximum degree.
    pub fn get(&self, degree: usize, order: isize) -> f64 {
        assert!(
            order.unsigned_abs() <= degree && degree <= self.max_degree,
            "no coefficient of degree {degree}, order {order} up to degree {}",
            self.max_degree
        );
        self.values[(degree * degree + degree).wrapping_add_signed(order)]
    }

    /// The function's value at a place.
    ///
    /// # Panics
    /// If `basis` has another maximum degree.
    pub fn value_at(&self, basis: &Basis, place: LatLon) -> f64 {
        self.assert_fits(basis);
        let harmonics = basis.encode(place);
        self.values.iter().zip(harmonics.as_slice()).map(|(c, y)| c * y).sum()
    }

    /// The function convolved with the heat kernel of this width (standard deviation along
    /// each axis, in km). The kernel is positive, so that it takes the ringing out of a
    /// linear density without adding negative parts.
    ///
    /// # Panics
    /// If the width is negative or not finite.
    pub fn smoothed(&self, width_km: f64) -> Coefficients {
        assert!(width_km >= 0.0 && width_km.is_finite(), "a kernel of {width_km} km");
        let variance = (width_km / EARTH_RADIUS_KM).powi(2);
        let values = self.values.iter().enumerate().map(|(index, value)| {
            let degree = index.isqrt() as f64;
            value * (-0.5 * degree * (degree + 1.0) * variance).exp()
        });
        Coefficients { max_degree: self.max_degree, values: values.collect() }
    }

    pub(crate) fn assert_fits(&self, basis: &Basis) {
        assert_eq!(
            self.max_degree,
            basis.max_degree(),
            "the coefficients have max degree {}, the basis has {}",
            self.max_degree,
            basis.max_degree()
        );
    }
}
