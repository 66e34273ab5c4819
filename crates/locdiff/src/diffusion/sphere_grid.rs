//! The sphere's transforms as tensor operations: they differentiate, on every backend.
//!
//! On rings × equispaced longitudes the harmonics separate, so synthesis is one small matrix
//! product over the degree for each order, then one Fourier product. Orders −L … L are the
//! rows 0 … 2L; coefficients that don't exist (l < |m|) are zeros.

use std::f64::consts::TAU;

use burn::tensor::{Device, Int, Tensor, TensorData};
use locdiff_sphere::{Basis, Grid, LatLon, coefficient_count};

/// Functions of coefficients on a grid, and back.
#[derive(Debug, Clone)]
pub struct SphereGrid {
    max_degree: usize,
    grid: Grid,
    /// p_l|m|(θ) `[order, degree, ring]`.
    legendre: Tensor<3>,
    /// cos mφ, or sin |m|φ for m < 0: `[order, longitude]`.
    fourier: Tensor<2>,
    /// Logarithms of the nodes' areas `[1, ring · longitude]`.
    log_areas: Tensor<2>,
    /// Where coefficient (order, degree) stands, and the reverse.
    place_of_order: Tensor<1, Int>,
    order_of_place: Tensor<1, Int>,
}

impl SphereGrid {
    /// Prepares a grid for functions up to `max_degree`.
    ///
    /// # Panics
    /// If the grid has fewer than 2·max_degree + 1 longitudes.
    pub fn new(grid: Grid, max_degree: usize, device: &Device) -> SphereGrid {
        let (orders, degrees, rings) = (2 * max_degree + 1, max_degree + 1, grid.rings());
        let longitudes = grid.longitudes();
        assert!(
            longitudes >= orders,
            "{longitudes} longitudes, degree {max_degree} needs {orders}"
        );
        let mut legendre = vec![0.0_f32; orders * degrees * rings];
        let basis = Basis::new(max_degree);
        for ring in 0..rings {
            // On the meridian of Greenwich only the cosines remain: Y_lm = p_lm.
            let meridian = basis.encode(grid.place(ring, 0));
            for l in 0..=max_degree {
                for m in 0..=l {
                    let value = meridian.get(l, m as isize) as f32;
                    for order in [max_degree + m, max_degree - m] {
                        legendre[(order * degrees + l) * rings + ring] = value;
                    }
                }
            }
        }
        let log_areas = (0..rings * longitudes).map(|k| grid.weight(k / longitudes).ln() as f32);
        let missing = coefficient_count(max_degree) as i32;
        let mut place_of_order = vec![missing; orders * degrees];
        let mut order_of_place = vec![0; coefficient_count(max_degree)];
        for l in 0..=max_degree {
            for place in l * l..(l + 1) * (l + 1) {
                // l² + l + m, so m + L is:
                let order = place + max_degree - l * l - l;
                place_of_order[order * degrees + l] = place as i32;
                order_of_place[place] = (order * degrees + l) as i32;
            }
        }
        let count = rings * longitudes;
        SphereGrid {
            max_degree,
            legendre: tensor(legendre, [orders, degrees, rings], device),
            fourier: fourier(max_degree, longitudes, 0.0, device),
            log_areas: tensor(log_areas.collect(), [1, count], device),
            place_of_order: indices(place_of_order, device),
            order_of_place: indices(order_of_place, device),
            grid,
        }
    }

    /// The same grid, its longitudes turned eastwards by an angle in radians.
    #[must_use]
    pub fn turned(&self, angle: f64) -> SphereGrid {
        let device = self.fourier.device();
        let fourier = fourier(self.max_degree, self.grid.longitudes(), angle, &device);
        SphereGrid { fourier, ..self.clone() }
    }

    /// Number of rings.
    pub fn rings(&self) -> usize {
        self.grid.rings()
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.grid.len()
    }

    /// Never: a grid has nodes.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The logarithm of each node's area, `[1, nodes]`.
    pub fn log_areas(&self) -> Tensor<2> {
        self.log_areas.clone()
    }

    /// F at the nodes `[batch, nodes]` from coefficients `[batch, d]`.
    pub fn synthesize(&self, coefficients: Tensor<2>) -> Tensor<2> {
        let [batch, _] = coefficients.dims();
        let (orders, degrees) = (2 * self.max_degree + 1, self.max_degree + 1);
        let (rings, longitudes) = (self.grid.rings(), self.grid.longitudes());
        let zero = Tensor::zeros([batch, 1], &coefficients.device());
        let padded = Tensor::cat(vec![coefficients, zero], 1);
        let by_order = padded
            .select(1, self.place_of_order.clone())
            .reshape([batch, orders, degrees])
            .swap_dims(0, 1); // [order, batch, degree]
        let rings_sums = by_order.matmul(self.legendre.clone()); // [order, batch, ring]
        let rings_sums = rings_sums.reshape([orders, batch * rings]).transpose();
        rings_sums.matmul(self.fourier.clone()).reshape([batch, rings * longitudes])
    }

    /// Σ values·Y over the nodes, `[batch, d]`: the mean of Y if the values are
    /// probabilities of the nodes.
    pub fn analyze(&self, values: Tensor<2>) -> Tensor<2> {
        let [batch, _] = values.dims();
        let (orders, degrees) = (2 * self.max_degree + 1, self.max_degree + 1);
        let (rings, longitudes) = (self.grid.rings(), self.grid.longitudes());
        let waves = values
            .reshape([batch * rings, longitudes])
            .matmul(self.fourier.clone().transpose()) // [batch · ring, order]
            .transpose()
            .reshape([orders, batch, rings]);
        waves
            .matmul(self.legendre.clone().swap_dims(1, 2)) // [order, batch, degree]
            .swap_dims(0, 1)
            .reshape([batch, orders * degrees])
            .select(1, self.order_of_place.clone())
    }
}

/// cos mφ, or sin |m|φ for m < 0, at longitudes that begin at `first`: `[order, longitude]`.
fn fourier(max_degree: usize, longitudes: usize, first: f64, device: &Device) -> Tensor<2> {
    let orders = 2 * max_degree + 1;
    let waves = (0..orders * longitudes).map(|k| {
        let (order, longitude) = (k / longitudes, k % longitudes);
        let phi = TAU * longitude as f64 / longitudes as f64 + first;
        let m = order as f64 - max_degree as f64;
        (if m < 0.0 { (-m * phi).sin() } else { (m * phi).cos() }) as f32
    });
    tensor(waves.collect(), [orders, longitudes], device)
}

/// Encodings Y(place) as rows, `[places, d]`.
pub fn encodings(basis: &Basis, places: &[LatLon], device: &Device) -> Tensor<2> {
    let mut values = vec![0.0_f32; places.len() * basis.len()];
    basis.encode_into(places, &mut values);
    tensor(values, [places.len(), basis.len()], device)
}

pub(crate) fn tensor<const D: usize>(
    values: Vec<f32>,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn indices(values: Vec<i32>, device: &Device) -> Tensor<1, Int> {
    let count = values.len();
    Tensor::from_data(TensorData::new(values, [count]), device)
}
