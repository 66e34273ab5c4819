//! Does the log-normaliser of an exponential density keep its promise?
//!
//! log ∫ exp F against references that share no code with it: for e = t·Y(p) the exact
//! one-dimensional integral, otherwise a grid whose spacing is below the narrowest peak's
//! standard deviation. On nodes of the coarse grid and between them, at the poles and at the
//! antimeridian, for smooth functions and for two and three peaks of different sharpness.
//!
//! Regions and basins will join when densities have them. `--quick` takes fewer places.

use std::f64::consts::PI;
use std::time::Instant;

use anyhow::Result;
use locdiff_experiments::{round, standard_normal};
use locdiff_sphere::{Basis, Coefficients, Grid, Integrator, LatLon, Transform, uniform_place};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

const SEED: u64 = 4;

#[derive(Default)]
struct Tally {
    cases: usize,
    worst_nat: f64,
    held: usize,
    milliseconds: Vec<f64>,
}

impl Tally {
    fn add(&mut self, integrator: &Integrator, e: &Coefficients, reference: f64) {
        let began = Instant::now();
        let integral = integrator.log_integral_exp(e);
        self.milliseconds.push(began.elapsed().as_secs_f64() * 1e3);
        let error = (integral.value - reference).abs();
        self.cases += 1;
        self.worst_nat = self.worst_nat.max(error);
        // The references themselves are good to about 1e-9.
        self.held += usize::from(error <= integral.error + 1e-9);
    }

    fn print(&mut self, name: &str) {
        self.milliseconds.sort_by(f64::total_cmp);
        let held = 100.0 * self.held as f64 / self.cases as f64;
        let (middle, last) = (self.milliseconds[self.cases / 2], self.milliseconds[self.cases - 1]);
        let (cases, worst) = (self.cases, self.worst_nat);
        println!("| {name} | {cases} | {worst:.1e} | {held:.1} | {middle:.2} | {last:.2} |");
    }
}

fn main() -> Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    println!("# Conformance of the log-normaliser\n");
    println!(
        "| functions | cases | largest error, nat | estimate held, % | ms, median | ms, most |"
    );
    println!("|---|---|---|---|---|---|");
    let mut all = Tally::default();
    let mut cost_ms = 0.0;
    for max_degree in [15, 47, 95] {
        let (integrator, basis) = (Integrator::new(max_degree), Basis::new(max_degree));
        let mut tally = Tally::default();
        let sharpnesses = [0.0, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.25, 1.5];
        for t in sharpnesses.into_iter().step_by(if quick { 3 } else { 1 }) {
            let reference = zonal_reference(max_degree, t);
            for place in places(max_degree, if quick { 1 } else { 12 }, &mut rng) {
                tally.add(&integrator, &weighted(&basis, &[(t, place)]), reference);
            }
        }
        tally.print(&format!("t·Y(p), L = {max_degree}"));
        if max_degree == 47 {
            cost_ms = tally.milliseconds[tally.cases / 2];
        }
        merge(&mut all, tally);
    }
    for max_degree in [15, 47] {
        let (integrator, basis) = (Integrator::new(max_degree), Basis::new(max_degree));
        let fine = Fine::new(max_degree, if max_degree == 15 { 600 } else { 1600 });
        let count = if quick { 2 } else { 15 };
        let mut smooth = Tally::default();
        for amplitude in [0.3, 1.0, 3.0] {
            for _ in 0..count {
                let e = smooth_noise(max_degree, amplitude, &mut rng);
                smooth.add(&integrator, &e, fine.log_integral(&e));
            }
        }
        smooth.print(&format!("smooth random, L = {max_degree}"));
        merge(&mut all, smooth);
        let mut peaks = Tally::default();
        for number in [2, 3] {
            for _ in 0..count {
                let parts: Vec<(f64, LatLon)> = (0..number)
                    .map(|_| (rng.random_range(0.05..1.0), uniform_place(&mut rng)))
                    .collect();
                let e = weighted(&basis, &parts);
                peaks.add(&integrator, &e, fine.log_integral(&e));
            }
        }
        peaks.print(&format!("two and three peaks, L = {max_degree}"));
        merge(&mut all, peaks);
    }
    let figures = json!({
        "n": all.cases,
        "seed": SEED,
        "max_error_nat": all.worst_nat,
        "error_bound_held": round(100.0 * all.held as f64 / all.cases as f64),
        "cost_ms": round(cost_ms),
    });
    println!("\n{figures}");
    Ok(())
}

