//! Which model answers if none was named: the first one, and another one for pictures that it rejects.

use std::fmt;

use super::estimate::Estimate;
use super::geolocator::Geolocator;
use super::model::NotItsKind;
use crate::photo::Photo;

/// Why a model was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChosenBecause {
    /// The user named the model.
    Named,
    /// The model is the first of those that are asked.
    First,
    /// It is asked first, and accepted the picture.
    AcceptedPicture,
    /// The one that is asked first rejected the picture.
    ForTheGround,
    /// Somebody stated what kind of picture it is.
    StatedScene,
}

impl fmt::Display for ChosenBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChosenBecause::Named => "it was chosen by name",
            ChosenBecause::First => "it is the default model",
            ChosenBecause::AcceptedPicture => {
                "it accepted the picture as a view of the Earth from above"
            }
            ChosenBecause::ForTheGround => {
                "it is the best installed model for photographs from the ground"
            }
            ChosenBecause::StatedScene => "it is the best installed model for the stated scene",
        })
    }
}

/// An answer and why this model gave it, or why there is none.
pub type LocateResult = Result<(Estimate, ChosenBecause), NoAnswer>;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NoAnswer {
    /// The reason, for people.
    pub reason: String,
    /// Whether no model suited the picture: one that is not installed might.
    pub no_model: bool,
}

/// What one model makes of each photograph, asked for this reason.
pub fn locate_because(
    model: &Geolocator,
    because: ChosenBecause,
    photos: &[Photo],
) -> Vec<LocateResult> {
    let answers = model.locate_all(photos).into_iter();
    answers.map(|answer| with_reason(answer, because)).collect()
}

/// What the first model makes of each photograph; of those that are nothing for it, what `other` makes,
/// if there is another.
pub fn locate_in_turn(
    first: &Geolocator,
    photos: &[Photo],
    other: Option<impl FnOnce(&[Photo]) -> Vec<LocateResult>>,
) -> Vec<LocateResult> {
    let answers = first.locate_all(photos);
    let is_for_others = |answer: &&Result<_, _>| matches!(answer, Err(NotItsKind::Other(_)));
    // Pictures are large: they are copied only if somebody else will look at them.
    let others =
        other.filter(|_| answers.iter().any(|answer| is_for_others(&answer))).map(|other| {
            let chosen = answers.iter().zip(photos).filter(|(answer, _)| is_for_others(answer));
            other(&chosen.map(|(_, photo)| photo.clone()).collect::<Vec<Photo>>())
        });
    let mut others = others.map(Vec::into_iter);
    let name = &first.identity().name;
    let because = match first.rejects_pictures() {
        true => ChosenBecause::AcceptedPicture,
        false => ChosenBecause::First,
    };
    let answers = answers.into_iter().map(|answer| match (answer, &mut others) {
        (Err(NotItsKind::Other(_)), Some(others)) => {
            others.next().expect("an answer for each photograph")
        }
        (Err(NotItsKind::Other(why)), None) => Err(NoAnswer {
            reason: format!("no suitable model: for {name}, {why}"),
            no_model: true,
        }),
        (answer, _) => with_reason(answer, because),
    });
    answers.collect()
}

fn with_reason(answer: Result<Estimate, NotItsKind>, because: ChosenBecause) -> LocateResult {
    answer
        .map(|estimate| (estimate, because))
        .map_err(|reason| NoAnswer { reason: reason.to_string(), no_model: false })
}
