//! Forward-backward over the pictures of one outing.
//!
//! A chain visits pictures in the order of their times. Each picture either belongs to the chain, then its place
//! follows from the last one that did by the motion, or it is a stray and its place is independent. The weights,
//! relative to "all pictures are strays", which has 1:
//!
//! * δ for every stray, (1 − δ)·(evidence) for every other picture,
//! * (1 − ρ)·(kernel of the motion) for every link, over at most [`REACH`] − 1 strays,
//! * ρ for every break: the chain begins anew at an unknown place.
//!
//! Sums are kept in units of the sum over everything so far, so that they neither overflow nor underflow.

use super::motion::{Motion, Weight};
use super::support::Node;
use locdiff_sphere::{LatLon, UnitVector};

/// A link leads to one of so many next pictures.
pub(super) const REACH: usize = 4;
/// Pairs whose kernel is below this are left out: a break, which leads anywhere, has as much. Not relative to the largest
/// kernel, which would cut off the fast ways to travel and with them the regions.
const NEGLIGIBLE: f64 = 1e-3;
/// Directions are asked within so many standard deviations.
const WINDOW: f64 = 2.6;

/// One pair of cells of two pictures. Directions are in bins.
#[derive(Debug, Clone, Copy)]
struct Pair {
    from: u32,
    to: u32,
    weight: f32,
    /// The first bin at the first cell that leads to the second, and how many do.
    low: u16,
    count: u16,
    /// The density of the first of them (the mean over all directions is 1). That of the next is `ratio` times as much, and the
    /// ratio after that is `bend` times as much: a normal distribution by multiplication only.
    share: f32,
    ratio: f32,
    bend: f32,
    /// The bin at the second cell that the first bin leads to, and the part that falls into the one after it.
    arrival: u16,
    part: f32,
}

/// The pairs between two pictures.
#[derive(Debug, Default)]
struct Link {
    pairs: Vec<Pair>,
}

/// All pictures of an outing with the links between them.
pub(super) struct Chain<'a> {
    nodes: &'a [Vec<Node>],
    headings: usize,
    /// Of each picture, probabilities of a chain's first directions at its cells.
    starts: Vec<Vec<f64>>,
    /// `links[j][r]` leads to picture j from picture j − 1 − r.
    links: Vec<Vec<Link>>,
}

/// Probabilities, given a share of strays.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// The logarithm of the evidence, against all pictures being strays.
    pub(super) log_evidence: f64,
    pub(super) pictures: Vec<Marginal>,
}

/// What is known of one picture.
#[derive(Debug, Clone)]
pub(super) struct Marginal {
    /// Probabilities of its cells, if it is linked to another picture; together the probability that it is.
    pub(super) posterior: Vec<f64>,
    /// What the earlier pictures alone predict for each cell, and the later ones, as densities up to a factor.
    pub(super) before: Vec<f64>,
    pub(super) after: Vec<f64>,
    /// Of the links from each of the last [`REACH`] pictures, the part of the posterior.
    pub(super) from: [f64; REACH],
}

