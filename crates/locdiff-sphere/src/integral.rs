//! A(e) = log ∫ exp F over the sphere, F = e·Y, with an estimate of its error.
//!
//! exp F is not band-limited: a clean encoding at degree 47 is a peak of 20 km, far below the
//! spacing of any grid that resolves F. So the sphere is cut into cells of colatitude ×
//! longitude, about one wavelength of F wide, each with 8 × 8 Gauss points, and cells are
//! quartered where the points don't resolve exp F. Nothing hides between the points:
//!
//! - cells that the mass of a peak of F reaches (found by [`Decoder`], with the exact Hessian) are
//!   quartered until they are a few standard deviations of that peak wide;
//! - cells are left out only if the bound of [`Decoder`] keeps F there far below its maximum.
//!
//! How well a cell is resolved is read off the decay of the Legendre coefficients of exp F
//! along both axes. Tested against one-dimensional integrals and against fine grids
//! (`tests/integral.rs`).

use std::collections::BinaryHeap;
use std::f64::consts::PI;

use crate::cells::{Cell, CellId, Field, POINTS, Rule, sigma};
use crate::decoder::Candidates;
use crate::{Coefficients, Decoder, Peak};

/// What lies this far below the highest peak, everywhere, is left out and counted as error.
const NEGLIGIBLE_NATS: f64 = 35.0;
/// Refinement stops when the estimated error is below this.
const TOLERANCE_NATS: f64 = 5e-4;
/// A cell that contains a peak is at most this many standard deviations of it wide.
const WIDEST_SIGMAS: f64 = 4.0;
/// No more cells than this: F would have to be far beyond what a network gives out.
const MOST_CELLS: usize = 20_000;

/// The logarithm of an integral, in nats, and the estimated error of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogIntegral {
    /// log ∫ exp F.
    pub value: f64,
    /// Estimate of the absolute error of `value`, in nats.
    pub error: f64,
}

/// Computes log-normalisers of exponential densities of one maximum degree.
///
/// ```
/// use locdiff_sphere::{Coefficients, Integrator};
///
/// // exp 0 over the sphere: its area.
/// let integral = Integrator::new(5).log_integral_exp(&Coefficients::zeros(5));
/// assert!((integral.value - (4.0 * std::f64::consts::PI).ln()).abs() < 1e-12);
/// ```
pub struct Integrator {
    decoder: Decoder,
    /// Cells per half turn at the coarsest level.
    base: usize,
    rule: Rule,
}

impl Integrator {
    /// Prepares integrals of exp F for F up to `max_degree`.
    ///
    /// # Panics
    /// If `max_degree` is 0 or beyond [`crate::LARGEST_DEGREE`].
    pub fn new(max_degree: usize) -> Integrator {
        Integrator {
            decoder: Decoder::new(max_degree),
            base: max_degree.div_ceil(2).max(2),
            rule: Rule::new(),
        }
    }

    /// The decoder that finds the peaks.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// A(e) = log ∫ exp(e·Y(u)) du.
    ///
    /// # Panics
    /// If the coefficients have another maximum degree or are not finite.
    pub fn log_integral_exp(&self, coefficients: &Coefficients) -> LogIntegral {
        // F″ beyond which a peak could slip between the points of a coarsest cell.
        let hidden = (POINTS as f64 * self.base as f64 / PI).powi(2);
        let Candidates { function, constant, highest, peaks, coarse_values, slack } =
            self.decoder.candidates(coefficients, NEGLIGIBLE_NATS, hidden);
        let mut field = Field::new(self.decoder.basis(), &function, &self.rule, self.base, highest);
        let mut heap = BinaryHeap::new();
        let mut left_out = 0.0;
        for (id, bound) in self.base_cells(&coarse_values, function.scale, slack) {
            if bound < highest - NEGLIGIBLE_NATS {
                left_out += field.area(id);
            } else {
                self.add_cell(&mut field, id, &peaks, &mut heap);
            }
        }
        let left_out_error = left_out * (-NEGLIGIBLE_NATS).exp();
        let mut total: f64 = heap.iter().map(|cell: &Cell| cell.mass).sum::<f64>();
        let mut error: f64 = heap.iter().map(|cell| cell.error).sum::<f64>();
        let mut cells = heap.len();
        while error > TOLERANCE_NATS * total && cells < MOST_CELLS {
            let Some(worst) = heap.pop() else { break };
            error -= worst.error;
            total -= worst.mass;
            for child in worst.id.children() {
                let cell = field.integrate(child);
                error += cell.error;
                total += cell.mass;
                heap.push(cell);
            }
            cells += 3;
        }
        // Summed anew: the running sums carry rounding of what was taken out again.
        let total: f64 = heap.iter().map(|cell| cell.mass).sum::<f64>();
        let error: f64 = heap.iter().map(|cell| cell.error).sum::<f64>();
        LogIntegral {
            value: total.ln() + highest + constant,
            error: (error + left_out_error) / total + 1e-13 * (1.0 + highest.abs()),
        }
    }

    /// The coarsest cells, each with a bound on F inside.
    fn base_cells(&self, values: &[f32], scale: f64, slack: f64) -> Vec<(CellId, f64)> {
        let grid = self.decoder.coarse_grid();
        let (rings, longitudes) = (self.base, 2 * self.base);
        let mut highest = vec![f32::NEG_INFINITY; rings * longitudes];
        for ring in 0..grid.rings() {
            let row = (grid.colatitude(ring) / PI * rings as f64) as usize;
            let row = row.min(rings - 1);
            let values = &values[ring * grid.longitudes()..][..grid.longitudes()];
            for (j, &value) in values.iter().enumerate() {
                let sector = j * longitudes / grid.longitudes();
                let cell = &mut highest[row * longitudes + sector];
                *cell = cell.max(value);
            }
        }
        let cells = (0..rings * longitudes).map(|index| {
            let (ring, sector) = (index / longitudes, index % longitudes);
            // A peak's nearest node may belong to a neighbour of the peak's cell.
            let mut bound = f32::NEG_INFINITY;
            for row in ring.saturating_sub(1)..(ring + 2).min(rings) {
                // Next to a pole all sectors are neighbours.
                let polar = row == 0 || row + 1 == rings;
                for k in 0..longitudes {
                    let apart = (k + longitudes - sector) % longitudes;
                    if polar || apart <= 1 || apart + 1 == longitudes {
                        bound = bound.max(highest[row * longitudes + k]);
                    }
                }
            }
            let id = CellId { level: 0, ring: ring as u32, sector: sector as u32 };
            (id, (f64::from(bound) + slack) * scale)
        });
        cells.collect()
    }

    /// Adds a cell, quartered as long as it is wide against a peak inside it.
    fn add_cell(
        &self,
        field: &mut Field<'_>,
        id: CellId,
        peaks: &[Peak],
        heap: &mut BinaryHeap<Cell>,
    ) {
        let narrow = peaks
            .iter()
            .filter(|peak| field.contains(id, peak))
            .map(sigma)
            .fold(f64::INFINITY, f64::min);
        if field.width(id) > WIDEST_SIGMAS * narrow {
            for child in id.children() {
                self.add_cell(field, child, peaks, heap);
            }
        } else {
            heap.push(field.integrate(id));
        }
    }
}
