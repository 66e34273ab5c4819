//! How much noise there is at each step of the diffusion.
//!
//! Convention: x_t = √ᾱ_t·x_0 + √(1 − ᾱ_t)·ε for t = 1 … T, with x_0 = √4π·Y(place), whose
//! coefficients have unit mean square. ᾱ_0 = 1.
//!
//! An encoding has (L+1)² coefficients but two degrees of freedom, so it shows through noise
//! that would drown an image: the usual schedules, as they are, still tell the answer at
//! t = T. A network trained on them learns to read it there, and fails when sampling starts
//! from noise without an answer in it. Such schedules are refused.

use std::f64::consts::{FRAC_PI_2, PI};

use serde::{Deserialize, Serialize};

/// The shape of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScheduleKind {
    /// β from 1e-4 to 0.02, scaled by 1000/T (Ho et al. 2020).
    Linear,
    /// ᾱ a squared cosine (Nichol and Dhariwal 2021).
    Cosine,
    /// The cosine, its log-SNR shifted by −log((L+1)²/16), so that steps are spent where the
    /// place is still undecided (Hoogeboom et al. 2023, for our dimension).
    Shifted,
}

/// Which schedule, and how many steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleConfig {
    /// How noise grows from step to step.
    pub kind: ScheduleKind,
    /// T.
    pub steps: usize,
}

impl Default for ScheduleConfig {
    /// 200 steps as in the paper, shifted for our dimension.
    fn default() -> ScheduleConfig {
        ScheduleConfig { kind: ScheduleKind::Shifted, steps: 200 }
    }
}

/// Why a schedule is of no use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSchedule {
    /// There are no steps.
    #[error("a schedule of 0 steps: use at least 1")]
    NoSteps,
    /// There are more steps than are of any use.
    #[error("a schedule of {0} steps: use at most {MOST_STEPS}")]
    TooManySteps(usize),
    /// The last step still tells the place.
    #[error(
        "the {kind:?} schedule of {steps} steps leaks: at its last step (L+1)²·ᾱ/(1−ᾱ) is {leakage:.3} \
         for max degree {max_degree}, which reveals the place; it must be below {LEAKAGE_LIMIT}. \
         Use more steps, a lower degree, or the shifted schedule"
    )]
    Leaks {
        /// How noise grows from step to step.
        kind: ScheduleKind,
        /// T.
        steps: usize,
        /// L.
        max_degree: usize,
        /// What it must keep below [`LEAKAGE_LIMIT`].
        leakage: f64,
    },
}

/// (L+1)²·ᾱ_T/(1 − ᾱ_T) must be below this: the signal-to-noise ratio of a coefficient times
/// their number, the whole information at the last step.
pub const LEAKAGE_LIMIT: f64 = 0.1;

/// Each step takes memory; published diffusions have 1,000.
const MOST_STEPS: usize = 100_000;

/// The noise levels of a diffusion.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    config: ScheduleConfig,
    /// ᾱ_0 … ᾱ_T.
    alpha_bars: Vec<f64>,
}

impl Schedule {
    /// The schedule for coefficients up to `max_degree`, unless it leaks.
    pub fn new(config: ScheduleConfig, max_degree: usize) -> Result<Schedule, InvalidSchedule> {
        let ScheduleConfig { kind, steps } = config;
        if steps == 0 {
            return Err(InvalidSchedule::NoSteps);
        }
        if steps > MOST_STEPS {
            return Err(InvalidSchedule::TooManySteps(steps));
        }
        let alpha_bars = alpha_bars(config, max_degree);
        let schedule = Schedule { config, alpha_bars };
        let coefficients = ((max_degree + 1) * (max_degree + 1)) as f64;
        let leakage = coefficients * schedule.signal_to_noise(steps);
        if leakage < LEAKAGE_LIMIT {
            Ok(schedule)
        } else {
            Err(InvalidSchedule::Leaks { kind, steps, max_degree, leakage })
        }
    }

    /// What the schedule was made from.
    pub fn config(&self) -> ScheduleConfig {
        self.config
    }

    /// T.
    pub fn steps(&self) -> usize {
        self.config.steps
    }

    /// ᾱ_t, from 1 at t = 0.
    ///
    /// # Panics
    /// If t is beyond T.
    pub fn alpha_bar(&self, t: usize) -> f64 {
        self.alpha_bars[t]
    }

    /// ᾱ_t/(1 − ᾱ_t), the ratio per coefficient.
    pub fn signal_to_noise(&self, t: usize) -> f64 {
        self.alpha_bars[t] / (1.0 - self.alpha_bars[t])
    }

    /// c_t = √(4πᾱ_t)/(1 − ᾱ_t): the evidence that x_t carries of a place p is
    /// exp(c_t·x_t·Y(p)), up to a constant.
    pub fn evidence(&self, t: usize) -> f64 {
        (4.0 * PI * self.alpha_bars[t]).sqrt() / (1.0 - self.alpha_bars[t])
    }

