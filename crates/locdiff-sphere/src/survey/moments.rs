//! Means of a density: its mean vector, and its mean encoding.

use super::Survey;
use super::decisions::Cells;
use crate::{Basis, Coefficients, Decoder, LatLon, UnitVector};

/// A mean vector shorter than this has no direction worth telling.
const SHORTEST: f64 = 1e-9;
/// Places whose encodings are added up together.
const TOGETHER: usize = 256;

impl Survey<'_> {
    /// The place in the direction of the mean vector; `None` if the vectors cancel out.
    pub fn mean_place(&self) -> Option<LatLon> {
        let mut sum = [0.0; 3];
        for (vector, mass) in Cells::new(self).points() {
            (0..3).for_each(|axis| sum[axis] += mass * vector[axis]);
        }
        let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
        let direction = (length > SHORTEST).then(|| UnitVector::from_direction(sum)).flatten();
        direction.map(LatLon::from)
    }

    /// The mean of the encodings Y(u) up to a degree.
    pub fn mean_encoding(&self, max_degree: usize) -> Coefficients {
        let basis = Basis::new(max_degree);
        let mut sums = Coefficients::zeros(max_degree);
        let cells = Cells::new(self);
        let place =
            |vector| LatLon::from(UnitVector::from_direction(vector).unwrap_or(UnitVector::NORTH));
        let points: Vec<(LatLon, f64)> =
            cells.points().map(|(vector, mass)| (place(*vector), *mass)).collect();
        let mut encodings = vec![0.0_f64; TOGETHER * basis.len()];
        for part in points.chunks(TOGETHER) {
            let places: Vec<LatLon> = part.iter().map(|(place, _)| *place).collect();
            let encodings = &mut encodings[..part.len() * basis.len()];
            basis.encode_into(&places, encodings);
            for ((_, mass), encoding) in part.iter().zip(encodings.chunks_exact(basis.len())) {
                for (sum, number) in sums.as_mut_slice().iter_mut().zip(encoding) {
                    *sum += mass * number;
                }
            }
        }
        sums
    }

    /// The place p whose encoding's own density is nearest to this one in the sense of KL(q ‖ q_Y(p)): the normalizer of
    /// an encoding is the same everywhere, so that is where E(Y)·Y(p) is highest.
    pub fn nearest_encoding(&self, max_degree: usize) -> LatLon {
        Decoder::new(max_degree).mode(&self.mean_encoding(max_degree)).place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Density, Kernel, PointMasses};

    fn at(latitude: f64, longitude: f64) -> LatLon {
        LatLon::new(latitude, longitude).expect("a place")
    }

    #[test]
    fn the_mean_of_points_is_that_of_their_vectors_and_crosses_the_antimeridian() {
        let kernel = Kernel::new(50.0).expect("a width");
        let points = vec![at(10.0, 179.0), at(10.0, -179.0)];
        let density = PointMasses::new(points, &[1.0, 1.0]).expect("points").spread(kernel);
        let mean = density.survey().mean_place().expect("they don't cancel out");
        assert!(mean.distance_km(at(10.0, 180.0)) < 5.0, "{mean}");
        assert_eq!(Density::uniform().survey().mean_place(), None);
    }

    /// d log A(e) / d e = E[Y]: compared with differences of the normalizer.
    #[test]
    fn mean_encodings_are_the_gradient_of_the_normaliser() {
        let mut e = Coefficients::of(at(-60.0, 100.0), 5);
        e.as_mut_slice().iter_mut().enumerate().for_each(|(k, c)| *c *= 1.0 + 0.3 * k as f64 % 2.0);
        let log_normaliser = |e: &Coefficients| match Density::exponential(e) {
            Density::Exponential(density) => density.log_normaliser(),
            _ => unreachable!("an exponential"),
        };
        let moments = Density::exponential(&e).survey().mean_encoding(5);
        for index in [0, 1, 7, 20, 35] {
            let moved = |by: f64| {
                let mut e = e.clone();
                e.as_mut_slice()[index] += by;
                log_normaliser(&e)
            };
            let slope = (moved(1e-3) - moved(-1e-3)) / 2e-3;
            assert!((slope - moments.as_slice()[index]).abs() < 1e-4, "{index}: {slope}");
        }
    }

    #[test]
    fn a_single_encoding_is_nearest_to_itself() {
        let place = at(89.0, -30.0);
        let density = Density::exponential(&Coefficients::of(place, 15));
        let nearest = density.survey().nearest_encoding(15);
        assert!(nearest.distance_km(place) < 1.0, "{nearest}");
    }
}
