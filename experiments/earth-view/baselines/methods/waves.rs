//! Answers of ours: exponential densities exp(F − A), by sums over a fixed grid. Much faster than a
//! survey for thousands of answers; peaks narrower than its spacing of 104 km are seen less well.

use std::f64::consts::PI;
use std::sync::Arc;

use locdiff_sphere::{Basis, Coefficients, Decoder, Grid, LatLon, Transform};
use rand_chacha::ChaCha8Rng;

use super::answer::{Answer, Calibration, Rule, Shape};
use super::fitting::place_towards;

const RINGS: usize = 192;
/// Below its highest point by more than so many nats a density counts as nothing.
const DEEPEST: f32 = -30.0;

/// Tables for one degree.
pub(super) struct WaveTables {
    transform: Transform<f32>,
    basis: Basis,
    decoder: Decoder,
}

impl WaveTables {
    pub(super) fn new(max_degree: usize) -> WaveTables {
        WaveTables {
            transform: Transform::new(Grid::new(RINGS, 2 * RINGS), max_degree),
            basis: Basis::new(max_degree),
            decoder: Decoder::new(max_degree),
        }
    }
}

pub(super) struct Waves {
    tables: Arc<WaveTables>,
    coefficients: Coefficients,
}

impl Waves {
    pub(super) fn new(tables: Arc<WaveTables>, coefficients: Coefficients) -> Waves {
        Waves { tables, coefficients }
    }

    /// F at the nodes.
    fn nodes(&self) -> Vec<f32> {
        let e: Vec<f32> = self.coefficients.as_slice().iter().map(|x| *x as f32).collect();
        let mut nodes = vec![0.0; self.tables.transform.grid().len()];
        self.tables.transform.synthesize_into(&e, &mut nodes);
        nodes
    }

    fn at(&self, place: LatLon) -> f32 {
        self.coefficients.value_at(&self.tables.basis, place) as f32
    }

    /// ∫ of exp(power·(F − highest)) over nodes that are wanted.
    fn integral(
        &self,
        nodes: &[f32],
        power: f32,
        highest: f32,
        wanted: impl Fn(f32) -> bool,
    ) -> f64 {
        let grid = self.tables.transform.grid();
        let rings = nodes.chunks_exact(grid.longitudes()).enumerate();
        rings
            .map(|(ring, nodes)| {
                let parts = nodes.iter().filter(|value| wanted(**value));
                let parts = parts.map(|value| power * (value - highest));
                let sum: f32 = parts.filter(|log| *log > DEEPEST).map(f32::exp).sum();
                f64::from(sum) * grid.weight(ring)
            })
            .sum()
    }

    /// The mean of Y under the density.
    fn mean_encoding(&self, power: f32) -> Coefficients {
        let mut nodes = self.nodes();
        let highest = nodes.iter().copied().fold(f32::MIN, f32::max);
        let whole = self.integral(&nodes, power, highest, |_| true) as f32;
        for value in &mut nodes {
            *value = (power * (*value - highest)).exp() / whole;
        }
        let mut mean = vec![0.0_f32; self.tables.basis.len()];
        self.tables.transform.analyze_into(&nodes, &mut mean);
        let mean = mean.into_iter().map(f64::from).collect();
        Coefficients::from_vec(mean).expect("means of bounded functions")
    }
}

fn power_of(shape: Shape) -> f32 {
    match shape {
        Shape::Power(power) => power as f32,
        Shape::Kernel { .. } => 1.0,
    }
}

impl Answer for Waves {
    fn log_densities(&self, place: LatLon, shapes: &[Shape]) -> Vec<f64> {
        let (nodes, at_place) = (self.nodes(), self.at(place));
        let highest = nodes.iter().copied().fold(at_place, f32::max);
        let log = |shape: &Shape| {
            let power = power_of(*shape);
            let mass = self.integral(&nodes, power, highest, |_| true);
            f64::from(power * (at_place - highest)) - mass.ln()
        };
        shapes.iter().map(log).collect()
    }

    fn shapes(&self) -> Vec<Shape> {
        (6..=28).map(|k| Shape::Power(f64::from(k) / 20.0)).collect()
    }

    fn place(&self, rule: Rule, shape: Shape) -> LatLon {
        match rule {
            Rule::Mode { spread_km: 0.0 } => self.tables.decoder.mode(&self.coefficients).place,
            Rule::Mode { spread_km } => {
                let spread = self.mean_encoding(power_of(shape)).smoothed(spread_km);
                self.tables.decoder.mode(&spread).place
            }
            Rule::Mean => {
                // Y of degree one is y, z, x.
                let mean = self.mean_encoding(power_of(shape));
                let [y, z, x] = [1, 2, 3].map(|k| mean.as_slice()[k]);
                place_towards([x, y, z])
            }
        }
    }

    fn level(&self, place: LatLon, calibration: &Calibration, _rng: &mut ChaCha8Rng) -> f64 {
        let (nodes, at_place) = (self.nodes(), self.at(place));
        let highest = nodes.iter().copied().fold(at_place, f32::max);
        let power = power_of(calibration.shape);
        let above = |value: f32| value >= at_place;
        let mass = self.integral(&nodes, power, highest, above)
            / self.integral(&nodes, power, highest, |_| true);
        let area = self.integral(&nodes, 0.0, highest, above) / (4.0 * PI);
        let share = calibration.uniform_share;
        ((1.0 - share) * mass + share * area).min(1.0)
    }
}
