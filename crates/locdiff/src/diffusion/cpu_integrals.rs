//! Integrals over the sphere on the CPU, row by row, while a row's values are still in the
//! cache; the objectives that contain them with their gradients.
//!
//! Gradients are written down instead of differentiated: ∂A/∂e = E_q\[Y\], and with
//! D = log q_e − log q_Y(place) the divergence is KL = E_q\[D\], ∂KL/∂e = E_q\[(D − KL)·Y\].

use std::f64::consts::PI;

use burn::tensor::{Device, Tensor, TensorData};
use locdiff_sphere::{Grid, Transform, coefficient_count};
use rayon::prelude::*;

use crate::tensors::fused::{exp, numbers_of, vectorised};

/// Rows that one task takes.
const ROWS: usize = 16;

/// Mean of an objective over a batch, and its gradient by the outputs `[batch, d]`.
pub(crate) type ValueAndGradient = (f64, Vec<f32>);

/// Integrals by the transform.
pub(crate) struct CpuGrid {
    transform: Transform<f32>,
    /// Area of a node on each ring.
    areas: Vec<f32>,
}

impl std::fmt::Debug for CpuGrid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpuGrid").field("rings", &self.areas.len()).finish_non_exhaustive()
    }
}

impl CpuGrid {
    pub(crate) fn new(rings: usize, max_degree: usize) -> CpuGrid {
        let grid = Grid::new(rings, 2 * rings);
        let areas = (0..rings).map(|ring| grid.weight(ring) as f32).collect();
        CpuGrid { transform: Transform::new(grid, max_degree), areas }
    }

    /// The mean of Y under q ∝ exp(e·Y) for each row.
    pub(crate) fn mean_encoding(&self, e: &[f32]) -> Vec<f32> {
        let size = coefficient_count(self.transform.max_degree());
        let mut means = vec![0.0_f32; e.len()];
        means.par_chunks_mut(size).zip(e.par_chunks(size)).for_each(|(mean, e)| {
            let mut values = vec![0.0; self.transform.grid().len()];
            self.transform.synthesize_into(e, &mut values);
            self.normalise(&mut values);
            self.transform.analyze_into(&values, mean);
        });
        means
    }

    /// The mean of A(e) − e·Y(place), on the grid turned eastwards by an angle.
    pub(crate) fn likelihood(&self, e: &[f32], truth: &[f32], angle: f64) -> ValueAndGradient {
        self.mean(e, truth, angle, |grid, e, truth, gradient| {
            let mut values = vec![0.0; grid.transform.grid().len()];
            grid.transform.synthesize_into(e, &mut values);
            let log_integral = f64::from(grid.normalise(&mut values));
            grid.transform.analyze_into(&values, gradient);
            let at_truth = dot(e, truth);
            // With the truth among the points: see `guard_area`.
            let log_truth = at_truth + guard_area(values.len()).ln();
            let highest = log_integral.max(log_truth);
            let (nodes, truth_alone) =
                ((log_integral - highest).exp(), (log_truth - highest).exp());
            let share = (nodes / (nodes + truth_alone)) as f32;
            for (mean, truth) in gradient.iter_mut().zip(truth) {
                *mean = share * (*mean - truth);
            }
            highest + (nodes + truth_alone).ln() - at_truth
        })
    }

    /// The mean of KL(q_e ‖ q_Y(place)).
    pub(crate) fn reverse_kl(&self, e: &[f32], truth: &[f32], angle: f64) -> ValueAndGradient {
        self.mean(e, truth, angle, |grid, e, truth, gradient| {
            let nodes = grid.transform.grid().len();
            let (mut mine, mut theirs) = (vec![0.0; nodes], vec![0.0; nodes]);
            grid.transform.synthesize_into(e, &mut mine);
            grid.transform.synthesize_into(truth, &mut theirs);
            let mut difference: Vec<f32> = mine.iter().zip(&theirs).map(|(f, g)| f - g).collect();
            let constant = grid.normalise(&mut theirs) - grid.normalise(&mut mine);
            difference.iter_mut().for_each(|value| *value += constant);
            let divergence = grid.expectation(&mine, &difference);
            for (density, difference) in mine.iter_mut().zip(&difference) {
                *density *= difference - divergence as f32;
            }
            grid.transform.analyze_into(&mine, gradient);
            divergence
        })
    }

