//! Answers made of round bumps: mixtures with widths of their own, and points that get a kernel.

use locdiff_sphere::{EARTH_RADIUS_KM, LatLon, UnitVector, uniform_place};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::answer::{Answer, Calibration, Rule, Shape, log_with_uniform};
use super::fitting::place_towards;
use super::kernel::{RoundKernel, squared_chord};

/// Draws by which the level of a place is estimated: to 3 points at a half.
const LEVEL_DRAWS: usize = 256;
/// Bumps from which a climb begins.
const STARTS: usize = 3;
/// The heaviest bumps, whose heights are compared.
const HEAVY: usize = 64;
const CLIMBING_STEPS: usize = 30;

#[derive(Debug, Clone, Copy)]
pub(super) struct Bump {
    /// Need not be normalised.
    pub(super) log_weight: f64,
    /// A unit vector.
    pub(super) centre: [f64; 3],
    /// Square of the width in radians, of a von Mises-Fisher bump; none for a point.
    pub(super) variance: Option<f64>,
}

#[derive(Debug, Clone)]
pub(super) struct Bumps {
    bumps: Vec<Bump>,
}

impl Bumps {
    /// At least one; points and others don't mix.
    pub(super) fn new(bumps: Vec<Bump>) -> Bumps {
        assert!(!bumps.is_empty(), "an answer of no bumps");
        Bumps { bumps }
    }

    /// Points of equal weight.
    pub(super) fn samples(points: impl Iterator<Item = [f64; 3]>) -> Bumps {
        let point = |centre| Bump { log_weight: 0.0, centre, variance: None };
        Bumps::new(points.map(point).collect())
    }

    /// Log-weights that sum to one, with kernels; `spread` adds to the bumps' own variances.
    fn prepared(&self, shape: Shape, spread: f64) -> Vec<(f64, [f64; 3], RoundKernel)> {
        let power = match shape {
            Shape::Power(_) => 1.0,
            Shape::Kernel { weight_power, .. } => weight_power,
        };
        let logs: Vec<f64> = self.bumps.iter().map(|bump| power * bump.log_weight).collect();
        let sum = log_sum_exp(&logs);
        // Points share one kernel, whose normaliser is taken once.
        let of_points = match shape {
            Shape::Kernel { width_km, tail, .. } if spread == 0.0 => {
                RoundKernel::of_width_km(width_km, tail)
            }
            _ => RoundKernel::new(spread.max(1e-12), f64::INFINITY),
        };
        let kernel = |bump: &Bump| match (bump.variance, shape) {
            (Some(variance), Shape::Power(factor)) => {
                RoundKernel::new(variance / factor + spread, f64::INFINITY)
            }
            (Some(variance), _) => RoundKernel::new(variance + spread, f64::INFINITY),
            (None, _) => of_points,
        };
        let bumps = self.bumps.iter().zip(logs);
        bumps.map(|(bump, log)| (log - sum, bump.centre, kernel(bump))).collect()
    }
}

fn log_at(bumps: &[(f64, [f64; 3], RoundKernel)], place: [f64; 3]) -> f64 {
    let logs: Vec<f64> = bumps
        .iter()
        .map(|(log, centre, kernel)| log + kernel.log_density(squared_chord(*centre, place)))
        .collect();
    log_sum_exp(&logs)
}

fn log_sum_exp(logs: &[f64]) -> f64 {
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    highest + logs.iter().map(|log| (log - highest).exp()).sum::<f64>().ln()
}

/// Uphill by mean shift, which for such bumps never steps down.
fn climb(bumps: &[(f64, [f64; 3], RoundKernel)], start: [f64; 3]) -> [f64; 3] {
    let mut place = start;
    for _ in 0..CLIMBING_STEPS {
        let here = log_at(bumps, place);
        let mut pull = [0.0; 3];
        for (log, centre, kernel) in bumps {
            let density = (log + kernel.log_density(squared_chord(*centre, place)) - here).exp();
            (0..3).for_each(|axis| pull[axis] += density / kernel.variance() * centre[axis]);
        }
        let Some(next) = UnitVector::from_direction(pull) else { break };
        let moved = squared_chord(next.to_array(), place);
        place = next.to_array();
        if moved < 1e-10 {
            break;
        }
    }
    place
}

