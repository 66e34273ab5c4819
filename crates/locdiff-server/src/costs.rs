//! What images cost, by what is asked of them: learned from those before.

use std::sync::{Mutex, PoisonError};

/// What one image is taken to need before any has been seen, in seconds of processors.
pub(crate) const FIRST_GUESS: f64 = 0.03;
/// And the least: what costs nothing would be done for nothing.
const LEAST: f64 = 0.005;
/// How much the newest batch counts.
const NEWEST: f64 = 0.2;

/// What makes one image cost more than another. There are few of them, whatever clients ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) model: Option<String>,
    /// `None`: an embedding.
    pub(crate) place: Option<PlaceKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlaceKind {
    /// Bits of the number of evaluations of the network.
    pub(crate) evaluations: u32,
    pub(crate) registration: Option<bool>,
    pub(crate) is_within: bool,
    pub(crate) has_frames: bool,
    pub(crate) has_draws: bool,
}

/// Seconds of processors for one image of each kind.
#[derive(Default)]
pub(crate) struct Costs(Mutex<Vec<(Kind, f64)>>);

impl Costs {
    /// What an image is expected to take: one of a new kind as much as the dearest that is known.
    pub(crate) fn expected_s(&self, kind: &Kind) -> f64 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(other, _)| other == kind);
        let dearest = || known.iter().map(|(_, seconds)| *seconds).fold(FIRST_GUESS, f64::max);
        found.map_or_else(dearest, |(_, seconds)| *seconds).max(LEAST)
    }

    /// So many seconds took a batch of images of one kind, of which so many were answered.
    pub(crate) fn learn(&self, kind: &Kind, answered: usize, worked_s: f64) {
        if answered == 0 {
            return;
        }
        let each_s = worked_s / answered as f64;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.iter_mut().find(|(other, _)| other == kind) {
            Some((_, seconds)) => *seconds += NEWEST * (each_s - *seconds),
            None => known.push((kind.clone(), each_s)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_cost_of_its_own() {
        let costs = Costs::default();
        let kind = |model: &str| Kind { model: Some(model.to_owned()), place: None };
        let [cheap, costly, free, new] = ["cheap", "costly", "free", "new"].map(kind);
        assert_eq!(costs.expected_s(&cheap), FIRST_GUESS);
        costs.learn(&cheap, 4, 2.0);
        costs.learn(&costly, 1, 7.0);
        assert_eq!([&cheap, &costly].map(|kind| costs.expected_s(kind)), [0.5, 7.0]);
        costs.learn(&cheap, 2, 2.0);
        assert!((costs.expected_s(&cheap) - 0.6).abs() < 1e-12);
        assert_eq!(costs.expected_s(&costly), 7.0);
        // What was not answered says nothing, and nothing is free.
        costs.learn(&cheap, 0, 0.0);
        assert!((costs.expected_s(&cheap) - 0.6).abs() < 1e-12);
        costs.learn(&free, 1, 0.0);
        assert_eq!(costs.expected_s(&free), LEAST);
        assert_eq!(costs.expected_s(&new), 7.0, "the dearest");
    }
}
