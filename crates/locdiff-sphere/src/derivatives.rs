//! First and second derivatives of the harmonics on the sphere, without a singularity
//! anywhere: poles included.
//!
//! Convention: derivatives are covariant, per radian on the unit sphere, in the local
//! frame east (e_φ) and north (−e_θ). At a pole the frame follows the place's meridian.
//! They come from the ladder between neighbouring orders, which never divides by sin θ.
//! With r_m = p_lm (r_0 = √2·p_l0, r_−m = (−1)^m r_m):
//!
//! ```text
//! ∂r_m/∂θ     = ½ [ √((l+m)(l−m+1))·r_(m−1) − √((l−m)(l+m+1))·r_(m+1) ]
//! m·r_m/sin θ = ½ √((2l+1)/(2l−1)) [ √((l−m)(l−m−1))·r'_(m+1) + √((l+m)(l+m−1))·r'_(m−1) ]
//! ```
//!
//! where r' is the row of degree l − 1. Applied once they give the gradient, applied twice
//! the Hessian; its trace is −l(l+1). Tested against mpmath (`parity/sphere/`).

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use crate::basis::{Basis, Trig};
use crate::direction::Direction;
use crate::legendre::Rows;
use crate::simd::{Kernel, vectorised};
use crate::triangle::{self, LANES, lanes, lanes_mut};
use crate::{Coefficients, LatLon};

/// A function's value and derivatives at a point: all that Newton's method asks for.
///
/// # Units
/// Per radian and per radian squared on the unit sphere.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Jet {
    /// The function's value.
    pub value: f64,
    /// Derivative to the east.
    pub east: f64,
    /// Derivative to the north.
    pub north: f64,
    /// Second derivative along the great circle to the east.
    pub east_east: f64,
    /// Mixed second derivative.
    pub east_north: f64,
    /// Second derivative along the meridian.
    pub north_north: f64,
}

impl Basis {
    /// Value, gradient and Hessian of every harmonic at a place, at index l² + l + m.
    pub fn jets(&self, place: LatLon) -> Vec<Jet> {
        let direction = Direction::from(place);
        let flip = if direction.south { -1.0 } else { 1.0 };
        let mut jets = vec![Jet::default(); self.len()];
        let mut workspace = JetWorkspace::new(self.max_degree());
        let JetWorkspace { rows, trig, ladder, .. } = &mut workspace;
        trig.set(&direction);
        ladder.clear();
        let mut walk = self.legendre.walk(direction.colatitude, rows);
        while let Some((l, p)) = walk.next() {
            ladder.step(&self.ladder, l, p);
            let (cos, sin) = trig.of_degree(l);
            let casimir = (l * (l + 1)) as f64;
            let jet = |m: usize, even: f64, odd: f64| Jet {
                value: p[m] * even,
                east: ladder.over_sin[m] * odd,
                north: -flip * ladder.d[m] * even,
                east_east: (-casimir * p[m] - ladder.dd[m]) * even,
                east_north: -flip * ladder.d_over_sin[m] * odd,
                north_north: ladder.dd[m] * even,
            };
            let centre = l * l + l;
            for m in 0..=l {
                // ∂/∂φ turns cos mφ into −m·sin mφ, and sin mφ into m·cos mφ.
                jets[centre - m] = jet(m, sin[m], cos[m]);
                jets[centre + m] = jet(m, cos[m], -sin[m]);
            }
        }
        jets
    }

    /// Value, gradient and Hessian of a function at a place.
    pub(crate) fn jet_of(
        &self,
        function: &SplitFunction,
        place: LatLon,
        workspace: &mut JetWorkspace,
    ) -> Jet {
        vectorised(Contract { basis: self, function, place, workspace })
    }
}

impl Coefficients {
    /// Value, gradient and Hessian of the function F(u) = Σ c_lm·Y_lm(u) at a place.
    ///
    /// # Panics
    /// If `basis` has another maximum degree than the coefficients.
    pub fn jet_at(&self, basis: &Basis, place: LatLon) -> Jet {
        self.assert_fits(basis);
        let mut workspace = JetWorkspace::new(basis.max_degree());
        basis.jet_of(&SplitFunction::new(self.as_slice()), place, &mut workspace)
    }
}

/// Coefficients sorted into cosine and sine rows, to be evaluated at many points.
#[derive(Debug, Clone)]
pub(crate) struct SplitFunction {
    cosines: Vec<f64>,
    sines: Vec<f64>,
    /// The largest coefficient, by which the rows are divided: the recurrence's own scale
    /// leaves no room for coefficients far from 1.
    pub(crate) scale: f64,
}

