//! Between coefficients and values on a grid, both ways, batched.
//!
//! Separable: per order m a small matrix product over the degree at each ring, then a
//! Fourier transform along the ring. A ring and its mirror image share one product (their
//! Legendre functions differ in sign only) and one complex FFT (the northern ring is the
//! real part, the southern one the imaginary part). Tested against ducc0
//! (`parity/sphere/transform_ducc0.json`).

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use crate::legendre_stage::{GROUP, LegendreStage, Split};
use crate::simd::{Kernel, vectorised};
use crate::{Coefficients, Grid, Scalar, coefficient_count};

/// Synthesis (coefficients → values) and analysis (values → coefficients) on one grid.
///
/// Arrays are row-major: coefficients `[batch, (max_degree + 1)²]`, values
/// `[batch, ring, longitude]`. `T` is f64, or f32 for tensors. The object is
/// immutable: several threads may share it, each with its part of a batch.
///
/// ```
/// use locdiff_sphere::{Coefficients, Grid, LatLon, Transform};
///
/// let transform = Transform::<f64>::new(Grid::exact(15), 15);
/// let coefficients = Coefficients::of(LatLon::new(10.0, 20.0)?, 15);
/// let values = transform.synthesize(&coefficients);
/// let back = transform.analyze(&values);
/// let error = |(a, b): (&f64, &f64)| (a - b).abs();
/// assert!(coefficients.as_slice().iter().zip(back.as_slice()).map(error).all(|e| e < 1e-13));
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
pub struct Transform<T: Scalar> {
    grid: Grid,
    max_degree: usize,
    legendre: LegendreStage<T>,
    to_values: Arc<dyn Fft<T>>,
    to_spectrum: Arc<dyn Fft<T>>,
    /// Buffers of earlier calls: fresh memory costs more than some transforms.
    idle: Mutex<Vec<Workspace<T>>>,
    /// The transform of one degree more that the gradient needs; made when first asked for.
    next_degree: OnceLock<Box<Transform<T>>>,
}

struct Workspace<T> {
    functions: Vec<Split<T>>,
    /// `[function, pair, longitude]`. Synthesis relies on zeros above the highest order.
    spectrum: Vec<Complex<T>>,
    points: Vec<Complex<T>>,
    scratch: Vec<Complex<T>>,
}

impl<T: Scalar> Workspace<T> {
    /// Makes room for a group, or for the whole batch if that is smaller.
    fn prepare(&mut self, coefficients: usize, transform: &Transform<T>) {
        let functions = (coefficients / coefficient_count(transform.max_degree)).min(GROUP);
        let points = functions * transform.grid.northern.len() * transform.grid.longitudes();
        let scratch = transform
            .to_values
            .get_immutable_scratch_len()
            .max(transform.to_spectrum.get_inplace_scratch_len());
        if self.functions.len() < functions {
            self.functions.resize(functions, Split::new(transform.max_degree));
            self.spectrum.resize(points, Complex::default());
            self.points.resize(points, Complex::default());
            self.scratch.resize(scratch, Complex::default());
        }
    }
}

impl<T: Scalar> Transform<T> {
    /// Prepares transforms of functions up to `max_degree` on `grid`.
    ///
    /// # Panics
    /// If the grid has fewer than 2·max_degree + 1 longitudes: orders would fold into
    /// each other.
    pub fn new(grid: Grid, max_degree: usize) -> Transform<T> {
        assert!(
            grid.longitudes() > 2 * max_degree,
            "the grid has {} longitudes, max degree {max_degree} needs at least {}",
            grid.longitudes(),
            2 * max_degree + 1
        );
        Transform::with_all_degrees(grid, max_degree)
    }

    /// Without the check: functions must have no coefficients of orders that the grid can't
    /// tell apart.
    fn with_all_degrees(grid: Grid, max_degree: usize) -> Transform<T> {
        let mut planner = FftPlanner::new();
        Transform {
            legendre: LegendreStage::new(&grid, max_degree),
            to_values: planner.plan_fft_inverse(grid.longitudes()),
            to_spectrum: planner.plan_fft_forward(grid.longitudes()),
            grid,
            max_degree,
            idle: Mutex::new(Vec::new()),
            next_degree: OnceLock::new(),
        }
    }

    /// Rings and longitudes on which functions are synthesized and analyzed.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The highest degree, inclusive.
    pub fn max_degree(&self) -> usize {
        self.max_degree
    }

