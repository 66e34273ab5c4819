//! What every method answers with, and what is fitted on held-out rows for all of them alike.

use locdiff_sphere::{LatLon, PointScores, UNIFORM_NLL_NATS};
use rand_chacha::ChaCha8Rng;

/// The answer to one picture.
pub trait Answer {
    /// Log-densities per steradian of a place, for several shapes of the answer.
    fn log_densities(&self, place: LatLon, shapes: &[Shape]) -> Vec<f64>;

    /// The shapes that are worth trying; the same for all answers of a method.
    fn shapes(&self) -> Vec<Shape>;

    fn place(&self, rule: Rule, shape: Shape) -> LatLon;

    /// The probability of all places that are at least as probable as this one.
    fn level(&self, place: LatLon, calibration: &Calibration, rng: &mut ChaCha8Rng) -> f64;
}

/// How sharp a density is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// What the method says, times a factor: logarithms of densities or masses, concentrations.
    Power(f64),
    /// Points under a kernel.
    Kernel {
        /// Its width along each axis.
        width_km: f64,
        /// How heavy its tail is: from above 1, very, to infinity, von Mises-Fisher's.
        tail: f64,
        /// What logarithms of the points' weights are multiplied by.
        weight_power: f64,
    },
}

/// Which place is taken from a density.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The direction of the mean vector.
    Mean,
    /// The highest point after the density was spread by a kernel of this width; without, the method's
    /// own favourite.
    Mode {
        /// The kernel's width along each axis.
        spread_km: f64,
    },
}

/// Radii whose mean accuracy a rule is chosen by.
const RULE_RADII_KM: [f64; 3] = [200.0, 750.0, 2500.0];

impl Rule {
    /// All that are tried.
    pub fn all() -> Vec<Rule> {
        let modes = [0.0, 100.0, 200.0, 400.0, 800.0].map(|spread_km| Rule::Mode { spread_km });
        modes.into_iter().chain([Rule::Mean]).collect()
    }

    /// The rule with the best mean accuracy at 200, 750 and 2500 km.
    ///
    /// # Panics
    /// If there are no answers, or not as many as truths.
    pub fn fit(answers: &[Box<dyn Answer>], truths: &[LatLon], shape: Shape) -> Rule {
        let score = |rule: &Rule| {
            let places: Vec<LatLon> =
                answers.iter().map(|answer| answer.place(*rule, shape)).collect();
            let scores = PointScores::of(&places, truths).expect("an answer for each truth");
            RULE_RADII_KM.iter().map(|radius| scores.accuracy(*radius).value()).sum::<f64>()
        };
        let scored = Rule::all().into_iter().map(|rule| (score(&rule), rule));
        scored.max_by(|a, b| a.0.total_cmp(&b.0)).expect("there are rules").1
    }
}

/// How a method's densities are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// How sharp they are.
    pub shape: Shape,
    /// What part is spread over the whole Earth.
    pub uniform_share: f64,
    /// Mean negative log-likelihood on the rows that it was fitted to.
    pub nll_nats: f64,
}

/// The shares that are tried, evenly in their logarithms.
fn uniform_shares() -> impl Iterator<Item = f64> {
    (0..=36).map(|k| 10_f64.powf(-4.0 + f64::from(k) / 10.0))
}

impl Calibration {
    /// The shape and the uniform share with the highest likelihood of the truths.
    ///
    /// # Panics
    /// If there are no answers.
    pub fn fit(answers: &[Box<dyn Answer>], truths: &[LatLon]) -> Calibration {
        let shapes = answers.first().expect("answers to calibrate").shapes();
        let pairs = answers.iter().zip(truths);
        // [answer, shape]
        let logs: Vec<Vec<f64>> =
            pairs.map(|(answer, truth)| answer.log_densities(*truth, &shapes)).collect();
        let candidates = shapes.iter().enumerate().map(|(k, shape)| {
            let of_shape: Vec<f64> = logs.iter().map(|row| row[k]).collect();
            let (uniform_share, nll_nats) = Calibration::uniform_share(&of_shape);
            Calibration { shape: *shape, uniform_share, nll_nats }
        });
        candidates.min_by(|a, b| a.nll_nats.total_cmp(&b.nll_nats)).expect("there are shapes")
    }

    /// The best uniform share of given log-densities of truths, and the mean negative log-likelihood.
    pub fn uniform_share(log_densities: &[f64]) -> (f64, f64) {
        let nll = |share: f64| {
            let logs = log_densities.iter().map(|log| log_with_uniform(*log, share));
            -logs.sum::<f64>() / log_densities.len() as f64
        };
        let shares = uniform_shares().map(|share| (share, nll(share)));
        shares.min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are shares")
    }

    /// The log-density with the calibrated shape and background.
    pub fn log_density(&self, answer: &dyn Answer, place: LatLon) -> f64 {
        log_with_uniform(answer.log_densities(place, &[self.shape])[0], self.uniform_share)
    }
}

/// A log-density after a part of it was spread over the whole Earth.
pub fn log_with_uniform(log_density: f64, uniform_share: f64) -> f64 {
    let (a, b) = ((1.0 - uniform_share).ln() + log_density, uniform_share.ln() - UNIFORM_NLL_NATS);
    let highest = a.max(b);
    highest + ((a - highest).exp() + (b - highest).exp()).ln()
}