fn merge(all: &mut Tally, part: Tally) {
    all.cases += part.cases;
    all.held += part.held;
    all.worst_nat = all.worst_nat.max(part.worst_nat);
}

/// Poles, antimeridian, nodes of the coarse grid, and random places.
fn places(max_degree: usize, random: usize, rng: &mut ChaCha8Rng) -> Vec<LatLon> {
    let grid = Grid::new(3 * (max_degree + 1), 6 * (max_degree + 1));
    let special = [(90.0, 0.0), (-90.0, 0.0), (89.99, 120.0), (0.0, -180.0), (41.0, 179.999)];
    let special =
        special.into_iter().map(|(latitude, longitude)| LatLon::new(latitude, longitude).unwrap());
    let nodes = [(0, 3), (max_degree, 5), (max_degree + 7, 0)];
    let nodes = nodes.into_iter().map(|(ring, longitude)| grid.place(ring, longitude));
    special.chain(nodes).chain((0..random).map(|_| uniform_place(rng))).collect()
}

fn weighted(basis: &Basis, parts: &[(f64, LatLon)]) -> Coefficients {
    let mut sum = Coefficients::zeros(basis.max_degree());
    for (weight, place) in parts {
        for (sum, y) in sum.as_mut_slice().iter_mut().zip(basis.encode(*place).as_slice()) {
            *sum += weight * y;
        }
    }
    sum
}

/// Normal coefficients that fall with the degree, as a network's would.
fn smooth_noise(max_degree: usize, amplitude: f64, rng: &mut ChaCha8Rng) -> Coefficients {
    let mut e = Coefficients::zeros(max_degree);
    for (index, e) in e.as_mut_slice().iter_mut().enumerate() {
        *e = amplitude * standard_normal(rng) * 8.0 / (index.isqrt() + 1) as f64;
    }
    e
}

/// 2π ∫ exp(t·Σ (2l+1)/4π·P_l(cos θ)) sin θ dθ by Simpson's rule.
fn zonal_reference(max_degree: usize, t: f64) -> f64 {
    const STEPS: usize = 200_000;
    let peak = t * ((max_degree + 1) * (max_degree + 1)) as f64 / (4.0 * PI);
    let integrand = |theta: f64| {
        let x = theta.cos();
        let (mut last, mut p, mut sum) = (0.0, 1.0, 1.0);
        for l in 1..=max_degree {
            let l = l as f64;
            (last, p) = (p, ((2.0 * l - 1.0) * x * p - (l - 1.0) * last) / l);
            sum += (2.0 * l + 1.0) * p;
        }
        theta.sin() * (t * sum / (4.0 * PI) - peak).exp()
    };
    let step = PI / STEPS as f64;
    let weight = |k: usize| match k {
        0 | STEPS => 1.0,
        odd if odd % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let sum: f64 = (0..=STEPS).map(|k| weight(k) * integrand(k as f64 * step)).sum();
    (2.0 * PI * sum * step / 3.0).ln() + peak
}

/// Plain quadrature on a grid fine enough for exp F.
struct Fine {
    transform: Transform<f64>,
}

impl Fine {
    fn new(max_degree: usize, rings: usize) -> Fine {
        Fine { transform: Transform::new(Grid::new(rings, 2 * rings), max_degree) }
    }

    fn log_integral(&self, e: &Coefficients) -> f64 {
        let values = self.transform.synthesize(e);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shifted: Vec<f64> = values.iter().map(|value| (value - highest).exp()).collect();
        self.transform.grid().integrate(&shifted).ln() + highest
    }
}