impl SplitFunction {
    pub(crate) fn new(coefficients: &[f64]) -> SplitFunction {
        let scale = coefficients.iter().fold(f64::MIN_POSITIVE, |scale, c| scale.max(c.abs()));
        let zeros = vec![0.0; triangle::len(coefficients.len().isqrt() - 1)];
        let (mut cosines, mut sines) = (zeros.clone(), zeros);
        triangle::split(coefficients, &mut cosines, &mut sines);
        cosines.iter_mut().chain(&mut sines).for_each(|c| *c /= scale);
        SplitFunction { cosines, sines, scale }
    }

    /// Cosine and sine coefficients of degree l by order, divided by the scale.
    #[inline(always)]
    pub(crate) fn rows(&self, l: usize) -> (&[f64], &[f64]) {
        (triangle::row(&self.cosines, l), triangle::row(&self.sines, l))
    }
}

/// Buffers for derivatives: make one, use it at many points.
#[derive(Debug, Clone)]
pub(crate) struct JetWorkspace {
    rows: Rows,
    trig: Trig,
    ladder: LadderRows,
    sums: [Vec<f64>; 6],
}

impl JetWorkspace {
    pub(crate) fn new(max_degree: usize) -> JetWorkspace {
        let row = || vec![0.0; triangle::row_len(max_degree)];
        let padded = || [(); 2].map(|()| vec![0.0; triangle::row_len(max_degree) + 2]);
        JetWorkspace {
            rows: Rows::new(max_degree),
            trig: Trig::new(max_degree),
            ladder: LadderRows {
                r: padded(),
                dr: padded(),
                d: row(),
                dd: row(),
                over_sin: row(),
                d_over_sin: row(),
            },
            sums: std::array::from_fn(|_| row()),
        }
    }
}

/// The square roots of which every ladder coefficient is a product of two.
#[derive(Debug, Clone)]
pub(crate) struct Ladder {
    /// √k at k.
    rising: Vec<f64>,
    /// √(top − k) at k, and zero beyond: what runs past the last order vanishes by itself.
    falling: Vec<f64>,
    top: usize,
}

impl Ladder {
    pub(crate) fn new(max_degree: usize) -> Ladder {
        let (top, padded) = (max_degree + 1, triangle::row_len(max_degree));
        Ladder {
            rising: (0..max_degree + padded + 2).map(|k| (k as f64).sqrt()).collect(),
            falling: (0..top + padded + 2).map(|k| (top.saturating_sub(k) as f64).sqrt()).collect(),
            top,
        }
    }

    /// The lanes of √(start + m) for m = 0, 1, ….
    #[inline(always)]
    fn up(&self, start: usize) -> &[[f64; LANES]] {
        lanes(&self.rising[start..])
    }

    /// The lanes of √(start − m) for m = 0, 1, …; zero beyond.
    #[inline(always)]
    fn down(&self, start: usize) -> &[[f64; LANES]] {
        lanes(&self.falling[self.top - start..])
    }

    /// `out[m]` = ∂r_m/∂θ; `r[m + 1]` holds order m.
    #[inline(always)]
    fn differentiate(&self, l: usize, r: &[f64], out: &mut [f64]) {
        let (below, above) = (lanes(r), lanes(&r[2..]));
        let (a, b) = (self.up(l), self.down(l + 1));
        let (c, d) = (self.up(l + 1), self.down(l));
        for (k, out) in lanes_mut(out).iter_mut().enumerate() {
            let (a, b, c, d, below, above) = (&a[k], &b[k], &c[k], &d[k], &below[k], &above[k]);
            let mut result = [0.0; LANES];
            for i in 0..LANES {
                result[i] = 0.5 * (a[i] * b[i] * below[i] - c[i] * d[i] * above[i]);
            }
            *out = result;
        }
    }

    /// `out[m]` = m·r_m/sin θ from the row of degree l − 1; `last[m + 1]` holds order m.
    #[inline(always)]
    fn divide_by_sin(&self, l: usize, last: &[f64], out: &mut [f64]) {
        if l == 0 {
            out.fill(0.0);
            return;
        }
        let factor = 0.5 * ((2 * l + 1) as f64 / (2 * l - 1) as f64).sqrt();
        let (below, above) = (lanes(last), lanes(&last[2..]));
        let (a, b) = (self.up(l), self.up(l - 1));
        let (c, d) = (self.down(l), self.down(l - 1));
        for (k, out) in lanes_mut(out).iter_mut().enumerate() {
            let (a, b, c, d, below, above) = (&a[k], &b[k], &c[k], &d[k], &below[k], &above[k]);
            let mut result = [0.0; LANES];
            for i in 0..LANES {
                result[i] = factor * (c[i] * d[i] * above[i] + a[i] * b[i] * below[i]);
            }
            *out = result;
        }
    }
}

