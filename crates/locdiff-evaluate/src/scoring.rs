//! All scores of one model on one test set.

use locdiff_sphere::{
    ACCURACY_RADII_KM, COVERAGE_LEVELS, DensityScores, Interval, LatLon, MANIFOLD_NEIGHBOURS,
    ManifoldScores, PointScores, RECALL_AREAS_KM2, Resampling, Score,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::answers::Answered;
use super::breakdown::{self, Breakdown};
use super::comparison::Paired;
use super::error::EvaluationError;
use super::rules::Rules;

/// How an evaluation is done.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationOptions {
    /// Rules for distances, radii and GeoScore.
    pub rules: Rules,
    /// Intervals and tests; none without.
    pub resampling: Option<Resampling>,
    /// Seed of the resampling.
    pub seed: u64,
    /// Neighbours of density and coverage: 3.
    pub neighbours: usize,
    /// Places of training, for a breakdown by the distance to the nearest.
    pub training: Option<Vec<LatLon>>,
}

impl Default for EvaluationOptions {
    fn default() -> EvaluationOptions {
        EvaluationOptions {
            rules: Rules::default(),
            resampling: Some(Resampling::default()),
            seed: 1,
            neighbours: MANIFOLD_NEIGHBOURS,
            training: None,
        }
    }
}

/// What a score is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// A part of 1, shown in percent.
    Share,
    /// Kilometres.
    Km,
    /// Points of GeoScore, at most 5000.
    Points,
    /// Natural logarithms.
    Nats,
    /// Square kilometres.
    Km2,
}

/// A score with its interval, as a line of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreLine {
    /// For programs: `accuracy_25_km`.
    pub key: String,
    /// For people: `within 25 km`.
    pub name: String,
    /// Unit of the value.
    pub unit: Unit,
    /// Whether a larger value is better.
    pub more_is_better: bool,
    /// The number of each image, and so the value.
    pub score: Score,
    /// Interval of the bootstrap, unless it was left out.
    pub interval: Option<Interval>,
}

/// All scores of one model on one test set.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// Name of the model whose answers were scored.
    pub model: String,
    /// Name of the test set.
    pub data: String,
    /// Rules for distances, radii and GeoScore.
    pub rules: Rules,
    /// How intervals were made, if any were.
    pub resampling: Option<Resampling>,
    /// Seed of the resampling.
    pub seed: u64,
    /// Images with their answers and true places.
    pub answered: Answered,
    /// The distance of each image.
    pub distances_km: Vec<f64>,
    /// Scores of places.
    pub points: Vec<ScoreLine>,
    /// Scores of densities, if there are densities.
    pub densities: Vec<ScoreLine>,
    /// Mean |coverage − level| over all levels.
    pub calibration_error: Option<f64>,
    /// The cloud of answers against the cloud of truths, over images that were answered; none if
    /// there are too few.
    pub manifold: Option<ManifoldScores>,
    /// Parts of the test set.
    pub breakdowns: Vec<Breakdown>,
    /// Against another model.
    pub paired: Option<Paired>,
    /// What else readers should know.
    pub notes: Vec<String>,
}

impl Evaluation {
    /// Scores answers: places, densities if there are any, and parts of the test set.
    pub fn of(
        model: impl Into<String>,
        data: impl Into<String>,
        answered: Answered,
        options: &EvaluationOptions,
    ) -> Result<Evaluation, EvaluationError> {
        let scores =
            PointScores::measured(&answered.predicted, &answered.truth, options.rules.distance)?
                .with_rule(options.rules.radius)
                .with_geoscore(options.rules.geoscore);
        let density_scores = answered.outcomes.as_deref().map(DensityScores::of).transpose()?;
        let really = |places: &[LatLon]| -> Vec<LatLon> {
            let pairs = places.iter().zip(&answered.is_answered);
            pairs.filter(|(_, answered)| **answered).map(|(place, _)| *place).collect()
        };
        let (predicted, truth) = (really(&answered.predicted), really(&answered.truth));
        let breakdowns = breakdown::all(&answered, scores.distances_km(), options);
        Ok(Evaluation {
            model: model.into(),
            data: data.into(),
            rules: options.rules,
            resampling: options.resampling,
            seed: options.seed,
            points: with_intervals(point_lines(&scores), options),
            densities: density_scores
                .as_ref()
                .map(|scores| with_intervals(density_lines(scores), options))
                .unwrap_or_default(),
            calibration_error: density_scores.as_ref().map(DensityScores::calibration_error),
            manifold: ManifoldScores::of(&predicted, &truth, options.neighbours).ok(),
            distances_km: scores.distances_km().to_vec(),
            breakdowns,
            paired: None,
            notes: Vec::new(),
            answered,
        })
    }

