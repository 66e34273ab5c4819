//! Other encodings of places, each of 576 numbers like SHDD's at L = 23.

use locdiff_sphere::{Basis, LatLon, UnitVector};

/// As many as (23 + 1)².
pub const NUMBERS: usize = 576;
const RBF_WIDTH: f64 = 0.3;
const SMALLEST_RADIUS: f64 = 0.01;

/// From a place to numbers.
pub enum Encoding {
    /// Gaussian kernels around places of training (Mai et al. 2020), over chords.
    Rbf { centres: Vec<[f64; 3]> },
    /// Sphere2Vec-sphereC (Mai et al. 2023): sin φ/r, cos φ/r·cos λ/r, cos φ/r·sin λ/r for 192 radii r from
    /// 0.01 to 1 in equal ratios.
    Sphere2Vec,
    /// SHDD, L = 23.
    Harmonics(Box<Basis>),
}

impl Encoding {
    pub fn rbf(places: &[LatLon]) -> Encoding {
        let centres = places.iter().take(NUMBERS).map(|place| UnitVector::from(*place).to_array());
        Encoding::Rbf { centres: centres.collect() }
    }

    pub fn harmonics() -> Encoding {
        Encoding::Harmonics(Box::new(Basis::new(23)))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Encoding::Rbf { .. } => "rbf",
            Encoding::Sphere2Vec => "Sphere2Vec",
            Encoding::Harmonics(_) => "SHDD (L = 23)",
        }
    }

    /// Row by row.
    pub fn of(&self, places: &[LatLon]) -> Vec<f32> {
        let mut numbers = Vec::with_capacity(places.len() * NUMBERS);
        match self {
            Encoding::Rbf { centres } => {
                for place in places {
                    let place = UnitVector::from(*place).to_array();
                    numbers.extend(centres.iter().map(|centre| {
                        let squared: f64 = (0..3).map(|k| (place[k] - centre[k]).powi(2)).sum();
                        (-squared / (2.0 * RBF_WIDTH * RBF_WIDTH)).exp() as f32
                    }));
                }
            }
            Encoding::Sphere2Vec => {
                let scales = NUMBERS / 3;
                let radii: Vec<f64> = (0..scales)
                    .map(|k| SMALLEST_RADIUS.powf(k as f64 / (scales - 1) as f64))
                    .collect();
                for place in places {
                    let (latitude, longitude) =
                        (place.latitude().to_radians(), place.longitude().to_radians());
                    for radius in &radii {
                        let (sin, cos) = (latitude / radius).sin_cos();
                        let (sin_east, cos_east) = (longitude / radius).sin_cos();
                        numbers.extend([sin, cos * cos_east, cos * sin_east].map(|x| x as f32));
                    }
                }
            }
            Encoding::Harmonics(basis) => {
                numbers.resize(places.len() * NUMBERS, 0.0);
                basis.encode_into(places, &mut numbers);
            }
        }
        numbers
    }
}
