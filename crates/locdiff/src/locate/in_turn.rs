//! Which model answers if nobody named one: the one inside the program first, another one about what isn't for it.

use super::estimate::Estimate;
use super::geolocator::Geolocator;
use super::model::NotItsKind;
use crate::photo::Photo;

/// The model inside the program.
pub const BUILT_IN: &str = "earth-view";
/// The one that is asked about photographs from the ground, if it is installed.
pub const FOR_THE_GROUND: &str = "geoclip";

/// Why a model was asked.
pub const NAMED: &str = "it was asked for by name";
const LOOKS_LIKE_A_VIEW: &str = "it takes the picture for a view of the Earth from above";
/// Why a model was asked.
pub const OTHERWISE: &str = "it is the one installed for photographs from the ground";

/// An answer and why this model gave it, or why there is none.
pub type Said = Result<(Estimate, &'static str), NoAnswer>;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NoAnswer {
    /// In words.
    pub reason: String,
    /// For want of a model: another one may know.
    pub no_model: bool,
}

/// What one model says of each photograph, asked for this reason.
pub fn ask(model: &Geolocator, because: &'static str, photos: &[Photo]) -> Vec<Said> {
    model.locate_all(photos).into_iter().map(|said| because_of(said, because)).collect()
}

/// What the first model says of each photograph; of those that are nothing for it, what `other` says,
/// if there is another.
pub fn ask_in_turn(
    first: &Geolocator,
    photos: &[Photo],
    other: Option<impl FnOnce(&[Photo]) -> Vec<Said>>,
) -> Vec<Said> {
    let said = first.locate_all(photos);
    let is_for_others = |said: &&Result<_, _>| matches!(said, Err(NotItsKind::Other(_)));
    // Pictures are large: they are copied only if somebody else will look at them.
    let others = other.filter(|_| said.iter().any(|said| is_for_others(&said))).map(|other| {
        let chosen = said.iter().zip(photos).filter(|(said, _)| is_for_others(said));
        other(&chosen.map(|(_, photo)| photo.clone()).collect::<Vec<Photo>>())
    });
    let mut others = others.map(Vec::into_iter);
    let name = &first.identity().name;
    let answers = said.into_iter().map(|said| match (said, &mut others) {
        (Err(NotItsKind::Other(_)), Some(others)) => {
            others.next().expect("an answer for each photograph")
        }
        (Err(NotItsKind::Other(why)), None) => Err(NoAnswer {
            reason: format!("no suitable model: for {name}, {why}"),
            no_model: true,
        }),
        (said, _) => because_of(said, LOOKS_LIKE_A_VIEW),
    });
    answers.collect()
}

fn because_of(said: Result<Estimate, NotItsKind>, because: &'static str) -> Said {
    said.map(|estimate| (estimate, because))
        .map_err(|reason| NoAnswer { reason: reason.to_string(), no_model: false })
}