    /// The mean over a batch of an objective of one row, given with its gradient.
    fn mean(
        &self,
        e: &[f32],
        truth: &[f32],
        angle: f64,
        objective: impl Fn(&CpuGrid, &[f32], &[f32], &mut [f32]) -> f64 + Sync,
    ) -> ValueAndGradient {
        let max_degree = self.transform.max_degree();
        let size = coefficient_count(max_degree);
        let batch = e.len() / size;
        let turn = Turn::new(max_degree, angle);
        let mut gradient = vec![0.0_f32; e.len()];
        let mut values = vec![0.0_f64; batch];
        let chunks = gradient
            .par_chunks_mut(ROWS * size)
            .zip(values.par_chunks_mut(ROWS))
            .zip(e.par_chunks(ROWS * size).zip(truth.par_chunks(ROWS * size)));
        chunks.for_each(|((gradient, values), (e, truth))| {
            let (mut turned, mut turned_truth) = (vec![0.0; size], vec![0.0; size]);
            let rows = e.chunks_exact(size).zip(truth.chunks_exact(size));
            let outputs = gradient.chunks_exact_mut(size).zip(values);
            for ((e, truth), (gradient, value)) in rows.zip(outputs) {
                turn.forth(e, &mut turned);
                turn.forth(truth, &mut turned_truth);
                *value = objective(self, &turned, &turned_truth, gradient);
                turn.back(gradient, 1.0 / batch as f32);
            }
        });
        (values.iter().sum::<f64>() / batch as f64, gradient)
    }

    /// F → exp F / ∫ exp F at the nodes. Gives log ∫ exp F.
    fn normalise(&self, values: &mut [f32]) -> f32 {
        let longitudes = self.transform.grid().longitudes();
        let highest = highest_of(values, f32::MIN);
        let mut integral = 0.0_f64;
        for (ring, area) in values.chunks_exact_mut(longitudes).zip(&self.areas) {
            integral += f64::from(exponentials(ring, highest) * area);
        }
        scale(values, (1.0 / integral) as f32);
        (f64::from(highest) + integral.ln()) as f32
    }

    /// ∫ density·values.
    fn expectation(&self, density: &[f32], values: &[f32]) -> f64 {
        let longitudes = self.transform.grid().longitudes();
        let rings = density.chunks_exact(longitudes).zip(values.chunks_exact(longitudes));
        rings.zip(&self.areas).map(|((q, v), area)| f64::from(*area) * dot(q, v)).sum()
    }
}

fn highest_of(values: &[f32], at_least: f32) -> f32 {
    vectorised!(values.iter().copied().fold(at_least, f32::max))
}

/// F → exp(F − highest), and the sum.
fn exponentials(values: &mut [f32], highest: f32) -> f32 {
    vectorised!({
        values.iter_mut().for_each(|value| *value = exp(*value - highest));
        lanes_sum(values)
    })
}

fn scale(values: &mut [f32], factor: f32) {
    vectorised!(values.iter_mut().for_each(|value| *value *= factor));
}