/// One degree's functions of θ by order, times [`crate::legendre::SCALE`].
#[derive(Debug, Clone)]
struct LadderRows {
    /// r and ∂r/∂θ of this and of the last degree; entry m + 1 holds order m, entry 0
    /// order −1.
    r: [Vec<f64>; 2],
    dr: [Vec<f64>; 2],
    /// ∂p/∂θ.
    d: Vec<f64>,
    /// ∂²p/∂θ².
    dd: Vec<f64>,
    /// m·p/sin θ.
    over_sin: Vec<f64>,
    /// ∂(m·p/sin θ)/∂θ.
    d_over_sin: Vec<f64>,
}

impl LadderRows {
    #[inline(always)]
    fn clear(&mut self) {
        for buffer in self.r.iter_mut().chain(&mut self.dr) {
            buffer.fill(0.0);
        }
    }

    /// From degree l − 1 to l, whose functions p are given.
    #[inline(always)]
    fn step(&mut self, ladder: &Ladder, l: usize, p: &[f64]) {
        let padded = p.len();
        self.r.swap(0, 1);
        self.dr.swap(0, 1);
        let ([r, r_last], [dr, dr_last]) = (&mut self.r, &mut self.dr);
        r[1..=padded].copy_from_slice(p);
        r[1] *= SQRT_2;
        r[0] = -r[2];
        ladder.differentiate(l, r, &mut self.d[..padded]);
        dr[1..=padded].copy_from_slice(&self.d[..padded]);
        dr[0] = -dr[2];
        ladder.differentiate(l, dr, &mut self.dd[..padded]);
        ladder.divide_by_sin(l, r_last, &mut self.over_sin[..padded]);
        ladder.divide_by_sin(l, dr_last, &mut self.d_over_sin[..padded]);
        self.d[0] *= FRAC_1_SQRT_2;
        self.dd[0] *= FRAC_1_SQRT_2;
    }
}

struct Contract<'a> {
    basis: &'a Basis,
    function: &'a SplitFunction,
    place: LatLon,
    workspace: &'a mut JetWorkspace,
}

impl Kernel for Contract<'_> {
    type Output = Jet;

    #[inline(always)]
    fn run(self) -> Jet {
        let direction = Direction::from(self.place);
        let flip = if direction.south { -1.0 } else { 1.0 };
        let JetWorkspace { rows, trig, ladder, sums } = self.workspace;
        trig.set(&direction);
        ladder.clear();
        for sum in sums.iter_mut() {
            sum.fill(0.0);
        }
        let mut walk = self.basis.legendre.walk(direction.colatitude, rows);
        while let Some((l, p)) = walk.next() {
            ladder.step(&self.basis.ladder, l, p);
            let (cos, sin) = trig.of_degree(l);
            let (cos, sin) = (lanes(cos), lanes(sin));
            let cosines = lanes(triangle::row(&self.function.cosines, l));
            let sines = lanes(triangle::row(&self.function.sines, l));
            let casimir = (l * (l + 1)) as f64;
            let (d, dd) = (lanes(&ladder.d), lanes(&ladder.dd));
            let (over_sin, d_over_sin) = (lanes(&ladder.over_sin), lanes(&ladder.d_over_sin));
            let [value, east, north, trace, mixed, second] = &mut *sums;
            for (k, p) in lanes(p).iter().enumerate() {
                let (cos, sin, c, s) = (&cos[k], &sin[k], &cosines[k], &sines[k]);
                // The function's part of this degree and order, and its derivative by mφ.
                let (mut even, mut odd) = ([0.0; LANES], [0.0; LANES]);
                for i in 0..LANES {
                    even[i] = c[i] * cos[i] + s[i] * sin[i];
                    odd[i] = s[i] * cos[i] - c[i] * sin[i];
                }
                add_product(&mut lanes_mut(value)[k], 1.0, p, &even);
                add_product(&mut lanes_mut(trace)[k], casimir, p, &even);
                add_product(&mut lanes_mut(north)[k], 1.0, &d[k], &even);
                add_product(&mut lanes_mut(second)[k], 1.0, &dd[k], &even);
                add_product(&mut lanes_mut(east)[k], 1.0, &over_sin[k], &odd);
                add_product(&mut lanes_mut(mixed)[k], 1.0, &d_over_sin[k], &odd);
            }
        }
        let [value, east, north, trace, mixed, second] =
            sums.each_ref().map(|sum| self.function.scale * sum.iter().sum::<f64>());
        Jet {
            value,
            east,
            north: -flip * north,
            east_east: -trace - second,
            east_north: -flip * mixed,
            north_north: second,
        }
    }
}

/// The sums run per order, not into one number, so that they vectorise.
#[inline(always)]
fn add_product(sum: &mut [f64; LANES], factor: f64, a: &[f64; LANES], b: &[f64; LANES]) {
    let mut result = [0.0; LANES];
    for i in 0..LANES {
        result[i] = sum[i] + factor * (a[i] * b[i]);
    }
    *sum = result;
}