    /// Values on the grid of `batch` functions: `[batch, (max_degree + 1)²]` →
    /// `[batch, ring, longitude]`.
    ///
    /// # Panics
    /// If the sizes do not belong to one batch.
    pub fn synthesize_into(&self, coefficients: &[T], values: &mut [T]) {
        self.assert_batch(coefficients, values);
        let mut workspace = self.take_workspace();
        workspace.prepare(coefficients.len(), self);
        let Workspace { functions, spectrum, points, scratch } = &mut workspace;
        let size = coefficient_count(self.max_degree);
        let points_each = self.grid.northern.len() * self.grid.longitudes();
        let groups = coefficients.chunks(GROUP * size);
        for (inputs, outputs) in groups.zip(values.chunks_mut(GROUP * self.grid.len())) {
            let count = inputs.len() / size;
            let (spectrum, points) =
                (&mut spectrum[..count * points_each], &mut points[..count * points_each]);
            for (function, input) in functions.iter_mut().zip(inputs.chunks_exact(size)) {
                function.set(input);
            }
            self.legendre.synthesize(&functions[..count], spectrum);
            self.to_values.process_immutable_with_scratch(spectrum, points, scratch);
            let outputs = outputs.chunks_exact_mut(self.grid.len());
            for (points, values) in points.chunks_exact(points_each).zip(outputs) {
                vectorised(UnpackRings { grid: &self.grid, points, values });
            }
        }
        self.give_back(workspace);
    }

    /// Coefficients of `batch` functions from their values: `[batch, ring, longitude]` →
    /// `[batch, (max_degree + 1)²]`. Exact for functions of degree at most `max_degree`.
    ///
    /// # Panics
    /// If the sizes do not belong to one batch, or the grid has fewer than
    /// max_degree + 1 rings.
    pub fn analyze_into(&self, values: &[T], coefficients: &mut [T]) {
        assert!(
            self.grid.rings() > self.max_degree,
            "the grid has {} rings, analysis to degree {} needs at least {}",
            self.grid.rings(),
            self.max_degree,
            self.max_degree + 1
        );
        self.assert_batch(coefficients, values);
        let mut workspace = self.take_workspace();
        workspace.prepare(coefficients.len(), self);
        let Workspace { functions, points, scratch, .. } = &mut workspace;
        let size = coefficient_count(self.max_degree);
        let points_each = self.grid.northern.len() * self.grid.longitudes();
        let groups = coefficients.chunks_mut(GROUP * size);
        for (outputs, inputs) in groups.zip(values.chunks(GROUP * self.grid.len())) {
            let count = outputs.len() / size;
            let points = &mut points[..count * points_each];
            let inputs = inputs.chunks_exact(self.grid.len());
            for (points, values) in points.chunks_exact_mut(points_each).zip(inputs) {
                vectorised(PackRings { grid: &self.grid, values, points });
            }
            self.to_spectrum.process_with_scratch(points, scratch);
            self.legendre.analyze(points, &mut functions[..count]);
            for (function, output) in functions.iter().zip(outputs.chunks_exact_mut(size)) {
                function.write_to(output);
            }
        }
        self.give_back(workspace);
    }

    /// East and north derivatives per radian on the grid of `batch` functions, each
    /// `[batch, ring, longitude]`.
    ///
    /// sin θ·∂/∂θ and ∂/∂φ map harmonics to harmonics, so both are syntheses, divided by
    /// sin θ, which is never zero on a Gauss-Legendre ring. The first raises the degree by
    /// one, but not the order, so the same longitudes serve.
    ///
    /// # Panics
    /// If the sizes do not belong to one batch.
    pub fn synthesize_gradient_into(&self, coefficients: &[T], east: &mut [T], north: &mut [T]) {
        assert_eq!(east.len(), north.len(), "east and north must have the same size");
        let size = coefficient_count(self.max_degree);
        let next = self.next_degree.get_or_init(|| {
            Box::new(Transform::with_all_degrees(self.grid.clone(), self.max_degree + 1))
        });
        let next_size = coefficient_count(self.max_degree + 1);
        let mut along_meridian = vec![T::zero(); coefficients.len() / size * next_size];
        let mut along_parallel = vec![T::zero(); coefficients.len()];
        for (index, function) in coefficients.chunks_exact(size).enumerate() {
            derivative_along_meridian(
                function,
                &mut along_meridian[index * next_size..][..next_size],
            );
            derivative_along_parallel(function, &mut along_parallel[index * size..][..size]);
        }
        self.synthesize_into(&along_parallel, east);
        next.synthesize_into(&along_meridian, north);
        for field in [east, north] {
            for (row, values) in field.chunks_exact_mut(self.grid.longitudes()).enumerate() {
                let sin = self.grid.colatitude(row % self.grid.rings()).sin();
                let inverse = T::rounded(1.0 / sin);
                values.iter_mut().for_each(|value| *value = *value * inverse);
            }
        }
    }