impl<'a> Chain<'a> {
    /// `headings` directions are told apart, or none if it is 1: faster, and good enough to find out which cells matter.
    pub(super) fn new(
        nodes: &'a [Vec<Node>],
        times: &[f64],
        motion: &Motion,
        headings: usize,
    ) -> Chain<'a> {
        let start = times.first().copied().unwrap_or(0.0);
        let frame = |node: &Node, time: f64| Frame::of(node, motion.turn(time - start));
        let frames: Vec<Vec<Frame>> = nodes
            .iter()
            .zip(times)
            .map(|(nodes, time)| nodes.iter().map(|node| frame(node, *time)).collect())
            .collect();
        let link = |from: usize, to: usize| {
            let step = motion.step(times[to] - times[from]);
            if step.is_idle() {
                return Link::default();
            }
            let mut pairs = Vec::new();
            for (x, here) in nodes[from].iter().enumerate() {
                for (y, there) in nodes[to].iter().enumerate() {
                    let cosine = dot(frames[from][x].up, frames[to][y].up);
                    let weight = step.weight(cosine, here.variance + there.variance);
                    if weight.density > NEGLIGIBLE {
                        let (x, y) = (x as u32, y as u32);
                        pairs.push((x, y, weight));
                    }
                }
            }
            let pairs = pairs.into_iter().map(|(from_node, to_node, weight)| {
                let (x, y) = (from_node as usize, to_node as usize);
                let (leaving, arriving) = if headings > 1 {
                    bearings(&frames[from][x], &frames[to][y], step.is_ahead())
                } else {
                    (0.0, 0.0)
                };
                Pair::new([from_node, to_node], &weight, [leaving, arriving], headings)
            });
            Link { pairs: pairs.collect() }
        };
        let links = (0..nodes.len())
            .map(|to| (0..REACH.min(to)).map(|r| link(to - 1 - r, to)).collect())
            .collect();
        let directions = motion.directions(headings);
        let start = |frame: &Frame| {
            let even = 1.0 / headings as f64;
            directions.at(frame.up).iter().map(move |density| even * density).collect::<Vec<_>>()
        };
        let starts = frames.iter().map(|frames| frames.iter().flat_map(start).collect());
        Chain { nodes, headings, starts: starts.collect(), links }
    }

    /// Forward and backward, for shares of strays and of breaks.
    pub(super) fn run(&self, stray: f64, rupture: f64) -> Outcome {
        let (count, bins) = (self.nodes.len(), self.headings);
        // The logarithm of the sum over everything up to a picture.
        let mut totals = vec![0.0; count];
        let before = |totals: &[f64], j: usize| if j == 0 { 0.0 } else { totals[j - 1] };
        let mut forward: Vec<Vec<f64>> = Vec::with_capacity(count);
        let mut predictions: Vec<Vec<f64>> = Vec::with_capacity(count);
        // What a picture would have if it were the only one of its chain, in units of its evidence.
        let mut alone = vec![0.0; count];
        for j in 0..count {
            let so_far = before(&totals, j);
            let first = (1.0 - rupture) * stray.powi(j as i32) * (-so_far).exp();
            let mut prediction: Vec<f64> =
                self.starts[j].iter().map(|start| (rupture + first) * start).collect();
            for (r, link) in self.links[j].iter().enumerate() {
                let i = j - 1 - r;
                let factor = (1.0 - rupture) * stray.powi(r as i32) * (totals[i] - so_far).exp();
                link.forward(&forward[i], &mut prediction, bins, factor);
            }
            let mut state = prediction.clone();
            for (node, row) in self.nodes[j].iter().zip(state.chunks_exact_mut(bins)) {
                row.iter_mut().for_each(|value| *value *= (1.0 - stray) * node.mass);
            }
            let grown = state.iter().sum::<f64>() + stray;
            totals[j] = so_far + grown.ln();
            state.iter_mut().for_each(|value| *value /= grown);
            alone[j] = (rupture + first) * (1.0 - stray) / grown;
            forward.push(state);
            predictions.push(prediction);
        }
        let end = totals.last().copied().unwrap_or(0.0);
        // What follows a picture that belongs to the chain; times the evidence of that picture itself.
        let mut backward: Vec<Vec<f64>> = vec![Vec::new(); count];
        let mut weighted: Vec<Vec<f64>> = vec![Vec::new(); count];
        let (mut restart, mut anew) = (0.0, 0.0);
        for i in (0..count).rev() {
            if i + 1 < count {
                let step = (totals[i] - totals[i + 1]).exp();
                restart = step * (anew + stray * restart);
            }
            let rest = stray.powi((count - 1 - i) as i32) * (totals[i] - end).exp();
            let base = rupture * restart + rest;
            alone[i] *= base;
            let mut state = vec![base; self.nodes[i].len() * bins];
            for r in 0..REACH {
                let j = i + 1 + r;
                if j < count {
                    let factor =
                        (1.0 - rupture) * stray.powi(r as i32) * (totals[i] - totals[j]).exp();
                    self.links[j][r].backward(&weighted[j], &mut state, bins, factor);
                }
            }
            let mut scaled = state.clone();
            for (node, row) in self.nodes[i].iter().zip(scaled.chunks_exact_mut(bins)) {
                row.iter_mut().for_each(|value| *value *= (1.0 - stray) * node.mass);
            }
            anew = scaled.iter().zip(&self.starts[i]).map(|(value, start)| value * start).sum();
            backward[i] = state;
            weighted[i] = scaled;
        }
        let pictures = (0..count).map(|j| {
            let rows = |values: &[f64]| -> Vec<f64> {
                values.chunks_exact(bins).map(|row| row.iter().sum()).collect()
            };
            let both: Vec<f64> = forward[j].iter().zip(&backward[j]).map(|(a, b)| a * b).collect();
            let single = rows(&self.starts[j]).into_iter().zip(&self.nodes[j]);
            let single = single.map(|(start, node)| alone[j] * start * node.mass);
            let posterior = rows(&both).into_iter().zip(single);
            let posterior = posterior.map(|(both, single)| (both - single).max(0.0));
            Marginal {
                posterior: posterior.collect(),
                before: rows(&predictions[j]),
                after: rows(&backward[j]),
                from: self.sources(j, &forward, &weighted[j], |r| {
                    stray.powi(r as i32) * (totals[j - 1 - r] - totals[j]).exp()
                }),
            }
        });
        Outcome { log_evidence: end, pictures: pictures.collect() }
    }

    /// Of the links to a picture from each of the last ones, the part of the posterior, directions aside.
    fn sources(
        &self,
        j: usize,
        forward: &[Vec<f64>],
        weighted: &[f64],
        factor: impl Fn(usize) -> f64,
    ) -> [f64; REACH] {
        let rows = |values: &[f64]| -> Vec<f64> {
            values.chunks_exact(self.headings).map(|row| row.iter().sum()).collect()
        };
        let weighted = rows(weighted);
        let mut from = [0.0; REACH];
        for (r, link) in self.links[j].iter().enumerate() {
            let mut part = vec![0.0; weighted.len()];
            link.forward(&rows(&forward[j - 1 - r]), &mut part, 1, factor(r));
            from[r] = part.iter().zip(&weighted).map(|(a, b)| a * b).sum();
        }
        from
    }
}

