//! Scores of one density per image.

use std::f64::consts::PI;

use super::{InvalidScores, Score, Statistic, check, share};
use crate::EARTH_RADIUS_KM;

/// Negative log-likelihood of every place under the uniform density: log 4π nats.
pub const UNIFORM_NLL_NATS: f64 = 2.531_024_246_969_290_7;

/// The credible levels whose coverage is reported.
pub const COVERAGE_LEVELS: [f64; 4] = [0.5, 0.8, 0.9, 0.95];

/// The areas in km² at which recall is reported: from a town to a fifth of the Earth.
pub const RECALL_AREAS_KM2: [f64; 7] = [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

const EARTH_AREA_KM2: f64 = 4.0 * PI * EARTH_RADIUS_KM * EARTH_RADIUS_KM;

/// Sums over a grid may pass the whole by rounding; such numbers count as the whole.
const ROUNDING: f64 = 1e-9;

/// Scores of the density of one image at the true place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DensityOutcome {
    /// Negative log-density per steradian at the truth, in nats; infinite where the density
    /// is zero (a restriction that excludes the truth).
    pub nll_nats: f64,
    /// Probability of the smallest credible region that holds the truth: the mass of all
    /// places at least as probable. Uniform on [0, 1] for a calibrated density.
    pub level: f64,
    /// Area of that region in km²: what must be searched, the most probable places first,
    /// until the truth is found.
    pub searched_area_km2: f64,
}

/// How much probability densities give to the true places, and whether they mean it.
///
/// ```
/// use locdiff_sphere::{DensityOutcome, DensityScores};
///
/// let near = DensityOutcome { nll_nats: -4.0, level: 0.3, searched_area_km2: 9e3 };
/// let far = DensityOutcome { nll_nats: 1.0, level: 0.93, searched_area_km2: 2e6 };
/// let scores = DensityScores::of(&[near, far])?;
/// assert_eq!(scores.mean_nll_nats().value(), -1.5);
/// assert_eq!(scores.coverage(0.95).value(), 1.0);
/// assert_eq!(scores.recall(1e4).value(), 0.5);
/// # Ok::<(), locdiff_sphere::InvalidScores>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DensityScores {
    nlls_nats: Vec<f64>,
    levels: Vec<f64>,
    searched_areas_km2: Vec<f64>,
}

impl DensityScores {
    /// Scores of the outcomes of all images.
    pub fn of(outcomes: &[DensityOutcome]) -> Result<DensityScores, InvalidScores> {
        let column = |of: fn(&DensityOutcome) -> f64| outcomes.iter().map(of).collect();
        let nlls_nats: Vec<f64> = column(|outcome| outcome.nll_nats);
        let mut levels: Vec<f64> = column(|outcome| outcome.level);
        let mut searched_areas_km2: Vec<f64> = column(|outcome| outcome.searched_area_km2);
        check(
            ["the negative log-likelihood in nats", "densities"],
            &nlls_nats,
            "a number or +infinity",
            |nll| nll > f64::NEG_INFINITY,
        )?;
        check(["the credible level", "densities"], &levels, "from 0 to 1", |level| {
            (-ROUNDING..=1.0 + ROUNDING).contains(&level)
        })?;
        check(
            ["the searched area in km²", "densities"],
            &searched_areas_km2,
            "from 0 to 510065881, the whole Earth",
            |area_km2| (0.0..=EARTH_AREA_KM2 * (1.0 + ROUNDING)).contains(&area_km2),
        )?;
        for level in &mut levels {
            *level = level.clamp(0.0, 1.0);
        }
        for area_km2 in &mut searched_areas_km2 {
            *area_km2 = area_km2.min(EARTH_AREA_KM2);
        }
        Ok(DensityScores { nlls_nats, levels, searched_areas_km2 })
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.levels.len()
    }

    /// Never: there is at least one image.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Mean negative log-likelihood of the true place in nats, density per steradian;
    /// infinite if one density excludes its truth.
    pub fn mean_nll_nats(&self) -> Score {
        Score::of_valid(Statistic::Mean, self.nlls_nats.clone())
    }

    /// Median negative log-likelihood of the true place in nats, density per steradian.
    pub fn median_nll_nats(&self) -> Score {
        Score::of_valid(Statistic::Median, self.nlls_nats.clone())
    }

    /// Mean of what the densities tell beyond the uniform one: [`UNIFORM_NLL_NATS`] minus
    /// the negative log-likelihood.
    pub fn mean_gain_nats(&self) -> Score {
        let gains = self.nlls_nats.iter().map(|nll| UNIFORM_NLL_NATS - nll);
        Score::of_valid(Statistic::Mean, gains.collect())
    }

    /// Share of images whose smallest credible region of this level holds the truth; a
    /// calibrated model has the level itself. [`COVERAGE_LEVELS`] lists the usual levels.
    pub fn coverage(&self, level: f64) -> Score {
        share(&self.levels, |of_truth| of_truth <= level)
    }

    /// Mean of |coverage − level| over all levels from 0 to 1, without bins (the Wasserstein
    /// distance of the images' levels to uniform ones): 0 is calibrated, ½ the worst.
    ///
    /// Chance alone gives a calibrated model about 0.31/√n on n images.
    pub fn calibration_error(&self) -> f64 {
        let mut steps = self.levels.clone();
        steps.sort_by(f64::total_cmp);
        steps.push(1.0);
        let (mut error, mut from) = (0.0, 0.0);
        for (count, to) in steps.into_iter().enumerate() {
            // Between two images' levels the coverage is constant, |coverage − level| has
            // this antiderivative.
            let coverage = count as f64 / self.len() as f64;
            let antiderivative = |level: f64| 0.5 * (level - coverage) * (level - coverage).abs();
            error += antiderivative(to) - antiderivative(from);
            from = to;
        }
        error
    }

    /// Share of images whose truth is found by searching `area_km2`, the most probable
    /// places first. [`RECALL_AREAS_KM2`] lists the usual areas.
    pub fn recall(&self, area_km2: f64) -> Score {
        share(&self.searched_areas_km2, |searched_km2| searched_km2 <= area_km2)
    }

    /// Median of the area in km² that must be searched until the truth is found.
    pub fn median_searched_area_km2(&self) -> Score {
        Score::of_valid(Statistic::Median, self.searched_areas_km2.clone())
    }
}
