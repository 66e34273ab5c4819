//! The order in which a stream visits rows: a function of seed, epoch and window alone, so that
//! any position can be found again.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A row of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pick {
    /// Which of the window's row groups.
    pub(crate) group: u32,
    /// Row in that group.
    pub(crate) row: u32,
    /// Which augmented view.
    pub(crate) view: u32,
}

/// All row groups in the order of this epoch.
pub(crate) fn epoch_order(groups: usize, seed: u64, epoch: u64) -> Vec<u32> {
    let groups = u32::try_from(groups).expect("less than 2³² row groups");
    let mut order: Vec<u32> = (0..groups).collect();
    shuffle(&mut order, &mut generator(seed, epoch, u64::MAX));
    order
}

/// The rows of one window in the order of delivery, a random view for each. `kept` lists the
/// rows of each group that are to be delivered.
pub(crate) fn window_order<'a>(
    kept: impl Iterator<Item = &'a [u32]>,
    views: usize,
    seed: u64,
    epoch: u64,
    window: u64,
) -> Vec<Pick> {
    let mut picks = Vec::new();
    for (group, rows) in kept.enumerate() {
        picks.extend(rows.iter().map(|row| Pick { group: group as u32, row: *row, view: 0 }));
    }
    let mut rng = generator(seed, epoch, window);
    shuffle(&mut picks, &mut rng);
    if views > 1 {
        picks.iter_mut().for_each(|pick| pick.view = below(&mut rng, views) as u32);
    }
    picks
}

fn generator(seed: u64, epoch: u64, window: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    for (bytes, number) in key.chunks_exact_mut(8).zip([seed, epoch, window, 0]) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// Fisher-Yates. Written out because `rand` may change its own from version to version, and a
/// position in a checkpoint must outlive that.
fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last + 1));
    }
}

/// A number less than `bound`, uniform up to a bias of bound / 2⁶⁴.
fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    ((u128::from(rng.next_u64()) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_permutations_that_depend_on_seed_and_epoch() {
        let order = epoch_order(100, 1, 2);
        assert_eq!(order, epoch_order(100, 1, 2));
        assert_ne!(order, epoch_order(100, 1, 3));
        assert_ne!(order, epoch_order(100, 2, 2));
        let mut sorted = order;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
    }

    /// A checkpoint's position means nothing if this changes.
    #[test]
    fn the_order_of_version_1_stays() {
        assert_eq!(epoch_order(8, 7, 0), [1, 6, 7, 2, 0, 3, 4, 5]);
    }

    #[test]
    fn every_place_in_the_order_is_equally_likely() {
        let mut counts = [[0_u32; 4]; 4];
        for seed in 0..4000 {
            for (place, group) in epoch_order(4, seed, 0).into_iter().enumerate() {
                counts[place][group as usize] += 1;
            }
        }
        // Standard deviation √(4000 · ¼ · ¾) = 27.
        assert!(counts.as_flattened().iter().all(|count| count.abs_diff(1000) < 130), "{counts:?}");
    }

    #[test]
    fn every_view_is_drawn() {
        let rows: Vec<u32> = (0..300).collect();
        let picks = window_order([rows.as_slice()].into_iter(), 3, 1, 0, 0);
        for view in 0..3 {
            assert!(picks.iter().filter(|pick| pick.view == view).count() > 70);
        }
    }
}
