//! What images cost, by what is asked of them: learned from those before.

use std::sync::{Mutex, PoisonError};

use crate::engine::Wanted;

/// What one image is taken to need before any has been seen, in seconds.
pub(crate) const FIRST_GUESS: f64 = 0.03;
/// How much the newest batch counts.
const NEWEST: f64 = 0.2;
/// So many kinds are remembered, the last ones.
const KINDS: usize = 64;

/// Seconds for one image of each kind, the last kind first.
#[derive(Default)]
pub(crate) struct Costs(Mutex<Vec<(Wanted, f64)>>);

impl Costs {
    /// Seconds of processors that an image is expected to take.
    pub(crate) fn expected_s(&self, wanted: &Wanted) -> f64 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(kind, _)| kind.is_asked_like(wanted));
        found.map_or(FIRST_GUESS, |(_, seconds)| *seconds)
    }

    /// So many seconds took a batch of images that are asked alike.
    pub(crate) fn learn(&self, wanted: &Wanted, images: usize, worked_s: f64) {
        let each_s = worked_s / images.max(1) as f64;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().position(|(kind, _)| kind.is_asked_like(wanted));
        let (kind, before_s) = match found {
            Some(at) => known.remove(at),
            None => (wanted.kind(), each_s),
        };
        known.insert(0, (kind, before_s + NEWEST * (each_s - before_s)));
        known.truncate(KINDS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedding(model: &str) -> Wanted {
        Wanted::Embedding { model: Some(model.to_owned()) }
    }

    #[test]
    fn each_kind_has_a_cost_of_its_own() {
        let costs = Costs::default();
        let [cheap, costly] = ["cheap", "costly"].map(embedding);
        assert_eq!(costs.expected_s(&cheap), FIRST_GUESS);
        costs.learn(&cheap, 4, 2.0);
        costs.learn(&costly, 1, 7.0);
        assert_eq!([&cheap, &costly].map(|wanted| costs.expected_s(wanted)), [0.5, 7.0]);
        costs.learn(&cheap, 2, 2.0);
        assert!((costs.expected_s(&cheap) - 0.6).abs() < 1e-12);
        assert_eq!(costs.expected_s(&costly), 7.0);
        // Whatever clients ask for, only the last kinds are remembered.
        for number in 0..KINDS {
            costs.learn(&embedding(&number.to_string()), 1, 1.0);
        }
        assert_eq!(costs.expected_s(&cheap), FIRST_GUESS);
        assert_eq!(costs.expected_s(&embedding("0")), 1.0);
    }
}
