//! Density and coverage: do the answers as a whole lie where the true places lie?
//!
//! Naeem et al. (ICML 2020), with precision and recall of Kynkäänniemi et al. (NeurIPS 2019), on the
//! sphere. Around each true place is a ball that just reaches its k-th nearest true place; a place at
//! exactly that distance is outside. Which answer belongs to which image plays no part: a model that
//! shuffles its answers has the same numbers. Tested against the package `prdc`, given great-circle
//! distances (`parity/scores/manifold.json`).

use super::InvalidScores;
use crate::{LatLon, PlaceIndex, UnitVector};

/// The number of neighbours that the field uses for places (plonk, Dufour et al. 2024).
pub const MANIFOLD_NEIGHBOURS: usize = 3;

/// How well a cloud of answers matches the cloud of true places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ManifoldScores {
    /// Neighbours within a ball.
    pub neighbours: usize,
    /// Share of answers within at least one ball around a true place.
    pub precision: f64,
    /// Share of true places within at least one ball around an answer.
    pub recall: f64,
    /// Mean number of balls around true places that hold an answer, over k: about 1 for the truth
    /// itself, and more where answers crowd.
    pub density: f64,
    /// Share of true places whose ball holds an answer.
    pub coverage: f64,
}

impl ManifoldScores {
    /// Compares answers with true places, with balls of so many neighbours.
    ///
    /// ```
    /// use locdiff_sphere::{LatLon, MANIFOLD_NEIGHBOURS, ManifoldScores};
    ///
    /// let row = |latitude: f64| (0..20).map(move |i| LatLon::new(latitude, f64::from(i)));
    /// let truth = row(40.0).collect::<Result<Vec<_>, _>>()?;
    /// let near = row(40.1).collect::<Result<Vec<_>, _>>()?;
    /// let far = row(-40.0).collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(ManifoldScores::of(&near, &truth, MANIFOLD_NEIGHBOURS)?.coverage, 1.0);
    /// assert_eq!(ManifoldScores::of(&far, &truth, MANIFOLD_NEIGHBOURS)?.density, 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(
        predicted: &[LatLon],
        truth: &[LatLon],
        neighbours: usize,
    ) -> Result<ManifoldScores, InvalidScores> {
        let [answers, places] = [predicted, truth].map(PlaceIndex::new);
        let around_places = balls(truth, &places, neighbours)?;
        let around_answers = balls(predicted, &answers, neighbours)?;
        // By answer: the balls that hold it. By place: whether it is in some answer's ball.
        let mut times_held = vec![0_usize; predicted.len()];
        let mut is_reached = vec![false; truth.len()];
        let mut covered = 0;
        for (centre, squared_radius) in around_places {
            let mut held = 0;
            for answer in answers.closer_than(centre, squared_radius) {
                times_held[answer] += 1;
                held += 1;
            }
            covered += usize::from(held > 0);
        }
        for (centre, squared_radius) in around_answers {
            for place in places.closer_than(centre, squared_radius) {
                is_reached[place] = true;
            }
        }
        let share = |count: usize, of: usize| count as f64 / of as f64;
        let held: usize = times_held.iter().sum();
        Ok(ManifoldScores {
            neighbours,
            precision: share(
                times_held.iter().filter(|times| **times > 0).count(),
                predicted.len(),
            ),
            recall: share(is_reached.iter().filter(|reached| **reached).count(), truth.len()),
            density: share(held, predicted.len()) / neighbours as f64,
            coverage: share(covered, truth.len()),
        })
    }
}

/// The unit vector of each place, and the squared chord to its k-th neighbour other than itself.
fn balls(
    places: &[LatLon],
    index: &PlaceIndex,
    neighbours: usize,
) -> Result<Vec<([f64; 3], f64)>, InvalidScores> {
    if neighbours == 0 || places.len() <= neighbours {
        return Err(InvalidScores::Neighbours { places: places.len(), neighbours });
    }
    let ball = |place: &LatLon| {
        let centre = UnitVector::from(*place).to_array();
        let chord = index.squared_chord_to_nth(centre, neighbours + 1);
        (centre, chord.expect("there are more places than neighbours"))
    };
    Ok(places.iter().map(ball).collect())
}
