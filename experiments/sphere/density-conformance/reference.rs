//! Integrals that share nothing with the mesh of cells but the function itself.

use std::f64::consts::{PI, TAU};

use locdiff_sphere::{
    Anchors, Basis, Coefficients, Density, EARTH_RADIUS_KM, Grid, LatLon, Mode, Region, Transform,
};

/// 2π ∫ exp(t·Σ (2l+1)/4π·P_l(cos θ)) sin θ dθ by Simpson's rule, as a logarithm.
pub fn zonal_log_integral(max_degree: usize, t: f64) -> f64 {
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
pub struct FineGrid {
    transform: Transform<f64>,
}

impl FineGrid {
    pub fn new(max_degree: usize, rings: usize) -> FineGrid {
        FineGrid { transform: Transform::new(Grid::new(rings, 2 * rings), max_degree) }
    }

    pub fn log_integral(&self, e: &Coefficients) -> f64 {
        let values = self.transform.synthesize(e);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shifted: Vec<f64> = values.iter().map(|value| (value - highest).exp()).collect();
        self.transform.grid().integrate(&shifted).ln() + highest
    }
}

/// The probability of each region: exp F summed over dense spirals around the modes
/// (each point counted for its nearest mode), and over even points elsewhere. All masses are
/// divided by the sum over everything, so that no normaliser is taken from the density.
pub fn region_mass(
    basis: &Basis,
    e: &Coefficients,
    density: &Density,
    modes: &[Mode],
    regions: &[Region<'_>; 2],
) -> [f64; 2] {
    let centres: Vec<LatLon> =
        modes.iter().filter(|mode| mode.mass > 1e-3).take(24).map(|mode| mode.place).collect();
    // To the rim of the main lobe of the finest structure that degree L can have.
    let radius = 4.0 / basis.max_degree() as f64;
    let nearest = |place: LatLon| {
        let distances = centres.iter().map(|centre| centre.angle_to(place));
        distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, PI))
    };
    let Density::Exponential(exponential) = density else { panic!("not an exponential density") };
    let (mut total, mut inside) = (0.0, [0.0; 2]);
    let mut add = |place: LatLon, steradians: f64| {
        // The normaliser only keeps exp in range; it cancels.
        let log_density = e.value_at(basis, place) - exponential.log_normaliser();
        let mass = steradians * log_density.exp();
        total += mass;
        for (inside, region) in inside.iter_mut().zip(regions) {
            let above = log_density - region.rim_log_density();
            // Ties are for the region to decide.
            let holds = if above.abs() > 1e-5 { above > 0.0 } else { region.contains(place) };
            *inside += mass * f64::from(holds);
        }
    };
    let count = if centres.len() > 6 { 15_000 } else { 40_000 };
    for (number, centre) in centres.iter().enumerate() {
        for k in 0..count {
            // A spiral: every point at another distance, so that no border runs along them.
            let angle = radius * (k as f64 + 0.5) / count as f64;
            let steradians = angle.sin() * radius / count as f64 * TAU;
            let bearing = 360.0 * (0.618_033_988_749_895 * k as f64).fract();
            let place = centre.destination(bearing, angle * EARTH_RADIUS_KM);
            if nearest(place).0 == number {
                add(place, steradians);
            }
        }
    }
    let even = Anchors::fibonacci(150_000);
    for place in even.places().iter().filter(|place| nearest(**place).1 >= radius) {
        add(*place, 4.0 * PI / even.len() as f64);
    }
    inside.map(|inside| inside / total)
}