impl Link {
    fn forward(&self, from: &[f64], to: &mut [f64], bins: usize, factor: f64) {
        if factor == 0.0 {
            return;
        }
        for pair in &self.pairs {
            let weight = factor * f64::from(pair.weight);
            let (x, y) = (pair.from as usize, pair.to as usize);
            if bins == 1 {
                to[y] += weight * from[x];
                continue;
            }
            let (from, to) = (&from[x * bins..][..bins], &mut to[y * bins..][..bins]);
            pair.for_each_bin(bins, |bin, share, lower, upper, part| {
                let value = weight * share * from[bin];
                to[lower] += (1.0 - part) * value;
                to[upper] += part * value;
            });
        }
    }

    /// The transpose of [`Link::forward`].
    fn backward(&self, to: &[f64], from: &mut [f64], bins: usize, factor: f64) {
        if factor == 0.0 {
            return;
        }
        for pair in &self.pairs {
            let weight = factor * f64::from(pair.weight);
            let (x, y) = (pair.from as usize, pair.to as usize);
            if bins == 1 {
                from[x] += weight * to[y];
                continue;
            }
            let (from, to) = (&mut from[x * bins..][..bins], &to[y * bins..][..bins]);
            pair.for_each_bin(bins, |bin, share, lower, upper, part| {
                from[bin] += weight * share * ((1.0 - part) * to[lower] + part * to[upper]);
            });
        }
    }
}