/// A sum over sixteen lanes, so that it is vectorised.
#[inline(always)]
fn lanes_sum(values: &[f32]) -> f32 {
    let (lanes, rest) = values.as_chunks::<16>();
    let mut sums = [0.0_f32; 16];
    for lane in lanes {
        for k in 0..16 {
            sums[k] += lane[k];
        }
    }
    sums.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Coefficients of a function that is looked at from a meridian further east.
struct Turn {
    /// (cos m·angle, sin m·angle).
    waves: Vec<(f32, f32)>,
}

impl Turn {
    fn new(max_degree: usize, angle: f64) -> Turn {
        let wave = |m: usize| {
            let (sine, cosine) = (m as f64 * angle).sin_cos();
            (cosine as f32, sine as f32)
        };
        Turn { waves: (0..=max_degree).map(wave).collect() }
    }

    fn forth(&self, from: &[f32], to: &mut [f32]) {
        for l in 0..self.waves.len() {
            let centre = l * l + l;
            for (m, (cosine, sine)) in self.waves[..=l].iter().enumerate() {
                let (even, odd) = (from[centre + m], from[centre - m]);
                to[centre - m] = odd * cosine - even * sine;
                to[centre + m] = even * cosine + odd * sine;
            }
            to[centre] = from[centre];
        }
    }

    /// The reverse, in place and scaled.
    fn back(&self, values: &mut [f32], scale: f32) {
        for l in 0..self.waves.len() {
            let centre = l * l + l;
            values[centre] *= scale;
            for (m, (cosine, sine)) in self.waves[..=l].iter().enumerate().skip(1) {
                let (even, odd) = (values[centre + m], values[centre - m]);
                values[centre - m] = scale * (odd * cosine + even * sine);
                values[centre + m] = scale * (even * cosine - odd * sine);
            }
        }
    }
}

/// The mean of A(e) − e·Y(place) over random anchors `[count, d]` of equal area, the truth
/// being one of them.
pub(crate) fn likelihood_over_anchors(
    e: Tensor<2>,
    truth: &Tensor<2>,
    anchors: &Tensor<2>,
) -> (f64, Tensor<2>) {
    let [batch, _] = e.dims();
    let [count, _] = anchors.dims();
    let at_truth = numbers_of(&(e.clone() * truth.clone()).sum_dim(1));
    let mut values = numbers_of(&e.matmul(anchors.clone().transpose())); // [batch, count]
    let log_area = (4.0 * PI / (count + 1) as f64).ln();
    let rows: Vec<(f64, f32)> = values
        .par_chunks_mut(count)
        .zip(&at_truth)
        .map(|(row, at_truth)| {
            let highest = highest_of(row, *at_truth);
            let sum = exponentials(row, highest);
            let of_truth = exp(at_truth - highest);
            let factor = 1.0 / (batch as f32 * (sum + of_truth));
            scale(row, factor);
            let log_sum = f64::from(highest) + f64::from(sum + of_truth).ln();
            let loss = log_sum + log_area - f64::from(*at_truth);
            (loss, of_truth * factor - 1.0 / batch as f32)
        })
        .collect();
    let device = truth.device();
    let of_truth = rows.iter().map(|row| row.1).collect();
    let gradient = matrix(values, [batch, count], &device).matmul(anchors.clone())
        + truth.clone() * matrix(of_truth, [batch, 1], &device);
    (rows.iter().map(|row| row.0).sum::<f64>() / batch as f64, gradient)
}

/// The mean of KL(q_e ‖ q_Y(place)) over anchors.
pub(crate) fn reverse_kl_over_anchors(
    e: Tensor<2>,
    truth: &Tensor<2>,
    anchors: &Tensor<2>,
) -> (f64, Tensor<2>) {
    let [batch, _] = e.dims();
    let [count, _] = anchors.dims();
    let columns = anchors.clone().transpose();
    let mut mine = numbers_of(&e.matmul(columns.clone())); // [batch, count]
    let mut theirs = numbers_of(&truth.clone().matmul(columns));
    let losses: Vec<f64> = mine
        .par_chunks_mut(count)
        .zip(theirs.par_chunks_mut(count))
        .map(|(mine, theirs)| {
            let log_sum = |row: &[f32], shares: &mut [f32]| {
                let highest = highest_of(row, f32::MIN);
                shares.copy_from_slice(row);
                let sum = exponentials(shares, highest);
                (highest + sum.ln(), 1.0 / sum)
            };
            let mut shares = vec![0.0; count];
            let (log_theirs, _) = log_sum(theirs, &mut shares);
            let (log_mine, factor) = log_sum(mine, &mut shares);
            let constant = log_theirs - log_mine;
            vectorised!({
                for k in 0..count {
                    shares[k] *= factor;
                    theirs[k] = mine[k] - theirs[k] + constant;
                }
            });
            let divergence = dot(&shares, theirs);
            let (centre, scale) = (divergence as f32, 1.0 / batch as f32);
            vectorised!({
                for k in 0..count {
                    mine[k] = scale * shares[k] * (theirs[k] - centre);
                }
            });
            divergence
        })
        .collect();
    let gradient = matrix(mine, [batch, count], &truth.device()).matmul(anchors.clone());
    (losses.iter().sum::<f64>() / batch as f64, gradient)
}

fn matrix(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// The area that the true place stands for beside the nodes of a grid: a sixteenth of a mean node's.
///
/// A density that is too sharp for the grid can pass between its nodes, where nothing holds it back:
/// trained for long on a coarse grid, likelihood fell without end and the answers were spoiled. With
/// the truth among the points it can't fall below the logarithm of this area. Where the grid resolves the
/// density, the integral grows by less than 2 %: 1.75² / 16π² at the very limit (`SPACING_PER_SIGMA`),
/// and less for everything smoother. So far the score is proper.
pub(crate) fn guard_area(nodes: usize) -> f64 {
    4.0 * PI / (16 * nodes) as f64
}
