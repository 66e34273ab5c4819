//! The cells on which one picture's place is told apart.
//!
//! Every picture has its own cells. They cover the sphere, fine where its density has mass and coarse
//! elsewhere. After a round of forward-backward, cells that got mass from the neighbors are divided too, and
//! cells without mass are dropped. Around places that are known exactly, rings of nodes resolve what is finer
//! than the smallest cell.

use std::f64::consts::{PI, TAU};
use std::ops::Range;
use std::rc::Rc;

use locdiff_sphere::{
    CubeCell, DEEPEST_CUBE_LEVEL, Density, EARTH_RADIUS_KM, LatLon, UNIFORM_NLL_NATS, UnitVector,
};

/// Cells that hold more than this part of a density are divided: a peak's cells are at most a third of its standard
/// deviation wide.
const HEAVY: f64 = 0.02;
/// The same for a coarse cover.
const COARSE: f64 = 0.06;
/// Cells with fewer points of the survey are measured by the density itself: the survey's cells have 64 points each, so
/// there the density is smooth.
const FEW_POINTS: usize = 64;
/// Cells with a smaller part of the posterior are dropped, unless the single density has mass there.
const LIGHT: f64 = 1e-5;
/// How often cells are divided to tell a picture's place from that of the track beside it.
const ROUNDS_BESIDE: usize = 4;
/// A picture has no more cells than this.
const MOST_NODES: usize = 200;
/// Rings around a known place: the first radius, the factor from one to the next, how many, and nodes of each.
const FIRST_RING_KM: f64 = 0.1;
const RING_FACTOR: f64 = 1.7;
const RINGS: usize = 10;
const RING_NODES: usize = 8;
/// A square's side over the standard deviation that stands for it along one axis. That of its points would be a
/// √12th; links as narrow as that would see single cells, and sums over cells would be off by 15 %.
const SIDE_OVER_DEVIATION: f64 = 2.74;

/// A cell, or a known place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) direction: [f64; 3],
    /// Variance per axis of a place within the cell, in radians².
    pub(super) variance: f64,
    /// The cell's part of the sphere.
    pub(super) share: f64,
    /// The evidence, integrated over the cell: the whole sphere has 1.
    pub(super) mass: f64,
    cell: Option<CubeCell>,
}

impl Node {
    pub(super) fn place(&self) -> LatLon {
        UnitVector::from_direction(self.direction).map_or(LatLon::NORTH_POLE, LatLon::from)
    }

    /// Standard deviation per axis of a place within the cell.
    pub(super) fn deviation_km(&self) -> f64 {
        self.variance.sqrt() * EARTH_RADIUS_KM
    }

    fn of_fix(place: LatLon, error_km: f64) -> Node {
        let deviation = error_km.max(0.005) / EARTH_RADIUS_KM;
        Node {
            direction: UnitVector::from(place).to_array(),
            variance: deviation * deviation,
            share: 0.0,
            mass: 1.0,
            cell: None,
        }
    }
}

/// The density of one picture relative to the uniform density.
pub(super) struct Likelihood<'a> {
    density: &'a Density,
    /// The part that is uniform: the probability that the model is wrong.
    wrong: f64,
    /// Standard deviation per axis of the picture's place from the place that is told apart.
    slack_km: f64,
    /// Numbers of the deepest cells that contain the survey's points, rising, with sums of the masses before each.
    codes: Rc<[u64]>,
    sums: Rc<[f64]>,
}

impl<'a> Likelihood<'a> {
    pub(super) fn new(density: &'a Density, wrong: f64, slack_km: f64) -> Likelihood<'a> {
        let mut points = Vec::new();
        density.survey().for_each_mass(|place, mass| {
            points.push((CubeCell::at(place, DEEPEST_CUBE_LEVEL).number(), mass));
        });
        points.sort_unstable_by_key(|(code, _)| *code);
        let total: f64 = points.iter().map(|(_, mass)| mass).sum();
        let mut sums = vec![0.0];
        let mut sum = 0.0;
        for (_, mass) in &points {
            sum += mass / total;
            sums.push(sum);
        }
        let codes = points.into_iter().map(|(code, _)| code).collect();
        Likelihood { density, wrong, slack_km, codes, sums: sums.into() }
    }

    /// Of the picture's own place.
    fn without_slack(&self) -> Likelihood<'a> {
        let (codes, sums) = (self.codes.clone(), self.sums.clone());
        Likelihood { density: self.density, wrong: self.wrong, slack_km: 0.0, codes, sums }
    }

