//! What moved a fused density, and by how much.

use locdiff_sphere::LatLon;

use super::chain::{Marginal, REACH, mean_of};
use super::support::Node;

/// Influences below this are not listed.
const LEAST_NATS: f64 = 0.01;
/// Nodes so near the densest one belong to the same peak.
const PEAK_KM: f64 = 150.0;

/// One thing that moved a density.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Influence {
    /// The neighbor, track or area that had this influence.
    pub source: Source,
    /// The Kullback-Leibler divergence from the density without this influence to the density with it.
    pub nats: f64,
    /// How far the most probable place would be from where it is, without. Of an earlier sighting: without all earlier ones
    /// together.
    pub moved_km: f64,
}

/// Where an influence came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// An earlier sighting, by its number among those that were fused.
    Earlier(usize),
    /// All later sightings together.
    Later,
    /// The picture itself, against what the others say.
    Itself,
}

/// The influences on a picture whose cells are given. `earlier` are the numbers of the sightings before it.
pub(super) fn of(
    nodes: &[Node],
    marginal: &Marginal,
    belongs: f64,
    earlier: &[usize],
) -> Vec<Influence> {
    let posterior = &marginal.posterior;
    let without_before = |k: usize| nodes[k].mass * marginal.after[k];
    let without_after = |k: usize| nodes[k].mass * marginal.before[k];
    let without_itself = |k: usize| {
        if nodes[k].mass > 0.0 { posterior[k] / nodes[k].mass * nodes[k].share } else { 0.0 }
    };
    let here = summit(nodes, |k| posterior[k]);
    let gain = |without: &dyn Fn(usize) -> f64| {
        let moved = summit(nodes, without).zip(here).map_or(0.0, |(a, b)| a.distance_km(b));
        (belongs * divergence(posterior, without), moved)
    };
    let mut influences = Vec::new();
    let (nats, moved_km) = gain(&without_before);
    let linked: f64 = marginal.from.iter().sum();
    for r in 0..REACH.min(earlier.len()) {
        let source = Source::Earlier(earlier[earlier.len() - 1 - r]);
        let share = if linked > 0.0 { marginal.from[r] / linked } else { 0.0 };
        influences.push(Influence { source, nats: share * nats, moved_km });
    }
    let (nats, moved_km) = gain(&without_after);
    influences.push(Influence { source: Source::Later, nats, moved_km });
    let (nats, moved_km) = gain(&without_itself);
    influences.push(Influence { source: Source::Itself, nats, moved_km });
    influences.retain(|influence| influence.nats > LEAST_NATS);
    influences.sort_by(|a, b| b.nats.total_cmp(&a.nats));
    influences
}

/// The Kullback-Leibler divergence of one distribution over the nodes from another, both up to a factor.
fn divergence(of: &[f64], from: &dyn Fn(usize) -> f64) -> f64 {
    let total: f64 = of.iter().sum();
    let other: f64 = (0..of.len()).map(from).sum();
    if total <= 0.0 || other <= 0.0 {
        return 0.0;
    }
    let nats = (0..of.len()).filter(|k| of[*k] > 0.0).map(|k| {
        let (p, q) = (of[k] / total, (from(k) / other).max(f64::MIN_POSITIVE));
        p * (p / q).ln()
    });
    nats.sum::<f64>().max(0.0)
}

/// The most probable place: the mean of the nodes around the densest one.
pub(super) fn summit(nodes: &[Node], mass: impl Fn(usize) -> f64) -> Option<LatLon> {
    let density = |k: usize| mass(k) / nodes[k].share.max(1e-12);
    let top = (0..nodes.len()).max_by(|a, b| density(*a).total_cmp(&density(*b)))?;
    let place = nodes[top].place();
    let near = nodes.iter().enumerate().filter(|(_, n)| n.place().distance_km(place) < PEAK_KM);
    mean_of(near.map(|(k, node)| (mass(k), node))).or(Some(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divergence_is_zero_for_the_same_and_positive_otherwise() {
        let of = [0.2, 0.3, 0.5];
        assert!(divergence(&of, &|k| 7.0 * of[k]).abs() < 1e-12);
        let other = [0.5, 0.3, 0.2];
        let expected = 0.3 * (0.5_f64 / 0.2).ln();
        assert!((divergence(&of, &|k| other[k]) - expected).abs() < 1e-12);
    }
}