    /// The first step with a signal-to-noise ratio of at most this; T if there is none.
    ///
    /// At 1/4π the evidence is as sharp as a clean encoding: earlier steps have nothing left
    /// to decide, so that is where training begins and sampling ends.
    pub fn first_step_below(&self, signal_to_noise: f64) -> usize {
        (1..=self.steps())
            .find(|t| self.signal_to_noise(*t) <= signal_to_noise)
            .unwrap_or(self.steps())
    }
}

fn alpha_bars(ScheduleConfig { kind, steps }: ScheduleConfig, max_degree: usize) -> Vec<f64> {
    let count = steps as f64;
    let mut bars = vec![1.0];
    match kind {
        ScheduleKind::Linear => {
            let scale = 1000.0 / count;
            for t in 0..steps {
                let share = if steps == 1 { 1.0 } else { t as f64 / (count - 1.0) };
                let beta = (scale * (1e-4 + share * (0.02 - 1e-4))).min(0.999);
                bars.push(bars[t] * (1.0 - beta));
            }
        }
        ScheduleKind::Cosine => {
            let f = |t: f64| ((t / count + 0.008) / 1.008 * FRAC_PI_2).cos().powi(2);
            for t in 1..=steps {
                // β at most 0.999, as published: ᾱ never becomes zero.
                let ratio = (f(t as f64) / f(t as f64 - 1.0)).max(1e-3);
                bars.push(bars[t - 1] * ratio);
            }
        }
        ScheduleKind::Shifted => {
            let shift = (((max_degree + 1) * (max_degree + 1)) as f64 / 16.0).ln();
            for t in 1..=steps {
                // Never quite 1, where nothing of x_0 would be left at all.
                let u = 0.9999 * t as f64 / count;
                let log_snr = -2.0 * (FRAC_PI_2 * u).tan().ln() - shift;
                bars.push(1.0 / (1.0 + (-log_snr).exp()));
            }
        }
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(kind: ScheduleKind, steps: usize, max_degree: usize) -> Schedule {
        Schedule::new(ScheduleConfig { kind, steps }, max_degree).unwrap()
    }

    #[test]
    fn what_we_ship_does_not_leak_and_falls() {
        for kind in [ScheduleKind::Linear, ScheduleKind::Cosine, ScheduleKind::Shifted] {
            for (steps, max_degree) in [(50, 23), (200, 15), (200, 23), (200, 47), (1000, 47)] {
                let schedule = schedule(kind, steps, max_degree);
                let bars: Vec<f64> = (0..=steps).map(|t| schedule.alpha_bar(t)).collect();
                assert!(bars.windows(2).all(|pair| pair[1] < pair[0]), "{kind:?} {steps}");
                assert!(bars[steps] > 0.0);
                let size = ((max_degree + 1) * (max_degree + 1)) as f64;
                assert!(size * schedule.signal_to_noise(steps) < 0.1, "{kind:?} {steps}");
            }
        }
    }

    #[test]
    fn one_that_leaks_is_refused_with_an_explanation() {
        let config = ScheduleConfig { kind: ScheduleKind::Linear, steps: 200 };
        let error = Schedule::new(config, 95).unwrap_err();
        assert!(error.to_string().contains("leaks") && error.to_string().contains("95"), "{error}");
        let none = ScheduleConfig { kind: ScheduleKind::Cosine, steps: 0 };
        assert_eq!(Schedule::new(none, 5), Err(InvalidSchedule::NoSteps));
    }

    #[test]
    fn the_unscaled_linear_schedule_would_leak() {
        // β from 1e-4 to 0.02 over 200 steps ends at ᾱ = 0.13.
        let bars = (0..200)
            .fold(1.0, |bar, t| bar * (1.0 - (1e-4 + f64::from(t) / 199.0 * (0.02 - 1e-4))));
        assert!((bars - 0.13_f64).abs() < 0.01, "{bars}");
    }

    #[test]
    fn evidence_is_a_clean_encoding_at_a_signal_to_noise_of_one_over_four_pi() {
        let schedule = schedule(ScheduleKind::Shifted, 400, 47);
        let t = schedule.first_step_below(1.0 / (4.0 * PI));
        // c_t·E[x_t] = c_t·√(4πᾱ)·Y = 4π·SNR·Y.
        let sharpness = schedule.evidence(t) * (4.0 * PI * schedule.alpha_bar(t)).sqrt();
        assert!((0.8..=1.0).contains(&sharpness), "{sharpness}");
    }

    #[test]
    fn the_shift_moves_the_middle_to_where_the_place_is_decided() {
        // Half of the steps lie on each side of a signal-to-noise ratio of 16/(L+1)².
        let schedule = schedule(ScheduleKind::Shifted, 200, 47);
        let middle = schedule.signal_to_noise(100) * 48.0 * 48.0 / 16.0;
        assert!((middle - 1.0).abs() < 0.01, "{middle}");
    }
}