    /// Images that were scored.
    pub fn images(&self) -> usize {
        self.answered.images.len()
    }

    /// Images that were scored though the model has no answer for them.
    pub fn unanswered(&self) -> usize {
        self.answered.is_answered.iter().filter(|answered| !**answered).count()
    }

    /// Images of the test set that were left out.
    pub fn left_out(&self) -> usize {
        self.answered.images_in_all - self.images()
    }

    /// Scores of places, then scores of densities.
    pub fn lines(&self) -> impl Iterator<Item = &ScoreLine> {
        self.points.iter().chain(&self.densities)
    }
}

fn line(key: String, name: String, unit: Unit, more_is_better: bool, score: Score) -> ScoreLine {
    ScoreLine { key, name, unit, more_is_better, score, interval: None }
}

/// The scores of places.
pub(super) fn point_lines(scores: &PointScores) -> Vec<ScoreLine> {
    let within = ACCURACY_RADII_KM.iter().map(|radius_km| {
        let (key, name) = (format!("accuracy_{radius_km}_km"), format!("within {radius_km} km"));
        line(key, name, Unit::Share, true, scores.accuracy(*radius_km))
    });
    within
        .chain([
            line("median_km".into(), "median distance".into(), Unit::Km, false, scores.median_km()),
            line("mean_km".into(), "mean distance".into(), Unit::Km, false, scores.mean_km()),
            line("geoscore".into(), "GeoScore".into(), Unit::Points, true, scores.mean_geoscore()),
        ])
        .collect()
}

fn density_lines(scores: &DensityScores) -> Vec<ScoreLine> {
    let mut lines = vec![
        line(
            "nll_nats".into(),
            "negative log-likelihood".into(),
            Unit::Nats,
            false,
            scores.mean_nll_nats(),
        ),
        line(
            "gain_nats".into(),
            "gain over uniform".into(),
            Unit::Nats,
            true,
            scores.mean_gain_nats(),
        ),
        line(
            "median_searched_area_km2".into(),
            "median area searched".into(),
            Unit::Km2,
            false,
            scores.median_searched_area_km2(),
        ),
    ];
    for level in COVERAGE_LEVELS {
        let percent = 100.0 * level;
        let name = format!("truth in the {percent:.0} % region");
        lines.push(line(
            format!("coverage_{percent:.0}"),
            name,
            Unit::Share,
            true,
            scores.coverage(level),
        ));
    }
    for area_km2 in RECALL_AREAS_KM2 {
        let exponent = area_km2.log10().round();
        let name = format!("found in 10^{exponent:.0} km²");
        let key = format!("recall_1e{exponent:.0}_km2");
        lines.push(line(key, name, Unit::Share, true, scores.recall(area_km2)));
    }
    lines
}

/// Each score has its own stream of random numbers from the same seed, so that no score depends on
/// which others are computed.
pub(super) fn with_intervals(
    mut lines: Vec<ScoreLine>,
    options: &EvaluationOptions,
) -> Vec<ScoreLine> {
    if let Some(resampling) = &options.resampling {
        for line in &mut lines {
            let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
            line.interval = Some(line.score.interval(resampling, &mut rng));
        }
    }
    lines
}
