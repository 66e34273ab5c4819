//! A density as numbers at equal steps of latitude and longitude.

use locdiff_sphere::{Basis, Coefficients, Density, LatLon};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// Logarithms of a density per steradian, at the middles of equal steps of latitude and longitude. Values of point masses and
/// of restricted densities are interpolated between the points of cells.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GridAnswer {
    /// Values in a row.
    width: usize,
    /// Rows, from north to south.
    height: usize,
    /// Latitude of the first row, in degrees.
    first_latitude: f64,
    /// Longitude of the first value in each row, in degrees.
    first_longitude: f64,
    /// Step between two values or rows, in degrees.
    step_degrees: f64,
    /// Row by row; null where the density is zero.
    #[serde(serialize_with = "rounded")]
    #[schema(value_type = Vec<Option<f64>>)]
    log_density: Vec<f64>,
}

/// To five digits, as they are written: millions of numbers are not copied first.
fn rounded<S: Serializer>(numbers: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().map(|number| shown(*number)))
}

fn shown(number: f64) -> Option<f64> {
    Some((1e5 * number).round() / 1e5).filter(|number| number.is_finite())
}

impl GridAnswer {
    /// On one thread: others are busy with images.
    pub(crate) fn new(density: &Density, width: usize) -> GridAnswer {
        let (height, step) = (width / 2, 360.0 / width as f64);
        let (first_latitude, first_longitude) = (90.0 - 0.5 * step, -180.0 + 0.5 * step);
        let log_density = values(density, [height, width], |row, column| {
            let (latitude, longitude) =
                (first_latitude - step * row as f64, first_longitude + step * column as f64);
            LatLon::new(latitude, longitude).unwrap_or(LatLon::NORTH_POLE)
        });
        GridAnswer {
            width,
            height,
            first_latitude,
            first_longitude,
            step_degrees: step,
            log_density,
        }
    }

    /// Room for the JSON of a grid: numbers such as -123.45678, and commas.
    pub(crate) fn json_bytes(width: usize) -> usize {
        1024 + 11 * (width * width / 2)
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut json = Vec::with_capacity(GridAnswer::json_bytes(self.width));
        serde_json::to_writer(&mut json, self)?;
        Ok(json)
    }
}

/// Row by row.
fn values(
    density: &Density,
    [height, width]: [usize; 2],
    place: impl Fn(usize, usize) -> LatLon,
) -> Vec<f64> {
    let along_rows = |coefficients: &Coefficients| -> Vec<f64> {
        let function = Function::new(coefficients, width);
        (0..height).flat_map(|row| function.along(place(row, 0).latitude())).collect()
    };
    match density {
        Density::Exponential(density) => {
            let mut values = along_rows(density.coefficients());
            values.iter_mut().for_each(|value| *value -= density.log_normaliser());
            values
        }
        Density::Linear(density) => {
            let mut values = along_rows(density.coefficients());
            let log = |value: f64| value.max(0.0).ln() - density.log_normaliser();
            values.iter_mut().for_each(|value| *value = log(*value));
            values
        }
        // Every point of a gallery at every node would take hours; between the cells' points it takes none.
        _ => {
            let survey = density.survey();
            let places = (0..height * width).map(|k| place(k / width, k % width));
            places.map(|place| survey.interpolated_log_density(place)).collect()
        }
    }
}

/// Σ c·Y along parallels: there it is a sum of waves, whose sizes are sums over degrees.
struct Function<'a> {
    basis: Basis,
    coefficients: &'a Coefficients,
    /// cos and sin of πk / width, for a full turn.
    turns: Vec<[f64; 2]>,
}

impl Function<'_> {
    fn new(coefficients: &Coefficients, width: usize) -> Function<'_> {
        let turn = |k: usize| {
            let (sin, cos) = (std::f64::consts::PI * k as f64 / width as f64).sin_cos();
            [cos, sin]
        };
        let basis = Basis::new(coefficients.max_degree());
        Function { basis, coefficients, turns: (0..2 * width).map(turn).collect() }
    }

    /// At the middles of equal steps of longitude, from -180°.
    fn along(&self, latitude: f64) -> Vec<f64> {
        let max_degree = self.basis.max_degree();
        // On the prime meridian, cos mφ is one.
        let legendre = self.basis.encode(LatLon::new(latitude, 0.0).unwrap_or(LatLon::NORTH_POLE));
        let mut waves = vec![[0.0; 2]; max_degree + 1];
        for degree in 0..=max_degree {
            let order_0 = degree * degree + degree;
            for (order, wave) in waves[..=degree].iter_mut().enumerate() {
                let value = legendre.as_slice()[order_0 + order];
                wave[0] += value * self.coefficients.as_slice()[order_0 + order];
                wave[1] += value * self.coefficients.as_slice()[order_0 - order];
            }
        }
        let full = self.turns.len();
        let value = |column: usize| {
            let (step, mut at) = ((2 * column + 1 + full / 2) % full, 0);
            let mut sum = 0.0;
            for [by_cos, by_sin] in &waves {
                let [cos, sin] = self.turns[at];
                sum += by_cos * cos + by_sin * sin;
                at += step;
                at -= if at >= full { full } else { 0 };
            }
            sum
        };
        (0..full / 2).map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_exact_for_functions() {
        let mut coefficients = Coefficients::of(LatLon::new(-80.0, 150.0).expect("a place"), 19);
        coefficients.as_mut_slice()[7] = -0.4;
        for density in [Density::exponential(&coefficients), Density::linear(&coefficients)] {
            let grid = GridAnswer::new(&density, 48);
            assert_eq!(grid.log_density.len(), 24 * 48);
            let json = grid.to_json().expect("JSON");
            assert!(json.capacity() <= GridAnswer::json_bytes(48) + 4096);
            let read: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
            let numbers = read["log_density"].as_array().expect("numbers");
            assert!(
                numbers.iter().map(|n| n.as_f64()).eq(grid.log_density.iter().map(|n| shown(*n)))
            );
            for (index, found) in grid.log_density.iter().enumerate() {
                let latitude = grid.first_latitude - grid.step_degrees * (index / 48) as f64;
                let longitude = grid.first_longitude + grid.step_degrees * (index % 48) as f64;
                let place = LatLon::new(latitude, longitude).expect("a place");
                let expected = density.log_density(place);
                match shown(*found) {
                    Some(found) => assert!((found - expected).abs() < 2e-5, "{found} {expected}"),
                    None => assert_eq!(expected, f64::NEG_INFINITY),
                }
            }
        }
    }
}