impl Pair {
    /// The directions at both ends are in degrees.
    fn new([from, to]: [u32; 2], weight: &Weight, directions: [f64; 2], bins: usize) -> Pair {
        let [leaving, arriving] = directions.map(|degrees| degrees * bins as f64 / 360.0);
        // Bins are as wide as one.
        let blur = (weight.blur / std::f64::consts::TAU * bins as f64).hypot(0.5);
        let (low, high, [share, ratio, bend]) = if blur > 0.2 * bins as f64 {
            (0, bins as i64 - 1, [1.0; 3])
        } else {
            let low = (leaving - WINDOW * blur).ceil();
            let high = (leaving + WINDOW * blur).floor();
            let (first, step) = ((low - leaving) / blur, 1.0 / blur);
            let peak = bins as f64 / (blur * std::f64::consts::TAU.sqrt());
            let share = peak * (-0.5 * first * first).exp();
            let ratio = (-first * step - 0.5 * step * step).exp();
            (low as i64, high as i64, [share, ratio, (-step * step).exp()])
        };
        let wrapped = |bin: i64| bin.rem_euclid(bins as i64) as u16;
        let turn = arriving - leaving;
        Pair {
            from,
            to,
            weight: weight.density as f32,
            low: wrapped(low),
            count: (high - low + 1).clamp(0, bins as i64) as u16,
            share: share as f32,
            ratio: ratio as f32,
            bend: bend as f32,
            arrival: wrapped(low + turn.floor() as i64),
            part: (turn - turn.floor()) as f32,
        }
    }

    /// Hears the bins at the first cell that lead to the second, the density of each, and the two bins at the second cell that
    /// the direction falls between, with the part of the latter.
    fn for_each_bin(&self, bins: usize, mut hear: impl FnMut(usize, f64, usize, usize, f64)) {
        let next = |bin: usize| if bin + 1 == bins { 0 } else { bin + 1 };
        let (mut bin, mut lower) = (usize::from(self.low), usize::from(self.arrival));
        let (mut share, mut ratio) = (f64::from(self.share), f64::from(self.ratio));
        for _ in 0..self.count {
            let upper = next(lower);
            hear(bin, share, lower, upper, f64::from(self.part));
            share *= ratio;
            ratio *= f64::from(self.bend);
            bin = next(bin);
            lower = upper;
        }
    }
}

/// The directions of a flight from one place to another at both ends, in degrees.
fn bearings(here: &Frame, there: &Frame, ahead: bool) -> (f64, f64) {
    let leaving = here.bearing_to(there.up);
    let arriving = there.bearing_to(here.up) + 180.0;
    let round = if ahead { 0.0 } else { 180.0 };
    (leaving + round, arriving + round)
}

/// A place with the directions east and north there.
struct Frame {
    up: [f64; 3],
    east: [f64; 3],
    north: [f64; 3],
}

impl Frame {
    /// Of a place that the Earth has carried eastward by an angle.
    fn of(node: &Node, turn: f64) -> Frame {
        let [x, y, z] = node.direction;
        let (sin, cos) = turn.sin_cos();
        let (x, y) = (cos * x - sin * y, sin * x + cos * y);
        let across = x.hypot(y);
        // At a pole every direction is as good as any other, as long as it is the same each time.
        let (cos, sin) = if across > 0.0 { (x / across, y / across) } else { (1.0, 0.0) };
        Frame { up: [x, y, z], east: [-sin, cos, 0.0], north: [-z * cos, -z * sin, across] }
    }

    /// Degrees clockwise from north.
    fn bearing_to(&self, there: [f64; 3]) -> f64 {
        dot(there, self.east).atan2(dot(there, self.north)).to_degrees()
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The direction of a weighted mean of nodes.
pub(super) fn mean_of<'n>(nodes: impl Iterator<Item = (f64, &'n Node)>) -> Option<LatLon> {
    let mut sum = [0.0; 3];
    for (weight, node) in nodes {
        (0..3).for_each(|axis| sum[axis] += weight * node.direction[axis]);
    }
    UnitVector::from_direction(sum).map(LatLon::from)
}
