//! Sets of points that stand for the sphere in the paper's sums: free of data.

use rand::{Rng, RngExt};

use crate::LatLon;

/// Points for the paper's decoders and losses.
#[derive(Debug, Clone, PartialEq)]
pub struct Anchors {
    places: Vec<LatLon>,
}

impl Anchors {
    /// `count` points drawn uniformly from the sphere's area, as the paper does for each
    /// mini-batch.
    pub fn uniform(count: usize, rng: &mut impl Rng) -> Anchors {
        Anchors { places: (0..count).map(|_| uniform_place(rng)).collect() }
    }

    /// `count` points of a Fibonacci lattice: as even as a simple rule gives, and always
    /// the same.
    pub fn fibonacci(count: usize) -> Anchors {
        let golden_turn = 180.0 * (3.0 - 5.0_f64.sqrt());
        let places = (0..count).map(|k| {
            let height = 1.0 - (2 * k + 1) as f64 / count as f64;
            place_at(height, golden_turn * k as f64)
        });
        Anchors { places: places.collect() }
    }

    /// A given list, for example a gallery.
    pub fn from_places(places: Vec<LatLon>) -> Anchors {
        Anchors { places }
    }

    /// The points of the set, in their order.
    pub fn places(&self) -> &[LatLon] {
        &self.places
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// One point drawn uniformly from the sphere's area.
pub fn uniform_place(rng: &mut impl Rng) -> LatLon {
    let height = rng.random_range(-1.0..=1.0);
    place_at(height, rng.random_range(-180.0..180.0))
}

fn place_at(height: f64, longitude: f64) -> LatLon {
    LatLon::new(height.asin().to_degrees().clamp(-90.0, 90.0), longitude)
        .expect("arcsine in degrees is a latitude")
}