    /// The likelihood at a place, without the uniform part: with slack, the mean over a normal distribution around it, by
    /// seven points that are exact for polynomials of degree 5.
    fn at(&self, place: LatLon) -> f64 {
        let exact = |place| (self.density.log_density(place) + UNIFORM_NLL_NATS).exp();
        if self.slack_km == 0.0 {
            return exact(place);
        }
        let around = (0..6).map(|k| place.destination(60.0 * f64::from(k), 2.0 * self.slack_km));
        0.5 * exact(place) + around.map(exact).sum::<f64>() / 12.0
    }

    /// The integral over a cell, without the uniform part.
    fn within(&self, cell: CubeCell) -> f64 {
        let codes = codes_in(cell);
        let first = self.codes.partition_point(|code| *code < codes.start);
        let last = self.codes.partition_point(|code| *code < codes.end);
        let side_km = (4.0 * PI * share_of(cell)).sqrt() * EARTH_RADIUS_KM;
        if last - first >= FEW_POINTS && side_km >= 2.0 * self.slack_km {
            return self.sums[last] - self.sums[first];
        }
        let mean = if cell.level() < DEEPEST_CUBE_LEVEL {
            cell.children().map(|part| self.at(part.centre())).iter().sum::<f64>() / 4.0
        } else {
            self.at(cell.centre())
        };
        mean * share_of(cell)
    }

    fn node(&self, cell: CubeCell, within: f64) -> Node {
        let share = share_of(cell);
        let side = (4.0 * PI * share).sqrt();
        Node {
            direction: UnitVector::from(cell.centre()).to_array(),
            variance: (side / SIDE_OVER_DEVIATION).powi(2),
            share,
            mass: (1.0 - self.wrong) * within + self.wrong * share,
            cell: Some(cell),
        }
    }

    /// Cells that cover the sphere, fine where the density has mass.
    pub(super) fn cover(&self) -> Vec<Node> {
        self.cover_with(HEAVY)
    }

    /// The same with fewer cells, for comparisons of many hypotheses.
    pub(super) fn coarse_cover(&self) -> Vec<Node> {
        self.cover_with(COARSE)
    }

    fn cover_with(&self, heavy: f64) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut open: Vec<CubeCell> = CubeCell::faces().to_vec();
        while let Some(cell) = open.pop() {
            let within = self.within(cell);
            // Coarse cells are no places at all.
            let coarse = cell.level() < 2;
            if coarse || within > heavy && cell.level() < DEEPEST_CUBE_LEVEL {
                open.extend(cell.children());
            } else {
                nodes.push(self.node(cell, within));
            }
        }
        nodes
    }

    /// Divides cells by their part of the posterior, and drops those without.
    pub(super) fn refine(&self, nodes: &[Node], posterior: &[f64]) -> Vec<Node> {
        let total: f64 = posterior.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let mut refined = Vec::new();
        for (node, part) in nodes.iter().zip(posterior) {
            let part = part / total;
            let Some(cell) = node.cell else {
                refined.push((part, node.clone()));
                continue;
            };
            if part < LIGHT && (node.mass < 1e-3 || total > 0.5) {
                continue;
            }
            if part <= HEAVY || cell.level() == DEEPEST_CUBE_LEVEL {
                refined.push((part, node.clone()));
                continue;
            }
            let mut parts = cell.children().to_vec();
            // Two steps at once where much is to be told apart.
            if part > 4.0 * HEAVY && cell.level() + 2 <= DEEPEST_CUBE_LEVEL {
                parts = parts.into_iter().flat_map(CubeCell::children).collect();
            }
            let each = part / parts.len() as f64;
            refined.extend(parts.into_iter().map(|c| (each, self.node(c, self.within(c)))));
        }
        if refined.len() > MOST_NODES {
            refined.sort_by(|a, b| b.0.total_cmp(&a.0));
            refined.truncate(MOST_NODES);
        }
        refined.into_iter().map(|(_, node)| node).collect()
    }

    /// Cells of the picture's own place with their posterior, which sums to one. `others` is what the other pictures tell about
    /// the places of the track.
    pub(super) fn beside(&self, track: &[Node], others: &[f64]) -> (Vec<Node>, Vec<f64>) {
        let own = self.without_slack();
        let slack = (self.slack_km / EARTH_RADIUS_KM).powi(2);
        let posterior = |nodes: &[Node]| -> Vec<f64> {
            let near = |node: &Node| -> f64 {
                let kernel = |(other, weight): (&Node, &f64)| {
                    let concentration = 1.0 / (slack + other.variance + node.variance);
                    let cosine: f64 =
                        (0..3).map(|axis| node.direction[axis] * other.direction[axis]).sum();
                    weight * concentration * (-concentration * (1.0 - cosine)).exp()
                };
                track.iter().zip(others).map(kernel).sum()
            };
            let masses: Vec<f64> = nodes.iter().map(|node| node.mass * near(node)).collect();
            let total = masses.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            masses.into_iter().map(|mass| mass / total).collect()
        };
        // The picture can be where the track can't.
        let mut nodes = own.cover();
        for _ in 0..ROUNDS_BESIDE {
            nodes = own.refine(&nodes, &posterior(&nodes));
        }
        let posterior = posterior(&nodes);
        (nodes, posterior)
    }

    /// Replaces the cells around known places by rings of nodes.
    pub(super) fn with_rings(&self, nodes: Vec<Node>, fixes: &[LatLon]) -> Vec<Node> {
        let outermost = FIRST_RING_KM * RING_FACTOR.powi(RINGS as i32);
        let mut nodes = nodes;
        nodes.retain(|node| {
            let deep = node.cell.is_some_and(|cell| cell.level() + 1 >= DEEPEST_CUBE_LEVEL);
            !(deep && fixes.iter().any(|fix| fix.distance_km(node.place()) < outermost))
        });
        for fix in fixes {
            let mut inner = 0.0;
            for ring in 0..=RINGS {
                let outer = FIRST_RING_KM * RING_FACTOR.powi(ring as i32);
                let count = if ring == 0 { 1 } else { RING_NODES };
                let area = PI * (outer * outer - inner * inner) / count as f64;
                let radius = if ring == 0 { 0.0 } else { 0.5 * (inner + outer) };
                for k in 0..count {
                    let place = fix.destination(360.0 * k as f64 / count as f64, radius);
                    let nearer = |other: &LatLon| {
                        other != fix && other.distance_km(place) < fix.distance_km(place)
                    };
                    if !fixes.iter().any(nearer) {
                        let share = area / (4.0 * PI * EARTH_RADIUS_KM * EARTH_RADIUS_KM);
                        let within = self.at(place) * share;
                        nodes.push(Node {
                            direction: UnitVector::from(place).to_array(),
                            variance: 4.0 * PI * share / SIDE_OVER_DEVIATION.powi(2),
                            share,
                            mass: (1.0 - self.wrong) * within + self.wrong * share,
                            cell: None,
                        });
                    }
                }
                inner = outer;
            }
        }
        nodes
    }
}

