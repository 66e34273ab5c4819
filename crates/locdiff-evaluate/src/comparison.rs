//! Two models on the same images.

use locdiff_sphere::{Comparison, Resampling};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::error::EvaluationError;
use super::scoring::{Evaluation, ScoreLine, Unit};

/// One model against another.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    /// Name of the other model.
    pub other: String,
    /// Of each score that both have.
    pub differences: Vec<Difference>,
    /// How far off the other is, image by image: for charts.
    pub other_distances_km: Vec<f64>,
}

/// One score of both.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Name of the score in JSON, such as `accuracy_25_km`.
    pub key: String,
    /// Name of the score in reports, such as `within 25 km`.
    pub name: String,
    /// Unit of both scores.
    pub unit: Unit,
    /// Whether a larger score is better.
    pub more_is_better: bool,
    /// The first model's value and the second's.
    pub values: [f64; 2],
    /// First minus second, with interval and p-value; none if a value isn't finite.
    pub comparison: Option<Comparison>,
}

impl Evaluation {
    /// The same with a paired comparison with another model's evaluation on the same images.
    pub fn compared_with(mut self, other: &Evaluation) -> Result<Evaluation, EvaluationError> {
        let (ours, theirs) = (&self.answered.images, &other.answered.images);
        let unpaired = ours.iter().zip(theirs).find(|(ours, theirs)| ours != theirs);
        let longer = ours.get(theirs.len()).map(|image| (image, &other.model));
        let shorter = theirs.get(ours.len()).map(|image| (image, &self.model));
        let unpaired = unpaired.map(|(image, _)| (image, &other.model));
        if let Some((image, model)) = unpaired.or(longer).or(shorter) {
            return Err(EvaluationError::Unpaired { image: image.clone(), model: model.clone() });
        }
        let resampling = self.resampling.unwrap_or_default();
        let pairs = self.lines().filter_map(|line| {
            let same = other.lines().find(|theirs| theirs.key == line.key)?;
            Some(difference(line, same, &resampling, self.seed))
        });
        self.paired = Some(Paired {
            other: other.model.clone(),
            differences: pairs.collect(),
            other_distances_km: other.distances_km.clone(),
        });
        Ok(self)
    }
}

fn difference(
    ours: &ScoreLine,
    theirs: &ScoreLine,
    resampling: &Resampling,
    seed: u64,
) -> Difference {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Difference {
        key: ours.key.clone(),
        name: ours.name.clone(),
        unit: ours.unit,
        more_is_better: ours.more_is_better,
        values: [ours.score.value(), theirs.score.value()],
        comparison: ours.score.compared_with(&theirs.score, resampling, &mut rng).ok(),
    }
}
