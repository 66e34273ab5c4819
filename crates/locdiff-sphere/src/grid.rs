//! A grid of rings and longitudes on which integrals of band-limited functions are exact.
//!
//! Rings lie at Gauss-Legendre colatitudes, from north to south; on each, longitudes are
//! equispaced from 0° eastwards. A function of degree at most D is integrated exactly if
//! `rings` ≥ (D + 1)/2 and `longitudes` > D.

use std::ops::Range;

use crate::LatLon;
use crate::direction::Colatitude;
use crate::legendre::{Legendre, Rows, UNSCALE};
use crate::quadrature::{Node, northern_nodes};

/// Gauss-Legendre rings × equispaced longitudes, with quadrature weights.
///
/// ```
/// use locdiff_sphere::Grid;
///
/// let grid = Grid::new(8, 16);
/// let area: f64 = (0..grid.rings()).map(|ring| grid.weight(ring) * 16.0).sum();
/// assert!((area - 4.0 * std::f64::consts::PI).abs() < 1e-14);
/// ```
#[derive(Debug, Clone)]
pub struct Grid {
    rings: usize,
    longitudes: usize,
    /// The rings from the north pole to the equator; the others mirror them.
    pub(crate) northern: Vec<Node>,
}

impl Grid {
    /// A grid of `rings` × `longitudes` points.
    ///
    /// # Panics
    /// If either is zero.
    pub fn new(rings: usize, longitudes: usize) -> Grid {
        assert!(rings > 0 && longitudes > 0, "a grid needs at least one ring and one longitude");
        Grid { rings, longitudes, northern: northern_nodes(rings) }
    }

    /// The smallest grid on which analysis of functions up to `max_degree` is exact:
    /// max_degree + 1 rings, 2·max_degree + 2 longitudes.
    pub fn exact(max_degree: usize) -> Grid {
        Grid::new(max_degree + 1, 2 * max_degree + 2)
    }

    /// Number of rings of latitude.
    pub fn rings(&self) -> usize {
        self.rings
    }

    /// Number of longitudes on each ring.
    pub fn longitudes(&self) -> usize {
        self.longitudes
    }

    /// Number of points. Point `ring · longitudes + longitude` of an array of values.
    pub fn len(&self) -> usize {
        self.rings * self.longitudes
    }

    /// Never: a grid has at least one point.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Colatitude of a ring in radians; ring 0 is the northernmost.
    pub fn colatitude(&self, ring: usize) -> f64 {
        let (node, south) = self.node(ring);
        if south { std::f64::consts::PI - node.colatitude } else { node.colatitude }
    }

    /// Quadrature weight of each point of a ring, in steradians: they sum to 4π.
    pub fn weight(&self, ring: usize) -> f64 {
        self.node(ring).0.weight * std::f64::consts::TAU / self.longitudes as f64
    }

    /// The place of a grid point.
    pub fn place(&self, ring: usize, longitude: usize) -> LatLon {
        let (node, south) = self.node(ring);
        let latitude = 90.0 - node.colatitude.to_degrees();
        let longitude = 360.0 * longitude as f64 / self.longitudes as f64;
        LatLon::new(if south { -latitude } else { latitude }, longitude)
            .expect("ring colatitudes lie between the poles")
    }

    /// ∫ f over the sphere, from the values at the grid's points.
    ///
    /// # Panics
    /// If `values` has another size than the grid.
    pub fn integrate(&self, values: &[f64]) -> f64 {
        assert_eq!(values.len(), self.len(), "values do not fit the grid");
        let rings = values.chunks_exact(self.longitudes).enumerate();
        rings.map(|(ring, row)| self.weight(ring) * row.iter().sum::<f64>()).sum()
    }

    /// The matrix of one order as a plain array `[degree − order, ring]`, row-major: the
    /// functions p_lm of θ (see [`crate::Basis`]) for l = order..=max_degree at each ring.
    ///
    /// Synthesis is this matrix applied to the cosine and sine coefficients of the order,
    /// then a Fourier sum along each ring; analysis is its transpose with the weights.
    ///
    /// # Panics
    /// If `order` exceeds `max_degree`.
    pub fn order_matrix(&self, max_degree: usize, order: usize) -> Vec<f64> {
        assert!(order <= max_degree, "order {order} exceeds max degree {max_degree}");
        self.matrices(max_degree, order..order + 1).swap_remove(0)
    }

    /// [`Grid::order_matrix`] for every order from 0 to `max_degree`, at the cost of one.
    pub fn order_matrices(&self, max_degree: usize) -> Vec<Vec<f64>> {
        self.matrices(max_degree, 0..max_degree + 1)
    }

    fn matrices(&self, max_degree: usize, orders: Range<usize>) -> Vec<Vec<f64>> {
        let size = |order: usize| (max_degree + 1 - order) * self.rings;
        let mut matrices: Vec<Vec<f64>> = orders.clone().map(|m| vec![0.0; size(m)]).collect();
        let legendre = Legendre::new(max_degree);
        let mut rows = Rows::new(max_degree);
        for (ring, node) in self.northern.iter().enumerate() {
            let mirror = self.rings - 1 - ring;
            let theta = Colatitude::from_radians(node.colatitude);
            let mut walk = legendre.walk(theta, &mut rows);
            while let Some((l, p)) = walk.next() {
                for (matrix, m) in matrices.iter_mut().zip(orders.clone()).filter(|(_, m)| *m <= l)
                {
                    let row = &mut matrix[(l - m) * self.rings..][..self.rings];
                    let value = p[m] * UNSCALE;
                    row[mirror] = if (l + m) % 2 == 0 { value } else { -value };
                    row[ring] = value;
                }
            }
        }
        matrices
    }

    fn node(&self, ring: usize) -> (Node, bool) {
        assert!(ring < self.rings, "ring {ring} of a grid with {} rings", self.rings);
        let south = ring >= self.northern.len();
        (self.northern[if south { self.rings - 1 - ring } else { ring }], south)
    }
}
