//! Real orthonormal spherical harmonics at places.
//!
//! Convention: Y_l0 = p_l0(θ), Y_lm = p_lm(θ)·cos mφ for m > 0 and p_l|m|(θ)·sin |m|φ for
//! m < 0, with θ the colatitude and φ the longitude; no Condon-Shortley phase; orthonormal
//! under the sphere's area, so Σ_m Y_lm² = (2l+1)/4π. (l, m) sits at index l² + l + m.
//! Tested against scipy and mpmath (`parity/sphere/`) and against [`crate::reference`].

use crate::derivatives::Ladder;
use crate::direction::Direction;
use crate::legendre::{Legendre, Rows, UNSCALE};
use crate::simd::{Kernel, vectorised};
use crate::triangle;
use crate::{Coefficients, LatLon, Scalar};

/// The harmonics up to a degree: tables that are made once and evaluate at any place.
///
/// ```
/// use locdiff_sphere::{Basis, LatLon};
///
/// let basis = Basis::new(47);
/// let coefficients = basis.encode(LatLon::new(48.8566, 2.3522)?);
/// assert_eq!(coefficients.as_slice().len(), 48 * 48);
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
#[derive(Debug, Clone)]
pub struct Basis {
    pub(crate) legendre: Legendre,
    pub(crate) ladder: Ladder,
}

/// Number of coefficients up to and including a degree: (max_degree + 1)².
pub const fn coefficient_count(max_degree: usize) -> usize {
    (max_degree + 1) * (max_degree + 1)
}

impl Basis {
    /// Prepares harmonics of degree 0 to `max_degree`, inclusive.
    ///
    /// # Panics
    /// If `max_degree` exceeds [`crate::LARGEST_DEGREE`].
    pub fn new(max_degree: usize) -> Basis {
        Basis { legendre: Legendre::new(max_degree), ladder: Ladder::new(max_degree) }
    }

    /// The highest degree, inclusive.
    pub fn max_degree(&self) -> usize {
        self.legendre.max_degree()
    }

    /// Number of harmonics: (max_degree + 1)².
    pub fn len(&self) -> usize {
        coefficient_count(self.max_degree())
    }

    /// Never: a basis holds at least the constant harmonic.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The SHDD encoding of a place: every harmonic's value there.
    pub fn encode(&self, place: LatLon) -> Coefficients {
        let mut values = vec![0.0; self.len()];
        self.encode_into(&[place], &mut values);
        Coefficients::from_valid(self.max_degree(), values)
    }

    /// Encodes many places into a row-major matrix `[places, (max_degree + 1)²]`.
    ///
    /// # Panics
    /// If `matrix` has another size.
    pub fn encode_into<T: Scalar>(&self, places: &[LatLon], matrix: &mut [T]) {
        assert_eq!(
            matrix.len(),
            places.len() * self.len(),
            "the matrix has {} entries, {} places of {} harmonics need {}",
            matrix.len(),
            places.len(),
            self.len(),
            places.len() * self.len()
        );
        vectorised(Encode { basis: self, places, matrix });
    }
}

struct Encode<'a, T> {
    basis: &'a Basis,
    places: &'a [LatLon],
    matrix: &'a mut [T],
}

impl<T: Scalar> Kernel for Encode<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let max_degree = self.basis.max_degree();
        let mut rows = Rows::new(max_degree);
        let mut trig = Trig::new(max_degree);
        for (place, out) in self.places.iter().zip(self.matrix.chunks_exact_mut(self.basis.len())) {
            let direction = Direction::from(*place);
            trig.set(&direction);
            let mut walk = self.basis.legendre.walk(direction.colatitude, &mut rows);
            while let Some((l, p)) = walk.next() {
                let (cos, sin) = trig.of_degree(l);
                let (negative, positive) = out[l * l..(l + 1) * (l + 1)].split_at_mut(l);
                multiply_into(&p[..l + 1], &cos[..l + 1], positive);
                multiply_into_reversed(&p[1..l + 1], &sin[1..l + 1], negative);
            }
        }
    }
}

/// Numbers that one step of the two products below treats together. Rows are not padded in
/// the caller's matrix, so the last step overlaps the one before it.
const STEP: usize = 8;

#[inline(always)]
fn step_at(values: &[f64], start: usize) -> &[f64; STEP] {
    values[start..start + STEP].try_into().expect("a slice of this length")
}

#[inline(always)]
fn multiply_into<T: Scalar>(a: &[f64], b: &[f64], out: &mut [T]) {
    let len = out.len();
    let (a, b) = (&a[..len], &b[..len]);
    if len < STEP {
        for i in 0..len {
            out[i] = T::rounded(a[i] * b[i]);
        }
        return;
    }
    let mut start = 0;
    loop {
        let (a, b) = (step_at(a, start), step_at(b, start));
        let mut product = [0.0; STEP];
        for i in 0..STEP {
            product[i] = a[i] * b[i];
        }
        let product = product.map(T::rounded);
        out[start..start + STEP].copy_from_slice(&product);
        if start + STEP == len {
            return;
        }
        start = (start + STEP).min(len - STEP);
    }
}

#[inline(always)]
fn multiply_into_reversed<T: Scalar>(a: &[f64], b: &[f64], out: &mut [T]) {
    let len = out.len();
    let (a, b) = (&a[..len], &b[..len]);
    if len < STEP {
        for i in 0..len {
            out[len - 1 - i] = T::rounded(a[i] * b[i]);
        }
        return;
    }
    let mut start = 0;
    loop {
        let (a, b) = (step_at(a, start), step_at(b, start));
        let mut product = [0.0; STEP];
        for i in 0..STEP {
            product[STEP - 1 - i] = a[i] * b[i];
        }
        let product = product.map(T::rounded);
        out[len - start - STEP..len - start].copy_from_slice(&product);
        if start + STEP == len {
            return;
        }
        start = (start + STEP).min(len - STEP);
    }
}

/// cos mφ and sin mφ for every order, unscaled and with the sign of the hemisphere.
#[derive(Debug, Clone)]
pub(crate) struct Trig {
    /// For even and for odd degrees: they differ in sign in the southern hemisphere.
    cos: [Vec<f64>; 2],
    sin: [Vec<f64>; 2],
}

impl Trig {
    pub(crate) fn new(max_degree: usize) -> Trig {
        let zeros = || [(); 2].map(|()| vec![0.0; triangle::row_len(max_degree)]);
        Trig { cos: zeros(), sin: zeros() }
    }

    /// The southern sign (−1)^(l+m) is (−1)^m, a turn of the longitude by 180°, times (−1)^l.
    #[inline(always)]
    pub(crate) fn set(&mut self, direction: &Direction) {
        let sign = if direction.south { -1.0 } else { 1.0 };
        let (c, s) = (sign * direction.cos_longitude, sign * direction.sin_longitude);
        let (mut cos, mut sin) = (UNSCALE, 0.0);
        for m in 0..self.cos[0].len() {
            self.cos[0][m] = cos;
            self.sin[0][m] = sin;
            self.cos[1][m] = sign * cos;
            self.sin[1][m] = sign * sin;
            (cos, sin) = (cos * c - sin * s, sin * c + cos * s);
        }
    }

    #[inline(always)]
    pub(crate) fn of_degree(&self, l: usize) -> (&[f64], &[f64]) {
        (&self.cos[l % 2], &self.sin[l % 2])
    }
}