impl Answer for Bumps {
    fn log_densities(&self, place: LatLon, shapes: &[Shape]) -> Vec<f64> {
        let place = UnitVector::from(place).to_array();
        shapes.iter().map(|shape| log_at(&self.prepared(*shape, 0.0), place)).collect()
    }

    fn shapes(&self) -> Vec<Shape> {
        if self.bumps[0].variance.is_some() {
            return (4..=30).map(|k| Shape::Power(f64::from(k) / 20.0)).collect();
        }
        let widths = [25.0, 50.0, 100.0, 150.0, 200.0, 300.0, 450.0, 650.0, 1000.0, 1500.0, 2500.0];
        let tails = [1.05, 1.2, 1.5, 2.0, 4.0, f64::INFINITY];
        // Where all weights are the same, their power says nothing.
        let same = self.bumps.iter().all(|bump| bump.log_weight == self.bumps[0].log_weight);
        let powers: &[f64] = if same { &[1.0] } else { &[0.25, 0.5, 1.0, 2.0, 4.0] };
        let mut shapes = Vec::new();
        for width_km in widths {
            for tail in tails {
                for weight_power in powers {
                    shapes.push(Shape::Kernel { width_km, tail, weight_power: *weight_power });
                }
            }
        }
        shapes
    }

    fn place(&self, rule: Rule, shape: Shape) -> LatLon {
        let spread = match rule {
            Rule::Mode { spread_km } => (spread_km / EARTH_RADIUS_KM).powi(2),
            Rule::Mean => 0.0,
        };
        let heaviest = |bumps: &[(f64, [f64; 3], RoundKernel)]| {
            let best = bumps.iter().max_by(|a, b| a.0.total_cmp(&b.0));
            best.expect("an answer has bumps").1
        };
        let bumps = self.prepared(shape, spread);
        let place = match rule {
            Rule::Mean => {
                let mut sum = [0.0; 3];
                for (log, centre, _) in &bumps {
                    (0..3).for_each(|axis| sum[axis] += log.exp() * centre[axis]);
                }
                sum
            }
            // A point alone has no height but its weight.
            Rule::Mode { .. } if spread == 0.0 && self.bumps[0].variance.is_none() => {
                heaviest(&bumps)
            }
            Rule::Mode { .. } => {
                let mut heavy: Vec<_> = bumps.iter().collect();
                heavy.sort_by(|a, b| b.0.total_cmp(&a.0));
                let heavy = heavy.into_iter().take(HEAVY);
                let heights = heavy.map(|bump| (log_at(&bumps, bump.1), bump.1));
                let mut starts: Vec<(f64, [f64; 3])> = heights.collect();
                starts.sort_by(|a, b| b.0.total_cmp(&a.0));
                let ends = starts.iter().take(STARTS).map(|start| {
                    let end = climb(&bumps, start.1);
                    (log_at(&bumps, end), end)
                });
                ends.max_by(|a, b| a.0.total_cmp(&b.0)).expect("an answer has bumps").1
            }
        };
        place_towards(place)
    }

    fn level(&self, place: LatLon, calibration: &Calibration, rng: &mut ChaCha8Rng) -> f64 {
        let bumps = self.prepared(calibration.shape, 0.0);
        let share = calibration.uniform_share;
        let log = |place: [f64; 3]| log_with_uniform(log_at(&bumps, place), share);
        let of_truth = log(UnitVector::from(place).to_array());
        let above = (0..LEVEL_DRAWS).filter(|_| {
            let drawn = if rng.random::<f64>() < share {
                UnitVector::from(uniform_place(rng)).to_array()
            } else {
                let mut rest: f64 = rng.random();
                let mut chosen = &bumps[0];
                for bump in &bumps {
                    chosen = bump;
                    rest -= bump.0.exp();
                    if rest < 0.0 {
                        break;
                    }
                }
                chosen.2.sample(chosen.1, rng)
            };
            log(drawn) > of_truth
        });
        above.count() as f64 / LEVEL_DRAWS as f64
    }
}