/// The only node of a known place.
pub(super) fn known(place: LatLon, error_km: f64) -> Vec<Node> {
    vec![Node::of_fix(place, error_km)]
}

fn share_of(cell: CubeCell) -> f64 {
    cell.area() / (2.0 * TAU)
}

/// The numbers of a cell's parts on the deepest level.
fn codes_in(cell: CubeCell) -> Range<u64> {
    let parts = 1 << (2 * (DEEPEST_CUBE_LEVEL - cell.level()));
    let first = cell.number() * parts;
    first..first + parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use locdiff_sphere::{Kernel, PointMasses};

    fn spread(latitude: f64, longitude: f64, width_km: f64) -> Density {
        let place = LatLon::new(latitude, longitude).unwrap();
        PointMasses::new(vec![place], &[1.0]).unwrap().spread(Kernel::new(width_km).unwrap())
    }

    #[test]
    fn cells_cover_the_sphere_and_hold_everything() {
        for density in [spread(89.0, 20.0, 50.0), spread(-10.0, 179.9, 400.0), Density::uniform()] {
            let nodes = Likelihood::new(&density, 0.05, 0.0).cover();
            let share: f64 = nodes.iter().map(|node| node.share).sum();
            let mass: f64 = nodes.iter().map(|node| node.mass).sum();
            assert!((share - 1.0).abs() < 1e-9, "{share}");
            assert!((mass - 1.0).abs() < 0.02, "{density}: {mass}");
            assert!(nodes.len() < 400, "{}", nodes.len());
        }
    }

    #[test]
    fn refining_keeps_the_mass_of_what_is_kept() {
        let density = spread(45.0, 7.0, 300.0);
        let likelihood = Likelihood::new(&density, 0.0, 0.0);
        let nodes = likelihood.cover();
        let posterior: Vec<f64> = nodes.iter().map(|node| node.mass).collect();
        let refined = likelihood.refine(&nodes, &posterior);
        let mass: f64 = refined.iter().map(|node| node.mass).sum();
        assert!((mass - 1.0).abs() < 0.03, "{mass}");
    }

    #[test]
    fn rings_add_detail_not_mass() {
        let density = spread(45.0, 7.0, 30.0);
        let likelihood = Likelihood::new(&density, 0.0, 0.0);
        let fix = LatLon::new(45.1, 7.1).unwrap();
        let near = LatLon::new(45.12, 7.1).unwrap();
        let nodes = likelihood.with_rings(likelihood.cover(), &[fix, near]);
        let mass: f64 = nodes.iter().map(|node| node.mass).sum();
        assert!((mass - 1.0).abs() < 0.35, "{mass}");
        assert!(nodes.iter().any(|node| node.deviation_km() < 0.1));
    }
}