    fn assert_batch(&self, coefficients: &[T], values: &[T]) {
        let size = coefficient_count(self.max_degree);
        let batch = coefficients.len() / size;
        assert!(
            coefficients.len() == batch * size && values.len() == batch * self.grid.len(),
            "{} coefficients and {} values are not one batch of functions with {size} \
             coefficients and {} values each",
            coefficients.len(),
            values.len(),
            self.grid.len()
        );
    }

    fn take_workspace(&self) -> Workspace<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| Workspace {
            functions: Vec::new(),
            spectrum: Vec::new(),
            points: Vec::new(),
            scratch: Vec::new(),
        })
    }

    fn give_back(&self, workspace: Workspace<T>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
    }
}

struct UnpackRings<'a, T> {
    grid: &'a Grid,
    points: &'a [Complex<T>],
    values: &'a mut [T],
}

impl<T: Scalar> Kernel for UnpackRings<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (rings, longitudes) = (self.grid.rings(), self.grid.longitudes());
        for (pair, points) in self.points.chunks_exact(longitudes).enumerate() {
            for (value, point) in self.values[pair * longitudes..].iter_mut().zip(points) {
                *value = point.re;
            }
            // With an odd number of rings the equator has no mirror image.
            let mirror = rings - 1 - pair;
            if mirror > pair {
                for (value, point) in self.values[mirror * longitudes..].iter_mut().zip(points) {
                    *value = point.im;
                }
            }
        }
    }
}

struct PackRings<'a, T> {
    grid: &'a Grid,
    values: &'a [T],
    points: &'a mut [Complex<T>],
}

impl<T: Scalar> Kernel for PackRings<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (rings, longitudes) = (self.grid.rings(), self.grid.longitudes());
        for (pair, points) in self.points.chunks_exact_mut(longitudes).enumerate() {
            let mirror = rings - 1 - pair;
            let north = &self.values[pair * longitudes..][..longitudes];
            let south = &self.values[mirror * longitudes..][..longitudes];
            let has_mirror = if mirror > pair { T::one() } else { T::zero() };
            for ((point, north), south) in points.iter_mut().zip(north).zip(south) {
                *point = Complex::new(*north, *south * has_mirror);
            }
        }
    }
}

impl Transform<f64> {
    /// Values on the grid, `[ring, longitude]`.
    pub fn synthesize(&self, coefficients: &Coefficients) -> Vec<f64> {
        let mut values = vec![0.0; self.grid.len()];
        self.synthesize_into(coefficients.as_slice(), &mut values);
        values
    }

    /// Coefficients from values on the grid, `[ring, longitude]`.
    pub fn analyze(&self, values: &[f64]) -> Coefficients {
        let mut coefficients = Coefficients::zeros(self.max_degree);
        self.analyze_into(values, coefficients.as_mut_slice());
        coefficients
    }

    /// East and north derivatives per radian, each `[ring, longitude]`.
    pub fn synthesize_gradient(&self, coefficients: &Coefficients) -> (Vec<f64>, Vec<f64>) {
        let (mut east, mut north) = (vec![0.0; self.grid.len()], vec![0.0; self.grid.len()]);
        self.synthesize_gradient_into(coefficients.as_slice(), &mut east, &mut north);
        (east, north)
    }
}

/// Coefficients of ∂F/∂φ: a cosine becomes a sine and the reverse, times the order.
fn derivative_along_parallel<T: Scalar>(function: &[T], out: &mut [T]) {
    for l in 0..function.len().isqrt() {
        let centre = l * l + l;
        for m in 0..=l {
            let order = T::rounded(m as f64);
            let (cosine, sine) = (function[centre + m], function[centre - m]);
            out[centre - m] = -order * cosine;
            out[centre + m] = order * sine;
        }
    }
}

/// Coefficients, of one degree more, of −sin θ·∂F/∂θ:
/// −sin θ·∂Y_l/∂θ = (l+1)·ε_l·Y_(l−1) − l·ε_(l+1)·Y_(l+1), ε_l = √((l²−m²)/(4l²−1)).
fn derivative_along_meridian<T: Scalar>(function: &[T], out: &mut [T]) {
    let epsilon = |l: usize, m: usize| {
        let (l, m) = (l as f64, m as f64);
        ((l * l - m * m) / (4.0 * l * l - 1.0)).sqrt()
    };
    out.fill(T::zero());
    for l in 0..function.len().isqrt() {
        for index in 0..2 * l + 1 {
            let m = index.abs_diff(l);
            let value = function[l * l + index];
            let above = (l + 1) * (l + 1) + index + 1;
            out[above] = out[above] - value * T::rounded(l as f64 * epsilon(l + 1, m));
            if m < l {
                let below = (l - 1) * (l - 1) + index - 1;
                out[below] = out[below] + value * T::rounded((l + 1) as f64 * epsilon(l, m));
            }
        }
    }
}
