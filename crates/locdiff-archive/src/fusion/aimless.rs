//! Do the times mean anything?
//!
//! Pictures of one pass lie near each other whatever their times, so even a wrong order finds chains that beat independent
//! places by far. Two rivals keep the fusion honest: the same motion with the pictures in other orders,
//! and places near each other without any motion. It has to beat the best of them. All are compared on the same coarse cells.

use super::chain::Chain;
use super::motion::Motion;
use super::support::Node;
use super::{EXPLORED_STRAYS, FusionOptions, log_sum_exp};

/// Number of orders of the pictures that are tried.
const ORDERS: usize = 8;

/// The logarithm of the evidence that times mean nothing over that of the motion; −∞ if the motion can't be contradicted.
pub(super) fn log_ratio(nodes: &[Vec<Node>], times: &[f64], options: &FusionOptions) -> f64 {
    if options.motion.aimless().is_empty() || nodes.len() < 2 {
        return f64::NEG_INFINITY;
    }
    let evidence = |nodes: &[Vec<Node>], motion: &Motion| {
        let chain = Chain::new(nodes, times, motion, motion.headings());
        chain.run(EXPLORED_STRAYS, options.breaks).log_evidence
    };
    let found = evidence(nodes, &options.motion);
    let near = options.motion.aimless().into_iter().map(|motion| evidence(nodes, &motion));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let reordered = (0..ORDERS).map(|_| {
        let order = shuffled(nodes.len(), &mut state);
        let nodes: Vec<Vec<Node>> = order.into_iter().map(|k| nodes[k].clone()).collect();
        evidence(&nodes, &options.motion)
    });
    let rivals: Vec<f64> = near.chain(reordered).collect();
    // Their sum, not their mean: a motion has to beat the best of them, not most of them.
    log_sum_exp(rivals.iter().copied()) - found
}

/// The same orders each time: results must not depend on chance.
fn shuffled(count: usize, state: &mut u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        // Knuth's multiplier for 64 bits; the upper bits are the good ones.
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(last, ((*state >> 33) % (last as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_permutations() {
        let mut state = 1;
        for count in [0, 1, 2, 7, 100] {
            let mut order = shuffled(count, &mut state);
            order.sort_unstable();
            assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
    }
}
